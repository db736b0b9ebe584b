"""Frames through the embedding of a window and back: what the sweep and the reconstruction ask, as one task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.departures import OURS, Departures
from psmt.embedding import solve_window
from psmt.engines import engine_for
from psmt.evaluation import mse
from psmt.experiments.coding_tasks import unpack_codes
from psmt.experiments.running.tasks import Task, on_device
from psmt.moments import WindowMoments
from psmt.numerics.namespace import array_namespace
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
    solver: str = "closed",
    device: str = "cpu",
) -> Task:
    """Task whose ``mse`` (.., window) is that of the patches (window, n_features) with these packed codes."""
    inputs = {"patches": patches, "dictionary": dictionary, **codes, "n_components": n_components, "lam": lam}
    inputs |= departures.embedding | departures.recovery | {"solver": solver} | on_device(device)
    return Task(name, reconstruct_window, inputs)


def reconstruct_window(
    *,
    patches: Array,
    dictionary: Array,
    values: Array,
    columns: NDArray[Any],
    offsets: NDArray[Any],
    n_components: int | None,
    lam: float | Sequence[float],
    solver: str = "closed",
    device: str = "cpu",
    **departures: Any,
) -> Result:
    """``mse`` (.., window) of the patches (window, n_features) through the window's embedding and back.

    Their packed codes come with them, see `psmt.experiments.coding_tasks`. Of several `lam`, each gives a row;
    departures are those of `through_embedding`.
    """
    codes = engine_for(device).dense(unpack_codes(values, columns, offsets, len(dictionary)))
    given: dict[str, Any] = {"n_components": n_components, "lam": lam, "solver": solver, "device": device}
    return {"mse": mse(through_embedding(codes, dictionary, **given, **departures), patches)}


def through_embedding(
    codes: Any,
    dictionary: Array,
    *,
    n_components: int | None,
    lam: float | Sequence[float],
    centred: bool = OURS.centred,
    half_stencils: bool = OURS.half_stencils,
    rank_tol: float = OURS.rank_tol,
    activity_bound: float | None = OURS.activity_bound,
    merge_parallel: bool = OURS.merge_parallel,
    solver: str = "closed",
    n_window: int | None = None,
    device: str = "cpu",
) -> Array:
    """What the codes (time, n_atoms) stand for after the embedding of a window and recovery.

    The window is the first `n_window` codes, or all of them. What comes after it is recovered as in a prediction: an
    atom that did not move in the window keeps the activity that it had there, whatever it does later. Of several `lam`
    each gives frames of its own, through one embedding. The codes may be an array of the engine; the frames
    (.., time, n_features) are those of the dictionary's atoms. The rest is as in `PSMT`.
    """
    engine = engine_for(device)
    own = engine.array(codes)
    xp, n_window = array_namespace(own), len(own) if n_window is None else n_window
    moments = WindowMoments.of(own[:n_window], engine)
    how: dict[str, Any] = {"centred": centred, "half_stencils": half_stencils, "rank_tol": rank_tol}
    matrix = solve_window(moments, n_components, solver=solver, **how).matrix
    asked: dict[str, Any] = {"activity": activity_limit(activity_bound, moments.peak_activity), "engine": engine}
    del moments  # as large as the codes several times over
    later = xp.broadcast_to(own[n_window - 1], (len(own) - n_window, own.shape[1]))
    points, currents = own @ matrix.T, xp.concat([own[:n_window], later])
    atoms = engine.array(dictionary)
    # One price after another: all together would hold as many codes of the window at once.
    frames = [
        engine.numpy(Recovery(matrix, price, merge_parallel=merge_parallel, **asked).many(points, currents) @ atoms)
        for price in np.ravel(lam).tolist()
    ]
    return np.reshape(frames, (*np.shape(lam), *frames[0].shape))
