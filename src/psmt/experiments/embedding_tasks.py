"""A task of the sweep and reconstruction experiments: reconstruct frames of a window through the window's embedding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.coding.dictionary import BATCH
from psmt.embedding import embed_window
from psmt.embedding.moments import WindowMoments
from psmt.engines import engine_for
from psmt.evaluation import mse
from psmt.experiments.coding_tasks import unpack_codes
from psmt.model.paper_options import OURS, Departures
from psmt.pipeline.tasks import Task, on_device
from psmt.recovery import Recovery, activity_limit
from psmt.types import Array, Result


def window_task(
    name: str,
    patches: Array,
    dictionary: Array,
    codes: Result,
    *,
    n_components: int | None,
    lam: float | Sequence[float],
    departures: Departures = OURS,
    device: str = "cpu",
) -> Task:
    """Return a task that computes the ``mse`` (.., window) of patches (window, n_features) with the packed `codes`."""
    inputs = {"patches": patches, "dictionary": dictionary, **codes, "n_components": n_components, "lam": lam}
    inputs |= departures.embedding | departures.recovery | on_device(device)
    return Task(name, reconstruct_window, inputs)


def reconstruct_window(
    *,
    patches: Array,
    dictionary: Array,
    values: Array,
    columns: NDArray[Any],
    offsets: NDArray[Any],
    device: str = "cpu",
    **given: Any,
) -> Result:
    """Return the ``mse`` (.., window) of patches (window, n_features) after embedding and recovery of their codes.

    `values`, `columns` and `offsets` are the packed codes, see `psmt.experiments.coding_tasks`. If there are several
    `lam`, each gives a row. Other parameters are those of `PSMT`.
    """
    codes = unpack_codes(values, columns, offsets, len(dictionary))
    frames_of = round_trip(codes, dictionary, device=device, **given)
    errors = []
    # Codes are made dense, and frames are read, one batch at a time, because a window may be a whole film.
    for first in range(0, len(patches), BATCH):
        part = engine_for(device).dense(codes[first : first + BATCH])
        errors.append(mse(frames_of(part, part), np.asarray(patches[first : first + BATCH])))
    return {"mse": np.concatenate(errors, axis=-1)}


def round_trip(
    window: Any,
    dictionary: Array,
    *,
    n_components: int | None,
    lam: float | Sequence[float],
    centred: bool = OURS.centred,
    half_stencils: bool = OURS.half_stencils,
    rank_tol: float = OURS.rank_tol,
    activity_bound: float | None = OURS.activity_bound,
    merge_parallel: bool = OURS.merge_parallel,
    device: str = "cpu",
) -> Callable[[Array, Array], Array]:
    """Return a function that reconstructs frames from codes through the embedding of a window.

    The window's codes (window, n_atoms) may be sparse. The function takes codes and current codes (time, n_atoms) as
    `Recovery.many` does, and returns frames (.., time, n_features).
    """
    engine = engine_for(device)
    moments, atoms = WindowMoments.of(window, engine), engine.array(dictionary)
    options: dict[str, Any] = {"centred": centred, "half_stencils": half_stencils, "rank_tol": rank_tol}
    matrix = embed_window(moments, n_components, **options).matrix
    activity = activity_limit(activity_bound, moments.peak_activity)
    recoveries = [
        Recovery(matrix, penalty, merge_parallel=merge_parallel, activity=activity, engine=engine)
        for penalty in np.ravel(lam).tolist()
    ]

    def frames_of(codes: Array, currents: Array) -> Array:
        points = codes @ matrix.T
        # Penalties are used one after the other, because together they would hold the codes of the window several
        # times.
        frames = [engine.numpy(recover.many(points, currents) @ atoms) for recover in recoveries]
        return np.reshape(frames, (*np.shape(lam), *frames[0].shape))

    return frames_of
