"""Statistics by cell: a grid of square cells over the frame, weights of candidate changes, and gains of predictions."""

from __future__ import annotations

from functools import partial

import numpy as np

from psmt.engines import engine_for
from psmt.engines.frame_kernels import FrameKernels
from psmt.numerics.arrays import array_namespace
from psmt.persistence.schema import MOMENT, Field, counter, flag
from psmt.types import Levels
from psmt.video.state import DeclaredState

CELL = 8  # side of a cell in pixels
PULL = 1e-3  # ridge penalty of the frame's common weights towards zero (copying), relative to the candidates' energy
LARGEST_WEIGHT = 1e6  # in a saved model; weights learned from films are a few units
_LIVELIER = 2.0  # a change with more than this multiple of the energy of the last change is scaled down
_TINY = 1e-30  # smallest safe divisor


class Grid:
    """Square cells that cover frames of a shape (height, width), in a `layout` of (rows, columns).

    The kernels are those of the device that the frames are on; by default the CPU's. `moments` and `weighted` are two
    of them, `cell_moments` and `weighted`, for cells of this size.
    """

    def __init__(self, shape: tuple[int, int], kernels: FrameKernels | None = None) -> None:
        self.shape = shape
        self.layout = tuple(-(-length // CELL) for length in shape)
        self.kernels = kernels or engine_for("cpu").frames
        self.moments = partial(self.kernels.cell_moments, cell=CELL)
        self.weighted = partial(self.kernels.weighted, cell=CELL)

    def with_limited_energy(self, predicted: Levels, last: Levels) -> Levels:
        """Return the predicted change (height, width), scaled down where it has far more energy than the last one.

        Weights learned from violent motion are wrong once the motion has stopped.
        """
        expected, seen = (_smoothed(self.kernels.cell_energy(change, CELL)) for change in (predicted, last))
        gains = (_LIVELIER * seen / (expected + _TINY)).clip(0, 1)
        return self.weighted(predicted[None], gains[..., None])


def _smoothed(energy: Levels) -> Levels:
    """Energies (rows, columns), smoothed by the binomial kernel (1, 2, 1) / 4 along both axes."""
    concat = array_namespace(energy).concat
    for _ in range(2):
        padded = concat([energy[:1], energy, energy[-1:]])
        energy = (0.25 * (padded[2:] + padded[:-2]) + 0.5 * energy).swapaxes(0, 1)
    return energy


class CellBlend(DeclaredState):
    """Least-squares weights of candidate changes for each cell of the frame.

    Recursive least squares with a forgetting factor: moments of candidates and true changes are exponentially weighted
    sums over the frames. `solve` computes the weights from them.
    """

    _MEMORY = 30.0  # frames after which old ones have faded to 1/e
    _RIDGE = 0.01  # penalty of a cell's weights towards those of the frame, relative to the candidates' energy
    _YOUNG = 0.3  # added to it after one frame, and a part of it after more: a cell that has seen little is uncertain
    _PRIOR_FRAMES = 3.0  # number of frames that a prior counts as, in the weights of the whole frame
    _SETTLED = 10.0  # number of frames from which on each frame updates only half of the rows and cells

    gram: Levels
    match: Levels
    weights: Levels
    frames: float  # effective number of frames in the moments
    lower: int  # whether the lower half of the cells is solved next
    odd: int  # whether the odd rows of pixels are used next

    def __init__(self, grid: Grid, n_candidates: int) -> None:
        super().__init__(grid.kernels, self.schema(grid, n_candidates))
        self.grid = grid

    @staticmethod
    def schema(grid: Grid, n_candidates: int) -> dict[str, Field]:
        """Declare the state."""
        match = Field((*grid.layout, n_candidates), "float32")
        return {
            "gram": match._replace(shape=(*match.shape, n_candidates), check=MOMENT),
            "match": match,
            "weights": match._replace(low=-LARGEST_WEIGHT, high=LARGEST_WEIGHT),
            "frames": Field(low=0.0),
            "lower": flag(),
            "odd": flag(),
        }

    def discount(self, factor: float) -> None:
        """Discount the accumulated moments."""
        self.gram *= factor
        self.match *= factor
        self.frames *= factor

    def learn(self, candidates: Levels, change: Levels, weight: float = 1.0) -> None:
        """Add candidate changes (n_candidates, height, width) and the true change (height, width) to the moments.

        A `weight` of 1 / energy is the same as dividing both by the root of that energy.
        """
        kept = float(np.exp(-1.0 / self._MEMORY))
        cell = (CELL, CELL)
        if self.frames >= self._SETTLED:
            # Rows of pixels are similar to their neighbours: every second row is enough, in turns.
            half, cell = slice(int(self.odd), None, 2), (CELL // 2, CELL)
            candidates, change, weight = candidates[:, half], change[half], 2 * weight
            self.odd = not self.odd
        self._kernels.add_moments(self.gram, self.match, kept, candidates, change, weight, cell)
        self.frames = kept * self.frames + 1.0

    def solve(self, prior: tuple[Levels, Levels] | None = None) -> None:
        """Update the `weights` (rows, columns, n_candidates), given moments of other films as in `solved`.

        Once the moments have settled, one frame hardly moves the weights: the upper and the lower half of the cells
        take turns.
        """
        if self.frames < self._SETTLED:
            self.weights = self.solved(prior)
            return
        middle = self.grid.layout[0] // 2
        rows = slice(middle, None) if self.lower else slice(middle)
        # A copy: rollouts that have begun keep the weights they began with.
        self.weights = 1 * self.weights
        self.weights[rows] = self.solved(prior, rows)
        self.lower = not self.lower

    def solved(self, prior: tuple[Levels, Levels] | None = None, rows: slice = slice(None)) -> Levels:
        """Weights (rows, columns, n_candidates), given the moments (n, n) and (n,) of a usual frame of other films."""
        ridge = self._RIDGE + self._YOUNG / (self.frames + 1.0)
        if prior is not None:
            prior = (self._PRIOR_FRAMES * prior[0], self._PRIOR_FRAMES * prior[1])
        return self._kernels.cell_weights(self.gram, self.match, ridge, PULL, prior, rows)


class CellGain(DeclaredState):
    """Regression gain in [0, 1] per cell: the best multiple of earlier predicted changes.

    The weights of candidates are fitted to the past; the gain is learned from predictions made before the truth was
    known. So a prediction is only used where it has beaten copying. Moments are exponentially weighted, and cells are
    shrunk to the gain of the whole frame. The gain starts at 0 and returns there after a cut. With a `head_start` of n
    frames it starts as after n perfect predictions.
    """

    _MEMORY = 15.0  # frames after which old ones have faded to 1/e
    _OWN = 0.1  # pull of a cell's gain to that of the whole frame, relative to the energy of the cell
    _PROBATION = 5  # a record of fewer frames reduces the gain in proportion to its length

    energy: Levels
    match: Levels
    length: int

    def __init__(self, grid: Grid, head_start: float = 0.0) -> None:
        super().__init__(grid.kernels, self.schema(grid))
        self._grid, self._head_start = grid, head_start
        self._learned, self._gains = grid.kernels.capture(self._learn), grid.kernels.capture(self._regressed)
        self.clear()

    @staticmethod
    def schema(grid: Grid) -> dict[str, Field]:
        """Declare the state."""
        match = Field(grid.layout, "float32")
        return {"energy": match._replace(low=0.0), "match": match, "length": counter()}

    def clear(self) -> None:
        """Start a new record."""
        # Changes are in units of their usual energy: one per pixel of a usual frame.
        self.energy = self._kernels.levels(np.full(self._grid.layout, self._head_start * CELL**2))
        self.match = 1 * self.energy
        self.length = self._PROBATION if self._head_start else 0

    def learn(self, predicted: Levels, change: Levels) -> None:
        """Add a predicted change (height, width) and the true one to the record."""
        self.energy, self.match = self._learned(self.energy, self.match, predicted, change)
        self.length += 1

    def _learn(self, energy: Levels, match: Levels, predicted: Levels, change: Levels) -> tuple[Levels, Levels]:
        new_energy, new_match = self._grid.moments(predicted[None], change)
        kept = float(np.exp(-1.0 / self._MEMORY))
        return kept * energy + new_energy[..., 0, 0], kept * match + new_match[..., 0]

    def gains(self) -> Levels:
        """Gains (rows, columns, 1)."""
        gains: Levels = min(self.length / self._PROBATION, 1.0) * self._gains(self.energy, self.match)
        return gains

    def _regressed(self, energy: Levels, match: Levels) -> Levels:
        # Where nothing was ever predicted, the floor leaves the gains at zero.
        usual = energy.mean() + _TINY
        pull = usual + self._OWN * energy
        whole = (match.mean() / usual).clip(0, 1)
        gains: Levels = ((match + pull * whole) / (energy + pull)).clip(0, 1)[..., None]
        return gains
