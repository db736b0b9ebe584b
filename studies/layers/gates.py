"""Mixtures of linear maps: a map from the neighbourhood of a pixel to its change, one for each state of the block.

States are the clusters of k-means on some description of a block. The descriptions have one size, so that only what
they describe differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from sklearn.cluster import MiniBatchKMeans

from psmt.types import Array, Ints, Levels, Mask
from studies.layers.rules import Coordinates, by_codes, by_pca
from studies.layers.stretches import BLOCK, CONTEXT, Samples, Stretch

N_STATES, N_COMPONENTS = 16, 16
N_PIXELS = 8  # random pixels of each block that the maps are learned from
PRIORS = (1e2, 1e3, 1e4, 1e5, 1e6)  # pixels that the common map counts for in each state

Describe: TypeAlias = Callable[[Samples], Levels]
"""A description (n, k) of each block."""


def nothing(past: Samples) -> Describe:
    return lambda samples: np.zeros((len(samples.y), 1), np.float32)


def embedding(past: Samples) -> Describe:
    """The straightest directions of space-time codes."""
    return _leading(by_codes(past))


def components(past: Samples) -> Describe:
    """The leading principal components of the same two blocks."""
    return _leading(by_pca(past))


def magnitudes(past: Samples) -> Describe:
    """Four numbers: contrast, and the size of the last change, of the motion's change and of the detail; logarithms."""

    def describe(samples: Samples) -> Levels:
        sizes = [np.sqrt((samples.block(name) ** 2).mean(axis=1, keepdims=True)) for name in ("d", "w")]
        x = samples.block("x").reshape(-1, BLOCK, BLOCK)
        sizes.append(
            np.sqrt((np.diff(x, axis=1) ** 2).mean(axis=(1, 2)) + (np.diff(x, axis=2) ** 2).mean(axis=(1, 2)))[:, None]
        )
        return np.log(np.concatenate([samples.scale, *sizes], axis=1) + 1e-3)

    return describe


def pixels(past: Samples) -> Describe:
    """All standardised pixels of the two blocks."""
    return lambda samples: samples.stack()


def _leading(coordinates: Coordinates) -> Describe:
    return lambda samples: coordinates(samples, False)[:, :N_COMPONENTS]


GATES: Mapping[str, Callable[[Samples], Describe]] = {
    "nothing": nothing,
    "the embedding": embedding,
    "PCA": components,
    "pixels": pixels,
    "four magnitudes": magnitudes,
}


def gated(gate: Callable[[Samples], Describe]) -> Callable[[Stretch], Levels]:
    """The method that predicts with a map per state."""

    def predict(stretch: Stretch) -> Levels:
        past, scored, rng = stretch.learned, stretch.scored, np.random.default_rng(0)
        states = _states(gate(past), past, scored)
        some = rng.integers(0, BLOCK**2, (len(past.y), N_PIXELS))
        maps = _maps(_around(past, some), np.take_along_axis(past.y, some, axis=1), states[0], past.held_out)
        every = np.broadcast_to(np.arange(BLOCK**2), scored.y.shape)
        changes: Levels = np.einsum("npf,nf->np", _around(scored, every), maps[states[1]].astype(np.float32))
        return changes

    return predict


def _states(describe: Describe, past: Samples, scored: Samples) -> tuple[Ints, Ints]:
    known, new = describe(past), describe(scored)
    size = known.std(axis=0) + 1e-9
    means = MiniBatchKMeans(N_STATES, n_init=2, random_state=0, batch_size=4096)
    if not known.any():
        return np.zeros(len(known), np.int64), np.zeros(len(new), np.int64)
    means.fit(known / size)
    return means.predict(known / size).astype(np.int64), means.predict(new / size).astype(np.int64)


def _around(samples: Samples, chosen: Ints) -> Levels:
    """Neighbourhoods of 3 x 3 pixels of the last frame, its last change and its change by motion (n, pixels, 26)."""
    wide, rows = BLOCK + 2 * CONTEXT, np.arange(len(chosen))[:, None]
    at = (chosen // BLOCK + CONTEXT) * wide + chosen % BLOCK + CONTEXT
    steps = [wide * i + j for i in (-1, 0, 1) for j in (-1, 0, 1)]
    centre = samples.x[rows, at]
    parts = [samples.x[rows, at + step] - centre for step in steps if step]
    parts += [field[rows, at + step] for field in (samples.d, samples.w) for step in steps]
    return np.stack(parts, axis=-1)


def _maps(around: Levels, y: Levels, states: Ints, held_out: Mask) -> Array:
    """A map (n_states, 26) for each state; the samples held out say how much they are drawn to a common one."""
    shown, held = (_moments(around[part], y[part], states[part]) for part in (~held_out, held_out))

    def solve(G: Array, C: Array, prior: float) -> Array:
        whole, n = G.sum(axis=0), float(y.size)
        whole = whole + 1e-6 * np.diag(np.diag(whole) + 1e-12)
        common = np.linalg.solve(whole, C.sum(axis=0))
        return np.linalg.solve(G + prior / n * whole, (C + prior / n * (whole @ common))[..., None])[..., 0]

    def error(prior: float) -> float:
        maps = solve(*shown, prior)
        return float(np.einsum("ki,kij,kj->", maps, held[0], maps) - 2 * np.sum(maps * held[1]))

    return solve(shown[0] + held[0], shown[1] + held[1], min(PRIORS, key=error))


def _moments(around: Levels, y: Levels, states: Ints) -> tuple[Array, Array]:
    p = around.shape[-1]
    G, C = np.zeros((N_STATES, p, p)), np.zeros((N_STATES, p))
    for state in range(N_STATES):
        own = around[states == state].reshape(-1, p)
        G[state], C[state] = own.T @ own, own.T @ y[states == state].ravel()
    return G, C
