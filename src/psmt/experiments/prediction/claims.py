"""Claims of Fig. 4, and our own claims on copying: decided over many starts, and compared with the null models."""

from __future__ import annotations

from psmt.evaluation import METHODS
from psmt.experiments.prediction.phase import Truth, mean_log_error
from psmt.experiments.prediction.result import COPYING, MARGIN, TRIVIAL, PredictionResult
from psmt.report import Claim
from psmt.report.numbers import signed

_RULE = (
    "{}. Errors are compared at each start. The mean must be lower by more than "
    f"{MARGIN:g} in log MSE, with 95% confidence, and by more than on two null models: the same film with its frames "
    "shuffled, and noise of its spectrum"
)


def prediction_claims(result: PredictionResult | None, note: str = "") -> list[Claim]:
    """Claims on one-step predictions: the paper's claim, then PSMT and its learned gain against copying."""
    return [
        _claim(
            result,
            "dynamic_beats_static",
            "The dynamic embedding beats the static ones: PSMT against Baselines 1 and 2",
            "the mean log MSE vs code of PSMT is lower than that of both baselines, and than that of the mean code",
            ("psmt", "baseline1", "baseline2", "mean_code"),
            "code",
            note,
        ),
        *(
            _claim(
                result,
                key,
                f"{METHODS[method]}, beats copying the last {truth}".replace("PSMT, beats", "PSMT beats"),
                f"its mean log MSE vs {truth} is lower than those of the last {truth} and the mean {truth}",
                (method, *TRIVIAL[truth]),
                truth,
                note,
            )
            for key, (method, truth) in COPYING.items()
        ),
    ]


def _claim(
    result: PredictionResult | None, key: str, text: str, rule: str, methods: tuple[str, ...], truth: Truth, note: str
) -> Claim:
    """Claim with the errors of the methods in each phase as notes."""
    evidence = [] if result is None else result.evidence[key]
    hardest = min(evidence, key=lambda own: own.strength, default=None)
    other = hardest.name.partition(" against ")[2] if hardest else ""
    errors = {
        found.phase.name: {method: mean_log_error(found, method, truth) for method in methods}
        for found in (() if result is None else result.phases)
    }
    notes = [
        f"phase “{phase}”, mean log MSE vs {truth}: "
        + ", ".join(f"{METHODS[method]} {signed(value)}" for method, value in own.items())
        for phase, own in errors.items()
    ]
    return Claim.from_evidence(
        key,
        text,
        _RULE.format(rule),
        evidence,
        paper=key not in COPYING,
        size=f"{hardest.estimate} of {other.removesuffix(f', vs {truth}')}" if hardest else "",
        notes=[note, *notes],
        figures={own.name: own.summary() for own in evidence} | {"phases": errors},
    )
