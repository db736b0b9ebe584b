"""Kernels for whole frames on the CPU: see `psmt.engines.frame_kernels.FrameKernels`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from psmt.engines.frame_kernels import Complex, Tiles, Work
from psmt.engines.numba import cells, detail, networks
from psmt.engines.numba import flow as flow_kernels
from psmt.engines.numba import tiles as tile_kernels
from psmt.engines.numba.fan_out import together
from psmt.types import AnyArray, Levels


class NumbaFrameKernels:
    """NumPy, pocketfft and compiled kernels, shared out to as many threads as numba may have.

    BLAS should be held to one thread meanwhile (`psmt.utils.threads.one_blas_thread`).
    """

    together = staticmethod(together)
    next_spectra = staticmethod(tile_kernels.next_spectra)
    advanced = staticmethod(tile_kernels.advanced)
    flow = staticmethod(flow_kernels.flow_between)
    moved = staticmethod(flow_kernels.moved)
    bands = staticmethod(detail.bands)
    neighbours = staticmethod(detail.neighbours)
    add_moments = staticmethod(cells.add_moments)
    cell_energy = staticmethod(cells.cell_energy)
    cell_weights = staticmethod(cells.cell_weights)
    weighted = staticmethod(cells.weighted)
    perceptron = staticmethod(networks.perceptron)

    def levels(self, values: ArrayLike) -> AnyArray:
        """Own array of float32 with these values, or of complex64 where they are complex."""
        given = np.asarray(values)
        return np.asarray(given, np.complex64 if np.iscomplexobj(given) else np.float32)

    def numpy(self, values: AnyArray) -> AnyArray:
        """The values themselves."""
        return values

    def capture(self, work: Work) -> Work:
        """The work itself."""
        return work

    def spectra(self, frame: Levels, tiles: Tiles) -> Complex:
        """Fourier coefficients (rows, columns, size, size // 2 + 1) of the tiles of a frame."""
        return tile_kernels.next_spectra(frame, tiles, None, (), ())[0]

    def cell_moments(self, candidates: Levels, change: Levels, cell: int) -> tuple[Levels, Levels]:
        """Inner products by cell: (rows, columns, n, n) and (rows, columns, n)."""
        layout = [-(-length // cell) for length in change.shape]
        n = len(candidates)
        gram, match = np.zeros((*layout, n, n), np.float32), np.zeros((*layout, n), np.float32)
        cells.add_moments(gram, match, 0.0, candidates, change, 1.0, (cell, cell))
        return gram, match
