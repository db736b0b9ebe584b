"""Tasks on films that several experiments share: learn a dictionary, code a film, and reconstruct a window.

A window is reconstructed through its embedding. Experiments with equal inputs share the result of a task.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from psmt.coding import SparseCoder
from psmt.coding.dictionary import BATCH
from psmt.embedding import embed_window
from psmt.embedding.moments import WindowMoments
from psmt.engines import engine_for
from psmt.evaluation import mse
from psmt.model.paper_options import OURS
from psmt.pipeline.run import Run
from psmt.pipeline.tasks import Task, on_device
from psmt.recovery import Recovery, activity_limit
from psmt.types import Array, Result

Coded = tuple[Array, Result]
"""A dictionary (n_atoms, n_features), and the packed codes of a film, see `pack_codes`."""


def code_film(patches: Array, sizes: Sequence[int], settings: Any, run: Run) -> list[Coded]:
    """Return, for each number of atoms in `sizes`, a dictionary learned from all patches, and the codes of all patches.

    The patches are an array (time, n_features). The settings have `alpha`, `max_epochs` and `seed`.
    """
    given: dict[str, Any] = {name: getattr(settings, name) for name in ("alpha", "max_epochs", "seed")}
    tasks = [dictionary_task(patches, n_atoms=size, **given, device=run.device) for size in sizes]
    dictionaries = [learned["dictionary"] for learned in run.tasks(tasks, "dictionaries")]
    how = {"patches": patches, "alpha": settings.alpha, **on_device(run.device)}
    tasks = [Task(f"codes-M{len(own):04d}", code_patches, {**how, "dictionary": own}) for own in dictionaries]
    return list(zip(dictionaries, run.tasks(tasks, "codes"), strict=True))


# Dictionaries and codes


def dictionary_task(
    patches: Array, *, n_atoms: int, alpha: float = 1.0, max_epochs: int = 5, seed: int = 0, device: str = "cpu"
) -> Task:
    """Return a task that learns a ``dictionary`` (n_atoms, n_features) from all patches (time, n_features)."""
    inputs = {"patches": patches, "n_atoms": n_atoms, "alpha": alpha, "max_epochs": max_epochs, "seed": seed}
    return Task(f"dictionary-M{n_atoms:04d}", learn_dictionary, inputs | on_device(device))


def learn_dictionary(
    *, patches: Array, n_atoms: int, alpha: float, max_epochs: int, seed: int, device: str = "cpu"
) -> Result:
    """Return the ``dictionary`` (n_atoms, n_features) of patches (time, n_features), and the ``objective`` by epoch."""
    coder = SparseCoder(n_atoms=n_atoms, alpha=alpha, max_epochs=max_epochs, random_state=seed, device=device)
    return {"dictionary": coder.fit(patches).dictionary_, "objective": np.array(coder.objective_)}


def code_patches(*, patches: Array, dictionary: Array, alpha: float, device: str = "cpu") -> Result:
    """Return the packed codes of patches (time, n_features)."""
    coder = SparseCoder.from_dictionary(dictionary, alpha=alpha, device=device)
    return pack_codes(coder.transform(patches, sparse_output=True))


def pack_codes(codes: Array | csr_array) -> Result:
    """Return the non-zero entries of codes (time, n_atoms) in CSR format: ``values``, ``columns`` and ``offsets``."""
    own = csr_array(codes)
    return {"values": own.data, "columns": own.indices.astype(np.int32), "offsets": own.indptr.astype(np.int64)}


def slice_codes(packed: Result, start: int, stop: int) -> Result:
    """Return the packed codes of the frames from `start` up to, but not including, `stop`."""
    first, last = packed["offsets"][[start, stop]]
    return {
        "values": packed["values"][first:last],
        "columns": packed["columns"][first:last],
        "offsets": packed["offsets"][start : stop + 1] - first,
    }


def unpack_codes(packed: Result, n_atoms: int) -> csr_array:
    """Return packed codes as a sparse array (time, n_atoms)."""
    parts = packed["values"], packed["columns"], packed["offsets"]
    return csr_array(parts, shape=(len(packed["offsets"]) - 1, n_atoms))


# Reconstruction of windows


def window_task(name: str, window: dict[str, Any], n_components: int, settings: Any, run: Run, **changed: Any) -> Task:
    """Return the task `reconstruct_window` for a `window`: its ``patches``, ``dictionary`` and packed ``codes``.

    The settings have `lam` and `departures` (options that can differ from the paper). `changed` replaces some of these.
    """
    departures = replace(settings.departures, **changed)
    inputs = {**window, "n_components": n_components, "lam": settings.lam}
    return Task(name, reconstruct_window, inputs | departures.embedding | departures.recovery | on_device(run.device))


def reconstruct_window(
    *, patches: Array, dictionary: Array, codes: Result, device: str = "cpu", **given: Any
) -> Result:
    """Return the ``mse`` (.., window) of patches (window, n_features) after embedding and recovery of packed codes.

    The other parameters are those of `PSMT`. If `lam` has several values, the result has a row for each.
    """
    unpacked, errors = unpack_codes(codes, len(dictionary)), []
    frames_of = round_trip(unpacked, dictionary, device=device, **given)
    # Codes are made dense, and frames are read, one batch at a time, because a window may be a whole film.
    for first in range(0, len(patches), BATCH):
        part = engine_for(device).dense(unpacked[first : first + BATCH])
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
    """Return a function that reconstructs frames from codes, through the embedding of the codes of a window.

    The codes of the `window` (window, n_atoms) may be sparse. The returned function takes two arrays (time, n_atoms):
    the codes to reconstruct, and current codes, whose activities are kept for atoms that do not vary in the window. It
    returns frames (time, n_features), or one such array for each value of `lam`.
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
