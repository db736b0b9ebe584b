"""Baselines in a linear subspace: autoregression of principal components, and linear extrapolation of slow features.

The part of a frame outside the subspace is copied from the last frame.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from psmt.model.baselines.last_frames import SeriesBaseline
from psmt.model.baselines.ridge import PENALTIES, choose_ridge, ridge_weights
from psmt.types import Array
from psmt.utils.disk_series import blocks

SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
"""Dimensions of the subspace to choose from, by the error on the last eighth of the past."""

_RANK_TOL = 1e-6  # directions whose variance is below this fraction of the largest are left out of whitened coordinates


class PrincipalComponents(SeriesBaseline):
    """Principal component analysis. The components are predicted by a ridge vector autoregression of order 1 or 2.

    The number of components, the order and the penalty are those with the least error on the last eighth of the past,
    after learning from the rest. Then components and weights are learned from the whole past.
    """

    n_last = 2
    learned = ("weights_", "components_")

    def learn(self, past: Array) -> None:
        """Learn components and weights from the past frames (time, n_features)."""
        early = _before_the_last_eighth(past)
        known = _projected(past, _principal(early)) if len(early) > self.n_last else past[:, :0]
        found = {n: choose_ridge(known[:, :n], (1, 2), PENALTIES) for n in SIZES if n <= known.shape[1]}
        components = _principal(past)
        if not found or not components.size:  # nothing varies, or nothing can be held out
            self.components_, self.weights_ = np.zeros((past.shape[1], 1)), np.zeros((1, 1))
            return
        n = min(found, key=lambda size: found[size][1])
        self.components_ = np.ascontiguousarray(components[:, :n])
        self.weights_ = ridge_weights(_projected(past, self.components_), *found[n][0])

    def next_frame(self, last: Array) -> Array:
        """Return the predicted frame (n_features,) after the last two frames (2, n_features)."""
        order = len(self.weights_) // self.components_.shape[1]
        points = last[-order:] @ self.components_
        return np.asarray(last[-1] + self.components_ @ (points.ravel() @ self.weights_))


class SlowFeatures(SeriesBaseline):
    """Linear slow feature analysis (Wiskott and Sejnowski, 2002), with linear extrapolation of each feature.

    Slow features are the directions in which whitened frames change least from frame to frame. Each is predicted to
    continue the line through its last two values. Their number is chosen by the error on the last eighth of the past.
    """

    n_last = 2
    learned = ("weights_",)

    def learn(self, past: Array) -> None:
        """Learn the slow features and their number from the past frames (time, n_features)."""
        early = _before_the_last_eighth(past)
        held = np.asarray(past[len(early) - 2 :]) if len(early) > self.n_last else past[:0]
        steps, targets = np.diff(held[:-1], axis=0), np.diff(held[1:], axis=0)
        features, patterns = _slow(early)
        sizes = [n for n in SIZES if n < features.shape[1]] + [features.shape[1]]
        errors = [np.sum((targets - steps @ features[:, :n] @ patterns[:n]) ** 2) for n in sizes]
        n = sizes[int(np.argmin(errors))]
        features, patterns = _slow(past)
        self.weights_ = features[:, :n] @ patterns[:n]

    def next_frame(self, last: Array) -> Array:
        """Return the predicted frame (n_features,) after the last two frames (2, n_features)."""
        return np.asarray(last[1] + (last[1] - last[0]) @ self.weights_)


def _before_the_last_eighth(past: Array) -> Array:
    return past[: len(past) - max(len(past) // 8, 1)]


def _principal(past: Array) -> Array:
    """Return the leading principal components as columns (n_features, n), where n is at most ``SIZES[-1]``."""
    values, vectors = scipy.linalg.eigh(_moments(past)[0])
    varies = values > _RANK_TOL * max(float(values[-1]), 0.0)
    return np.asarray(vectors[:, varies][:, ::-1][:, : SIZES[-1]])


def _slow(past: Array) -> tuple[Array, Array]:
    """Return slow features as columns (n_features, n), slowest first, and a map (n, n_features) back to frames."""
    covariance, steps = _moments(past)
    values, vectors = scipy.linalg.eigh(covariance)
    varies = values > _RANK_TOL * max(float(values[-1]), 0.0)
    spread = np.sqrt(values[varies])
    whitened = vectors[:, varies] / spread
    _, turned = scipy.linalg.eigh(whitened.T @ steps @ whitened)
    return whitened @ turned, (vectors[:, varies] * spread @ turned).T


def _moments(past: Array) -> tuple[Array, Array]:
    """Return the covariance of the frames and the second moment of their steps, both (n_features, n_features)."""
    n = past.shape[1]
    total, squares, steps = np.zeros(n), np.zeros((n, n)), np.zeros((n, n))
    held = np.empty((0, n))
    for block in blocks(past):
        total += block.sum(axis=0)
        squares += block.T @ block
        difference = np.diff(np.concatenate([held, block]), axis=0)
        steps += difference.T @ difference
        held = block[-1:]
    mean = total / len(past)
    return squares / len(past) - np.outer(mean, mean), steps / max(len(past) - 1, 1)


def _projected(past: Array, components: Array) -> Array:
    return np.concatenate([block @ components for block in blocks(past)])
