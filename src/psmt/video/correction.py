"""Correction of the predicted frame by a small network, which learns online to predict the error at each pixel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from psmt.engines.frame_kernels import FrameKernels, Layers
from psmt.numerics.arrays import array_namespace
from psmt.persistence.schema import Field, Layout, counter, under
from psmt.types import Ints, Levels
from psmt.video.candidates import BANDS, mean_square, room
from psmt.video.cells import CellGain, Grid
from psmt.video.state import FRAME_FIELD, DeclaredState

_DECAY, _SQUARE_DECAY, _EPSILON = 0.9, 0.999, 1e-8  # of Adam
_LARGEST = 1e3  # weights are clipped to this; weights learned from films are a few units

_EVERYWHERE = 0.3  # share of the remembered crops drawn uniformly; the others are drawn where the error was large
_GOLDEN = 0.5 * (5**0.5 - 1)  # fractional parts of its multiples spread evenly: each frame is sampled at other pixels
_CALM, _NONE = 1e-3, 1e-6  # smallest unit of changes, relative to the contrast, and to the range of all levels so far
_QUIET = 0.3  # unit at a pixel where nothing changed, relative to the root mean square of the last change
_KEPT = 0.9  # share of the average of the weights that is kept per frame
_BEYOND = 8.0  # inputs, aims and outputs are clipped to this many units, which limits the influence of one pixel

_N_OTHERS = 11
"""Number of network inputs besides candidates: the predicted change around the pixel (3), the last error there (2),
the energy of changes around it and the difference of two candidates (3), and the levels around the pixel (3)."""


class Form(NamedTuple):
    """Architecture of a network and settings of its training. A crop is a square of pixels to train on."""

    sides: tuple[int, ...]  # side in pixels of the filters of each layer
    hidden: tuple[int, ...]  # number of units of each hidden layer
    rate: float  # of Adam
    crop: int  # side of a crop in pixels, without the pixels around it that the network also sees
    crops: int  # number of remembered crops of each frame
    frames: int  # number of frames whose crops are remembered
    steps: int  # training steps for each frame
    batch: int  # number of crops of each step

    @property
    def seen(self) -> int:
        """Return the side of the square of inputs for a crop: the crop and the margin that the filters need."""
        return self.crop + sum(self.sides) - len(self.sides)


PIXELWISE = Form((1, 1, 1), (48, 24), 5e-3, crop=1, crops=1024, frames=64, steps=4, batch=1024)
CONVOLUTIONAL = Form((3, 3, 1), (32, 32), 2e-3, crop=8, crops=64, frames=32, steps=4, batch=64)
"""A network that sees each pixel alone, and one of convolutions. The second needs 14 times the arithmetic to predict,
and 70 times to learn."""


def usual_form(kernels: FrameKernels) -> Form:
    """Return the form of network for a new model. It is convolutional where convolutions are fast, as on a GPU."""
    return CONVOLUTIONAL if kernels.convolves else PIXELWISE


def stored_form(layouts: Mapping[str, Layout | NDArray[Any]]) -> Form:
    """Return the form of network of a saved model, given the arrays of its file, or their shapes and types."""
    crops = layouts.get("correction.rows")
    return CONVOLUTIONAL if crops is not None and crops.shape[:1] == (CONVOLUTIONAL.frames,) else PIXELWISE


class Network(DeclaredState):
    """Convolutional network with ReLU units, (n_inputs, *hidden, 1) channels and square filters, trained by Adam.

    Its output is 0 at first. With filters of one pixel, it is a perceptron for each pixel. Steps of Adam are noisy, so
    predictions use an average of the weights over the last frames (Polyak averaging).
    """

    weights: Levels  # (n_weights,): of each layer its weights (side * side, inputs, outputs), then its biases
    average: Levels  # running mean of the weights, with which predictions are made
    mean: Levels  # exponential mean of the gradients (n_weights,)
    square: Levels  # and of their squares
    steps: int

    def __init__(self, n_inputs: int, kernels: FrameKernels, form: Form) -> None:
        super().__init__(kernels, self.schema(n_inputs, form))
        self.form, self._shapes = form, _shapes(n_inputs, form)
        self._trained = kernels.capture(self._train)
        # Fixed pseudo-random weights; those of the last layer are zero.
        rng = np.random.default_rng(0)
        first = [
            (rng.random(outputs * (pixels * inputs + 1)) * 2 - 1) * ((pixels * inputs) ** -0.5 if outputs > 1 else 0.0)
            for pixels, inputs, outputs in self._shapes
        ]
        self.weights = self.average = kernels.levels(np.concatenate(first).astype(np.float32))
        self._next: tuple[Levels, Levels, Levels, int] | None = None

    @staticmethod
    def schema(n_inputs: int, form: Form) -> dict[str, Field]:
        """Return the schema of the saved state: the shape, type and range of each array."""
        n_weights = sum(prod(shape) + shape[-1] for shape in _shapes(n_inputs, form))
        weights = Field((n_weights,), "float32", -_LARGEST, _LARGEST)
        square = weights._replace(low=0.0)
        return {"weights": weights, "average": weights, "mean": weights, "square": square, "steps": counter()}

    def layers(self, weights: Levels) -> Layers:
        """Return views of a weight vector: weights (side * side, inputs, outputs) and biases (outputs,) by layer."""
        layers, first = [], 0
        for shape in self._shapes:
            last, outputs = first + prod(shape), shape[-1]
            layers.append((weights[first:last].reshape(shape), weights[last : last + outputs]))
            first = last + outputs
        return tuple(layers)

    def train(self, inputs: Levels, aims: Levels) -> None:
        """Take one step of Adam for each batch of inputs (n_batches, n_crops, seen, seen, n_inputs).

        The `aims` (n_batches, n_crops, crop, crop, 2) are pairs (target, unit). The loss is the mean square of
        ``target - unit * output``. Predictions use the new weights only after `adopt` is called, so that training can
        run at the same time as a prediction.
        """
        steps = self._kernels.levels(float(self.steps))
        trained = self._trained(self.weights, self.mean, self.square, steps, inputs, aims)
        self._next = (*trained, self.steps + len(inputs))

    def adopt(self) -> None:
        """Use the weights that the last call of `train` computed."""
        if self._next is not None:
            self.weights, self.mean, self.square, self.steps = self._next
            self.average = self.weights + _KEPT * (self.average - self.weights)
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
            weights = (weights - cast(Levels, self.form.rate * step)).clip(-_LARGEST, _LARGEST)
        return weights, mean, square

    def gradient(self, weights: Levels, inputs: Levels, aims: Levels) -> Levels:
        """Return the gradient (n_weights,) of the loss of one batch (see `train`), by back-propagation."""
        layers = [(filters.reshape(-1, len(biases)), biases) for filters, biases in self.layers(weights)]
        values, seen = [inputs], []
        for k, (matrix, biases) in enumerate(layers, 1):
            seen.append(_around(values[-1], self.form.sides[k - 1]))
            found = seen[-1].reshape(-1, len(matrix)) @ matrix + biases
            values.append((found if k == len(layers) else found.clip(0.0, None)).reshape(*seen[-1].shape[:3], -1))
        target, unit = aims[..., :1], aims[..., 1:]
        slope = 2.0 / prod(target.shape) * unit * (unit * values[-1] - target)
        parts: list[Levels] = []
        for k in reversed(range(len(layers))):
            matrix, flat = layers[k][0], slope.reshape(-1, slope.shape[-1])
            parts = [(seen[k].reshape(-1, len(matrix)).mT @ flat).reshape(-1), flat.sum(axis=0), *parts]
            if k:
                slope = _spread((flat @ matrix.mT).reshape(seen[k].shape), self.form.sides[k]) * (values[k] > 0)
        gradient: Levels = array_namespace(inputs).concat(parts)
        return gradient


def _shapes(n_inputs: int, form: Form) -> list[tuple[int, int, int]]:
    """Return the shape (side * side, inputs, outputs) of each layer's weights."""
    units = pairwise((n_inputs, *form.hidden, 1))
    return [(side * side, *pair) for side, pair in zip(form.sides, units, strict=True)]


def _around(values: Levels, side: int) -> Levels:
    """Return the filter inputs (..., side * side * n) at each inner pixel of crops (n_crops, height, width, n)."""
    if side == 1:
        return values
    height, width = (length - side + 1 for length in values.shape[1:3])
    shifts = [values[:, i : i + height, j : j + width] for i in range(side) for j in range(side)]
    return array_namespace(values).concat(shifts, axis=-1)


def _spread(slopes: Levels, side: int) -> Levels:
    """Return the gradient with respect to the input of `_around`, given the gradient with respect to its output."""
    if side == 1:
        return slopes
    n_crops, height, width, n = *slopes.shape[:3], slopes.shape[3] // side**2
    shape = (n_crops, height + side - 1, width + side - 1, n)
    total: Levels = cast(Any, array_namespace(slopes)).zeros(shape, dtype=slopes.dtype, device=slopes.device)
    for k in range(side * side):
        i, j = divmod(k, side)
        total[:, i : i + height, j : j + width] += slopes[..., k * n : (k + 1) * n]
    return total


class _Pending(NamedTuple):
    """Prediction of a frame that has not arrived yet."""

    changes: Levels  # candidate changes (n_changes, height, width), in levels
    inputs: Levels  # the other inputs (_N_OTHERS, height, width)
    unit: Levels  # unit of changes (height, width): about the root mean square of the last one around the pixel
    change: Levels  # output of the network (height, width), in levels
    uncorrected: Levels  # predicted frame (height, width) before its correction


class Correction(DeclaredState):
    """Corrects predicted frames by a network, which predicts the error at each pixel.

    The blend of candidates (predicted changes) is linear, with the same weights in a whole cell. The network is
    nonlinear, so it can decide for each pixel whether a moving object covers the background. It is trained on crops of
    the last frames (single pixels unless the network is convolutional). Crops with large errors are sampled more often,
    and weighted less to compensate. A gain, learned from earlier corrections, scales the output of the network.

    Inputs of the network include the first `n_changes` candidates around the pixel, and the difference of the two
    complete predictions whose indices are `compared`.
    """

    rows: Levels  # inputs of the remembered crops (frames, crops * seen * seen, n_inputs)
    aims: Levels  # their targets and units (frames, crops * crop * crop, 2)
    residual: Levels  # error (height, width) of the last prediction, before its correction
    count: int  # number of frames that crops were sampled from

    def __init__(self, grid: Grid, n_changes: int, compared: tuple[int, int], form: Form) -> None:
        self.network, self.gain = Network(n_changes + _N_OTHERS, grid.kernels, form), CellGain(grid)
        parts = {"network.": self.network, "gain.": self.gain}
        super().__init__(grid.kernels, self.schema(grid, n_changes, form), parts)
        self._grid, self._n_changes, self._compared, self._form = grid, n_changes, compared, form
        capture = grid.kernels.capture
        self._described, self._applied = capture(self._describe), capture(self._apply)
        self._sampled = capture(self._sample)
        # All remembered crops in random order. Their number is a multiple of those that are drawn for each frame.
        order = np.random.default_rng(0).permutation(form.frames * form.crops)
        self._order = array_namespace(self.rows).asarray(order, device=self.rows.device)
        self._pending: _Pending | None = None

    @staticmethod
    def schema(grid: Grid, n_changes: int, form: Form) -> dict[str, Field]:
        """Return the schema of the saved state: the shape, type and range of each array."""
        n_inputs = n_changes + _N_OTHERS
        rows = Field((form.frames, form.crops * form.seen**2, n_inputs), "float32", -_BEYOND, _BEYOND)
        return {
            "rows": rows,
            "aims": rows._replace(shape=(form.frames, form.crops * form.crop**2, 2)),
            "residual": FRAME_FIELD._replace(shape=grid.shape),
            "count": counter(),
            **under("network.", Network.schema(n_inputs, form)),
            **under("gain.", CellGain.schema(grid)),
        }

    def undo(self) -> Callable[[], None]:
        """Return a function that restores the present state. `learn` may be called at most once before that."""
        slot, others = self.count % self._form.frames, super().undo()
        crops = 1 * self.rows[slot], 1 * self.aims[slot]

        def restore() -> None:
            others()
            self.rows[slot], self.aims[slot] = crops

        return restore

    def clear(self) -> None:
        """Forget the gain, the last error and the pending prediction. The network keeps its weights."""
        self.gain.clear()
        self.residual = self._kernels.levels(np.zeros(self._grid.shape))
        self._pending = None

    def pause(self) -> None:
        """Call `clear` if a prediction is pending. It cannot be scored while the correction is switched off."""
        if self._pending is not None:
            self.clear()

    def prepare(self, current: Levels, moving: Levels, limits: Levels) -> None:
        """Compute the network inputs that do not depend on the predicted frame, for the next call of `corrected`.

        `moving` are the complete predictions (n, height, width), and `limits` the lowest and highest level seen so far.
        """
        self._prepared = self._described(current, moving, self.residual, limits)

    def corrected(self, current: Levels, candidates: Levels, uncorrected: Levels, limits: Levels) -> Levels:
        """Return the corrected prediction (height, width) of the next frame. `prepare` must be called first."""
        inputs, unit = self._prepared
        changes = candidates[: self._n_changes]
        inputs, change, corrected = self._applied(
            changes, inputs, unit, current, uncorrected, self.network.average, self.gain.gains(), limits
        )
        self._pending = _Pending(changes, inputs, unit, change, uncorrected)
        return corrected

    def learn(self, frame: Levels, energy: float, failed: bool) -> None:
        """Learn from the true frame (height, width).

        The gain learns from changes divided by the root of their usual mean square `energy`. If `failed` is True, the
        prediction has failed, and the gain starts again from 0.
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
        slot = self.count % self._form.frames
        figures = self._kernels.levels([self.count * _GOLDEN % 1.0, weight])
        self.rows[slot], self.aims[slot] = self._sampled(changes, inputs, unit, self.residual, figures)
        self.count += 1

    def train(self) -> None:
        """Train the network on remembered crops. The new weights are used after the next call of `learn`."""
        if not self.count:
            return
        form = self._form
        n_known, n_drawn = min(self.count, form.frames) * form.crops, form.steps * form.batch
        first = self.count * n_drawn % len(self._order)
        chosen = self._order[first : first + n_drawn] % n_known
        batches = (
            known.reshape(-1, side, side, known.shape[-1])[chosen].reshape(form.steps, form.batch, side, side, -1)
            for known, side in ((self.rows, form.seen), (self.aims, form.crop))
        )
        self.network.train(next(batches), next(batches))

    def _describe(self, current: Levels, moving: Levels, residual: Levels, limits: Levels) -> tuple[Levels, Levels]:
        """Return the non-candidate inputs (_N_OTHERS, height, width) and the unit of changes (height, width).

        The unit is about the root mean square of the last change around the pixel. So small bodies that move before a
        still ground have the same range of inputs as a whole picture that moves. `_apply` fills the first three inputs.
        """
        last, level = moving[0], current.mean()
        contrast = mean_square(current - level) ** 0.5 + _NONE * (limits[1] - limits[0]) + 1e-30
        unit = mean_square(last) ** 0.5 + _CALM * contrast
        maps = room(current, 3)
        maps[0], maps[1], maps[2] = residual, last * last, current
        fine, middle, rest = self._in_bands(maps)
        inputs = room(current, _N_OTHERS)
        local = rest[1].clip(0.0, None) ** 0.5 + _QUIET * unit
        inputs[3], inputs[4] = residual / local, (middle[0] + rest[0]) / local
        # Energy of the changes nearby, and disagreement of two candidates, scaled to [-1, 1].
        energies, (one, other) = inputs[5:8], self._compared
        energies[0], energies[1], energies[2] = middle[1] + rest[1], rest[1], (moving[one] - moving[other]) ** 2
        root = energies.clip(0.0, None) ** 0.5
        energies[...] = (root - unit) / (root + unit)
        content, scale = inputs[8:], 2 / contrast
        content[0], content[1], content[2] = scale * fine[2], scale * middle[2], scale * (rest[2] - level)
        return inputs, local

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
        """Return the inputs that are not candidates, the network's output in grey levels, and the corrected frame."""
        change = uncorrected - current
        _, middle, rest = self._in_bands(change[None])
        inputs[0], inputs[1], inputs[2] = change / unit, (middle[0] + rest[0]) / unit, rest[0] / unit
        output = self._kernels.network((changes / unit, inputs), self.network.layers(weights))
        output = unit * output.clip(-_BEYOND, _BEYOND)
        frame = uncorrected + self._grid.weighted(output[None], gains)
        return inputs, output, frame.clip(limits[0], limits[1])

    def _in_bands(self, maps: Levels) -> Levels:
        """Return maps (n, height, width) split into bands of detail (n_bands, n, height, width), fine to coarse."""
        parts = room(maps[0], (len(BANDS) + 1) * len(maps)).reshape(len(BANDS) + 1, *maps.shape)
        self._kernels.bands(maps, BANDS, parts)
        return parts

    def _sample(
        self, changes: Levels, inputs: Levels, unit: Levels, residual: Levels, figures: Levels
    ) -> tuple[Levels, Levels]:
        """Return the inputs (crops * seen * seen, n_inputs) and aims (crops * crop * crop, 2) of sampled crops.

        The crops are a systematic sample with more crops where the error is large. `figures` holds two numbers: the
        offset of the sample, from 0 to 1 sampling interval, and the weight of the frame. Crops lie inside a frame that
        is large enough. Their margins may lie outside and take the values of the nearest edge.
        """
        xp, shift, weight = array_namespace(inputs), figures[0], figures[1]
        (height, width), form = residual.shape, self._form
        # The error of a crop is estimated by the smoothed error at its centre.
        errors = abs(residual) if form.crop == 1 else self._in_bands(abs(residual)[None])[-1, 0]
        errors = errors.reshape(-1)
        usual = errors.mean() + 1e-30
        density = _EVERYWHERE + (1 - _EVERYWHERE) * errors / usual
        cumulative = xp.cumulative_sum(density)
        marks = (xp.arange(form.crops, device=inputs.device) + shift) * (cumulative[-1] / form.crops)
        chosen = xp.searchsorted(cumulative, marks).clip(0, len(errors) - 1)
        # Importance weights: crops that are drawn more often weigh less.
        share = (weight * density[chosen] ** -0.5)[:, None]
        top = (chosen // width - form.crop // 2).clip(0, max(height - form.crop, 0))[:, None]
        left = (chosen % width - form.crop // 2).clip(0, max(width - form.crop, 0))[:, None]

        def places(side: int) -> Ints:
            """Return the flat pixel indices (crops, side * side) of squares of this side around the crops' centres."""
            steps = xp.arange(side, device=inputs.device) - (side - form.crop) // 2
            down, right = (top + steps).clip(0, height - 1), (left + steps).clip(0, width - 1)
            flat: Ints = (down[:, :, None] * width + right[:, None]).reshape(len(chosen), -1)
            return flat

        inside, around = places(form.crop), places(form.seen).reshape(-1)
        aims = xp.stack([share * part.reshape(-1)[inside] for part in (residual, unit)]).reshape(2, -1).mT
        seen = (part.reshape(len(part), -1)[:, around] for part in (changes, inputs))
        rows = xp.concat([next(seen) / unit.reshape(-1)[around], next(seen)]).mT
        return rows.clip(-_BEYOND, _BEYOND), aims.clip(-_BEYOND, _BEYOND)
