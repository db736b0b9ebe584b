"""What the paper claims of Table 1, and at which λ it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from psmt.evaluation import Interval, difference_interval
from psmt.evaluation.null_models import NULL_NAMES
from psmt.experiments.sweep.result import Combination, SweepResult
from psmt.experiments.table_1 import MARGIN, NOTHING, PAPER, PAPER_SIZE
from psmt.report import INCONCLUSIVE, TIE, Claim, Verdict, all_hold, judged, some
from psmt.report.numbers import error, listed, ratio

_RULE = (
    f"the trimmed mean of the errors is lower by more than {MARGIN:.0%}, with 95% confidence (bootstrap over blocks of "
    "frames) {}, at the λ whose errors come nearest to the paper's, which does not give its own, and by more than on "
    "each null: the film's frames shuffled, and noise of its spectrum; where nothing comes back, nothing is compared"
)


class Line(NamedTuple):
    """One row or column of Table 1 at one λ, and what becomes of the error from its first entry to its last."""

    lam: float
    head: str
    entries: list[tuple[str, Combination]]
    change: Interval
    """Of the logarithm of the trimmed mean."""
    comes_back: bool
    """Whether any of it shows more than an empty picture does."""
    on_film: Verdict
    """Nulls aside."""
    nulls: Mapping[str, Interval]
    """The same change on each null."""

    def beyond(self, null: str) -> Verdict:
        """Whether the error falls by more on the film than on a null."""
        return judged(difference_interval(self.change, self.nulls[null]), margin=MARGIN)

    @property
    def verdict(self) -> Verdict:
        """Whether the error falls on the film and, where it does, by more than on each null."""
        if self.on_film != "holds":
            return self.on_film
        return all_hold(["holds", *map(self.beyond, self.nulls)])


def sweep_claims(result: SweepResult | None, note: str = "") -> list[Claim]:
    """Table 1."""
    return [more_atoms(result, note), more_frames(result, note)]


def more_atoms(result: SweepResult | None, note: str = "") -> Claim:
    """Table 1 from top to bottom."""
    return _claim(
        "more_atoms",
        "More atoms help: a larger dictionary reconstructs better",
        "with the largest M than with the smallest, at each H / M",
        atom_lines(result),
        result,
        note,
    )


def more_frames(result: SweepResult | None, note: str = "") -> Claim:
    """Table 1 from left to right."""
    return _claim(
        "more_frames",
        "More frames help: a longer window reconstructs better",
        "with the largest H than with the smallest, at each M",
        frame_lines(result),
        result,
        note,
    )


def atom_lines(result: SweepResult | None) -> list[Line]:
    """The columns of Table 1: more and more atoms at one H / M."""
    return _lines(result, lambda ratio_, row: (f"H = {ratio_:g} M", f"M = {row.n_atoms:,}"))


def frame_lines(result: SweepResult | None) -> list[Line]:
    """The rows of Table 1: longer and longer windows at one M."""
    return _lines(result, lambda _, row: (f"M = {row.n_atoms:,}", f"H = {row.window:,}"))


def by_price(lines: list[Line]) -> dict[float, Verdict]:
    """At each λ, whether all lines hold that can be compared."""
    outcomes: dict[float, list[Verdict]] = {}
    for line in lines:
        outcomes.setdefault(line.lam, []).append(line.verdict)
    return {lam: all_hold(own) for lam, own in outcomes.items()}


def of_paper_size(result: SweepResult) -> list[float]:
    """The λ at which the errors of all combinations lie between the least and the largest of the paper's."""
    low, high = PAPER_SIZE
    means: dict[float, list[float]] = {}
    for row in result.table():
        if not row.missing:
            means.setdefault(row.lam, []).append(row.trimmed_mean)
    return [lam for lam, own in means.items() if low <= min(own) and max(own) <= high]


def nearest_price(result: SweepResult, lines: list[Line]) -> float | None:
    """The λ whose errors are nearest to the paper's, by their geometric means, of those at which frames come back."""
    tells = [lam for lam in result.settings.lam if any(line.lam == lam and line.comes_back for line in lines)]
    paper = np.mean(np.log([mean for mean, _ in PAPER.values()]))

    def away(lam: float) -> float:
        means = [row.trimmed_mean for row in result.table() if row.lam == lam and not row.missing]
        return float(abs(np.mean(np.log(np.maximum(means, np.finfo(float).tiny))) - paper))

    return min(tells, key=away, default=None)


def _lines(result: SweepResult | None, name: Callable[[float, Combination], tuple[str, str]]) -> list[Line]:
    """Entries of Table 1 that stand under one head, at each λ, where there are two to compare."""
    if result is None:
        return []
    grouped: dict[tuple[float, str], list[tuple[str, Combination]]] = {}
    ratios = result.settings.ratios
    for k, row in enumerate(result.table()):
        if not row.missing:
            head, entry = name(ratios[k % len(ratios)], row)
            grouped.setdefault((row.lam, head), []).append((entry, row))
    lines = []
    for (lam, head), entries in grouped.items():
        if len(entries) > 1:
            first, last = entries[0][1], entries[-1][1]
            change = result.change(first, last)
            comes_back = max(row.trimmed_mean for _, row in entries) < NOTHING * result.empty_error
            on_film = judged(change, margin=MARGIN) if comes_back else INCONCLUSIVE
            nulls = {null: result.change(first, last, null) for null in result.null_errors}
            lines.append(Line(lam, head, entries, change, comes_back, on_film, nulls))
    return lines


def _claim(key: str, text: str, when: str, lines: list[Line], result: SweepResult | None, note: str) -> Claim:
    outcomes = by_price(lines)
    decisive = None if result is None else nearest_price(result, lines)
    support: list[str] = []
    against: list[str] = []
    notes = [note]
    for line in lines:
        if line.lam != decisive:
            notes.append(f"{_said(line)} ({line.verdict})")
            continue
        {"holds": support, "does not hold": against}.get(line.verdict, notes).append(_said(line))
        means = [row.trimmed_mean for _, row in line.entries]
        if line.on_film == "holds" and any(later > (1 + TIE) * earlier for earlier, later in pairwise(means)):
            against.append(f"λ = {line.lam:g}, {line.head}: not at every step of that chain")
        first, last = line.entries[0][1].mean, line.entries[-1][1].mean
        if line.on_film != INCONCLUSIVE and (last < first) != (line.on_film == "holds"):
            disagrees = f"λ = {line.lam:g}, {line.head}: untrimmed, the mean goes from {error(first)} to {error(last)}"
            (against if line.on_film == "holds" else support).append(disagrees)
    if result is not None and not lines:
        there = {row.n_atoms: row.window for row in result.table() if not row.missing}
        sizes = "; ".join(f"M = {size:,} with H = {window:,}" for size, window in there.items())
        notes.append(f"nothing to compare (only {sizes})")
    if result is not None and lines:
        notes.append(_size_note(result, decisive))
    own = [line for line in lines if line.lam == decisive]
    if own and all_hold([line.on_film for line in own]) == "holds" != outcomes[own[0].lam]:
        notes.append(
            "on the film it is so, but no more than where no frame follows from another: it says nothing of dynamics"
        )
    return Claim(
        key=key,
        text=f"{text} ({headline(outcomes)})" if outcomes else text,
        rule=_RULE.format(when),
        verdict=INCONCLUSIVE if decisive is None else outcomes[decisive],
        size=f"{_times(own)} the error, λ = {decisive:g}" if own else "",
        support=tuple(support),
        against=tuple(against),
        notes=some(*notes),
        figures={
            f"{lam:g}": {
                "verdict": outcome,
                "on_film": all_hold([line.on_film for line in lines if line.lam == lam]),
                "decides": lam == decisive,
                **{
                    line.head: {
                        "ratio": [float(np.exp(value)) for value in line.change],
                        "null_ratio": {
                            null: [float(np.exp(value)) for value in change] for null, change in line.nulls.items()
                        },
                        "trimmed_mean": {name: row.trimmed_mean for name, row in line.entries},
                        "mean": {name: row.mean for name, row in line.entries},
                    }
                    for line in lines
                    if line.lam == lam
                },
            }
            for lam, outcome in outcomes.items()
        },
    )


def _times(lines: list[Line]) -> str:
    """By what factor the error changes, over all lines."""
    return f"{ratio(float(np.exp(np.mean([line.change.mean for line in lines]))))} ×"


def _size_note(result: SweepResult, decisive: float | None) -> str:
    """Which λ decides, and whether its errors are like the paper's."""
    if decisive is None:
        return "at none of these λ does anything come back"
    how = "of the size of" if decisive in of_paper_size(result) else "nearest to"
    least, largest = PAPER_SIZE
    return f"λ = {decisive:g} decides: its errors are {how} the paper's, {least:.2g} to {largest:.2g}"


def headline(outcomes: Mapping[float, Verdict]) -> str:
    """At which λ a claim has which verdict.

    >>> headline({0.1: "does not hold", 3.0: "holds", 30.0: "holds"})
    'holds at λ = 3 and 30; does not hold at λ = 0.1'
    """
    kinds: tuple[Verdict, ...] = ("holds", "does not hold", INCONCLUSIVE)
    grouped = {kind: [f"{lam:g}" for lam, outcome in outcomes.items() if outcome == kind] for kind in kinds}
    return "; ".join(f"{kind} at λ = {listed(prices)}" for kind, prices in grouped.items() if prices)


def _said(line: Line) -> str:
    """The chain of means, and the ratio of its ends with its interval."""
    chain = " → ".join(f"{error(row.trimmed_mean)} ({name})" for name, row in line.entries)
    if not line.comes_back:
        return f"λ = {line.lam:g}, {line.head}: MSE {chain}, as large as that of an empty picture: nothing comes back"
    times, low, high = (ratio(float(np.exp(value))) for value in line.change)
    said = f"λ = {line.lam:g}, {line.head}: MSE {chain}; {times} times, {low} to {high}"
    if line.on_film != "holds" or not line.nulls:
        return said
    nulls = [f"{ratio(float(np.exp(own.mean)))} times on {NULL_NAMES[null]}" for null, own in line.nulls.items()]
    return f"{said}; {listed(nulls)}"
