"""What the blend still gets wrong, and a network finds in what it sees at a pixel: learned while the film runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from psmt.numerics.namespace import array_namespace
from psmt.persistence.schema import Field, counter, under
from psmt.types import Levels
from psmt.video.candidates import BANDS, room
from psmt.video.checks import FRAME_FIELD
from psmt.video.expert_gating import LocalGain
from psmt.video.foresight import mean_square
from psmt.video.grid import Grid
from psmt.video.perceptron import Perceptron

_PIXELS, _FRAMES = 1024, 64
"""Pixels that are remembered of each frame, and frames of which some are."""

_BATCHES, _ROWS = 4, 1024
"""Steps of training for each frame, and remembered pixels that each looks at."""

_EVERYWHERE = 0.3
"""Share of the remembered pixels that is drawn from all over the frame; others are where the prediction failed."""

_GOLDEN = 0.5 * (5**0.5 - 1)
"""Multiples of it, less their whole parts, are spread evenly: no frame is sampled where the one before was."""

_CALM, _NONE = 1e-3, 1e-6
"""Parts of the contrast of a frame, and of all levels seen so far, that no unit of change is smaller than."""

_BEYOND = 8.0
"""No input, aim or output is beyond so many units: a single pixel says only so much."""

_N_OTHERS = 11
"""Inputs of the network beside candidates: the prediction, and what is around it; its last error; how lively and how
doubtful it is there; what is there."""


class _Foreseen(NamedTuple):
    """A prediction whose truth has not come yet."""

    changes: Levels
    """Candidate changes that the network saw (n_changes, height, width), in levels."""
    inputs: Levels
    """All else that it saw (n_inputs - n_changes, height, width)."""
    unit: Levels
    """Unit () of changes: the root mean square of the last one."""
    change: Levels
    """Its output (height, width), as a change of levels."""
    advised: Levels
    """The frame (height, width) that it corrects."""


class Correction:
    """A network per pixel, which sees all predictions at the pixel and around it, and learns what they leave.

    The blend is linear, with weights that change from cell to cell; whether a pixel belongs to what moves or to what
    it will cover is decided pixel by pixel. The network is the same all over the frame. It is trained on pixels of the
    last frames, of which those where the prediction failed are remembered more often, and count the less for it. It
    begins as zero, and a gain from its own record holds it to what it has shown to be worth.

    Parameters
    ----------
    grid : Grid
    n_changes : int
        Candidate changes that it sees, which come first.
    """

    def __init__(self, grid: Grid, n_changes: int) -> None:
        self._grid, self._n_changes, n_inputs = grid, n_changes, n_changes + _N_OTHERS
        own = grid.kernels.levels
        self.network, self.gain = Perceptron(n_inputs, grid.kernels), LocalGain(grid)
        capture = grid.kernels.capture
        self._looked, self._foreseen_by = capture(self._look), capture(self._foresee)
        self._sampled = capture(self._sample)
        self._rows: Levels = own(np.zeros((_FRAMES, _PIXELS, n_inputs)))
        self._aims: Levels = own(np.zeros((_FRAMES, _PIXELS, 2)))
        # All remembered pixels in an order that has nothing to do with time or place.
        order = np.random.default_rng(0).permutation(_FRAMES * _PIXELS)
        self._order = array_namespace(self._rows).asarray(order, device=self._rows.device)
        self._count = 0
        self.clear()

    def clear(self) -> None:
        """Leave the scene: what came has nothing to do with it."""
        self.gain.clear()
        self._residual: Levels = self._grid.kernels.levels(np.zeros(self._grid.shape))
        self._foreseen: _Foreseen | None = None

    def rest(self) -> None:
        """Say nothing for a while: what was said is not held against what comes, and the record begins anew."""
        if self._foreseen is not None:
            self.clear()

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return copies of the network, what it is trained on, and its record."""
        known = {"rows": self._rows, "aims": self._aims, "residual": self._residual}
        return {
            **{name: self._grid.kernels.numpy(one).copy() for name, one in known.items()},
            "count": np.array(self._count),
            **{f"network.{name}": value for name, value in self.network.get_state().items()},
            **{f"gain.{name}": value for name, value in self.gain.get_state().items()},
        }

    @staticmethod
    def schema(grid: Grid, n_changes: int) -> dict[str, Field]:
        """What `get_state` gives."""
        n_inputs = n_changes + _N_OTHERS
        return {
            "rows": Field((_FRAMES, _PIXELS, n_inputs), "float32", -_BEYOND, _BEYOND),
            "aims": Field((_FRAMES, _PIXELS, 2), "float32", -_BEYOND, _BEYOND),
            "residual": FRAME_FIELD._replace(shape=grid.shape),
            "count": counter(),
            **under("network.", Perceptron.schema(n_inputs)),
            **under("gain.", LocalGain.schema(grid)),
        }

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `get_state` gave."""
        own = self._grid.kernels.levels
        self._rows, self._aims, self._residual = (own(state[name].copy()) for name in ("rows", "aims", "residual"))
        self._count, self._foreseen = int(state["count"]), None
        for name, part in (("network", self.network), ("gain", self.gain)):
            part.set_state({key: state[f"{name}.{key}"] for key in part.get_state()})

    def look(self, current: Levels, moving: Levels, limits: Levels) -> None:
        """See all but the prediction itself, in the current frame (height, width) and in changes (n, height, width)."""
        self._sight = self._looked(current, moving, self._residual, limits)

    def corrected(self, current: Levels, candidates: Levels, advised: Levels, limits: Levels) -> Levels:
        """Return the `advised` frame (height, width) after the current one with what the network adds to it."""
        inputs, unit = self._sight
        changes = candidates[: self._n_changes]
        inputs, change, frame = self._foreseen_by(
            changes, inputs, unit, current, advised, self.network.weights, self.gain.gains(), limits
        )
        self._foreseen = _Foreseen(changes, inputs, unit, change, advised)
        corrected: Levels = frame
        return corrected

    def learn(self, frame: Levels, energy: float, failed: bool) -> None:
        """Take in the frame (height, width) that came; its change counts in units of the `energy` that is usual.

        Where the prediction has `failed`, the film is not what it was: the network has to prove itself again.
        """
        if self._foreseen is None or energy == 0:
            return
        self.network.adopt()
        changes, inputs, unit, change, advised = self._foreseen
        weight = energy**-0.5
        self._residual = frame - advised
        self.gain.learn(weight * change, weight * self._residual)
        if failed:
            self.gain.clear()
        slot = self._count % _FRAMES
        figures = self._grid.kernels.levels([self._count * _GOLDEN % 1.0, weight])
        self._rows[slot], self._aims[slot] = self._sampled(changes, inputs, unit, self._residual, figures)
        self._count += 1

    def train(self) -> None:
        """Train the network on pixels of the last frames, for the frame after the next: that can wait for it."""
        if not self._count:
            return
        n_known, n_looked_at = min(self._count, _FRAMES) * _PIXELS, _BATCHES * _ROWS
        first = self._count * n_looked_at % len(self._order)
        chosen = self._order[first : first + n_looked_at] % n_known
        rows, aims = (known.reshape(-1, known.shape[-1])[chosen] for known in (self._rows, self._aims))
        self.network.train(rows.reshape(_BATCHES, _ROWS, -1), aims.reshape(_BATCHES, _ROWS, 2))

    def _look(self, current: Levels, moving: Levels, residual: Levels, limits: Levels) -> tuple[Levels, Levels]:
        """Inputs (_N_OTHERS, height, width), of which the first three are still to come, and the unit () of changes."""
        last, level = moving[0], current.mean()
        contrast = mean_square(current - level) ** 0.5 + _NONE * (limits[1] - limits[0]) + 1e-30
        unit = mean_square(last) ** 0.5 + _CALM * contrast
        maps = room(current, 3)
        maps[0], maps[1], maps[2] = residual, last * last, current
        fine, middle, rest = self._parted(maps)
        inputs = room(current, _N_OTHERS)
        inputs[3], inputs[4] = residual / unit, (middle[0] + rest[0]) / unit
        # How lively it is there, and how far optical flow and Fourier planes disagree: from none to any, -1 to 1.
        energies = inputs[5:8]
        energies[0], energies[1], energies[2] = middle[1] + rest[1], rest[1], (moving[1] - moving[-2]) ** 2
        root = energies.clip(0.0, None) ** 0.5
        energies[...] = (root - unit) / (root + unit)
        content, scale = inputs[8:], 2 / contrast
        content[0], content[1], content[2] = scale * fine[2], scale * middle[2], scale * (rest[2] - level)
        return inputs, unit

    def _foresee(
        self,
        changes: Levels,
        inputs: Levels,
        unit: Levels,
        current: Levels,
        advised: Levels,
        weights: Levels,
        gains: Levels,
        limits: Levels,
    ) -> tuple[Levels, Levels, Levels]:
        """All inputs but candidates, what the network says, and the frame that this amounts to."""
        change = advised - current
        _, middle, rest = self._parted(change[None])
        inputs[0], inputs[1], inputs[2] = change / unit, (middle[0] + rest[0]) / unit, rest[0] / unit
        (first, biases), *others = self.network.layers(weights)
        # Candidates are in levels, and many: their weights are taken in the unit instead.
        first = array_namespace(weights).concat([first[: len(changes)] / unit, first[len(changes) :]])
        said = self._grid.kernels.perceptron((changes, inputs), ((first, biases), *others))
        said = unit * said.clip(-_BEYOND, _BEYOND)
        frame = advised + self._grid.weighted(said[None], gains)
        return inputs, said, frame.clip(limits[0], limits[1])

    def _parted(self, maps: Levels) -> Levels:
        """Maps (n, height, width) in bands of detail (n_bands, n, height, width), fine first."""
        parts = room(maps[0], (len(BANDS) + 1) * len(maps)).reshape(len(BANDS) + 1, *maps.shape)
        self._grid.kernels.bands(maps, BANDS, parts)
        return parts

    def _sample(
        self, changes: Levels, inputs: Levels, unit: Levels, residual: Levels, figures: Levels
    ) -> tuple[Levels, Levels]:
        """Inputs (_PIXELS, n_inputs) and aims (_PIXELS, 2) of a systematic sample, denser where predictions failed."""
        xp, shift, weight = array_namespace(inputs), figures[0], figures[1]
        failed = abs(residual).reshape(-1)
        usual = failed.mean() + 1e-30
        chances = _EVERYWHERE + (1 - _EVERYWHERE) * failed / usual
        upto = xp.cumulative_sum(chances)
        marks = (xp.arange(_PIXELS, device=inputs.device) + shift) * (upto[-1] / _PIXELS)
        chosen = xp.searchsorted(upto, marks).clip(0, len(failed) - 1)
        # What is drawn more often than others counts the less.
        share = weight * chances[chosen] ** -0.5
        aims = xp.stack([share * residual.reshape(-1)[chosen], share * unit]).mT
        seen = (part.reshape(len(part), -1)[:, chosen] for part in (changes, inputs))
        rows = xp.concat([next(seen) / unit, next(seen)]).mT
        return rows.clip(-_BEYOND, _BEYOND), aims.clip(-_BEYOND, _BEYOND)
