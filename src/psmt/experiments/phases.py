"""Stretches of a film to predict, found by reconstruction errors: the segment of least error, and the phases in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from psmt.errors import NotEnoughFramesError
from psmt.types import Array
from psmt.utils.disk_series import blocks, spread_of

Search = Literal["segment", "film"]
"""Where phases are searched: inside the segment of least error, as in the paper, or in the whole film."""

ALIKE = 1.25
"""Two stretches move alike if neither moves more than this many times as much as the other."""


@dataclass(frozen=True)
class FilmPhase:
    """A stretch of the film to predict."""

    name: str
    start: int
    """First frame that the methods receive after learning; all earlier frames are the past."""


class Stretch(NamedTuple):
    """Frames from `start` to `stop`, which is not included, and their mean MSE."""

    start: int
    stop: int
    mse: float


def least_error(errors: Array, *, window: int, reaching: int = 0) -> Stretch:
    """The segment of `window` frames with the least mean of the errors (time,). Segments start every quarter window.

    Only segments that extend to the frame `reaching` count, or the last one if none does. In the paper it is 8448 to
    9984.
    """
    length = min(window, len(errors))
    latest = len(errors) - length
    starts = [s for s in range(0, latest + 1, max(length // 4, 1)) if s + length >= reaching] or [latest]
    return min((Stretch(s, s + length, float(np.mean(errors[s : s + length]))) for s in starts), key=lambda x: x.mse)


def check_length(n_frames: int, *, window: int, horizon: int) -> None:
    """Raise unless a film of `n_frames` has room for a window, a frame to receive and `horizon` frames to predict."""
    needed = window + horizon + 1
    if n_frames < needed:
        raise NotEnoughFramesError(
            f"the film has {n_frames} frames; window={window} and horizon={horizon} need at least {needed}: "
            f"use a smaller window or horizon, or a longer film"
        )


def phase_segment(errors: Array, *, window: int, horizon: int) -> Stretch:
    """The segment of least error among those with room for two phases after the first window of the film."""
    both = 2 * (horizon + 1)
    return least_error(errors, window=max(window, both), reaching=window + both)


def find_phases(errors: Array, *, window: int, horizon: int, search: Search = "segment") -> list[FilmPhase]:
    """The stretches with the lowest error ('calm') and the highest error ('lively'), without a frame in common.

    `errors` (time,) are reconstruction errors. Each stretch has a whole window before it, a frame to receive and
    `horizon` frames to predict. Both are searched inside `phase_segment`, as in the paper, or in the whole film. If
    there is room for one stretch only, it is called 'only'.
    """
    check_length(len(errors), window=window, horizon=horizon)
    length = horizon + 1
    first, stop = window, len(errors)
    if search == "segment":
        segment = phase_segment(errors, window=window, horizon=horizon)
        first, stop = max(first, segment.start), segment.stop
    sums = np.concatenate([[0.0], np.cumsum(errors[first:stop])])
    means = (sums[length:] - sums[:-length]) / length
    if len(means) <= length:
        return [FilmPhase("only", first + int(np.argmin(means)))]
    # Of all pairs without overlap, the one whose errors differ most. The calm phase may come first or second.
    earlier, later = means[:-length], means[length:]
    calm_first = later - np.minimum.accumulate(earlier)
    calm_last = np.maximum.accumulate(earlier) - later
    if calm_first.max() >= calm_last.max():
        second = int(np.argmax(calm_first))
        calm, lively = int(np.argmin(earlier[: second + 1])), second + length
    else:
        second = int(np.argmax(calm_last))
        calm, lively = second + length, int(np.argmax(earlier[: second + 1]))
    return [FilmPhase("calm", first + calm), FilmPhase("lively", first + lively)]


def frame_motion(frames: Array) -> Array:
    """Motion (time,) of a film (time, n_features): mean absolute change of each frame, relative to the contrast.

    The contrast is the standard deviation of all values. The first frame, and a film without contrast, have motion 0.

    >>> frame_motion(np.array([[0.0, 2.0], [0.0, 2.0], [2.0, 0.0]])).tolist()
    [0.0, 0.0, 2.0]
    """
    spread, parts, last = spread_of(frames), [], np.asarray(frames[:1])
    for block in blocks(frames):
        parts.append(np.abs(np.diff(block, axis=0, prepend=last)).mean(axis=1))
        last = block[-1:]
    changes = np.concatenate(parts)
    motion: Array = changes / spread if spread > 0 else np.zeros(len(frames))
    return motion


def phase_motion(motion: Array, phase: FilmPhase, *, horizon: int) -> float:
    """Mean motion of the predicted frames of a phase, given the motion of each frame of the film (time,)."""
    return float(np.mean(motion[phase.start + 1 : phase.start + horizon + 1]))


def describe_motion(motion: Array, phases: Sequence[FilmPhase], *, horizon: int) -> str:
    """Sentences on the motion in each phase and in the film: the calm phase may move more than the lively one."""
    moved = {phase.name: phase_motion(motion, phase, horizon=horizon) for phase in phases}
    each = ", ".join(f"{value:.3g} in “{name}”" for name, value in moved.items())
    text = (
        f"From frame to frame a pixel changes by {each} (mean absolute change, relative to the contrast); the median "
        f"over the film is {np.median(motion[1:]):.3g}."
    )
    calm, lively = (moved.get(name, np.nan) for name in ("calm", "lively"))
    if lively > ALIKE * calm or not np.isfinite([calm, lively]).all():
        return text
    found = "The calm phase moves more than the lively one" if calm > ALIKE * lively else "Both phases move alike"
    return f"{text} {found}: calm and lively refer to the error, not to motion."
