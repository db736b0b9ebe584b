"""What the paper claims of Fig. 4, what it does not ask, and whether they hold."""

from __future__ import annotations

from collections.abc import Sequence

from psmt.experiments.prediction.phase import METHODS, PhaseResult, Summary, summarise
from psmt.report import TIE, Claim, decided, some
from psmt.report.numbers import ratio, signed


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
        outcome=decided(support, against),
        support=tuple(support),
        against=tuple(against),
        notes=some(note, "" if not phases else "the paper reports −2.18 and −7.12 for PSMT, on its own film"),
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
        outcome=decided(support, against),
        support=tuple(support),
        against=tuple(against),
        notes=some(note),
        figures={
            name: {"vs_copy_code": by_method[method].vs_copy_code, "vs_copy": by_method[method].vs_copy}
            for name, by_method in phases
        },
    )
