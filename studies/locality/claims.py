"""What the paper says of the stochastic solution, and whether it holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, log, log1p
from typing import NamedTuple

from psmt.evaluation import Interval
from psmt.report import Claim, Verdict, all_hold, judged
from psmt.report.numbers import ratio
from studies.locality.result import MATERIALS, LocalityResult, Material, versus_copying
from studies.locality.settings import label

LOCAL_MARGIN, ERROR_MARGIN = log(1.05), log(1.01)
"""Ratios of atoms used within 5%, and of errors within 1%, are ties."""


class Judgement(NamedTuple):
    """What one setting says of a claim on one material."""

    verdict: Verdict
    line: str
    change: float
    """Logarithm of the ratio that should be below 1: the largest decides."""


def locality_claims(result: LocalityResult) -> list[Claim]:
    """Converged, stopped early, and with a price on weights: local, and better at predicting?"""
    solutions = list(result.settings.solutions)
    early = [name for name in solutions if name.startswith("early")]
    sparse = [name for name in solutions if name.startswith("sparse")]
    return [
        _converged(result),
        _local(result, early, "locality_early", "Stopped early, stochastic descent is more local than the closed form"),
        _local(
            result,
            sparse,
            "locality_sparse",
            "With a price on weights, stochastic descent is more local than the closed form",
        ),
        _beyond_a_turn(result, sparse),
        _predicts(result, early, "locality_early_predicts", "Stopped early, it predicts better than the closed form"),
        _predicts(
            result,
            sparse,
            "locality_sparse_predicts",
            "With a price on weights, it predicts better than the closed form",
        ),
    ]


def _converged(result: LocalityResult) -> Claim:
    """Within the tolerance of the roughness; predictions then differ by nothing that can be told."""
    found = []
    for material in result.materials:
        excess = float((material.values("sgd", "roughness") / material.values("closed", "roughness")).max()) - 1
        missed = float(material.values("sgd", "missed").max())
        outcome: Verdict = "holds" if excess <= 0.01 and missed == 0 else "does not hold"
        errors = exp(material.log_ratio("sgd", "mse").mean)
        line = (
            f"{MATERIALS[material.name]}: rougher by {max(excess, 0.0):.1g} at the most; {ratio(errors)} times its MSE"
        )
        found.append(Judgement(outcome, line, log1p(excess)))
    return _claim(
        "locality_converged",
        "Converged, stochastic descent is the closed form",
        "its roughness is within 1% of the least at every start, without a warning",
        found,
        "roughness",
        paper=False,
    )


def _local(result: LocalityResult, names: Sequence[str], key: str, text: str) -> Claim:
    def judge(material: Material, name: str) -> Judgement:
        atoms = material.log_ratio(name, "atoms")
        outcomes = [judged(atoms, margin=LOCAL_MARGIN)]
        line = f"{_times(atoms)} times the closed form's atoms per row"
        if material.has_groups:
            inside = material.log_ratio(name, "group")
            outcomes.append(judged(Interval(-inside.mean, -inside.high, -inside.low), margin=LOCAL_MARGIN))
            line += f", {_times(inside)} times its share in one true group"
        return Judgement(all_hold(outcomes), line, atoms.mean)

    rule = (
        "rows of P use fewer atoms (participation ratio, 95% interval over starts, ties within 5%), and where the "
        "truth is known more of a row lies in one place; on every material, at every setting"
    )
    return _claim(key, text, rule, _judgements(result, names, judge), "atoms per row")


def _beyond_a_turn(result: LocalityResult, names: Sequence[str]) -> Claim:
    def judge(material: Material, name: str) -> Judgement:
        atoms = material.log_ratio(name, "atoms", "turned")
        line = f"{_times(atoms)} times the atoms per row of the turned closed form"
        return Judgement(judged(atoms, margin=LOCAL_MARGIN), line, atoms.mean)

    return _claim(
        "locality_beyond_a_turn",
        "A price on weights is more local than the closed form turned inside its span, which predicts the same",
        "rows of P use fewer atoms than those of the closed form after varimax; on every material, at every price",
        _judgements(result, names, judge),
        "atoms per row",
        paper=False,
    )


def _predicts(result: LocalityResult, names: Sequence[str], key: str, text: str) -> Claim:
    def judge(material: Material, name: str) -> Judgement:
        errors = material.log_ratio(name, "mse")
        copying = ratio(versus_copying(material, name))
        line = f"{_times(errors)} times the closed form's MSE vs frame ({copying} times copying)"
        return Judgement(judged(errors, margin=ERROR_MARGIN), line, errors.mean)

    rule = (
        "its MSE vs frame is lower (95% interval over starts, ties within 1%); on every material, at every setting. "
        "Copying and the mean are in the table"
    )
    return _claim(key, text, rule, _judgements(result, names, judge), "error", paper=False)


def _judgements(
    result: LocalityResult, names: Sequence[str], judge: Callable[[Material, str], Judgement]
) -> list[Judgement]:
    found = []
    for material in result.materials:
        for name in names:
            own = judge(material, name)
            found.append(own._replace(line=f"{MATERIALS[material.name]}, {label(name)}: {own.line}"))
    return found


def _claim(key: str, text: str, rule: str, found: Sequence[Judgement], what: str, *, paper: bool = True) -> Claim:
    lines: dict[str, tuple[str, ...]] = {
        outcome: tuple(own.line for own in found if own.verdict == outcome)
        for outcome in ("holds", "does not hold", "inconclusive")
    }
    return Claim(
        key=key,
        text=text,
        rule=rule,
        verdict=all_hold([own.verdict for own in found]),
        size=f"{ratio(exp(max(own.change for own in found)))} × the {what} at the worst" if found else "",
        paper=paper,
        support=lines["holds"],
        against=lines["does not hold"],
        notes=tuple(f"a tie or too few starts: {line}" for line in lines["inconclusive"]),
    )


def _times(logs: Interval) -> str:
    """A ratio with its interval, of logarithms."""
    if not logs.is_finite:
        return ratio(exp(logs.mean))
    return f"{ratio(exp(logs.mean))} ({ratio(exp(logs.low))} to {ratio(exp(logs.high))})"
