"""Whether linked atoms look alike: how alike two pictures are, and a permutation test."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.experiments.topology.scalars import plain
from psmt.types import Array

MAX_SHIFT = 2
"""Pixels that a picture may be shifted by in the shift-tolerant likeness: atoms of one moving edge differ by that."""


def picture_likeness(atoms: Array, *, max_shift: int = 0) -> Array:
    """How alike atoms (n_atoms, n_features) are as pictures: (n_atoms, n_atoms), from -1 to 1.

    Signed correlation of pixels: codes are not negative, so an atom and its negative are two different pictures. With
    a `max_shift`, the best over all shifts by up to that many pixels, for square pictures; what is shifted out of the
    picture counts as different.
    """
    centred = atoms - atoms.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(centred, axis=1, keepdims=True)
    unit = np.divide(centred, norms, out=np.zeros_like(centred), where=norms > 0)
    best: Array = unit @ unit.T
    side = picture_side(atoms) if max_shift else 0
    pictures = unit.reshape(len(unit), side, side) if max_shift else unit
    for down in range(max_shift + 1):
        for right in range(-max_shift, max_shift + 1):
            if (down, right) <= (0, 0):
                continue  # a shift back is the transpose of a shift forth
            rows, back = slice(down, None), slice(None, side - down)
            columns, left = slice(max(right, 0), side + min(right, 0)), slice(max(-right, 0), side - max(right, 0))
            forth = pictures[:, rows, columns].reshape(len(unit), -1)
            shifted = forth @ pictures[:, back, left].reshape(len(unit), -1).T
            np.maximum(best, shifted, out=best)
            np.maximum(best, shifted.T, out=best)
    return best


def picture_side(atoms: Array) -> int:
    """Height and width of atoms (n_atoms, n_features) that are square pictures."""
    side = isqrt(atoms.shape[1])
    if side * side != atoms.shape[1]:
        raise ValueError(f"atoms have {atoms.shape[1]} features, which is no square picture; give square patches")
    return side


@dataclass(frozen=True)
class Likeness:
    """Whether linked atoms look alike, against unlinked ones and against pictures dealt out at random."""

    linked: float
    """Mean likeness of linked pairs, each counted once per window in which it is linked; NaN without links."""
    unlinked: float
    """Mean likeness of the pairs of used atoms that are never linked."""
    permuted: Array
    """(n_permutations,): linked less unlinked, with the pictures of the used atoms permuted."""
    p_value: float
    """(1 + number of permutations that are at least as far apart) / (1 + n_permutations)."""

    @property
    def difference(self) -> float:
        """Linked less unlinked."""
        return self.linked - self.unlinked

    def summary(self) -> dict[str, Any]:
        """Plain numbers."""
        return {
            "linked": plain(self.linked),
            "unlinked": plain(self.unlinked),
            "difference": plain(self.difference),
            "p_value": plain(self.p_value),
            "n_permutations": len(self.permuted),
        }


def likeness_test(
    likeness: Array, times_linked: NDArray[Any], used: NDArray[Any], *, n_permutations: int, seed: int
) -> Likeness:
    """`Likeness` of pairs, from a matrix (n_atoms, n_atoms) of likeness and one of how often each pair is linked.

    The labels of the used atoms are permuted: the graph stays as it is, in all windows at once, and each of its nodes
    gets the picture of another one.
    """
    atoms = np.flatnonzero(used)
    alike = likeness[np.ix_(atoms, atoms)].astype(np.float32)
    first, second = np.nonzero(np.triu(times_linked[np.ix_(atoms, atoms)], 1))
    weights = times_linked[atoms[first], atoms[second]].astype(np.float64)
    n_pairs = len(atoms) * (len(atoms) - 1) // 2
    total = (float(alike.sum(dtype=np.float64)) - float(np.trace(alike))) / 2
    if len(first) == 0 or len(first) == n_pairs:
        unlinked = total / n_pairs if n_pairs and len(first) == 0 else np.nan
        linked = float(np.mean(alike[first, second])) if len(first) else np.nan
        return Likeness(linked, unlinked, np.zeros(0), np.nan)

    def means(order: NDArray[Any]) -> tuple[float, float]:
        pairs = alike[order[first], order[second]].astype(np.float64)
        return float(pairs @ weights / weights.sum()), float((total - pairs.sum()) / (n_pairs - len(first)))

    linked, unlinked = means(np.arange(len(atoms)))
    rng = np.random.default_rng(seed)
    permuted = np.array([np.subtract(*means(rng.permutation(len(atoms)))) for _ in range(n_permutations)])
    at_least = int(np.count_nonzero(permuted >= linked - unlinked))
    return Likeness(linked, unlinked, permuted, (1 + at_least) / (1 + n_permutations))
