"""Small networks of rectified units, at every pixel."""

from __future__ import annotations

import numpy as np

from psmt.engines.frame_kernels import Layers
from psmt.engines.numba.fan_out import in_threads
from psmt.types import Levels
from psmt.utils.jit import njit

_PIXELS = 8192
"""Pixels that a thread runs a network on at a time: what is between its layers stays in the cache."""


def perceptron(inputs: tuple[Levels, ...], layers: Layers) -> Levels:
    """Output (height, width) of a network at every pixel, from inputs (n, height, width), some here, some there."""
    flat = [part.reshape(len(part), -1) for part in inputs]
    seen = [*zip(np.split(layers[0][0], np.cumsum([len(part) for part in flat])[:-1]), flat, strict=True)]
    found: Levels = np.empty((1, flat[0].shape[1]), np.float32)

    def run(pixels: slice) -> None:
        first, *more = (weights.T @ part[:, pixels] for weights, part in seen)
        values = sum(more, start=first)
        _rectify(values, layers[0][1])
        for weights, biases in layers[1:-1]:
            values = weights.T @ values
            _rectify(values, biases)
        weights, biases = layers[-1]
        np.add(weights.T @ values, biases[:, None], out=found[:, pixels])

    in_threads(run, found.shape[1], _PIXELS)
    return found.reshape(inputs[0].shape[1:])


@njit(cache=True, nogil=True, fastmath=True)
def _rectify(values: Levels, biases: Levels) -> None:
    """Add biases (n,) to values (n, pixels), and leave zero of what is below it; in place."""
    for k in range(biases.size):
        row, bias = values[k], biases[k]
        for j in range(row.size):
            row[j] = max(row[j] + bias, np.float32(0.0))
