"""Films with and without a planted effect, made from a random generator.

*Clusters*: groups of atoms that are active together and move together. At half time all atoms are regrouped, so that no
two atoms are in one group before and after it.

*Rotation*: a noisy rotation of which each window has seen a part, so that an embedding of the past does not fit the
future.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.signal import lfilter

from psmt.types import Array

N_FRAMES, N_ATOMS, IN_GROUP, N_FEATURES = 2400, 24, 4, 64

Maker = Callable[[np.random.Generator], Array]


def slow_signals(n_frames: int, n_signals: int, memory: float, rng: np.random.Generator) -> Array:
    """Autocorrelated signals (n_frames, n_signals) with mean 0 and variance 1, smooth over about `memory` frames."""
    lead = int(20 * memory)
    noise = rng.standard_normal((n_frames + lead, n_signals))
    once = lfilter([1.0], [1.0, -np.exp(-1 / memory)], noise, axis=0)
    signals = lfilter([1.0], [1.0, -np.exp(-2 / memory)], once, axis=0)[lead:]
    standardised: Array = (signals - signals.mean(axis=0)) / signals.std(axis=0)
    return standardised


def cluster_codes(rng: np.random.Generator, *, regrouped: bool, memory: float = 6.0) -> Array:
    """Codes (N_FRAMES, N_ATOMS): atoms follow the signal of their group, a signal of their own, and noise."""
    n_groups = N_ATOMS // IN_GROUP
    early, late = np.repeat(np.arange(n_groups), IN_GROUP), np.tile(np.arange(n_groups), IN_GROUP)
    groups = slow_signals(N_FRAMES, n_groups, memory, rng)
    shared = groups[:, early]
    if regrouped:
        shared[N_FRAMES // 2 :] = groups[N_FRAMES // 2 :, late]
    own = 0.5 * slow_signals(N_FRAMES, N_ATOMS, memory, rng) + 0.3 * rng.standard_normal((N_FRAMES, N_ATOMS))
    codes: Array = np.maximum(shared + own - 0.3, 0.0)
    return codes


def cluster_film(rng: np.random.Generator, **how: bool | float) -> Array:
    """Frames (N_FRAMES, N_FEATURES) that the codes of `cluster_codes` make with random atoms, and noise of 10%."""
    codes = cluster_codes(rng, **how)  # type: ignore[arg-type]
    film = codes @ rng.standard_normal((N_ATOMS, N_FEATURES))
    film += 0.1 * film.std() * rng.standard_normal(film.shape)
    film -= film.mean(axis=1, keepdims=True)
    standardised: Array = film / film.std()
    return standardised


def ring(rng: np.random.Generator, *, noise: float = 0.3) -> Array:
    """A noisy rotation (800, 16): a bump travels round a ring of features, once in 64 frames.

    A window of 32 frames has seen half of the ring. The bump goes on to the other half, for which an embedding of that
    window has no columns.
    """
    n_features, feature = 16, np.arange(16)
    place = (n_features * np.arange(800)[:, None] / 64 + rng.uniform(0, n_features)) % n_features
    away = np.abs(feature - place)
    film: Array = np.exp(-(np.minimum(away, n_features - away) ** 2) / 4.5)
    film += noise * film.std() * rng.standard_normal(film.shape)
    return film


CODES: dict[str, Maker] = {
    "regrouped at half time": lambda rng: cluster_codes(rng, regrouped=True),
    "constant groups": lambda rng: cluster_codes(rng, regrouped=False),
    "constant groups, slow": lambda rng: cluster_codes(rng, regrouped=False, memory=18.0),
    "regrouped, then shuffled": lambda rng: rng.permutation(cluster_codes(rng, regrouped=True)),
}
CLUSTERS: dict[str, Maker] = {
    "regrouped at half time": lambda rng: cluster_film(rng, regrouped=True),
    "constant groups": lambda rng: cluster_film(rng, regrouped=False),
    "constant groups, slow": lambda rng: cluster_film(rng, regrouped=False, memory=18.0),
    "regrouped, then shuffled": lambda rng: rng.permutation(cluster_film(rng, regrouped=True)),
}
ROTATIONS: dict[str, Maker] = {
    "noisy rotation": ring,
    "noisy rotation, shuffled": lambda rng: rng.permutation(ring(rng)),
    "noise": lambda rng: rng.standard_normal((800, 16)) @ rng.standard_normal((16, 16)),
}
"""Films by name; in each group the first one has the planted effect."""
