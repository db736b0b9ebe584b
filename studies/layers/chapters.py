"""Unsupervised segmentation of a film whose chapters are known: five kinds of scene, each of which returns.

A chapter never shows a view again: its kind is a matter of texture, speed and noise. Every method describes each frame
by a few numbers, and the same hidden Markov model or k-means finds five states in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from psmt import SparseCoder, TemporalEmbedding
from psmt.brain.states import fit_states
from psmt.data import GlideFilm
from psmt.types import Array, Ints, Levels
from studies.layers.shapes import MovingShapes
from studies.layers.stretches import cut

SIZE, BLOCK = 64, 8
N_TIMES = 3  # chapters of each kind
LENGTH = (50, 90)  # frames of a chapter
N_COMPONENTS = 8
EXPLORED, SCORED = (0, 1, 2, 3, 4), (10, 11, 12, 13, 14)  # seeds of the films


def chapters(seed: int) -> tuple[Levels, Ints]:
    """Frames (time, SIZE, SIZE) of a film, and the kind (time,) of each."""
    rng, long = np.random.default_rng(seed), 400
    films = [
        GlideFilm(n_frames=long, seed=100 + seed, speed=0.2, noise=0.05, size=SIZE),
        GlideFilm(n_frames=long, seed=200 + seed, speed=1.5, noise=0.05, size=SIZE),
        GlideFilm(n_frames=long, seed=300 + seed, speed=0.2, noise=0.3, size=SIZE),
        MovingShapes(n_frames=long, seed=400 + seed, n_shapes=6, speed=0.3, noise=0.02, size=SIZE),
        MovingShapes(n_frames=long, seed=500 + seed, n_shapes=6, speed=1.5, noise=0.02, size=SIZE),
    ]
    frames: list[Levels] = []
    kinds: list[int] = []
    shown = [0] * len(films)
    for kind in np.concatenate([rng.permutation(len(films)) for _ in range(N_TIMES)]):
        length = int(rng.integers(*LENGTH))
        frames += [films[kind][shown[kind] + t].astype(np.float32) for t in range(length)]
        kinds += [int(kind)] * length
        shown[kind] += length + 30
    return np.array(frames), np.array(kinds)


def pooled(frames: Levels, describe: Callable[[Levels], Array]) -> Array:
    """Mean over places of a description of standardised pairs of blocks: (time - 1, k)."""
    places = np.arange(0, SIZE - BLOCK + 1, BLOCK)
    corners = np.stack(np.meshgrid(places, places, indexing="ij"), axis=-1).reshape(-1, 2)
    blocks = cut(frames, corners, BLOCK).reshape(len(frames), len(corners), -1)
    pairs = np.concatenate([blocks[1:], blocks[:-1]], axis=-1).reshape(-1, 2 * BLOCK**2)
    pairs = pairs - pairs.mean(axis=1, keepdims=True)
    pairs = pairs / np.sqrt(pairs.var(axis=1, keepdims=True) + 0.02**2)
    return np.asarray(describe(pairs).reshape(len(frames) - 1, len(corners), -1).mean(axis=1))


def codes(pairs: Levels) -> Array:
    """Square roots of space-time codes (n, 128) of pairs of blocks."""
    shown = pairs[np.random.default_rng(0).permutation(len(pairs))[:10_000]].astype(np.float64)
    coder = SparseCoder(n_atoms=128, alpha=0.3, max_epochs=3, gap_tol=1e-4, random_state=0).fit(shown)
    return np.sqrt(coder.transform(pairs.astype(np.float64)))


def energies(pairs: Levels) -> Array:
    """Squares (n, 128) of the principal components of pairs of blocks: what codes are compared with."""
    axes = np.linalg.eigh(pairs.T @ pairs)[1]
    return np.asarray(np.log((pairs @ axes) ** 2 + 1e-3), dtype=np.float64)


def principal(values: Array) -> Array:
    """The leading principal components, each of unit variance."""
    centred = values - values.mean(axis=0)
    points = centred @ np.linalg.svd(centred, full_matrices=False)[2][:N_COMPONENTS].T
    return np.asarray(points / points.std(axis=0))


def slowest(values: Array) -> Array:
    """The straightest directions of the paper's embedding."""
    layer = TemporalEmbedding(n_components=N_COMPONENTS, rank_tol=1e-3).fit(values)
    points = layer.transform(values)
    return np.asarray((points - points.mean(axis=0)) / points.std(axis=0))


def _frame_means(frames: Levels) -> Array:
    grey = frames[1:].reshape(len(frames) - 1, -1).astype(np.float64)
    return np.stack([grey.mean(axis=1), grey.std(axis=1)], axis=1)


def descriptions(frames: Levels) -> Mapping[str, Array]:
    """Each method's description (time - 1, k) of the frames from the second on."""
    flat = frames[1:].reshape(len(frames) - 1, -1).astype(np.float64)
    by_codes, by_energies = pooled(frames, codes), pooled(frames, energies)
    return {
        "codes + embedding": slowest(by_codes),
        "codes + PCA": principal(by_codes),
        "energies of PCA + embedding": slowest(by_energies),
        "energies of PCA + PCA": principal(by_energies),
        "PCA of frames": principal(flat),
        "mean and contrast of frames": _frame_means(frames),
    }


def agreement(seed: int) -> dict[str, tuple[float, float]]:
    """Adjusted Rand index of each description, by a hidden Markov model and by k-means."""
    frames, kinds = chapters(seed)
    n, found = len(np.unique(kinds)), {}
    for name, points in descriptions(frames).items():
        scaled = (points - points.mean(axis=0)) / points.std(axis=0)
        markov = fit_states([scaled], n, seed=0).shown(scaled)
        means = KMeans(n, n_init=4, random_state=0).fit_predict(scaled)
        found[name] = adjusted_rand_score(kinds[1:], markov), adjusted_rand_score(kinds[1:], means)
    return found


def chapters_table(*, explored: bool = False) -> str:
    """Mean and worst adjusted Rand index over films, in Markdown."""
    results = [agreement(seed) for seed in (EXPLORED if explored else SCORED)]
    lines = ["| description | HMM: mean | worst | k-means: mean | worst |", "| --- |" + " ---: |" * 4]
    for name in results[0]:
        values = np.array([result[name] for result in results])
        cells = [values[:, 0].mean(), values[:, 0].min(), values[:, 1].mean(), values[:, 1].min()]
        lines.append(f"| {name} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")
    return "\n".join(lines)
