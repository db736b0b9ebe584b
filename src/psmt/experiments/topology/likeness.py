"""Whether linked atoms look alike: how alike two pictures are, linked and unlinked, and in the nulls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np

from psmt.evaluation.missing_numbers import plain
from psmt.evaluation.null_test import Measured
from psmt.types import Array, Result

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
    """Whether linked atoms look alike: how much more so than unlinked ones, and than in two nulls."""

    linked: float
    """Mean likeness of linked pairs, each counted once per window in which it is linked; NaN without links."""
    unlinked: float
    """Mean likeness of the pairs that are never linked, of atoms that may have links."""
    permuted: Measured
    """Linked less unlinked; null: the pictures of the atoms permuted, the graphs as they are."""
    shuffled: Measured
    """Linked less unlinked; null: the links of frames in random order."""

    @property
    def difference(self) -> float:
        """Linked less unlinked."""
        return self.permuted.value

    def summary(self) -> dict[str, Any]:
        """Plain numbers."""
        return {
            "linked": plain(self.linked),
            "unlinked": plain(self.unlinked),
            "permuted": self.permuted.summary(),
            "shuffled": self.shuffled.summary(),
        }


def measure_likeness(
    likeness: Array, film: Result, nulls: Sequence[Result], *, n_permutations: int, seed: int
) -> Likeness:
    """`Likeness` of pairs, from a matrix (n_atoms, n_atoms) and what `link_sets` returned for film and nulls.

    Pictures are permuted among the atoms that may have links: the graphs stay as they are, in all windows at once, and
    each of their nodes gets the picture of another one.
    """
    pairs = _Pairs(likeness, film)
    linked, unlinked = pairs.means()
    rng = np.random.default_rng(seed)
    # A draw without links has none between pictures that are alike.
    permuted = [np.nan_to_num(np.subtract(*pairs.means(rng))) for _ in range(n_permutations)]
    shuffled = [np.nan_to_num(np.subtract(*_Pairs(likeness, draw).means())) for draw in nulls]
    difference = linked - unlinked
    return Likeness(
        linked, unlinked, Measured(difference, np.array(permuted)), Measured(difference, np.array(shuffled))
    )


class _Pairs:
    """The pairs of atoms that may have links, and how often each is linked."""

    def __init__(self, likeness: Array, links: Result) -> None:
        atoms = np.flatnonzero(links["used"].any(axis=0))
        self.alike = likeness[np.ix_(atoms, atoms)].astype(np.float32)
        found, self.times = np.unique(links["edges"], axis=0, return_counts=True)
        self.first, self.second = np.searchsorted(atoms, found).reshape(-1, 2).T
        self.count = len(atoms) * (len(atoms) - 1) // 2
        self.total = (float(self.alike.sum(dtype=np.float64)) - float(np.trace(self.alike))) / 2

    def means(self, rng: np.random.Generator | None = None) -> tuple[float, float]:
        """Mean likeness of linked and of unlinked pairs; with an `rng`, of pictures that it permutes."""
        order = np.arange(len(self.alike)) if rng is None else rng.permutation(len(self.alike))
        pairs = self.alike[order[self.first], order[self.second]].astype(np.float64)
        n_unlinked = self.count - len(pairs)
        linked = float(pairs @ self.times / self.times.sum()) if len(pairs) else np.nan
        return linked, (self.total - float(pairs.sum())) / n_unlinked if n_unlinked else np.nan
