"""What the paper claims of Fig. 4, what it does not ask, and whether they hold: over many starts, beyond the nulls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from psmt.evaluation import METHODS, Interval
from psmt.evaluation.null_models import NULL_NAMES
from psmt.experiments.prediction.effects import BLOCK, MARGIN, Comparison, Truth, compare, mean_log_error
from psmt.experiments.prediction.phase import PhaseResult
from psmt.experiments.prediction.run import PredictionResult
from psmt.report import INCONCLUSIVE, Claim, all_hold, some
from psmt.report.numbers import ratio, signed

FEWEST = 3 * BLOCK
"""Starts below which there is no interval, and nothing can be told."""

_TRIVIAL: dict[Truth, tuple[str, ...]] = {"code": ("copy_code", "mean_code"), "frame": ("copy", "mean")}
"""Copying and the mean, by what errors are against."""

_COPYING: dict[str, tuple[str, Truth]] = {
    "beats_copying": ("psmt", "code"),
    "beats_copying_frames": ("psmt", "frame"),
    "gain_beats_copying": ("psmt_gain", "code"),
    "gain_beats_copying_frames": ("psmt_gain", "frame"),
}
"""Claims that the paper does not make, and what is compared. Two questions, not one: what a code does not show of its
frame is lost to every method with layers, and has nothing to do with prediction."""

_SAME = (
    "paired at each start, with its 95% interval below a margin of "
    f"{MARGIN:g} in log MSE (a tie within it inconclusive), and by more than on the same film with its frames "
    "shuffled and on noise of its spectrum"
)


def prediction_claims(result: PredictionResult | None, note: str = "") -> list[Claim]:
    """Fig. 4, then PSMT and its learned gain against copying, code by code and frame by frame, one step ahead."""
    groups = dict.fromkeys(("dynamic", *_COPYING), ()) if result is None else comparisons(result)
    phases = () if result is None else result.phases
    given: dict[str, Any] = {"phases": phases, "note": note}
    return [
        _claim(
            "dynamic_beats_static",
            "The dynamic embedding beats the static ones: PSMT against Baselines 1 and 2",
            f"PSMT has a lower mean log MSE vs code than both baselines, {_SAME}; and a lower one than the mean code",
            groups["dynamic"],
            shown=("psmt", "baseline1", "baseline2", "mean_code"),
            paper=True,
            **given,
        ),
        *(
            _claim(
                key,
                f"{METHODS[method]}, beats copying the last {truth}".replace("PSMT, beats", "PSMT beats"),
                f"its mean log MSE vs {truth} is lower than that of the better of the last {truth} and the mean "
                f"{truth}, {_SAME}",
                groups[key],
                shown=(method, *_TRIVIAL[truth]),
                paper=False,
                **given,
            )
            for key, (method, truth) in _COPYING.items()
        ),
    ]


def comparisons(result: PredictionResult) -> dict[str, tuple[Comparison, ...]]:
    """What each claim rests on, by claim."""
    film, nulls = result.starts, result.nulls
    return {
        "dynamic": (
            compare(film, nulls, "psmt", ("baseline1",), "code"),
            compare(film, nulls, "psmt", ("baseline2",), "code"),
            # The mean is best of all on a null, so that there is nothing to be beyond.
            compare(film, {}, "psmt", ("mean_code",), "code"),
        ),
        **{key: (compare(film, nulls, method, _TRIVIAL[truth], truth),) for key, (method, truth) in _COPYING.items()},
    }


def _claim(
    key: str,
    text: str,
    rule: str,
    parts: Sequence[Comparison],
    *,
    shown: Sequence[str],
    paper: bool,
    phases: Sequence[PhaseResult],
    note: str,
) -> Claim:
    truth = parts[0].truth if parts else "code"
    lines: dict[str, list[str]] = {"holds": [], "does not hold": [], INCONCLUSIVE: []}
    for part in parts:
        lines[part.verdict].append(_line(part))
    return Claim(
        key=key,
        text=text,
        paper=paper,
        rule=rule,
        verdict=all_hold([part.verdict for part in parts]),
        size=_size(parts),
        support=tuple(lines["holds"]),
        against=tuple(lines["does not hold"]),
        notes=some(note, *lines[INCONCLUSIVE], *(_phase_line(result, shown, truth) for result in phases)),
        figures={
            **{result.phase.name: _log_errors(result, shown, truth) for result in phases},
            "margin": MARGIN,
            "comparisons": {part.name: _figures(part) for part in parts},
        },
    )


def _size(parts: Sequence[Comparison]) -> str:
    """The factor of the error against the hardest to beat."""
    if not parts:
        return ""
    hardest = max(parts, key=lambda part: part.effect.mean)
    others = METHODS[hardest.others[0]] if len(hardest.others) == 1 else "copying"
    return f"{ratio(float(np.exp(hardest.effect.mean)))} × the error of {others}"


def _line(part: Comparison) -> str:
    """A comparison in one sentence: the effect and its size, the nulls, and why it does not hold."""
    n = len(part.differences)
    text = (
        f"{part.name}: {told(part.effect)}, {ratio(float(np.exp(part.effect.mean)))} times the error, lower at "
        f"{part.wins} of {n} starts"
    )
    nulls = [f"on {NULL_NAMES[null]} {told(effect, unit='')}" for null, effect in part.null_effects.items()]
    if nulls:
        text += f"; {', '.join(nulls)}"
    if part.verdict == "holds":
        return text
    if part.on_film == "holds":
        return f"{text}: not beyond what it wins there"
    if part.on_film == INCONCLUSIVE:
        return f"{text}: {f'fewer than {FEWEST} starts' if n < FEWEST else 'too close'} to tell"
    return text


def told(interval: Interval, unit: str = " in log MSE") -> str:
    """A difference of log errors with its interval, in words."""
    if not interval.is_finite:
        return f"{signed(interval.mean)}{unit} (no interval)"
    return f"{signed(interval.mean)}{unit} ({signed(interval.low)} to {signed(interval.high)})"


def _figures(part: Comparison) -> dict[str, Any]:
    return {
        "starts": len(part.differences),
        "wins": part.wins,
        "effect": part.effect._asdict(),
        "times_its_error": float(np.exp(part.effect.mean)),
        "on_film": part.on_film,
        "nulls": {
            null: {"effect": effect._asdict(), "beyond": part.beyond(null)}
            for null, effect in part.null_effects.items()
        },
        "verdict": part.verdict,
    }


def _log_errors(result: PhaseResult, shown: Sequence[str], truth: Truth) -> dict[str, float]:
    return {method: mean_log_error(result, method, truth) for method in shown}


def _phase_line(result: PhaseResult, shown: Sequence[str], truth: Truth) -> str:
    errors = _log_errors(result, shown, truth).items()
    values = ", ".join(f"{METHODS[method]} {signed(value)}" for method, value in errors)
    return f"phase “{result.phase.name}”, mean log MSE vs {truth}: {values}"
