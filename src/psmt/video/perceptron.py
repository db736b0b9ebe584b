"""A small network that learns while data come in: rectified units, trained by Adam on rows that are given to it."""

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

HIDDEN = (24, 24)
"""Units of the hidden layers."""

_RATE, _DECAY, _SQUARE_DECAY, _EPSILON = 5e-3, 0.9, 0.999, 1e-8
"""Adam's learning rate, how much it keeps of the mean of gradients and of their squares, and what is no gradient."""

_LARGEST = 1e3
"""No weight is larger. Those of films are of a few units."""


class Perceptron:
    """A network (n_inputs, *HIDDEN, 1) that begins as zero and is trained a few steps at a time.

    Parameters
    ----------
    n_inputs : int
    kernels : FrameKernels

    Attributes
    ----------
    weights : (n_weights,) array
        Of all layers, one after the other: each layer's weights (inputs, outputs), then its biases (outputs,).
    """

    def __init__(self, n_inputs: int, kernels: FrameKernels) -> None:
        self.n_inputs, self._kernels, self._sizes = n_inputs, kernels, (n_inputs, *HIDDEN, 1)
        self._trained = kernels.capture(self._train)
        self.weights: Levels = kernels.levels(_first_weights(self._sizes))
        self._mean, self._square = 0 * self.weights, 0 * self.weights
        self._steps = 0
        self._next: tuple[Levels, Levels, Levels, int] | None = None

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return copies of the weights, and of what Adam knows of their gradients; not of what is yet to be adopted."""
        known = {"weights": self.weights, "mean": self._mean, "square": self._square}
        return {name: self._kernels.numpy(one).copy() for name, one in known.items()} | {"steps": np.array(self._steps)}

    @staticmethod
    def schema(n_inputs: int) -> dict[str, Field]:
        """What `get_state` gives for so many inputs."""
        weights = Field((_n_weights((n_inputs, *HIDDEN, 1)),), "float32", -_LARGEST, _LARGEST)
        return {"weights": weights, "mean": weights, "square": weights._replace(low=0.0), "steps": counter()}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `get_state` gave."""
        own = self._kernels.levels
        self.weights, self._mean, self._square = (own(state[name].copy()) for name in ("weights", "mean", "square"))
        self._steps, self._next = int(state["steps"]), None

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

        An aim is a target and a unit: what counts is the square of the target less the output in this unit. Nothing
        changes before `adopt` is called: what is predicted meanwhile does not depend on who is first.
        """
        steps = self._kernels.levels(float(self._steps))
        trained = self._trained(self.weights, self._mean, self._square, steps, inputs, aims)
        self._next = (*trained, self._steps + len(inputs))

    def adopt(self) -> None:
        """Go on with what the last training has found, where there was one."""
        if self._next is not None:
            self.weights, self._mean, self._square, self._steps = self._next
            self._next = None

    def _train(
        self, weights: Levels, mean: Levels, square: Levels, steps: Levels, inputs: Levels, aims: Levels
    ) -> tuple[Levels, Levels, Levels]:
        for batch, aim in zip(inputs, aims, strict=True):
            gradient = self.gradient(weights, batch, aim)
            # A batch in which all goes wrong is no reason to forget everything.
            length: Levels = (gradient @ gradient) ** 0.5
            gradient = gradient / length.clip(1.0, None)
            steps = steps + 1.0
            mean = _DECAY * mean + (1 - _DECAY) * gradient
            square = _SQUARE_DECAY * square + (1 - _SQUARE_DECAY) * gradient * gradient
            # What the two means would be had they not begun at zero.
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


def _n_weights(sizes: tuple[int, ...]) -> int:
    return sum(outputs * (inputs + 1) for inputs, outputs in pairwise(sizes))


def _first_weights(sizes: tuple[int, ...]) -> Levels:
    """Weights that no two units share, those of the last layer zero; always the same."""
    rng = np.random.default_rng(0)
    parts = [
        (rng.random(outputs * (inputs + 1)) * 2 - 1) * (inputs**-0.5 if outputs > 1 else 0.0)
        for inputs, outputs in pairwise(sizes)
    ]
    first: Levels = np.concatenate(parts).astype(np.float32)
    return first
