"""Correction of the next frame by a network, which learns online to predict the error at each pixel."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple, cast

import numpy as np

from psmt.engines.frame_kernels import FrameKernels, Layers
from psmt.numerics.arrays import array_namespace
from psmt.persistence.schema import Field, counter, under
from psmt.types import Levels
from psmt.video.candidates import BANDS, mean_square, room
from psmt.video.cells import CellGain, Grid
from psmt.video.state import FRAME_FIELD, DeclaredState

HIDDEN = (24, 24)  # units of the hidden layers
_RATE, _DECAY, _SQUARE_DECAY, _EPSILON = 5e-3, 0.9, 0.999, 1e-8  # of Adam
_LARGEST = 1e3  # weights are clipped to this; weights learned from films are a few units

_PIXELS, _FRAMES = 1024, 64  # remembered pixels of each frame, and frames whose pixels are remembered
_BATCHES, _ROWS = 4, 1024  # training steps for each frame, and the batch size of each step
_EVERYWHERE = 0.3  # share of the remembered pixels drawn uniformly; the others are drawn where the error was large
_GOLDEN = 0.5 * (5**0.5 - 1)  # fractional parts of its multiples spread evenly: each frame is sampled at other pixels
_CALM, _NONE = 1e-3, 1e-6  # smallest unit of changes, relative to the contrast, and to the range of all levels so far
_BEYOND = 8.0  # inputs, aims and outputs are clipped to this many units, which limits the influence of one pixel

_N_OTHERS = 11
"""Number of network inputs besides candidates: the predicted change around the pixel (3), the last error there (2),
the energy of changes around it and the difference of two candidates (3), and the levels around the pixel (3)."""


class Perceptron(DeclaredState):
    """A perceptron with layers (n_inputs, *HIDDEN, 1) and ReLU units, trained by Adam. Its output is 0 at first."""

    weights: Levels  # (n_weights,): of each layer its weights (inputs, outputs), then its biases (outputs,)
    mean: Levels  # exponential mean of the gradients (n_weights,)
    square: Levels  # and of their squares
    steps: int

    def __init__(self, n_inputs: int, kernels: FrameKernels) -> None:
        super().__init__(kernels, self.schema(n_inputs))
        self._sizes = (n_inputs, *HIDDEN, 1)
        self._trained = kernels.capture(self._train)
        # Fixed pseudo-random weights; those of the last layer are zero.
        rng = np.random.default_rng(0)
        first = [
            (rng.random(outputs * (inputs + 1)) * 2 - 1) * (inputs**-0.5 if outputs > 1 else 0.0)
            for inputs, outputs in pairwise(self._sizes)
        ]
        self.weights = kernels.levels(np.concatenate(first).astype(np.float32))
        self._next: tuple[Levels, Levels, Levels, int] | None = None

    @staticmethod
    def schema(n_inputs: int) -> dict[str, Field]:
        """Return the fields (shape, type and range) of the saved state, by name."""
        n_weights = sum(outputs * (inputs + 1) for inputs, outputs in pairwise((n_inputs, *HIDDEN, 1)))
        weights = Field((n_weights,), "float32", -_LARGEST, _LARGEST)
        return {"weights": weights, "mean": weights, "square": weights._replace(low=0.0), "steps": counter()}

    def layers(self, weights: Levels) -> Layers:
        """Split a vector of weights into the matrix (inputs, outputs) and the biases (outputs,) of each layer."""
        layers, first = [], 0
        for inputs, outputs in pairwise(self._sizes):
            last = first + outputs * inputs
            layers.append((weights[first:last].reshape(inputs, outputs), weights[last : last + outputs]))
            first = last + outputs
        return tuple(layers)

    def train(self, inputs: Levels, aims: Levels) -> None:
        """Take one training step per batch of inputs (n_batches, n_rows, n_inputs) and aims (n_batches, n_rows, 2).

        An aim is a pair (target, unit). The loss is the mean of (target - unit * output) ** 2. Predictions use the new
        weights only after `adopt` is called, so that training can run at the same time as a prediction.
        """
        steps = self._kernels.levels(float(self.steps))
        trained = self._trained(self.weights, self.mean, self.square, steps, inputs, aims)
        self._next = (*trained, self.steps + len(inputs))

    def adopt(self) -> None:
        """Use the weights that the last call of `train` computed."""
        if self._next is not None:
            self.weights, self.mean, self.square, self.steps = self._next
            self._next = None

    def _train(
        self, weights: Levels, mean: Levels, square: Levels, steps: Levels, inputs: Levels, aims: Levels
    ) -> tuple[Levels, Levels, Levels]:
        for batch, aim in zip(inputs, aims, strict=True):
            gradient = self.gradient(weights, batch, aim)
            # Clipped: one bad batch must not overwrite everything learned.
            length: Levels = (gradient @ gradient) ** 0.5
            gradient = gradient / length.clip(1.0, None)
            steps = steps + 1.0
            mean = _DECAY * mean + (1 - _DECAY) * gradient
            square = _SQUARE_DECAY * square + (1 - _SQUARE_DECAY) * gradient * gradient
            # Bias correction: both means started at zero.
            whole, whole_square = (1 - decay**steps for decay in (_DECAY, _SQUARE_DECAY))
            step = mean / whole / ((square / whole_square) ** 0.5 + _EPSILON)
            weights = (weights - cast(Levels, _RATE * step)).clip(-_LARGEST, _LARGEST)
        return weights, mean, square

    def gradient(self, weights: Levels, inputs: Levels, aims: Levels) -> Levels:
        """Return the gradient (n_weights,) of the loss of a batch (n_rows, n_inputs), by back-propagation."""
        layers = self.layers(weights)
        seen = [inputs]
        for k, (matrix, biases) in enumerate(layers, 1):
            values = seen[-1] @ matrix + biases
            seen.append(values if k == len(layers) else values.clip(0.0, None))
        target, unit = aims[:, :1], aims[:, 1:]
        slope = 2.0 / len(inputs) * unit * (unit * seen.pop() - target)
        parts: list[Levels] = []
        for k, ((matrix, _), values) in enumerate(zip(layers[::-1], seen[::-1], strict=True), 1):
            parts = [(values.mT @ slope).reshape(-1), slope.sum(axis=0), *parts]
            if k < len(layers):
                slope = (slope @ matrix.mT) * (values > 0)
        gradient: Levels = array_namespace(inputs).concat(parts)
        return gradient


class _Pending(NamedTuple):
    """A prediction that has not been scored yet."""

    changes: Levels  # candidate changes (n_changes, height, width), in levels
    inputs: Levels  # the other inputs (_N_OTHERS, height, width)
    unit: Levels  # unit () of changes: the root mean square of the last one
    change: Levels  # output of the network (height, width), in levels
    uncorrected: Levels  # predicted frame (height, width) before its correction


class Correction(DeclaredState):
    """Predicts the error of the predicted frame at each pixel, by a network that sees the candidates around the pixel.

    The blend of candidates is linear, with weights by cell. The network is nonlinear and can decide for each pixel
    whether a moving object covers the background. It has the same weights all over the frame. It is trained on pixels
    of the last frames. Pixels with large errors are sampled more often and weighted less in turn. A gain, learned from
    earlier corrections, scales the output of the network.

    The network sees the first `n_changes` candidates. `compared` are the indices of two complete predictions. Their
    difference is another input.
    """

    rows: Levels  # inputs of the remembered pixels (_FRAMES, _PIXELS, n_inputs)
    aims: Levels  # their targets and units (_FRAMES, _PIXELS, 2)
    residual: Levels  # error (height, width) of the last prediction, before its correction
    count: int  # number of frames that pixels were sampled from

    def __init__(self, grid: Grid, n_changes: int, compared: tuple[int, int]) -> None:
        n_inputs = n_changes + _N_OTHERS
        self.network, self.gain = Perceptron(n_inputs, grid.kernels), CellGain(grid)
        parts = {"network.": self.network, "gain.": self.gain}
        super().__init__(grid.kernels, self.schema(grid, n_changes), parts)
        self._grid, self._n_changes, self._compared = grid, n_changes, compared
        capture = grid.kernels.capture
        self._described, self._applied = capture(self._describe), capture(self._apply)
        self._sampled = capture(self._sample)
        # All remembered pixels in random order.
        order = np.random.default_rng(0).permutation(_FRAMES * _PIXELS)
        self._order = array_namespace(self.rows).asarray(order, device=self.rows.device)
        self._pending: _Pending | None = None

    @staticmethod
    def schema(grid: Grid, n_changes: int) -> dict[str, Field]:
        """Return the fields (shape, type and range) of the saved state, by name."""
        n_inputs = n_changes + _N_OTHERS
        return {
            "rows": Field((_FRAMES, _PIXELS, n_inputs), "float32", -_BEYOND, _BEYOND),
            "aims": Field((_FRAMES, _PIXELS, 2), "float32", -_BEYOND, _BEYOND),
            "residual": FRAME_FIELD._replace(shape=grid.shape),
            "count": counter(),
            **under("network.", Perceptron.schema(n_inputs)),
            **under("gain.", CellGain.schema(grid)),
        }

    def undo(self) -> Callable[[], None]:
        """Return a function that takes back what is learned after this call, by one call of `learn` at most."""
        slot, others = self.count % _FRAMES, super().undo()
        pixels = 1 * self.rows[slot], 1 * self.aims[slot]

        def restore() -> None:
            others()
            self.rows[slot], self.aims[slot] = pixels

        return restore

    def clear(self) -> None:
        """Discard the gain, the last error and the pending prediction, after a cut."""
        self.gain.clear()
        self.residual = self._kernels.levels(np.zeros(self._grid.shape))
        self._pending = None

    def pause(self) -> None:
        """Call `clear` if a prediction is pending, because predictions are not scored while the correction is off."""
        if self._pending is not None:
            self.clear()

    def prepare(self, current: Levels, moving: Levels, limits: Levels) -> None:
        """Compute the network inputs that do not depend on the prediction.

        `moving` are the complete predictions (n, height, width), and `limits` the lowest and highest level seen so far.
        """
        self._prepared = self._described(current, moving, self.residual, limits)

    def corrected(self, current: Levels, candidates: Levels, uncorrected: Levels, limits: Levels) -> Levels:
        """Return the predicted frame (height, width) after its correction. `prepare` must be called before."""
        inputs, unit = self._prepared
        changes = candidates[: self._n_changes]
        inputs, change, frame = self._applied(
            changes, inputs, unit, current, uncorrected, self.network.weights, self.gain.gains(), limits
        )
        self._pending = _Pending(changes, inputs, unit, change, uncorrected)
        corrected: Levels = frame
        return corrected

    def learn(self, frame: Levels, energy: float, failed: bool) -> None:
        """Learn from the true frame (height, width). Changes are divided by the root of their usual `energy`.

        If the prediction has `failed`, the gain starts again from 0.
        """
        if self._pending is None or energy == 0:
            return
        self.network.adopt()
        changes, inputs, unit, change, uncorrected = self._pending
        weight = energy**-0.5
        self.residual = frame - uncorrected
        self.gain.learn(weight * change, weight * self.residual)
        if failed:
            self.gain.clear()
        slot = self.count % _FRAMES
        figures = self._kernels.levels([self.count * _GOLDEN % 1.0, weight])
        self.rows[slot], self.aims[slot] = self._sampled(changes, inputs, unit, self.residual, figures)
        self.count += 1

    def train(self) -> None:
        """Train the network on remembered pixels. The next call of `learn` puts the new weights to use."""
        if not self.count:
            return
        n_known, n_drawn = min(self.count, _FRAMES) * _PIXELS, _BATCHES * _ROWS
        first = self.count * n_drawn % len(self._order)
        chosen = self._order[first : first + n_drawn] % n_known
        rows, aims = (known.reshape(-1, known.shape[-1])[chosen] for known in (self.rows, self.aims))
        self.network.train(rows.reshape(_BATCHES, _ROWS, -1), aims.reshape(_BATCHES, _ROWS, 2))

    def _describe(self, current: Levels, moving: Levels, residual: Levels, limits: Levels) -> tuple[Levels, Levels]:
        """Return the inputs besides candidates (_N_OTHERS, height, width), and the unit of changes as a scalar array.

        The first three inputs are left empty, because they depend on the prediction.
        """
        last, level = moving[0], current.mean()
        contrast = mean_square(current - level) ** 0.5 + _NONE * (limits[1] - limits[0]) + 1e-30
        unit = mean_square(last) ** 0.5 + _CALM * contrast
        maps = room(current, 3)
        maps[0], maps[1], maps[2] = residual, last * last, current
        fine, middle, rest = self._in_bands(maps)
        inputs = room(current, _N_OTHERS)
        inputs[3], inputs[4] = residual / unit, (middle[0] + rest[0]) / unit
        # Energy of the changes around, and disagreement of two candidates, scaled to -1 to 1.
        energies, (one, other) = inputs[5:8], self._compared
        energies[0], energies[1], energies[2] = middle[1] + rest[1], rest[1], (moving[one] - moving[other]) ** 2
        root = energies.clip(0.0, None) ** 0.5
        energies[...] = (root - unit) / (root + unit)
        content, scale = inputs[8:], 2 / contrast
        content[0], content[1], content[2] = scale * fine[2], scale * middle[2], scale * (rest[2] - level)
        return inputs, unit

    def _apply(
        self,
        changes: Levels,
        inputs: Levels,
        unit: Levels,
        current: Levels,
        uncorrected: Levels,
        weights: Levels,
        gains: Levels,
        limits: Levels,
    ) -> tuple[Levels, Levels, Levels]:
        """Return the inputs besides candidates, the output of the network in grey levels, and the corrected frame."""
        change = uncorrected - current
        _, middle, rest = self._in_bands(change[None])
        inputs[0], inputs[1], inputs[2] = change / unit, (middle[0] + rest[0]) / unit, rest[0] / unit
        (first, biases), *others = self.network.layers(weights)
        # There are many candidates, so their weights are divided by the unit instead of the candidates themselves.
        first = array_namespace(weights).concat([first[: len(changes)] / unit, first[len(changes) :]])
        output = self._kernels.perceptron((changes, inputs), ((first, biases), *others))
        output = unit * output.clip(-_BEYOND, _BEYOND)
        frame = uncorrected + self._grid.weighted(output[None], gains)
        return inputs, output, frame.clip(limits[0], limits[1])

    def _in_bands(self, maps: Levels) -> Levels:
        """Split maps (n, height, width) into bands of detail (n_bands, n, height, width), fine first."""
        parts = room(maps[0], (len(BANDS) + 1) * len(maps)).reshape(len(BANDS) + 1, *maps.shape)
        self._kernels.bands(maps, BANDS, parts)
        return parts

    def _sample(
        self, changes: Levels, inputs: Levels, unit: Levels, residual: Levels, figures: Levels
    ) -> tuple[Levels, Levels]:
        """Return the inputs (_PIXELS, n_inputs) and aims (_PIXELS, 2) of sampled pixels.

        The sample is systematic, and denser where the error is large.
        """
        xp, shift, weight = array_namespace(inputs), figures[0], figures[1]
        errors = abs(residual).reshape(-1)
        usual = errors.mean() + 1e-30
        density = _EVERYWHERE + (1 - _EVERYWHERE) * errors / usual
        cumulative = xp.cumulative_sum(density)
        marks = (xp.arange(_PIXELS, device=inputs.device) + shift) * (cumulative[-1] / _PIXELS)
        chosen = xp.searchsorted(cumulative, marks).clip(0, len(errors) - 1)
        # Importance weights: pixels that are drawn more often weigh less.
        share = weight * density[chosen] ** -0.5
        aims = xp.stack([share * residual.reshape(-1)[chosen], share * unit]).mT
        seen = (part.reshape(len(part), -1)[:, chosen] for part in (changes, inputs))
        rows = xp.concat([next(seen) / unit, next(seen)]).mT
        return rows.clip(-_BEYOND, _BEYOND), aims.clip(-_BEYOND, _BEYOND)
