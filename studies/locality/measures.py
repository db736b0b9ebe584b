"""Measures of the locality of an embedding: over atoms, over groups of atoms, and over time."""

from __future__ import annotations

import numpy as np

from psmt.types import Array, Ints

_STEPS = 500
"""Largest number of steps of the search for the rotation."""


def shares(embedding: Array, deviations: Array) -> Array:
    """Return the share (n_components, n_atoms) that each atom contributes to the variance of each row of P.

    Weights are multiplied by the standard deviations of the atoms, because an atom that hardly moves has a large
    weight.
    """
    mass = (embedding * deviations) ** 2
    total = mass.sum(axis=1, keepdims=True)
    return mass / np.where(total > 0, total, 1.0)


def participation(weights: Array) -> Array:
    """Return the participation ratio (n,) of each row of weights >= 0. It is the effective number of entries.

    >>> participation(np.array([[1.0, 0.0, 0.0], [2.0, 2.0, 0.0], [1.0, 1.0, 1.0]])).round(12)
    array([1., 2., 3.])
    """
    squares = (weights**2).sum(axis=1)
    ratio: Array = weights.sum(axis=1) ** 2 / np.where(squares > 0, squares, 1.0)
    return ratio


def atoms_used(embedding: Array, deviations: Array) -> float:
    """Return the mean effective number of atoms in a row of P (n_components, n_atoms)."""
    return float(participation(shares(embedding, deviations)).mean())


def group_share(embedding: Array, deviations: Array, groups: Ints) -> float:
    """Return the largest share of a row of P that lies in one group, as a mean over the rows.

    It is 1 if every row lies in one group. `groups` (n_atoms,) is the number of each atom's group.
    """
    member = groups[:, None] == np.unique(groups)
    return float((shares(embedding, deviations) @ member).max(axis=1).mean())


def frames_used(embedding: Array, codes: Array) -> float:
    """Return the effective fraction of frames in which a row of P differs from its mean, as a mean over rows."""
    points = (codes - codes.mean(axis=0)) @ embedding.T
    return float(participation((points**2).T).mean() / len(codes))


def rotated(embedding: Array, deviations: Array) -> Array:
    """Rotate P (n_components, n_atoms) within its span so that its rows are local (varimax).

    Predictions do not change, because steps 6 and 7 depend only on ``P'P``. The constraint ``P V P' = I`` and the
    roughness do not change either.
    """
    loadings = (embedding * deviations).T
    rotation = np.eye(len(embedding))
    for _ in range(_STEPS):
        current = loadings @ rotation
        gradient = loadings.T @ (current**3 - current * (current**2).mean(axis=0))
        left, _, right = np.linalg.svd(gradient)
        before, rotation = rotation, left @ right
        if np.abs(rotation - before).max() < 1e-8:
            break
    local: Array = rotation.T @ embedding
    return local
