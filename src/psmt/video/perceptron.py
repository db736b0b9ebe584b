"""A small network of rectified units, trained online by Adam."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from psmt.engines.frame_kernels import FrameKernels, Layers
from psmt.numerics.namespace import array_namespace
from psmt.persistence.schema import Field, counter
from psmt.types import Levels
from psmt.video.state import Stateful

HIDDEN = (24, 24)
"""Units of the hidden layers."""

_RATE, _DECAY, _SQUARE_DECAY, _EPSILON = 5e-3, 0.9, 0.999, 1e-8
"""Adam's learning rate, its decay rates of the means of gradients and of their squares, and its smallest divisor."""

_LARGEST = 1e3
"""Weights are clipped to this. Weights learned from films are a few units."""


class Perceptron(Stateful):
    """A network (n_inputs, *HIDDEN, 1) whose output is zero at first, trained a few steps at a time.

    Parameters
    ----------
    n_inputs : int
    kernels : FrameKernels

    Attributes
    ----------
    weights : (n_weights,) array
        Of all layers, one after the other: each layer's weights (inputs, outputs), then its biases (outputs,).
    """

    weights: Levels
    mean: Levels
    square: Levels
    """Adam's exponential means of the gradients and of their squares (n_weights,)."""
    steps: int

    def __init__(self, n_inputs: int, kernels: FrameKernels) -> None:
        super().__init__(kernels, self.schema(n_inputs))
        self._sizes = (n_inputs, *HIDDEN, 1)
        self._trained = kernels.capture(self._train)
        self.weights = kernels.levels(_first_weights(self._sizes))
        self._next: tuple[Levels, Levels, Levels, int] | None = None

    @staticmethod
    def schema(n_inputs: int) -> dict[str, Field]:
        """Declare the state."""
        n_weights = sum(outputs * (inputs + 1) for inputs, outputs in pairwise((n_inputs, *HIDDEN, 1)))
        weights = Field((n_weights,), "float32", -_LARGEST, _LARGEST)
        return {"weights": weights, "mean": weights, "square": weights._replace(low=0.0), "steps": counter()}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from what `get_state` returned."""
        super().set_state(state)
        self._next = None

    def layers(self, weights: Levels) -> Layers:
        """Weights (inputs, outputs) and biases (outputs,) of each layer."""
        layers, first = [], 0
        for inputs, outputs in pairwise(self._sizes):
            last = first + outputs * inputs
            layers.append((weights[first:last].reshape(inputs, outputs), weights[last : last + outputs]))
            first = last + outputs
        return tuple(layers)

    def train(self, inputs: Levels, aims: Levels) -> None:
        """Take a step for each batch of inputs (n_batches, n_rows, n_inputs) towards its aims (n_batches, n_rows, 2).

        An aim is a target and a unit; the loss is the mean of (target - unit * output) ** 2. The new weights are used
        once `adopt` is called, so that training can run beside a prediction.
        """
        steps = self._kernels.levels(float(self.steps))
        trained = self._trained(self.weights, self.mean, self.square, steps, inputs, aims)
        self._next = (*trained, self.steps + len(inputs))

    def adopt(self) -> None:
        """Use the weights of the last `train`."""
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
        """Gradient (n_weights,) of the mean squared error of a batch (n_rows, n_inputs), by back-propagation."""
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


def _first_weights(sizes: tuple[int, ...]) -> Levels:
    """Fixed pseudo-random weights; those of the last layer are zero."""
    rng = np.random.default_rng(0)
    parts = [
        (rng.random(outputs * (inputs + 1)) * 2 - 1) * (inputs**-0.5 if outputs > 1 else 0.0)
        for inputs, outputs in pairwise(sizes)
    ]
    first: Levels = np.concatenate(parts).astype(np.float32)
    return first
