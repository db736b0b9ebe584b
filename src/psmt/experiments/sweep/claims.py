"""Claims of the paper on Table 1, and the λ at which they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from psmt.experiments.sweep.result import Chain, SweepResult
from psmt.experiments.table_1 import MARGIN, PAPER, PAPER_SIZE
from psmt.report import INCONCLUSIVE, TIE, Claim, Verdict, all_hold
from psmt.report.numbers import error, listed, log_ratio

_CLAIMS = {
    "more_atoms": (
        "More atoms help: a larger dictionary reconstructs better",
        "with the largest M than with the smallest, at each H / M",
    ),
    "more_frames": (
        "More frames help: a longer window reconstructs better",
        "with the largest H than with the smallest, at each M",
    ),
}
"""Text of each claim, and what it compares."""

_RULE = (
    f"the trimmed mean of the errors is lower by more than {MARGIN:.0%} {{}}, with 95% confidence (bootstrap over "
    "blocks of frames), and by more than on two null models: the film with its frames shuffled, and noise of its "
    "spectrum. The paper does not give its λ. So the λ whose errors are nearest to the paper's decides; a λ at which "
    "nothing is reconstructed does not count"
)


def sweep_claims(result: SweepResult | None, note: str = "") -> list[Claim]:
    """Table 1 from top to bottom, more atoms, and from left to right, more frames."""
    return [_claim(result, note, key, text, _RULE.format(when)) for key, (text, when) in _CLAIMS.items()]


def verdicts_by_lam(chains: Sequence[Chain]) -> dict[float, Verdict]:
    """The verdict at each λ: whether all its rows or columns of Table 1 hold."""
    return {lam: all_hold([own.evidence.verdict for own in chains if own.lam == lam]) for lam in _lams(chains)}


def lams_of_paper_size(result: SweepResult) -> list[float]:
    """The λ at which all errors lie between the smallest and the largest of the paper."""
    low, high = PAPER_SIZE
    means: dict[float, list[float]] = {}
    for entry in result.table():
        if not entry.missing:
            means.setdefault(entry.lam, []).append(entry.trimmed_mean)
    return [lam for lam, own in means.items() if low <= min(own) and max(own) <= high]


def headline(verdicts: Mapping[float, Verdict]) -> str:
    """The λ at which a claim has each verdict.

    >>> headline({0.1: "does not hold", 3.0: "holds", 30.0: "holds"})
    'holds at λ = 3 and 30; does not hold at λ = 0.1'
    """
    kinds: tuple[Verdict, ...] = ("holds", "does not hold", INCONCLUSIVE)
    grouped = {kind: [f"{lam:g}" for lam, verdict in verdicts.items() if verdict == kind] for kind in kinds}
    return "; ".join(f"{kind} at λ = {listed(lams)}" for kind, lams in grouped.items() if lams)


def _lams(chains: Sequence[Chain]) -> list[float]:
    return list(dict.fromkeys(chain.lam for chain in chains))


def _claim(result: SweepResult | None, note: str, key: str, text: str, rule: str) -> Claim:
    if result is None:
        return Claim.from_evidence(key, text, rule, [], notes=[note])
    chains = result.chains[key]
    verdicts = verdicts_by_lam(chains)
    decisive = _decisive_lam(result, chains)
    own = [chain for chain in chains if chain.lam == decisive]
    against, caveats = _caveats(own)
    notes = [note, *caveats]
    notes += [f"{chain.evidence.verdict} at {chain.evidence.sentence}" for chain in chains if chain.lam != decisive]
    if not chains:
        there = {entry.n_atoms: entry.window for entry in result.table() if not entry.missing}
        sizes = "; ".join(f"M = {size:,} with H = {window:,}" for size, window in there.items())
        notes.append(f"nothing to compare (only {sizes})")
    elif decisive is None:
        notes.append("nothing is reconstructed at any of these λ")
    else:
        how = "of the size of" if decisive in lams_of_paper_size(result) else "nearest to"
        low, high = PAPER_SIZE
        notes.append(f"λ = {decisive:g} decides: its errors are {how} the paper's, {low:.2g} to {high:.2g}")
    if own and all_hold([chain.evidence.as_measured for chain in own]) == "holds" != verdicts[own[0].lam]:
        notes.append("the error falls on the film, but no more than on the null models: it says nothing about dynamics")
    change = float(np.mean([chain.evidence.statistic.mean for chain in own])) if own else 0.0
    return Claim.from_evidence(
        key,
        f"{text} ({headline(verdicts)})" if verdicts else text,
        rule,
        [chain.evidence for chain in own],
        size=f"{log_ratio(change)} × the error, λ = {decisive:g}" if own else "",
        against=against,
        notes=notes,
        figures={
            f"{lam:g}": {
                "verdict": verdict,
                "as_measured": all_hold([chain.evidence.as_measured for chain in chains if chain.lam == lam]),
                "decides": lam == decisive,
                **{chain.evidence.name: _figures(chain) for chain in chains if chain.lam == lam},
            }
            for lam, verdict in verdicts.items()
        },
    )


def _decisive_lam(result: SweepResult, chains: Sequence[Chain]) -> float | None:
    """The λ whose errors are nearest to the paper's, by geometric means; None if nothing is reconstructed at any λ."""
    paper = np.mean(np.log([mean for mean, _ in PAPER.values()]))

    def distance(lam: float) -> float:
        means = [entry.trimmed_mean for entry in result.table() if entry.lam == lam and not entry.missing]
        return float(abs(np.mean(np.log(np.maximum(means, np.finfo(float).tiny))) - paper))

    return min(_lams([chain for chain in chains if not chain.evidence.too_few]), key=distance, default=None)


def _caveats(chains: Sequence[Chain]) -> tuple[list[str], list[str]]:
    """Sentences against a claim that holds as measured, and notes for one that does not."""
    against: list[str] = []
    notes: list[str] = []
    for chain in chains:
        name, measured, entries = chain.evidence.name, chain.evidence.as_measured, list(chain.entries.values())
        if measured == "holds" and any(b.trimmed_mean > (1 + TIE) * a.trimmed_mean for a, b in pairwise(entries)):
            against.append(f"{name}: the error is not lower at every step")
        first, last = entries[0].mean, entries[-1].mean
        if measured != INCONCLUSIVE and (last < first) != (measured == "holds"):
            sentence = f"{name}: the untrimmed mean goes from {error(first)} to {error(last)}"
            (against if measured == "holds" else notes).append(sentence)
    return against, notes


def _figures(chain: Chain) -> dict[str, Any]:
    means = {name: {size: getattr(e, name) for size, e in chain.entries.items()} for name in ("trimmed_mean", "mean")}
    return chain.evidence.summary() | means
