"""What we claim of brains, and whether it holds in a study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from psmt.evaluation import Interval, mean_interval
from psmt.experiments.brain.halves import MEASURES, METHODS
from psmt.experiments.brain.prediction import METHODS as PREDICTORS
from psmt.experiments.brain.result import BrainResult
from psmt.experiments.brain.surrogates import SURROGATES
from psmt.report import INCONCLUSIVE, TIE, Claim, Verdict, all_hold, judged, some
from psmt.report.numbers import plus, ratio, signed

COMPARED = MEASURES[:2]
"""Measures that claims go by: what all states share is left out."""

_NAMES = {
    "activity": "activity",
    "connectivity": "connectivity beyond what all states share",
    "foretold": "gain in log-likelihood",
}

_RIVALS = {"ridge": "ridge", "dmd": "dynamic modes", "copy": "copying", "mean": "the mean"}
"""Short names, for badges."""


class Line(NamedTuple):
    """One comparison behind a claim."""

    verdict: Verdict
    said: str
    gain: float
    """What speaks for the claim: the comparison with the least decides on it."""
    size: str
    """The same in a few words."""


def brain_claims(result: BrainResult) -> list[Claim]:
    """All of them."""
    return [
        predicts_better(result, ("copy", "mean"), "beats_trivial", "PSMT predicts better than copying and the mean"),
        predicts_better(
            result, ("ridge", "dmd"), "beats_linear", "PSMT predicts better than linear models of the field"
        ),
        states_found_again(result),
        states_beyond_surrogates(result),
        states_foretell(result),
        *([states_true(result)] if result.agreement else []),
    ]


def predicts_better(result: BrainResult, rivals: Sequence[str], key: str, text: str) -> Claim:
    """Against some predictors, at each number of volumes ahead."""
    names = list(PREDICTORS)
    own = np.log(result.errors[:, names.index("psmt")])
    lines: list[Line] = []
    for rival in rivals:
        for h in range(result.errors.shape[2]):
            change = mean_interval(own[:, h] - np.log(result.errors[:, names.index(rival), h]))
            times, low, high = (ratio(float(np.exp(value))) for value in change)
            said = f"{h + 1} ahead: {times} times the error of {PREDICTORS[rival]} ({low} to {high})"
            size = f"{times} × the error of {_RIVALS[rival]}, {h + 1} ahead"
            lines.append(Line(judged(change, margin=TIE), said, -change.mean, size))
    means = result.errors.mean(axis=0)
    return _claim(
        key,
        text,
        "the error is lower at each horizon, person by person with 95% confidence (bootstrap over people)",
        lines,
        {name: [float(error) for error in errors] for name, errors in zip(names, means, strict=True)},
        _few_people(result),
    )


def states_found_again(result: BrainResult) -> Claim:
    """Between halves of the people, against sliding windows."""
    lines: list[Line] = []
    for measure in COMPARED:
        ahead = result.ahead_of("swc", measure)
        ours, theirs = (result.state_measure(measure)[name].mean for name in ("psmt", "swc"))
        said = (
            f"{_NAMES[measure]}: matched correlation {signed(ours)}, {METHODS['swc']} {signed(theirs)}; "
            f"difference {_told(ahead)}"
        )
        size = f"correlation {plus(signed(ahead.mean))}, {measure}"
        lines.append(Line(_exceeds(ahead), said, ahead.mean, size))
    return _claim(
        "states_found_again",
        "States are found again in other people, better than those of sliding windows",
        "states of two halves of the people, matched by correlation, agree more than those of sliding windows and "
        "k-means, over splits with 95% confidence",
        lines if len(result.between) else [],
        {measure: {name: list(own) for name, own in result.state_measure(measure).items()} for measure in MEASURES}
        if len(result.between)
        else {},
        "" if len(result.between) else "one person has no halves of people",
    )


def states_beyond_surrogates(result: BrainResult) -> Claim:
    """Between halves of the people, against series without dynamics."""
    return _beyond(
        result,
        COMPARED,
        "states_beyond_surrogates",
        "States are found again beyond what series without dynamics give",
        "the matched correlation between halves of the people",
        "correlation {}",
    )


def states_foretell(result: BrainResult) -> Claim:
    """The other half of the people, against series without dynamics."""
    return _beyond(
        result,
        ("foretold",),
        "states_foretell",
        "States foretell other people beyond what series without dynamics give",
        "how much likelier a volume of the other half of the people is by states than by a single one, in nats,",
        "{} nats",
    )


def _beyond(result: BrainResult, measures: Sequence[str], key: str, text: str, what: str, unit: str) -> Claim:
    """That something exceeds what each surrogate gives."""
    lines: list[Line] = []
    for kind in SURROGATES:
        for measure in measures:
            measured = result.against(kind, measure)
            beyond = measured.beyond()
            null = float(measured.null.mean()) if len(measured.null) else np.nan
            said = (
                f"{_NAMES[measure]}, {kind}: {signed(measured.value)} against {signed(null)}; "
                f"beyond it by {_told(beyond)}"
            )
            size = f"{unit.format(plus(signed(beyond.mean)))} against {kind}"
            lines.append(Line(_exceeds(beyond), said, beyond.mean, size))
    return _claim(
        key,
        text,
        f"{what} exceeds that of each surrogate by the same splits (90% interval of the draws): "
        + "; ".join(f"{kind}: {kept}" for kind, kept in SURROGATES.items()),
        lines if len(result.between) else [],
        {kind: {m: result.against(kind, m).summary() for m in measures} for kind in SURROGATES},
        "" if len(result.between) else "one person has no halves of people",
    )


def states_true(result: BrainResult) -> Claim:
    """Against the truth of a simulation."""
    own = result.agreement_by_person["psmt"]
    lines: list[Line] = []
    for name, others in result.agreement_by_person.items():
        if name != "psmt":
            ahead = mean_interval(own - others)
            said = (
                f"adjusted Rand index {result.agreement['psmt']:.3f}, {METHODS[name]} {result.agreement[name]:.3f}; "
                f"person by person {_told(ahead)}"
            )
            size = f"Rand index {plus(signed(ahead.mean))} against {METHODS[name]}"
            lines.append(Line(_exceeds(ahead), said, ahead.mean, size))
    return _claim(
        "states_true",
        "States agree with the truth better than those of the field",
        "the adjusted Rand index with the simulated states is higher, person by person with 95% confidence",
        lines,
        dict(result.agreement),
        "" if "hmm" in result.agreement else "hmmlearn is not installed, so there is no HMM to compare with",
    )


def _claim(key: str, text: str, rule: str, lines: list[Line], figures: dict[str, object], note: str) -> Claim:
    def said(outcome: Verdict) -> tuple[str, ...]:
        return tuple(line.said for line in lines if line.verdict == outcome)

    least = min((line for line in lines if np.isfinite(line.gain)), key=lambda line: line.gain, default=None)
    return Claim(
        key=key,
        text=text,
        rule=rule,
        verdict=all_hold([line.verdict for line in lines]),
        paper=False,
        size=least.size if least else "",
        support=said("holds"),
        against=said("does not hold"),
        notes=some(*said(INCONCLUSIVE), note),
        figures=figures,
    )


def _exceeds(difference: Interval) -> Verdict:
    """Whether a difference that should be positive is."""
    return judged(Interval(-difference.mean, -difference.high, -difference.low), margin=0.0)


def _told(interval: Interval) -> str:
    if not np.isfinite(interval.mean):
        return "n/a"
    low, high = (signed(value) if np.isfinite(value) else "∞" for value in interval[1:])
    return f"{signed(interval.mean)} ({low} to {high})"


def _few_people(result: BrainResult) -> str:
    n = len(result.errors)
    return f"{n} people: fewer than three tell nothing with confidence" if n < 3 else ""
