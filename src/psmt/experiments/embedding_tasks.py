"""Frames through the embedding of a window and back: what the sweep and the reconstruction ask, as one task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.coding.atoms import BATCH
from psmt.embedding import solve_window
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
    departures are those of `PSMT`.
    """
    codes = unpack_codes(values, columns, offsets, len(dictionary))
    back = RoundTrip(codes, dictionary, n_components=n_components, lam=lam, solver=solver, device=device, **departures)
    dense = engine_for(device).dense
    errors = []
    # Codes are dense, and frames there, a batch at a time: a window may be a whole film.
    for first in range(0, len(patches), BATCH):
        part = dense(codes[first : first + BATCH])
        errors.append(mse(back(part, part), np.asarray(patches[first : first + BATCH])))
    return {"mse": np.concatenate(errors, axis=-1)}


class RoundTrip:
    """The embedding of a window's codes (window, n_atoms), which may be sparse, and recovery from it."""

    def __init__(
        self,
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
        device: str = "cpu",
    ) -> None:
        engine = engine_for(device)
        moments = WindowMoments.of(codes, engine)
        how: dict[str, Any] = {"centred": centred, "half_stencils": half_stencils, "rank_tol": rank_tol}
        self._matrix = solve_window(moments, n_components, solver=solver, **how).matrix
        activity = activity_limit(activity_bound, moments.peak_activity)
        self._engine, self._atoms, self._shape = engine, engine.array(dictionary), np.shape(lam)
        self._recoveries = [
            Recovery(self._matrix, price, merge_parallel=merge_parallel, activity=activity, engine=engine)
            for price in np.ravel(lam).tolist()
        ]

    def __call__(self, codes: Array, currents: Array) -> Array:
        """Frames (.., time, n_features) of codes (time, n_atoms), given those that each is recovered from."""
        points = codes @ self._matrix.T
        # One price after another: all together would hold as many codes of the window at once.
        frames = [self._engine.numpy(recover.many(points, currents) @ self._atoms) for recover in self._recoveries]
        return np.reshape(frames, (*self._shape, *frames[0].shape))
