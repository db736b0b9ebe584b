"""How local an embedding is: over atoms, over groups of atoms that belong together, and over time."""

from __future__ import annotations

import numpy as np

from psmt.types import Array, Ints

_TURNS = 500
"""Steps of the search for the most local turn, at the most."""


def shares(embedding: Array, deviations: Array) -> Array:
    """Share (n_components, n_atoms) that each atom has in each row of P, by the variance that it adds alone.

    In standard deviations of the atoms, so that an atom that hardly moves does not count for its large weight.
    """
    mass = (embedding * deviations) ** 2
    total = mass.sum(axis=1, keepdims=True)
    return mass / np.where(total > 0, total, 1.0)


def participation(weights: Array) -> Array:
    """Effective number (n,) of entries among those of each row, >= 0: the participation ratio.

    >>> participation(np.array([[1.0, 0.0, 0.0], [2.0, 2.0, 0.0], [1.0, 1.0, 1.0]])).round(12)
    array([1., 2., 3.])
    """
    squares = (weights**2).sum(axis=1)
    ratio: Array = weights.sum(axis=1) ** 2 / np.where(squares > 0, squares, 1.0)
    return ratio


def atoms_used(embedding: Array, deviations: Array) -> float:
    """Atoms that a row of P (n_components, n_atoms) is made of: the mean participation ratio of its `shares`."""
    return float(participation(shares(embedding, deviations)).mean())


def group_share(embedding: Array, deviations: Array, groups: Ints) -> float:
    """Share of a row of P that lies in one group of atoms, the one with the largest: 1 for rows of one group each.

    `groups` (n_atoms,) has the number of each atom's group.
    """
    member = groups[:, None] == np.unique(groups)
    return float((shares(embedding, deviations) @ member).max(axis=1).mean())


def frames_used(embedding: Array, codes: Array) -> float:
    """Fraction of the window's frames in which a row moves away from its mean: the participation ratio over time."""
    points = (codes - codes.mean(axis=0)) @ embedding.T
    return float(participation((points**2).T).mean() / len(codes))


def turned(embedding: Array, deviations: Array) -> Array:
    """P (n_components, n_atoms) turned inside its span so that rows are local (varimax); it predicts the same.

    Steps 6 and 7 know P by ``P'P`` alone, and ``P V P' = I`` and the roughness stay: what a turn makes local was global
    only by the order of eigenvectors.
    """
    loadings = (embedding * deviations).T
    turn = np.eye(len(embedding))
    for _ in range(_TURNS):
        current = loadings @ turn
        gradient = loadings.T @ (current**3 - current * (current**2).mean(axis=0))
        left, _, right = np.linalg.svd(gradient)
        before, turn = turn, left @ right
        if np.abs(turn - before).max() < 1e-8:
            break
    local: Array = turn.T @ embedding
    return local
