"""Rows of sparse codes that come batch after batch, put together without a second copy of all."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from psmt.types import AnyArray


class SparseRows:
    """A CSR array that grows by its rows, as `scipy.sparse.vstack` would make it of the batches.

    Room is made for as many values as the rows so far lead to expect: a batch is put in place as it comes, while the
    next one is on its way, and nothing is left to be done at the end.

    Parameters
    ----------
    n_rows : int
        Of all batches.
    n_columns : int
    """

    _SPARE = 1.1
    """Room beside what is expected: rows differ."""

    def __init__(self, n_rows: int, n_columns: int) -> None:
        self._shape = n_rows, n_columns
        self._offsets = np.zeros(n_rows + 1, np.int64)
        self._values, self._columns = np.empty(0), np.empty(0, np.int32)
        self._n_rows = self._n_values = 0

    def add(self, rows: csr_array) -> None:
        """Put the next rows (n, n_columns) in place."""
        n_rows, n_values = self._n_rows + rows.shape[0], self._n_values + rows.nnz
        if n_values > len(self._values):
            expected = int(self._SPARE * n_values * self._shape[0] / n_rows) if n_rows < self._shape[0] else n_values
            self._values, self._columns = (self._moved(old, expected) for old in (self._values, self._columns))
        self._values[self._n_values : n_values] = rows.data
        self._columns[self._n_values : n_values] = rows.indices
        self._offsets[self._n_rows + 1 : n_rows + 1] = self._n_values + rows.indptr[1:].astype(np.int64)
        self._n_rows, self._n_values = n_rows, n_values

    def _moved(self, old: AnyArray, size: int) -> AnyArray:
        """What is there, with room for more."""
        new = np.empty(size, old.dtype)
        new[: self._n_values] = old[: self._n_values]
        return new

    def array(self) -> csr_array:
        """All rows (n_rows, n_columns)."""
        n = self._n_values
        # Both kinds of indices are of one size: the smaller one, where that is enough.
        offsets = self._offsets if n > np.iinfo(np.int32).max else self._offsets.astype(np.int32)
        return csr_array((self._values[:n], self._columns[:n], offsets), shape=self._shape)
