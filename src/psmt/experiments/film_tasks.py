"""Tasks that several experiments share: learn a dictionary, code a film, and reconstruct a window from its embedding.

Results are cached by their inputs, so experiments with equal inputs compute them once. Codes are passed in CSR format,
as `pack_codes` returns them ("packed codes").
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
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
    """Learn a dictionary for each number of atoms in `sizes`. Return each dictionary with the codes of all patches.

    The patches are an array (time, n_features). `settings` has the attributes `alpha`, `max_epochs` and `seed`.
    """
    given: dict[str, Any] = {name: getattr(settings, name) for name in ("alpha", "max_epochs", "seed")}
    tasks = [dictionary_task(patches, n_atoms=size, **given, device=run.device) for size in sizes]
    dictionaries = [learned["dictionary"] for learned in run.tasks(tasks, "dictionaries")]
    how = {"patches": patches, "alpha": settings.alpha, **on_device(run.device)}
    tasks = [Task(f"codes-M{len(own):04d}", code_patches, {**how, "dictionary": own}) for own in dictionaries]
    return list(zip(dictionaries, run.tasks(tasks, "codes"), strict=True))


def dictionary_task(
    patches: Array, *, n_atoms: int, alpha: float = 1.0, max_epochs: int = 5, seed: int = 0, device: str = "cpu"
) -> Task:
    """Return a task that calls `learn_dictionary` with these arguments."""
    inputs = {"patches": patches, "n_atoms": n_atoms, "alpha": alpha, "max_epochs": max_epochs, "seed": seed}
    return Task(f"dictionary-M{n_atoms:04d}", learn_dictionary, inputs | on_device(device))


def learn_dictionary(
    *, patches: Array, n_atoms: int, alpha: float, max_epochs: int, seed: int, device: str = "cpu"
) -> Result:
    """Learn a ``dictionary`` (n_atoms, n_features) from patches. Return it with the ``objective`` after each epoch."""
    coder = SparseCoder(n_atoms=n_atoms, alpha=alpha, max_epochs=max_epochs, random_state=seed, device=device)
    return {"dictionary": coder.fit(patches).dictionary_, "objective": np.array(coder.objective_)}


def code_patches(*, patches: Array, dictionary: Array, alpha: float, device: str = "cpu") -> Result:
    """Return the sparse codes of patches (time, n_features), in the format of `pack_codes`."""
    coder = SparseCoder.from_dictionary(dictionary, alpha=alpha, device=device)
    return pack_codes(coder.transform(patches, sparse_output=True))


def pack_codes(codes: Array | csr_array) -> Result:
    """Return codes (time, n_atoms) as the three arrays of CSR format: ``values``, ``columns`` and ``offsets``."""
    own = csr_array(codes)
    return {"values": own.data, "columns": own.indices.astype(np.int32), "offsets": own.indptr.astype(np.int64)}


def slice_codes(packed: Result, start: int, stop: int) -> Result:
    """Return the codes ``[start:stop]``, in the format of `pack_codes`."""
    first, last = packed["offsets"][[start, stop]]
    parts = {name: packed[name][first:last] for name in ("values", "columns")}
    return parts | {"offsets": packed["offsets"][start : stop + 1] - first}


def unpack_codes(packed: Result, n_atoms: int) -> csr_array:
    """Return the codes that `pack_codes` packed, as a sparse array (time, n_atoms)."""
    offsets = packed["offsets"]
    return csr_array((packed["values"], packed["columns"], offsets), shape=(len(offsets) - 1, n_atoms))


def window_task(name: str, window: dict[str, Any], n_components: int, settings: Any, run: Run, **changed: Any) -> Task:
    """Return a task that calls `reconstruct_window` for a `window`, given by its patches, dictionary and codes.

    `settings` has the attributes `lam` and `departures` (how the model differs from the paper). The keywords `changed`
    replace fields of `departures`.
    """
    departures = replace(settings.departures, **changed)
    inputs = {**window, "n_components": n_components, "lam": settings.lam}
    return Task(name, reconstruct_window, inputs | departures.embedding | departures.recovery | on_device(run.device))


def reconstruct_window(*, patches: Array, dictionary: Array, codes: Result, device: str = "cpu", **how: Any) -> Result:
    """Return ``mse``, the error of each patch of a window after `round_trip`.

    `patches` (window, n_features) have the packed `codes`. The keywords `how` are other arguments of `round_trip`.
    The result has the shape (window,), or (n_lam, window) for several values of `lam`.
    """
    unpacked, errors = unpack_codes(codes, len(dictionary)), []
    frames_of = round_trip(unpacked, dictionary, device=device, **how)
    # Codes are made dense, and frames are read, one batch at a time, because a window may be a whole film.
    for first in range(0, len(patches), BATCH):
        part = engine_for(device).dense(unpacked[first : first + BATCH])
        errors.append(mse(frames_of(part, part), np.asarray(patches[first : first + BATCH])))
    return {"mse": np.concatenate(errors, axis=-1)}


def round_trip(
    window: Any, dictionary: Array, *, n_components: int | None, lam: ArrayLike, device: str = "cpu", **departures: Any
) -> Callable[[Array, Array], Array]:
    """Learn an embedding from the codes of a `window` (window, n_atoms). Return a function that maps codes to frames.

    The function embeds codes, recovers codes from the embedding, and decodes these. Its arguments are two arrays
    (time, n_atoms): the codes to embed, and the codes of the current frames. Atoms that do not vary in the window keep
    their activities of the current frames. It returns frames (time, n_features), or an array (n_lam, time, n_features)
    for several values of `lam`. The keywords `departures` replace fields of `psmt.model.paper_options.OURS`.
    """
    engine, own = engine_for(device), replace(OURS, **departures)
    moments, atoms = WindowMoments.of(window, engine), engine.array(dictionary)
    matrix = embed_window(moments, n_components, **own.embedding).matrix
    limit = activity_limit(own.activity_bound, moments.peak_activity)
    recoveries = [
        Recovery(matrix, penalty, merge_parallel=own.merge_parallel, activity=limit, engine=engine)
        for penalty in np.ravel(lam).tolist()
    ]

    def frames_of(codes: Array, currents: Array) -> Array:
        points = codes @ matrix.T
        # One penalty at a time, because all together would hold the codes of the window several times.
        frames = [engine.numpy(recover.many(points, currents) @ atoms) for recover in recoveries]
        return np.reshape(frames, (*np.shape(lam), *frames[0].shape))

    return frames_of
