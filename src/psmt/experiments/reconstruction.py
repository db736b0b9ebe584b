"""Reconstruction: every frame through the embedding of all frames and back (the original sparse manifold transform)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from psmt.coding import SparseCoder
from psmt.engines import engine_for
from psmt.errors import NotEnoughFramesError
from psmt.evaluation import mse
from psmt.numerics.rank import RANK_TOL
from psmt.recovery import ACTIVITY_FACTOR
from psmt.types import Progress, silent

Array = NDArray[np.float64]


def reconstruct(
    patches: Array, coder: SparseCoder, *, n_components: int, lam: float, progress: Progress = silent
) -> Array:
    """MSE (time,) of each patch (time, n_features) after coding, embedding, recovery and decoding."""
    codes, dictionary = coder.transform(patches), coder.dictionary_
    frames, _ = through_embedding(codes, dictionary, n_components=n_components, lam=lam, device=coder.device)
    progress("reconstruct", len(patches), len(patches))
    return mse(frames, patches)


def through_embedding(
    codes: Any, dictionary: Array, *, n_components: int, lam: float, device: str = "cpu"
) -> tuple[Array, int]:
    """What the codes (time, n_atoms) stand for after the embedding of all of them and recovery, and the rank of V.

    The codes may be an array of the engine; the frames (time, n_features) are those of the dictionary's atoms.
    """
    engine = engine_for(device)
    own = engine.array(codes)
    moments = engine.moments(own)
    embedding = engine.straightest(moments, n_components, centred=True, ends=False, rank_tol=RANK_TOL)
    recover = engine.recovery(embedding.matrix, lam, activity=ACTIVITY_FACTOR * moments.peak_activity)
    del moments  # as large as the codes several times over
    recovered = recover.many(own @ embedding.matrix.T, own)
    return engine.numpy(recovered @ engine.array(dictionary)), embedding.rank


def components_for(n_atoms: int, n_components: int | None) -> int:
    """f where all frames of a window are reconstructed: as given, or a quarter of the atoms."""
    return max(n_atoms // 4, 1) if n_components is None else n_components


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

    Both have a whole window before them. `errors` (time,) are those of `reconstruct`.
    """
    check_length(len(errors), window=window, horizon=horizon)
    first, last = window, len(errors) - horizon - 1
    sums = np.concatenate([[0.0], np.cumsum(errors)])
    means = (sums[first + horizon + 1 : last + horizon + 2] - sums[first : last + 1]) / (horizon + 1)
    return [Phase("calm", first + int(np.argmin(means))), Phase("lively", first + int(np.argmax(means)))]
