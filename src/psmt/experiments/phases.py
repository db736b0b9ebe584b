"""Stretches of a film that reconstruction errors single out: the phases to predict, and the segment of least error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from psmt.errors import NotEnoughFramesError
from psmt.types import Array


@dataclass(frozen=True)
class Phase:
    """A stretch of the film to predict."""

    name: str
    start: int
    """First frame that is received; all before it is the past."""


class Stretch(NamedTuple):
    """Frames from `start` up to but without `stop`, and their mean MSE."""

    start: int
    stop: int
    mse: float


def least_error(errors: Array, *, window: int) -> Stretch:
    """The segment of `window` frames, one each quarter window, with the least mean of the errors (time,).

    The paper predicts in its own: 8448 to 9984.
    """
    length = min(window, len(errors))
    starts = range(0, len(errors) - length + 1, max(length // 4, 1))
    return min((Stretch(s, s + length, float(np.mean(errors[s : s + length]))) for s in starts), key=lambda x: x.mse)


def check_length(n_frames: int, *, window: int, horizon: int) -> None:
    """Raise unless a film of `n_frames` has room for a window, a frame to receive and `horizon` frames to predict."""
    needed = window + horizon + 1
    if n_frames < needed:
        raise NotEnoughFramesError(
            f"the film has {n_frames} frames; window={window} and horizon={horizon} need at least {needed}: "
            f"use a smaller window or horizon, or a longer film"
        )


def find_phases(errors: Array, *, window: int, horizon: int) -> list[Phase]:
    """The stretch that the embedding of all frames reconstructs best ('calm'), and the one it does worst ('lively').

    Both have a whole window before them. `errors` (time,) are those of the reconstruction.
    """
    check_length(len(errors), window=window, horizon=horizon)
    first, last = window, len(errors) - horizon - 1
    sums = np.concatenate([[0.0], np.cumsum(errors)])
    means = (sums[first + horizon + 1 : last + horizon + 2] - sums[first : last + 1]) / (horizon + 1)
    return [Phase("calm", first + int(np.argmin(means))), Phase("lively", first + int(np.argmax(means)))]


def distinct_phases(errors: Array, *, window: int, horizon: int) -> list[Phase]:
    """As `find_phases`; in a film with room for one stretch only, the calm one is the lively one, and there is one."""
    calm, lively = find_phases(errors, window=window, horizon=horizon)
    return [calm, lively] if calm.start != lively.start else [Phase("only", calm.start)]
