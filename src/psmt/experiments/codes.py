"""Codes of a whole film: one cell per dictionary, whose result every window of every experiment takes its part of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from psmt.coding import SparseCoder
from psmt.experiments.cells import Cell, Result, on_device

Array = NDArray[np.float64]


def codes_cell(patches: Array, dictionary: Array, *, alpha: float, device: str = "cpu") -> Cell:
    """Cell whose result is the packed codes of all patches (time, n_features).

    Any experiment that asks with the same values shares it.
    """
    inputs = {"patches": patches, "dictionary": dictionary, "alpha": alpha, **on_device(device)}
    return Cell(f"codes-M{len(dictionary):04d}", code_patches, inputs)


def code_patches(*, patches: Array, dictionary: Array, alpha: float, device: str = "cpu") -> Result:
    """Packed codes of the patches (time, n_features). One cell."""
    return pack_codes(SparseCoder.from_dictionary(dictionary, alpha=alpha, device=device).transform(patches))


def pack_codes(codes: Array) -> Result:
    """Codes (time, n_atoms) as ``values``, ``columns`` and ``offsets``: what is not zero, 1 in 100, is what travels."""
    sparse = csr_array(codes)
    return {
        "values": sparse.data,
        "columns": sparse.indices.astype(np.int32),
        "offsets": sparse.indptr.astype(np.int64),
    }


def slice_codes(packed: Result, start: int, stop: int) -> Result:
    """The packed codes of some of the frames."""
    first, last = packed["offsets"][[start, stop]]
    return {
        "values": packed["values"][first:last],
        "columns": packed["columns"][first:last],
        "offsets": packed["offsets"][start : stop + 1] - first,
    }


def sparse_codes(values: Array, columns: NDArray[Any], offsets: NDArray[Any], n_atoms: int) -> csr_array:
    """Packed codes as a sparse array (time, n_atoms)."""
    return csr_array((values, columns, offsets), shape=(len(offsets) - 1, n_atoms))
