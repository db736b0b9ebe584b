"""Claims that the paper makes about the stochastic solution, and their verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, log

from psmt.report.claim import Claim, Evidence, Judgement, error_ratio_evidence
from psmt.report.numbers import ratio
from studies.locality.result import MATERIALS, LocalityResult, Material, versus_copying
from studies.locality.settings import label

LOCAL_MARGIN, ERROR_MARGIN = log(1.05), log(1.01)
"""Ratios of measures of locality within 5% of 1, and ratios of errors within 1%, are ties."""


def log_ratio(value: float) -> str:
    """Return the ratio whose logarithm is given, as text."""
    return ratio(exp(value))


_MEASURES = {"atoms": "atoms per row", "group": "share in one place", "mse": "MSE vs frame"}


def locality_claims(result: LocalityResult) -> list[Claim]:
    """Return the claims on locality and predictions of descent: converged, stopped early, and with a penalty."""
    solutions = result.settings.solutions
    early, sparse = ([name for name in solutions if name.startswith(kind)] for kind in ("early", "sparse"))
    descent, penalised = "Stopped early, stochastic descent", "With a sparsity penalty, stochastic descent"
    return [
        _converged(result),
        _local(result, early, "locality_early", f"{descent} is more local than the closed form"),
        _local(result, sparse, "locality_sparse", f"{penalised} is more local than the closed form"),
        _beyond_rotation(result, sparse, "locality_beyond_a_turn", f"{penalised} is more local than a rotation of P"),
        _predicts(result, early, "locality_early_predicts", f"{descent} predicts better than the closed form"),
        _predicts(result, sparse, "locality_sparse_predicts", f"{penalised} predicts better than the closed form"),
    ]


def _converged(result: LocalityResult) -> Claim:
    """Compare the roughness at every start with the roughness of the closed form, which is the smallest possible."""
    support: list[str] = []
    against: list[str] = []
    worst = 0.0
    for material in result.materials:
        excess = float((material.values("sgd", "roughness") / material.values("closed", "roughness")).max()) - 1
        converged = excess <= 0.01 and material.values("sgd", "missed").max() == 0
        errors = log_ratio(material.log_ratio("sgd", "mse").mean)
        sentence = f"{MATERIALS[material.name]}: rougher by at most {max(excess, 0.0):.1g}; {errors} times the MSE"
        (support if converged else against).append(sentence)
        worst = max(worst, excess)
    return Claim(
        key="locality_converged",
        text="Converged, stochastic descent gives the closed form",
        rule="its roughness is within 1% of the least at every start, without a warning",
        as_measured=Judgement("no" if against else "yes", why=f"{'; '.join(against or support)}."),
        paper=False,
        size=f"{ratio(1 + worst)} × the roughness in the worst case",
        support=tuple(support),
        against=tuple(against),
    )


def _local(result: LocalityResult, names: Sequence[str], key: str, text: str) -> Claim:
    rule = (
        "rows of P use fewer atoms (participation ratio, 95% interval over starts, ties within 5%), and where the "
        "places are known more of each row lies in one place; on all materials and with all settings"
    )
    atoms = _ratios(result, names, "atoms", LOCAL_MARGIN)
    groups = _ratios(result, names, "group", LOCAL_MARGIN, lower_is_better=False)
    return Claim.from_evidence(key, text, rule, [*atoms, *groups], size=_worst(atoms, "atoms"))


def _beyond_rotation(result: LocalityResult, names: Sequence[str], key: str, text: str) -> Claim:
    rule = (
        "rows of P use fewer atoms than those of the closed form after a rotation (varimax), which does not change its "
        "predictions; on all materials and with all penalties"
    )
    atoms = _ratios(result, names, "atoms", LOCAL_MARGIN, reference="turned")
    return Claim.from_evidence(key, text, rule, atoms, paper=False, size=_worst(atoms, "atoms"))


def _predicts(result: LocalityResult, names: Sequence[str], key: str, text: str) -> Claim:
    rule = "its MSE vs frame is lower (95% interval over starts, ties within 1%); on all materials, with all settings"
    errors = _ratios(
        result,
        names,
        "mse",
        ERROR_MARGIN,
        details=lambda material, name: f", {ratio(versus_copying(material, name))} times that of copying",
    )
    return Claim.from_evidence(key, text, rule, errors, paper=False, size=_worst(errors, "mse"))


def _ratios(
    result: LocalityResult,
    names: Sequence[str],
    what: str,
    margin: float,
    *,
    reference: str = "closed",
    lower_is_better: bool = True,
    details: Callable[[Material, str], str] = lambda *_: "",
) -> list[Evidence]:
    """Return evidence from ratios of a measure to its value for the reference, by material and solution."""
    return [
        error_ratio_evidence(
            name=f"{MATERIALS[material.name]}, {label(name)}, {_MEASURES[what]}",
            statistic=statistic,
            n=material.n_starts,
            margin=margin,
            lower_is_better=lower_is_better,
            unit=f" times that of the {label(reference)}",
            too_few="" if statistic.is_finite else "too few starts",
            details=details(material, name),
        )
        for material in result.materials
        for name in names
        if what != "group" or material.has_groups
        for statistic in [material.log_ratio(name, what, reference)]
    ]


def _worst(evidence: Sequence[Evidence], what: str) -> str:
    means = [own.statistic.mean for own in evidence]
    return f"{log_ratio(max(means))} × the {_MEASURES[what]} in the worst case" if means else ""
