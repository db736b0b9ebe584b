"""Claims of the paper on Table 1, and the λ at which they hold."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from psmt.experiments.sweep.result import SweepResult
from psmt.experiments.table_1 import MARGIN, PAPER, PAPER_SIZE
from psmt.report import INCONCLUSIVE, Claim, Verdict, all_hold
from psmt.report.numbers import listed, log_ratio

_RULE = (
    f"the trimmed mean of the errors is lower by more than {MARGIN:.0%} {{}}, with 95% confidence (bootstrap over "
    "blocks of frames), and by more than on two null models: the film with its frames shuffled, and noise of its "
    "spectrum. The paper does not give its λ. So the λ whose errors are nearest to the paper's decides; a λ at which "
    "nothing is reconstructed does not count"
)


def sweep_claims(result: SweepResult | None, note: str = "") -> list[Claim]:
    """Claims on the columns of Table 1, more atoms, and on its rows, more frames."""
    return [
        _claim(
            result,
            note,
            "more_atoms",
            "More atoms help: a larger dictionary reconstructs better",
            "with the largest M than with the smallest, at each H / M",
        ),
        _claim(
            result,
            note,
            "more_frames",
            "More frames help: a longer window reconstructs better",
            "with the largest H than with the smallest, at each M",
        ),
    ]


def verdicts_by_lam(result: SweepResult, claim: str) -> dict[float, Verdict]:
    """The verdict on a claim at each λ."""
    return {lam: all_hold([one.verdict for one in own]) for lam, own in result.evidence[claim].items()}


def lams_of_paper_size(result: SweepResult) -> list[float]:
    """The λ at which all errors lie between the smallest and the largest of the paper."""
    low, high = PAPER_SIZE
    return [lam for lam, means in _means(result).items() if low <= min(means) and max(means) <= high]


def headline(verdicts: Mapping[float, Verdict]) -> str:
    """The λ at which a claim has each verdict.

    >>> headline({0.1: "does not hold", 3.0: "holds", 30.0: "holds"})
    'holds at λ = 3 and 30; does not hold at λ = 0.1'
    """
    kinds: tuple[Verdict, ...] = ("holds", "does not hold", INCONCLUSIVE)
    grouped = {kind: [f"{lam:g}" for lam, verdict in verdicts.items() if verdict == kind] for kind in kinds}
    return "; ".join(f"{kind} at λ = {listed(lams)}" for kind, lams in grouped.items() if lams)


def _claim(result: SweepResult | None, note: str, key: str, text: str, compared: str) -> Claim:
    rule = _RULE.format(compared)
    if result is None:
        return Claim.from_evidence(key, text, rule, [], notes=[note])
    evidence, verdicts, decisive = result.evidence[key], verdicts_by_lam(result, key), _decisive_lam(result, key)
    measured = {lam: all_hold([one.as_measured for one in own]) for lam, own in evidence.items()}
    others = [one for lam, own in evidence.items() if lam != decisive for one in own]
    notes = [note, *(f"{one.verdict} at {one.sentence}" for one in others)]
    size = ""
    if decisive is not None:
        how = "of the size of" if decisive in lams_of_paper_size(result) else "nearest to"
        low, high = PAPER_SIZE
        notes.append(f"λ = {decisive:g} decides: its errors are {how} the paper's, {low:.2g} to {high:.2g}")
        change = float(np.mean([one.statistic.mean for one in evidence[decisive]]))
        size = f"{log_ratio(change)} × the error, λ = {decisive:g}"
        if measured[decisive] == "holds" != verdicts[decisive]:
            notes.append("the error falls on the film, but no more than on the null models: this is not about dynamics")
    elif evidence:
        notes.append("nothing is reconstructed at any of these λ")
    else:
        there = {entry.n_atoms: entry.window for entry in result.table() if not entry.missing}
        sizes = "; ".join(f"M = {size:,} with H = {window:,}" for size, window in there.items())
        notes.append(f"nothing to compare (only {sizes})")
    return Claim.from_evidence(
        key,
        f"{text} ({headline(verdicts)})" if verdicts else text,
        rule,
        [] if decisive is None else evidence[decisive],
        size=size,
        notes=notes,
        figures={
            f"{lam:g}": {"verdict": verdicts[lam], "as_measured": measured[lam], "decides": lam == decisive}
            | {one.name: one.summary() for one in own}
            for lam, own in evidence.items()
        },
    )


def _means(result: SweepResult) -> dict[float, list[float]]:
    """Trimmed means of all combinations, by λ."""
    means: dict[float, list[float]] = {}
    for entry in result.table():
        if not entry.missing:
            means.setdefault(entry.lam, []).append(entry.trimmed_mean)
    return means


def _decisive_lam(result: SweepResult, claim: str) -> float | None:
    """The λ whose errors are nearest to the paper's, by geometric means; None if nothing is reconstructed at any λ."""
    paper, means = np.mean(np.log([mean for mean, _ in PAPER.values()])), _means(result)

    def distance(lam: float) -> float:
        return float(abs(np.mean(np.log(np.maximum(means[lam], np.finfo(float).tiny))) - paper))

    known = [lam for lam, own in result.evidence[claim].items() if not all(one.too_few for one in own)]
    return min(known, key=distance, default=None)
