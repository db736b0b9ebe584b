"""What the paper claims of Fig. 3, and whether it holds."""

from __future__ import annotations

import numpy as np

from psmt.experiments.topology.persistence import Overlap
from psmt.experiments.topology.result import TopologyResult
from psmt.report import LEVEL, UNTOLD, Claim, some
from psmt.report.numbers import percent, signed


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
        return Claim(key="clusters_change", text=text, rule=rule, outcome=UNTOLD, notes=some(note, _no_links(result)))
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
        support=some(change if holds else "", atoms if stay.sometimes_linked else ""),
        against=some(
            "" if holds else change,
            f"{stay.always_linked:,} atoms have links in all windows" if stay.always_linked else "",
        ),
        notes=some(
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
        return Claim(key="clusters_persist", text=text, rule=rule, outcome=UNTOLD, notes=some(note, reason, built_in))
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
        support=some(numbers if holds else ""),
        against=some(f"the other {percent(1 - far.jaccard)} do not last" if holds else numbers),
        notes=some(built_in, note),
        figures={"distant": far.summary(), "successive": None if near is None else near.summary()},
    )


def linked_look_alike(result: TopologyResult | None, note: str = "") -> Claim:
    """Fig. 3 (c)."""
    text = "Similar in the embedding means similar as pictures"
    rule = f"linked atoms correlate more, pixel by pixel, than unlinked ones, and than by chance (p ≤ {LEVEL:g})"
    key = "linked_look_alike"
    if result is None or not np.isfinite(result.likeness.p_value):
        return Claim(key=key, text=text, rule=rule, outcome=UNTOLD, notes=some(note, _no_links(result)))
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
        notes=some(note),
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
