"""Cells of a frame, and what is learned for each of them: the weights of the candidates, and a gain."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import numpy as np

from psmt.engines import engine_for
from psmt.engines.frame_kernels import FrameKernels
from psmt.numerics.arrays import array_namespace
from psmt.persistence.schema import MOMENT, Field, counter, flag
from psmt.types import Array, Levels
from psmt.video.state import DeclaredState

CELL = 8  # side of a cell in pixels
PULL = 1e-3  # ridge penalty of the frame's common weights towards zero (copying), relative to the candidates' energy
LARGEST_WEIGHT = 1e6  # in a saved model; weights learned from films are a few units
_LIVELIER = 2.0  # a change with more than this multiple of the energy of the last change is scaled down
_TINY = 1e-30  # smallest safe divisor


class Grid:
    """Grid of square cells that covers frames of shape (height, width). Its `layout` is (rows, columns).

    `kernels` are an engine's operations on whole frames, by default those of the CPU. `moments` and `weighted` are the
    kernels `cell_moments` and `weighted`, for cells of this size.
    """

    def __init__(self, shape: tuple[int, int], kernels: FrameKernels | None = None) -> None:
        self.shape = shape
        self.layout = tuple(-(-length // CELL) for length in shape)
        self.kernels = kernels or engine_for("cpu").frames
        self.moments = partial(self.kernels.cell_moments, cell=CELL)
        self.weighted = partial(self.kernels.weighted, cell=CELL)

    def with_limited_energy(self, predicted: Levels, last: Levels) -> Levels:
        """Return the predicted change (height, width), scaled down where it has far more energy than the last change.

        Without this limit, weights learned from violent motion would predict too much once the motion has stopped.
        """
        expected, seen = (_smoothed(self.kernels.cell_energy(change, CELL)) for change in (predicted, last))
        gains = (_LIVELIER * seen / (expected + _TINY)).clip(0, 1)
        return self.weighted(predicted[None], gains[..., None])


def _smoothed(energy: Levels) -> Levels:
    """Return energies (rows, columns), smoothed by the binomial kernel (1, 2, 1) / 4 along both axes."""
    concat = array_namespace(energy).concat
    for _ in range(2):
        padded = concat([energy[:1], energy, energy[-1:]])
        energy = (0.25 * (padded[2:] + padded[:-2]) + 0.5 * energy).swapaxes(0, 1)
    return energy


class CellBlend(DeclaredState):
    """Weights of the candidates in each cell of the frame, by recursive least squares with a forgetting factor.

    `learn` adds a frame to exponentially weighted moments, which are the inner products of candidates and true changes.
    There are two regressions: one forgets fast, the other slowly. `solve` computes the mean of their weights.
    """

    _MEMORIES = (20.0, 80.0)  # of each regression: frames after which old ones have faded to 1/e
    _RIDGES = (0.02, 0.005)  # penalties of a cell's weights towards the frame's, relative to the candidates' energy
    _YOUNG = 0.3  # added to a ridge after one frame, and less after more frames: weights from few frames are uncertain
    _PRIOR_FRAMES = 3.0  # number of frames that a prior counts as, in the weights of the whole frame
    _SETTLED = 10.0  # number of frames from which on each frame updates only half of the rows and cells

    gram: Levels  # of both regressions (2, rows, columns, n_candidates, n_candidates)
    match: Levels
    weights: Levels
    frames: Array  # effective numbers of frames (2,) in the moments
    lower: int  # whether the lower half of the cells is solved next
    odd: int  # whether the odd rows of pixels are used next

    def __init__(self, grid: Grid, n_candidates: int) -> None:
        super().__init__(grid.kernels, self.schema(grid, n_candidates))
        self.grid = grid
        # The former moments, which the next ones overwrite: until then they can be restored.
        self._spare: tuple[Levels, Levels] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_spare": None}

    @classmethod
    def schema(cls, grid: Grid, n_candidates: int) -> dict[str, Field]:
        """Return the schema of the saved state: the shape, type and range of each array."""
        weights = Field((*grid.layout, n_candidates), "float32", low=-LARGEST_WEIGHT, high=LARGEST_WEIGHT)
        match = Field((len(cls._MEMORIES), *weights.shape), "float32")
        return {
            "gram": match._replace(shape=(*match.shape, n_candidates), check=MOMENT),
            "match": match,
            "weights": weights,
            "frames": Field((len(cls._MEMORIES),), low=0.0),
            "lower": flag(),
            "odd": flag(),
        }

    def discount(self, factor: float) -> None:
        """Multiply the accumulated moments by a factor below 1."""
        self.gram, self.match, self.frames = factor * self.gram, factor * self.match, factor * self.frames

    def learn(self, candidates: Levels, change: Levels, weight: float = 1.0) -> None:
        """Add candidates (n_candidates, height, width) and the true change (height, width) to the moments.

        A `weight` w has the same effect as multiplying candidates and change by the square root of w.
        """
        kept, cell = np.exp(-1.0 / np.array(self._MEMORIES)), (CELL, CELL)
        if self.frames[0] >= self._SETTLED:
            # Rows of pixels are similar to their neighbours: every second row is enough, in turns.
            half, cell = slice(int(self.odd), None, 2), (CELL // 2, CELL)
            candidates, change, weight = candidates[:, half], change[half], 2 * weight
            self.odd = not self.odd
        known = self.gram, self.match
        spare = self._spare or (1 * self.gram, 1 * self.match)
        self._kernels.add_moments(known, tuple(kept.tolist()), candidates, change, weight, cell, spare)
        self._spare, (self.gram, self.match) = known, spare
        self.frames = kept * self.frames + 1.0

    def solve(self, prior: tuple[Levels, Levels] | None = None) -> None:
        """Update the `weights` (rows, columns, n_candidates). See `solved` for the prior.

        After the first frames, one frame changes the weights very little. Calls then solve only half of the cells, the
        upper and the lower half in turn.
        """
        if self.frames[0] < self._SETTLED:
            self.weights = self.solved(prior)
            return
        middle = self.grid.layout[0] // 2
        rows = slice(middle, None) if self.lower else slice(middle)
        # A copy: rollouts that have begun keep the weights they began with.
        self.weights = 1 * self.weights
        self.weights[rows] = self.solved(prior, rows)
        self.lower = not self.lower

    def solved(
        self,
        prior: tuple[Levels, Levels] | None = None,
        rows: slice = slice(None),
        moments: tuple[Levels, Levels] | None = None,
    ) -> Levels:
        """Return the mean weights (rows, columns, n_candidates) of both regressions, in the selected rows of cells.

        The `prior` holds moments (n, n) and (n,), averaged over frames of other films. If `moments` are given, they are
        used instead of `gram` and `match`, for example to solve for only a few of the candidates.
        """
        ridges = self._RIDGES + self._YOUNG / (self.frames + 1.0)
        if prior is not None:
            prior = (self._PRIOR_FRAMES * prior[0], self._PRIOR_FRAMES * prior[1])
        found = (
            self._kernels.cell_weights(gram, match, ridge, PULL, prior, rows)
            for gram, match, ridge in zip(*(moments or (self.gram, self.match)), ridges.tolist(), strict=True)
        )
        return cast(Levels, sum(found) / len(ridges))


class CellGain(DeclaredState):
    """Gain in [0, 1] for each cell, by which predicted changes are multiplied.

    The gain is the slope of a regression of true changes on changes predicted before the truth was known. So a
    prediction is used only where it has been better than copying the last frame. Moments are exponentially weighted,
    and the gain of a cell is shrunk towards the gain of the whole frame. The gain starts at 0 or, with a `head_start`
    of n, at the value after n perfect predictions. After a cut it starts again.
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
        """Return the schema of the saved state: the shape, type and range of each array."""
        match = Field(grid.layout, "float32")
        return {"energy": match._replace(low=0.0), "match": match, "length": counter()}

    def clear(self) -> None:
        """Forget all predictions so far, and return to the initial gain."""
        # Changes are in units of their usual energy: one per pixel of a usual frame.
        self.energy = self._kernels.levels(np.full(self._grid.layout, self._head_start * CELL**2))
        self.match = 1 * self.energy
        self.length = self._PROBATION if self._head_start else 0

    def learn(self, predicted: Levels, change: Levels) -> None:
        """Add a predicted change and the true change, both (height, width), to the moments."""
        self.energy, self.match = self._learned(self.energy, self.match, predicted, change)
        self.length += 1

    def _learn(self, energy: Levels, match: Levels, predicted: Levels, change: Levels) -> tuple[Levels, Levels]:
        new_energy, new_match = self._grid.moments(predicted[None], change)
        kept = float(np.exp(-1.0 / self._MEMORY))
        return kept * energy + new_energy[..., 0, 0], kept * match + new_match[..., 0]

    def gains(self) -> Levels:
        """Return the gain (rows, columns, 1) of each cell."""
        return cast(Levels, min(self.length / self._PROBATION, 1.0) * self._gains(self.energy, self.match))

    def _regressed(self, energy: Levels, match: Levels) -> Levels:
        # Where nothing was ever predicted, the floor leaves the gains at zero.
        usual = energy.mean() + _TINY
        pull = usual + self._OWN * energy
        whole = (match.mean() / usual).clip(0, 1)
        return cast(Levels, ((match + pull * whole) / (energy + pull)).clip(0, 1)[..., None])
