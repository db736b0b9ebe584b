"""What the numbers say about the paper's claims, in words that the numbers choose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from psmt.experiments.prediction import PhaseResult, Summary, summarise

TIE = 1e-3
"""Errors that differ by less than this fraction are called equal."""

Outcome = Literal["holds", "holds in part", "does not hold"]


class Verdict(NamedTuple):
    """A claim, whether it holds on this film, and the numbers behind that."""

    claim: str
    outcome: Outcome
    evidence: tuple[str, ...]


def prediction_verdicts(results: Sequence[PhaseResult]) -> list[Verdict]:
    """The paper's ranking, then PSMT and its learned gain against copying, over one-step predictions."""
    phases = [(result.phase.name, {s.method: s for s in summarise(result.rows())}) for result in results]
    return [
        _ranking(phases),
        _against_copying("PSMT beats copying", "psmt", phases),
        _against_copying("PSMT with a learned gain beats copying", "psmt_gain", phases),
    ]


_Phases = Sequence[tuple[str, dict[str, Summary]]]


def _ranking(phases: _Phases) -> Verdict:
    held, evidence = [], []
    for name, by_method in phases:
        order = [by_method[method].log_mse_vs_code for method in ("psmt", "baseline2", "baseline1")]
        held.append(order[0] < order[1] < order[2])
        numbers = "PSMT {}, Baseline 2 {}, Baseline 1 {}".format(*map(signed, order))
        evidence.append(f"{name}: mean log MSE vs code: {numbers}")
    return Verdict("PSMT beats Baseline 2, which beats Baseline 1 (the paper)", _outcome(held), tuple(evidence))


def _against_copying(claim: str, method: str, phases: _Phases) -> Verdict:
    held, evidence = [], []
    for name, by_method in phases:
        summary = by_method[method]
        # Both must be won: a method that never sees more than its codes is judged on the codes and on the frames.
        held += [summary.vs_copy_code < 1 - TIE, summary.vs_copy < 1 - TIE]
        evidence.append(
            f"{name}: {ratio(summary.vs_copy_code)} times the MSE of copying vs code, "
            f"{ratio(summary.vs_copy)} times vs frame"
        )
    return Verdict(claim, _outcome(held), tuple(evidence))


def _outcome(held: Sequence[bool]) -> Outcome:
    if all(held):
        return "holds"
    return "holds in part" if any(held) else "does not hold"


def signed(value: float) -> str:
    """Two decimals, with a real minus sign.

    >>> signed(-1.5)
    '−1.50'
    """
    return f"{value:.2f}".replace("-", "−")


def ratio(value: float) -> str:
    """A ratio in three digits, with more of them close to 1, where they decide.

    >>> [ratio(value) for value in (0.0213, 0.99951, 1.34, 428.6, 12424.4, float("nan"))]
    ['0.021', '0.9995', '1.34', '429', '12,424', 'n/a']
    """
    if value != value:
        return "n/a"
    if value >= 100:
        return f"{value:,.0f}"
    if abs(value - 1) < 0.005:
        return f"{value:.4f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"
