"""Which candidate to believe where: least squares per place, shrunk towards the whole frame, and that towards copying."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

Array = NDArray[np.float32]
Double = NDArray[np.float64]

_CELL = 8
"""Side in pixels of the cells that have weights of their own."""

_REACH = 0.75
"""Standard deviation, in cells, of the neighbourhood that a cell learns from."""

_MEMORY = 30.0
"""Frames after which old ones have faded to 1/e."""

_RIDGE = 0.01
"""Strength of the pull of a cell's weights to those of the whole frame, relative to the energy of the candidates."""

_FRAME_RIDGE = 1e-3
"""Strength of the pull of the whole frame's weights to zero, which is copying."""


class Blend:
    """Weights of candidate changes, learned from how well they foretold the changes that came.

    For each cell of the frame the faded moments of the candidates and of the true change are kept; the weights solve
    the normal equations, with a prior at the weights of the whole frame. Between the centres of cells weights are
    interpolated.

    Parameters
    ----------
    shape : (height, width)
        Of the frames.
    n_candidates : int
    """

    def __init__(self, shape: tuple[int, int], n_candidates: int) -> None:
        self.shape, self.n_candidates = shape, n_candidates
        rows, columns = (-(-length // _CELL) for length in shape)
        self.gram = np.zeros((rows, columns, n_candidates, n_candidates))
        self.match = np.zeros((rows, columns, n_candidates))
        self._down, self._across = (_interpolation(length) for length in shape)

    def learn(self, candidates: Array, change: Array) -> None:
        """Take in the candidate changes (n_candidates, height, width) of a frame and the change (height, width) it was."""
        seen, truth = _cells(candidates), _cells(change[None])
        kept = np.exp(-1.0 / _MEMORY)
        self.gram *= kept
        self.gram += seen @ seen.swapaxes(2, 3)
        self.match *= kept
        self.match += (seen @ truth.swapaxes(2, 3))[..., 0]

    def forget(self, kept: float) -> None:
        """Let what was learned count for a fraction of what it did."""
        self.gram *= kept
        self.match *= kept

    def weights(self) -> Double:
        """Weights (rows, columns, n_candidates) of each cell."""
        gram = gaussian_filter(self.gram, (_REACH, _REACH, 0, 0), mode="nearest")
        match = gaussian_filter(self.match, (_REACH, _REACH, 0), mode="nearest")
        whole, energy = gram.mean(axis=(0, 1)), np.einsum("ijkk->ijk", gram)
        usual = np.diagonal(whole)
        # Candidates that never moved anything have no energy: the floor leaves their weights at zero.
        floor = 1e-6 * usual.mean() + np.finfo(float).tiny
        one = np.eye(self.n_candidates)
        common = np.linalg.solve(whole + (_FRAME_RIDGE * usual + floor) * one, match.mean(axis=(0, 1)))
        pull = _RIDGE * (usual + energy) + floor
        return np.linalg.solve(gram + pull[..., None] * one, (match + pull * common)[..., None])[..., 0]

    def __call__(self, candidates: Array, weights: Double) -> Array:
        """The change (height, width) that the candidates (n_candidates, height, width) amount to."""
        rows = np.tensordot(self._down, weights.astype(np.float32), axes=1)  # (height, columns, n_candidates)
        return np.einsum("khw,hwk->hw", candidates, self._across @ rows)


def _cells(maps: Array) -> Array:
    """Maps (n, height, width) by cell (rows, columns, n, pixels); what is beyond the frame is zero."""
    n, height, width = maps.shape
    padded = np.pad(maps, ((0, 0), (0, -height % _CELL), (0, -width % _CELL)))
    cells = padded.reshape(n, -(-height // _CELL), _CELL, -(-width // _CELL), _CELL)
    return np.ascontiguousarray(cells.transpose(1, 3, 0, 2, 4)).reshape(cells.shape[1], cells.shape[3], n, -1)


def _interpolation(length: int) -> Array:
    """Matrix (length, n_cells) from values at the centres of cells to values at pixels."""
    n_cells = -(-length // _CELL)
    position = np.clip((np.arange(length) + 0.5) / _CELL - 0.5, 0, n_cells - 1)
    return np.maximum(1 - np.abs(position[:, None] - np.arange(n_cells)), 0).astype(np.float32)
