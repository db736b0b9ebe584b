"""Choose two phases of a film: short stretches to predict, inside the segment with the least error."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from psmt.experiments.options.declaration import check_length
from psmt.experiments.options.parameters import Search
from psmt.types import Array


@dataclass(frozen=True)
class FilmPhase:
    """A phase: a short stretch of the film that all methods predict."""

    name: str
    start: int
    """First frame that the methods receive after learning. They learn from all earlier frames."""


class Stretch(NamedTuple):
    """The frames ``[start:stop]`` of a film, and their mean reconstruction error."""

    start: int
    stop: int
    mse: float


def least_error(errors: Array, *, window: int, reaching: int = 0) -> Stretch:
    """Return the segment of `window` frames in which the errors (time,) have the smallest mean.

    Candidate segments begin a quarter of a window apart, and end at the frame `reaching` or later. If there are none,
    the last segment of the film is returned. In the paper's film, the segment is 8448 to 9984.
    """
    length = min(window, len(errors))
    latest = len(errors) - length
    starts = [s for s in range(0, latest + 1, max(length // 4, 1)) if s + length >= reaching] or [latest]
    return min((Stretch(s, s + length, float(np.mean(errors[s : s + length]))) for s in starts), key=lambda x: x.mse)


def phase_segment(errors: Array, *, window: int, horizon: int) -> Stretch:
    """Return the segment of least error with room for two phases that begin after the first `window` frames."""
    both = 2 * (horizon + 1)
    return least_error(errors, window=max(window, both), reaching=window + both)


def least_window(windows: Sequence[Stretch], *, window: int, horizon: int) -> Stretch | None:
    """Return the window of least error with room for two phases, as in `phase_segment`. None if none has room."""
    both = 2 * (horizon + 1)
    fit = [own for own in windows if own.stop - own.start >= both and own.stop >= window + both]
    return min(fit, key=lambda own: own.mse, default=None)


def error_memory(errors: Array) -> int:
    """Return the smallest lag, in frames, at which the autocorrelation of the errors (time,) is below 1/e.

    >>> error_memory(np.sin(np.arange(400) / 8))
    10
    """
    centred = errors - np.mean(errors)
    variance, n = float(np.mean(centred**2)), len(errors)
    lags = range(1, n // 2) if variance > 0 else ()
    falls = (lag for lag in lags if float(centred[lag:] @ centred[:-lag]) / (n - lag) < variance / math.e)
    return next(falls, max(n // 2, 1))


def find_phases(
    errors: Array, *, window: int, horizon: int, search: Search = "segment", segment: Stretch | None = None
) -> list[FilmPhase]:
    """Return two phases of a film that share no frame, and differ most in mean reconstruction error.

    `errors` (time,) are the errors of all frames. The phase with the lower error is called 'calm', the other 'lively'.
    A phase is one frame to receive and `horizon` frames to predict, and begins after the first `window` frames. With
    ``search="segment"``, as in the paper, both phases lie inside `segment` (None: that of `phase_segment`). With
    ``search="film"``, they may lie anywhere. If there is room for one phase only, it is called 'only'.
    """
    check_length(len(errors), window=window, horizon=horizon)
    length, first, stop = horizon + 1, window, len(errors)
    if search == "segment":
        segment = segment or phase_segment(errors, window=window, horizon=horizon)
        first, stop = max(first, segment.start), segment.stop
    sums = np.concatenate([[0.0], np.cumsum(errors[first:stop])])
    means = (sums[length:] - sums[:-length]) / length
    if len(means) <= length:
        return [FilmPhase("only", first + int(np.argmin(means)))]
    # Choose the pair without overlap whose errors differ most. The calm phase may come first or second.
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
