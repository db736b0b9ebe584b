"""Rules that predict the change of a block, learned by ridge regression from many places; each leaves one part out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Protocol, TypeAlias

import numpy as np
import scipy.linalg

from psmt import SparseCoder
from psmt.types import Array, Levels, Mask
from studies.layers.stretches import Samples, Stretch

N_ATOMS, N_COMPONENTS, ALPHA = 512, 64, 1.0
SHOWN = 15_000  # blocks that a dictionary is learned from
NOISE = 1e-3  # added to V, relative to the mean variance of the atoms
PENALTIES = 10.0 ** np.arange(-4.0, 1.5)
STRONGER = (1.0, 10.0, 100.0)  # factors of the penalty on coordinates of the layers

Coordinates: TypeAlias = Callable[[Samples, bool], Levels]
"""From samples, and whether they are moved on, to coordinates (n, k) of their stacks of blocks."""


class Layers(Protocol):
    """Learns coordinates from samples of the past, for stacks of so many frames and a field of `Samples` as motion."""

    def __call__(self, past: Samples, *, n_lags: int = 2, motion: str = "w") -> Coordinates: ...


def by_codes(past: Samples, *, n_lags: int = 2, motion: str = "w", embed: bool = True) -> Coordinates:
    """Non-negative codes, or their embedding, whose moments are those of all samples: layer 1, or both layers."""
    coder = _coder(past, n_lags)
    if not embed:
        return lambda samples, moved: _codes(coder, samples, moved, n_lags, motion)
    codes = _codes(coder, past, False, n_lags, motion)
    P = pooled_embedding(codes.reshape(*past.shape, -1), min(N_COMPONENTS, codes.shape[1]))
    return lambda samples, moved: _codes(coder, samples, moved, n_lags, motion) @ P.T


@lru_cache(maxsize=2)
def _coder(past: Samples, n_lags: int) -> SparseCoder:
    stacks = past.stack(n_lags=n_lags)
    shown = stacks[np.random.default_rng(0).permutation(len(stacks))[:SHOWN]]
    n_atoms = min(N_ATOMS, len(shown) // 4)
    return SparseCoder(n_atoms=n_atoms, alpha=ALPHA, max_epochs=3, gap_tol=1e-4, random_state=0).fit(shown)


@lru_cache(maxsize=8)  # several rules share them
def _codes(coder: SparseCoder, samples: Samples, moved: bool, n_lags: int, motion: str) -> Levels:
    stacks = samples.stack(moved=moved, n_lags=n_lags, motion=motion if moved else "w")
    return coder.transform(stacks.astype(np.float64)).astype(np.float32)


def pooled_embedding(codes: Levels, n_components: int) -> Levels:
    """P (n_components, n_atoms) of codes (time, places, n_atoms): the straightest directions, from all places."""
    flat = codes.reshape(-1, codes.shape[-1])
    bent = (codes[1:-1] - (codes[:-2] + codes[2:]) / 2).reshape(flat.shape[0] - 2 * codes.shape[1], -1)
    centred = flat - flat.mean(axis=0)
    V, S = (np.asarray(z.T @ z, dtype=np.float64) / len(z) for z in (centred, bent))
    V += NOISE * np.trace(V) / len(V) * np.eye(len(V))
    return np.asarray(scipy.linalg.eigh(S, V, subset_by_index=[0, n_components - 1])[1].T, dtype=np.float32)


def by_pca(past: Samples, *, n_lags: int = 2, motion: str = "w") -> Coordinates:
    """As many principal components as the embedding has directions."""
    stacks = past.stack(n_lags=n_lags)
    mean = stacks.mean(axis=0)
    axes = np.linalg.eigh((stacks - mean).T @ (stacks - mean))[1][:, ::-1][:, :N_COMPONENTS]
    return lambda samples, moved: (samples.stack(moved=moved, n_lags=n_lags, motion=motion) - mean) @ axes


@dataclass(frozen=True)
class Rule:
    """Which features a rule has, and where it learns them."""

    pixels: tuple[str, ...] = ("x", "d", "d2", "w")
    """Fields of `Samples`; what the code does not hold is predicted by them."""
    layers: Layers | None = by_codes
    n_lags: int = 2
    context: bool = True
    transport: bool = True
    many_places: bool = True

    def coordinates(self, past: Samples) -> Coordinates | None:
        """Learn the layers."""
        if self.layers is None:
            return None
        return self.layers(past, n_lags=self.n_lags, motion="w" if self.context else "w_patch")

    def features(self, samples: Samples, coordinates: Coordinates | None) -> tuple[Levels, int]:
        """Features (n, p), in grey levels, and how many of them are pixels.

        A sample's first time has no code before it, and counts as standing still.
        """
        parts = [getattr(samples, name) if self.context else samples.block(name) for name in self.pixels]
        n_pixels = sum(part.shape[1] for part in parts)
        if coordinates is not None:
            stay = coordinates(samples, False)
            steps = np.diff(stay.reshape(*samples.shape, -1), axis=0, prepend=stay.reshape(*samples.shape, -1)[:1])
            parts += [stay * samples.scale, steps.reshape(stay.shape) * samples.scale]
            if self.transport:
                parts.append((coordinates(samples, True) - stay) * samples.scale)
        return np.concatenate([*parts, samples.scale], axis=1), n_pixels

    def predict(self, stretch: Stretch) -> Levels:
        """The predicted changes of the scored samples (n, 64)."""
        if self.many_places:
            return self._predicted(stretch.learned, stretch.scored)
        shape = (*stretch.scored.shape, -1)
        predicted = np.empty_like(stretch.scored.y).reshape(shape)
        for patch in range(shape[1] // 4):
            mine = slice(4 * patch, 4 * patch + 4)
            predicted[:, mine] = self._predicted(stretch.own(patch), of_blocks(stretch.scored, mine)).reshape(
                shape[0], 4, -1
            )
        return predicted.reshape(stretch.scored.y.shape)

    def _predicted(self, past: Samples, scored: Samples) -> Levels:
        coordinates = self.coordinates(past)
        known, n_pixels = self.features(past, coordinates)
        weights = ridge(known, past.y, n_pixels, past.held_out)
        return self.features(scored, coordinates)[0] @ weights


def of_blocks(samples: Samples, blocks: slice) -> Samples:
    """The samples of some of the blocks."""
    chosen = {
        name: values.reshape(*samples.shape, -1)[:, blocks].reshape(-1, values.shape[1])
        for name, values in vars(samples).items()
        if name != "shape"
    }
    return Samples(**chosen, shape=(samples.shape[0], len(range(samples.shape[1])[blocks])))


def ridge(features: Levels, y: Levels, n_pixels: int, held_out: Mask) -> Levels:
    """Weights (p, 64) of features (n, p), with the penalties that predict the samples held out (n,) best."""
    shown, held = ((_gram(features[part], y[part])) for part in (~held_out, held_out))
    G, C = (a + b for a, b in zip(shown, held, strict=True))
    size = np.sqrt(np.diag(G) / len(y))
    size[size < 1e-6 * size.mean()] = np.inf  # the past does not show these features, so their weights are zero

    def solve(gram: Array, match: Array, n: int, penalty: float, stronger: float) -> Array:
        each = np.where(np.arange(len(gram)) < n_pixels, penalty, penalty * stronger) * n
        scaled = gram / size / size[:, None]
        solved: Array = scipy.linalg.solve(scaled + np.diag(each), match / size[:, None], assume_a="pos")
        return solved / size[:, None]

    def held_out_error(choice: tuple[float, float]) -> float:
        weights = solve(*shown, int(np.sum(~held_out)), *choice)
        return float(np.sum(weights * (held[0] @ weights - 2 * held[1])))

    factors = STRONGER if n_pixels < len(G) - 1 else STRONGER[:1]
    best = min(((p, s) for p in PENALTIES for s in factors), key=held_out_error)
    return solve(G, C, len(y), *best).astype(np.float32)


def _gram(features: Levels, y: Levels) -> tuple[Array, Array]:
    if len(y) < 20_000:  # few samples: the small eigenvalues matter
        features = features.astype(np.float64)
    return (features.T @ features).astype(np.float64), (features.T @ y).astype(np.float64)


RULES: Mapping[str, Rule] = {
    "for_film: pixels, motion, both layers": Rule(),
    "without space-time (codes of one frame)": Rule(n_lags=1),
    "without many places": Rule(many_places=False),
    "without context": Rule(pixels=("x", "d", "d2", "w_patch"), context=False),
    "without transport": Rule(pixels=("x", "d", "d2"), transport=False),
    "without the rest (layers alone)": Rule(pixels=()),
    "without the embedding (codes)": Rule(layers=partial(by_codes, embed=False)),
    "without codes (PCA)": Rule(layers=by_pca),
    "without layers: pixels and motion": Rule(layers=None),
    "motion alone": Rule(pixels=("w",), layers=None),
    "ridge, many places": Rule(pixels=("x", "d", "d2"), layers=None),
    "ridge, own patch": Rule(pixels=("x", "d", "d2"), layers=None, many_places=False),
}
