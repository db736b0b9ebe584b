"""The paper's claims, and whether they hold on a film: rules that numbers decide, and what speaks for and against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from psmt.experiments.prediction import METHODS, PhaseResult, Summary, summarise
from psmt.experiments.reproduce import Reproduction
from psmt.experiments.sweep import Combination, SweepResult
from psmt.experiments.topology import Overlap, TopologyResult
from psmt.report.numbers import percent, ratio, signed

TIE = 1e-3
"""Errors that differ by less than this fraction are called equal."""

LEVEL = 0.05
"""Largest p-value that counts against chance."""

Outcome = Literal["holds", "does not hold", "cannot be tested on this film"]
UNTESTED: Outcome = "cannot be tested on this film"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim, whether it holds, and the figures behind that."""

    key: str
    text: str
    rule: str
    """When it holds."""
    outcome: Outcome
    paper: bool = True
    """Whether the paper makes it."""
    support: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What speaks for neither, and why it cannot be tested."""
    figures: dict[str, Any] = field(default_factory=dict)
    """The numbers, for programs."""

    def summary(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "claim": self.text,
            "of": "the paper" if self.paper else "ours",
            "verdict": self.outcome,
            "rule": self.rule,
            "for": list(self.support),
            "against": list(self.against),
            "notes": list(self.notes),
            "figures": self.figures,
        }


def all_claims(done: Reproduction) -> list[Claim]:
    """The claims of the paper in its order, then what it does not ask."""
    notes = done.plan.notes
    return [
        more_atoms(done.sweep, notes.get("sweep", "")),
        more_frames(done.sweep, notes.get("sweep", "")),
        *topology_claims(done.topology, notes.get("topology", "")),
        *prediction_claims(done.phases, notes.get("prediction", "")),
    ]


# The sweep


def more_atoms(result: SweepResult | None, note: str = "") -> Claim:
    """Table 1 from top to bottom."""
    text = "More atoms help: a larger dictionary reconstructs better"
    rule = "the trimmed mean MSE is lower with the largest M than with the smallest, at each H / M"
    named: dict[str, list[tuple[str, Combination]]] = {}
    for ratio_, row in _measured(result):
        named.setdefault(f"H = {ratio_:g} M", []).append((f"M = {row.n_atoms:,}", row))
    return _trend("more_atoms", text, rule, named, note)


def more_frames(result: SweepResult | None, note: str = "") -> Claim:
    """Table 1 from left to right."""
    text = "More frames help: a longer window reconstructs better"
    rule = "the trimmed mean MSE is lower with the largest H than with the smallest, at each M"
    named: dict[str, list[tuple[str, Combination]]] = {}
    for _, row in _measured(result):
        named.setdefault(f"M = {row.n_atoms:,}", []).append((f"H = {row.window:,}", row))
    return _trend("more_frames", text, rule, named, note)


def _measured(result: SweepResult | None) -> list[tuple[float, Combination]]:
    """H / M and the figures of the combinations that the film has room for."""
    if result is None:
        return []
    ratios = result.settings.ratios
    return [(ratios[k % len(ratios)], row) for k, row in enumerate(result.table()) if not row.missing]


def _trend(key: str, text: str, rule: str, lines: dict[str, list[tuple[str, Combination]]], note: str) -> Claim:
    comparable = {head: row for head, row in lines.items() if len(row) > 1}
    if not comparable:
        sizes = "; ".join(f"{head}: only {row[0][0]}" for head, row in lines.items())
        return Claim(
            key=key,
            text=text,
            rule=rule,
            outcome=UNTESTED,
            notes=_some(note, f"nothing to compare ({sizes})" if sizes else ""),
        )
    support: list[str] = []
    against: list[str] = []
    held = []
    for head, rows in comparable.items():
        means = [row.trimmed_mean for _, row in rows]
        chain = " → ".join(f"{mean:.3g} ({name})" for mean, (name, _) in zip(means, rows, strict=True))
        falls = means[-1] < (1 - TIE) * means[0]
        held.append(falls)
        (support if falls else against).append(f"{head}: MSE {chain}")
        if falls and any(later > (1 + TIE) * earlier for earlier, later in pairwise(means)):
            against.append(f"{head}: not at every step of that chain")
        first, last = rows[0][1].mean, rows[-1][1].mean
        if falls != (last < (1 - TIE) * first):
            (against if falls else support).append(f"{head}: untrimmed, the mean goes from {first:.3g} to {last:.3g}")
    return Claim(
        key=key,
        text=text,
        rule=rule,
        outcome="holds" if all(held) else "does not hold",
        support=tuple(support),
        against=tuple(against),
        notes=_some(note),
        figures={
            head: {name: {"trimmed_mean": row.trimmed_mean, "mean": row.mean} for name, row in rows}
            for head, rows in comparable.items()
        },
    )


# The topology


def topology_claims(result: TopologyResult | None, note: str = "") -> list[Claim]:
    """Fig. 3."""
    return [
        clusters_change(result, note),
        clusters_persist(result, note),
        linked_look_alike(result, note),
    ]


def clusters_change(result: TopologyResult | None, note: str = "") -> Claim:
    """Fig. 3 (a)."""
    text = "Clusters change over time"
    rule = "fewer than half of the links in either of two distant windows are in both"
    far = _far(result)
    if result is None or far is None or not np.isfinite(far.jaccard):
        return Claim(
            key="clusters_change", text=text, rule=rule, outcome=UNTESTED, notes=_some(note, _no_links(result))
        )
    stay = result.persistence
    change = f"{percent(1 - far.jaccard)} of the links differ between {_distance(far)}"
    ever = stay.always_linked + stay.sometimes_linked
    atoms = f"of {ever:,} atoms with links, {stay.sometimes_linked:,} have them in some windows only"
    holds = far.jaccard < 0.5
    sizes = result.component_size[:, list(result.chosen)]
    chosen = ", ".join(
        f"{low} to {high} for atom {atom}"
        for atom, low, high in zip(result.chosen, sizes.min(axis=0), sizes.max(axis=0), strict=True)
    )
    return Claim(
        key="clusters_change",
        text=text,
        rule=rule,
        outcome="holds" if holds else "does not hold",
        support=_some(change if holds else "", atoms if stay.sometimes_linked else ""),
        against=_some(
            "" if holds else change,
            f"{stay.always_linked:,} atoms have links in all windows" if stay.always_linked else "",
        ),
        notes=_some(
            f"atoms in the component of those followed: {chosen}",
            "a link is lost, too, when a cosine near the threshold moves a little: not all change is the film's",
            note,
        ),
        figures={"links_in_both": far.jaccard, "frames_apart": far.frames_apart, "frames_shared": far.frames_shared}
        | {"always_linked": stay.always_linked, "sometimes_linked": stay.sometimes_linked},
    )


def clusters_persist(result: TopologyResult | None, note: str = "") -> Claim:
    """Fig. 3 (b), judged by windows without common frames: where most frames are shared, links stay by themselves."""
    text = "Clusters persist across time"
    rule = f"windows without a common frame share more links than they would by chance (p ≤ {LEVEL:g})"
    far = _far(result)
    near = None if result is None else result.persistence.successive
    built_in = ""
    if near is not None and np.isfinite(near.jaccard):
        built_in = (
            f"neighbouring windows share {percent(near.jaccard)} of their links, "
            f"but also {percent(near.frames_shared)} of their frames: that much is nearly built in"
        )
    if far is None or far.frames_shared > 0 or not np.isfinite(far.jaccard):
        reason = _no_links(result) or ("" if far is None else "no two windows are without common frames")
        return Claim(
            key="clusters_persist", text=text, rule=rule, outcome=UNTESTED, notes=_some(note, reason, built_in)
        )
    numbers = (
        f"{percent(far.jaccard)} of the links are in both of {_distance(far)}, "
        f"{percent(far.permuted)} by chance (p = {far.p_value:.2g})"
    )
    holds = far.p_value <= LEVEL and far.jaccard > far.permuted
    return Claim(
        key="clusters_persist",
        text=text,
        rule=rule,
        outcome="holds" if holds else "does not hold",
        support=_some(numbers if holds else ""),
        against=_some(f"the other {percent(1 - far.jaccard)} do not last" if holds else numbers),
        notes=_some(built_in, note),
        figures={"distant": far.summary(), "successive": None if near is None else near.summary()},
    )


def linked_look_alike(result: TopologyResult | None, note: str = "") -> Claim:
    """Fig. 3 (c)."""
    text = "Similar in the embedding means similar as pictures"
    rule = f"linked atoms correlate more, pixel by pixel, than unlinked ones, and than by chance (p ≤ {LEVEL:g})"
    key = "linked_look_alike"
    if result is None or not np.isfinite(result.likeness.p_value):
        return Claim(key=key, text=text, rule=rule, outcome=UNTESTED, notes=_some(note, _no_links(result)))
    support: list[str] = []
    against: list[str] = []
    for name, test in (("", result.likeness), (", shifted by up to 2 pixels", result.shifted_likeness)):
        if test is not None and np.isfinite(test.p_value):
            line = (
                f"correlation{name}: {signed(test.linked)} linked, {signed(test.unlinked)} unlinked "
                f"(p = {test.p_value:.2g})"
            )
            (support if test.difference > 0 and test.p_value <= LEVEL else against).append(line)
    holds = result.likeness.difference > 0 and result.likeness.p_value <= LEVEL
    return Claim(
        key=key,
        text=text,
        rule=rule,
        outcome="holds" if holds else "does not hold",
        support=tuple(support),
        against=tuple(against),
        notes=_some(note),
        figures=result.likeness.summary(),
    )


def _far(result: TopologyResult | None) -> Overlap | None:
    """Windows without common frames, or the halves of the film; if there are none, windows that are farthest apart."""
    if result is None:
        return None
    return result.halves or result.persistence.distant


def _distance(pairs: Overlap) -> str:
    shared = "without a common frame" if pairs.frames_shared == 0 else f"{percent(pairs.frames_shared)} of them shared"
    return f"windows {pairs.frames_apart:,.0f} frames apart, {shared}"


def _no_links(result: TopologyResult | None) -> str:
    return "" if result is None or any(len(g["edges"]) for g in result.graphs) else "no two atoms are linked"


# Prediction


def prediction_claims(results: Sequence[PhaseResult], note: str = "") -> list[Claim]:
    """Fig. 4, then PSMT and its learned gain against copying, over one-step predictions."""
    phases = [(result.phase.name, {s.method: s for s in summarise(result.rows())}) for result in results]
    return [
        _dynamic(phases, note),
        _copying("beats_copying", "PSMT beats copying", "psmt", phases, note),
        _copying("gain_beats_copying", "PSMT with a learned gain beats copying", "psmt_gain", phases, note),
    ]


_Phases = Sequence[tuple[str, dict[str, Summary]]]


def _dynamic(phases: _Phases, note: str) -> Claim:
    support: list[str] = []
    against: list[str] = []
    for name, by_method in phases:
        own = by_method["psmt"].log_mse_vs_code
        for baseline in ("baseline1", "baseline2"):
            other = by_method[baseline].log_mse_vs_code
            line = f"{name}: mean log MSE vs code {signed(own)}, {METHODS[baseline]} {signed(other)}"
            (support if own < other else against).append(line)
    return Claim(
        key="dynamic_beats_static",
        text="The dynamic embedding beats the static ones: PSMT against Baselines 1 and 2",
        rule="PSMT has a lower mean log MSE vs code than both baselines in every phase",
        outcome=_decided(support, against),
        support=tuple(support),
        against=tuple(against),
        notes=_some(note, "" if not phases else "the paper reports −2.18 and −7.12 for PSMT, on its own film"),
        figures={
            name: {method: by_method[method].log_mse_vs_code for method in ("psmt", "baseline1", "baseline2")}
            for name, by_method in phases
        },
    )


def _copying(key: str, text: str, method: str, phases: _Phases, note: str) -> Claim:
    support: list[str] = []
    against: list[str] = []
    for name, by_method in phases:
        summary = by_method[method]
        # Both must be won: a method that never sees more than its codes is judged on the codes and on the frames.
        for value, what in ((summary.vs_copy_code, "code"), (summary.vs_copy, "frame")):
            line = f"{name}: {ratio(value)} times the MSE of copying vs {what}"
            (support if value < 1 - TIE else against).append(line)
    return Claim(
        key=key,
        text=text,
        paper=False,
        rule="its MSE is below that of copying the last code (vs code) and the last patch (vs frame) in every phase",
        outcome=_decided(support, against),
        support=tuple(support),
        against=tuple(against),
        notes=_some(note),
        figures={
            name: {"vs_copy_code": by_method[method].vs_copy_code, "vs_copy": by_method[method].vs_copy}
            for name, by_method in phases
        },
    )


def _decided(support: Sequence[str], against: Sequence[str]) -> Outcome:
    if not support and not against:
        return UNTESTED
    return "does not hold" if against else "holds"


def _some(*texts: str) -> tuple[str, ...]:
    return tuple(text for text in texts if text)
