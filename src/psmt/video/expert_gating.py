"""How far a prediction is believed: gains per cell from its record, limits on its energy, and what motion explains."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.persistence.schema import Field, counter
from psmt.types import Levels
from psmt.video.grid import CELL, Grid, pooled

_LIVELIER = 2.0
"""A predicted change of more than so many times the energy of the last one is weakened by how far it exceeds that."""

_FARTHEST = 0.5
"""A pan by more than this part of the picture shows too little of what was there before to be told from a cut."""

_TINY = 1e-30
"""Energy that is as good as none."""


class LocalGain:
    """Regression gain in [0, 1] per cell: the best multiple of the changes that were predicted before the truth came.

    Unlike the weights of candidates, which are fitted to the past, this is scored on what was still to come: what has
    not been shown to beat copying is not used. It is exponentially weighted, shrunk to the gain of the whole frame,
    starts at 0, and returns there when a sharp change makes the record worthless. With a head start it starts at 1:
    what other films have taught has a record already.

    Parameters
    ----------
    grid : Grid
    head_start : float, default 0
        Frames of full belief that a new record begins with.
    """

    _MEMORY = 15.0
    """Frames after which old ones have faded to 1/e."""

    _OWN = 0.1
    """Pull of a cell's gain to that of the whole frame, relative to the energy of its own record."""

    _PROBATION = 5
    """A shorter record, in frames, counts in proportion to its length."""

    def __init__(self, grid: Grid, head_start: float = 0.0) -> None:
        self.grid, self._head_start = grid, head_start
        self._learned, self._gains = grid.kernels.capture(self._learn), grid.kernels.capture(self._regressed)
        self.clear()

    def clear(self) -> None:
        """Start a new record."""
        # Changes are in units of their usual energy: a cell of a usual frame has one per pixel.
        full = np.full(self.grid.layout, self._head_start * CELL**2)
        self.energy: Levels = self.grid.kernels.levels(full)
        self.match: Levels = 1 * self.energy
        self.length = self._PROBATION if self._head_start else 0

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return copies of the record."""
        energy, match = (self.grid.kernels.numpy(part).copy() for part in (self.energy, self.match))
        return {"energy": energy, "match": match, "length": np.array(self.length)}

    @staticmethod
    def schema(grid: Grid) -> dict[str, Field]:
        """What `get_state` gives."""
        match = Field(grid.layout, "float32")
        return {"energy": match._replace(low=0.0), "match": match, "length": counter()}

    def set_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from the record that `get_state` gave."""
        self.energy, self.match = (self.grid.kernels.levels(state[name].copy()) for name in ("energy", "match"))
        self.length = int(state["length"])

    def learn(self, predicted: Levels, change: Levels) -> None:
        """Take in a predicted change (height, width) and the one that came."""
        self.energy, self.match = self._learned(self.energy, self.match, predicted, change)
        self.length += 1

    def _learn(self, energy: Levels, match: Levels, predicted: Levels, change: Levels) -> tuple[Levels, Levels]:
        new_energy, new_match = self.grid.moments(predicted[None], change)
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


def restrained(grid: Grid, predicted: Levels, last: Levels) -> Levels:
    """Return the predicted change (height, width), weakened where it has far more energy than the last one.

    What was learned from violent motion is of no use once the motion has stopped, and cannot know that it has.
    """
    expected, seen = (pooled(grid.energy(change)) for change in (predicted, last))
    gains = (_LIVELIER * seen / (expected + _TINY)).clip(0, 1)
    return grid.weighted(predicted[None], gains[..., None])


def unexplained(last: Levels, frame: Levels, along: Levels) -> float:
    """Mean squared error that is left of a frame (height, width) once the last one is moved, `along` a flow, to it.

    A cut leaves most of the change, motion little, however fast it is. What has come in at the edge is not counted
    twice: a pan of the whole picture is held against the part that both frames show.
    """
    error = float(np.mean((along - frame) ** 2))
    return min(error, _panned_error(last, frame))


def _panned_error(last: Levels, frame: Levels) -> float:
    """Mean squared error of the best shift of the whole picture, by phase correlation, where both frames overlap."""
    windows = [np.hanning(length + 2)[1:-1] for length in frame.shape]
    spectra = [np.fft.rfft2((one - one.mean()) * np.outer(*windows)) for one in (last, frame)]
    cross = spectra[1] * spectra[0].conj()
    peaks = np.fft.irfft2(cross / (np.abs(cross) + 1e-12 * np.abs(cross).max() + 1e-30), s=frame.shape)
    down, right = (
        int(k) - n * (k > n // 2)
        for k, n in zip(np.unravel_index(peaks.argmax(), peaks.shape), frame.shape, strict=True)
    )
    if max(abs(down) / frame.shape[0], abs(right) / frame.shape[1]) > _FARTHEST:
        return np.inf
    gap = _inside(frame, down, right) - _inside(last, -down, -right)
    return float(np.mean(gap**2))


def _inside(frame: Levels, down: int, right: int) -> Levels:
    """Return the part of a frame that was in view before the picture moved by so many pixels."""
    height, width = frame.shape
    return frame[max(down, 0) : height + min(down, 0), max(right, 0) : width + min(right, 0)]
