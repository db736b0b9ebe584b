"""Layer 1 of a whole film, as tasks: learning a dictionary, and coding the film with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from psmt.coding import SparseCoder
from psmt.pipeline.run import Run
from psmt.pipeline.tasks import Task, on_device
from psmt.types import Array, Result


class Coded(NamedTuple):
    """A dictionary (n_atoms, n_features), and the packed codes of the film."""

    dictionary: Array
    codes: Result


def code_film(patches: Array, sizes: Sequence[int], settings: Any, run: Run) -> list[Coded]:
    """Return, for each size, a dictionary learned from all patches (time, n_features), and the patches' codes.

    The settings are those of an experiment with `alpha`, `max_epochs` and `seed`.
    """
    given: dict[str, Any] = {"max_epochs": settings.max_epochs, "seed": settings.seed}
    both: dict[str, Any] = {"alpha": settings.alpha, "device": run.device}
    learned = run.tasks([dictionary_task(patches, n_atoms=size, **given, **both) for size in sizes], "dictionaries")
    dictionaries = [result["dictionary"] for result in learned]
    codes = run.tasks([codes_task(patches, dictionary, **both) for dictionary in dictionaries], "codes")
    return [Coded(*pair) for pair in zip(dictionaries, codes, strict=True)]


# Tasks. Experiments with equal values share a result.


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
    coder.fit(patches)
    return {"dictionary": coder.dictionary_, "objective": np.array(coder.objective_)}


def codes_task(patches: Array, dictionary: Array, *, alpha: float, device: str = "cpu") -> Task:
    """Return a task whose result is the packed codes of all patches (time, n_features)."""
    inputs = {"patches": patches, "dictionary": dictionary, "alpha": alpha, **on_device(device)}
    return Task(f"codes-M{len(dictionary):04d}", code_patches, inputs)


def code_patches(*, patches: Array, dictionary: Array, alpha: float, device: str = "cpu") -> Result:
    """Return the packed codes of patches (time, n_features)."""
    coder = SparseCoder.from_dictionary(dictionary, alpha=alpha, device=device)
    return pack_codes(coder.transform(patches, sparse_output=True))


def pack_codes(codes: Array | csr_array) -> Result:
    """Return the non-zero entries of codes (time, n_atoms) in CSR format: ``values``, ``columns`` and ``offsets``."""
    own = csr_array(codes)
    return {"values": own.data, "columns": own.indices.astype(np.int32), "offsets": own.indptr.astype(np.int64)}


def slice_codes(packed: Result, start: int, stop: int) -> Result:
    """Return the packed codes of the frames from `start` to `stop`."""
    first, last = packed["offsets"][[start, stop]]
    return {
        "values": packed["values"][first:last],
        "columns": packed["columns"][first:last],
        "offsets": packed["offsets"][start : stop + 1] - first,
    }


def unpack_codes(values: Array, columns: NDArray[Any], offsets: NDArray[Any], n_atoms: int) -> csr_array:
    """Return packed codes as a sparse array (time, n_atoms)."""
    return csr_array((values, columns, offsets), shape=(len(offsets) - 1, n_atoms))
