"""What the graphs say: do links change, do they last, do linked atoms look alike, how many links stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isqrt
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from psmt.evaluation.null_models import NullTest
from psmt.types import Array, Ints, Result

MAX_SHIFT = 2
"""Largest shift in pixels of the shift-tolerant likeness: atoms of one moving edge differ by that much."""

_BLOCK = 64
"""Windows that are compared with all others at a time."""


class _Measure:
    """A dataclass of numbers and tests."""

    def summary(self) -> dict[str, Any]:
        """Values for JSON."""
        return {name: own.summary() if isinstance(own, NullTest) else own for name, own in vars(self).items()}


# Change and persistence of links


@dataclass(frozen=True)
class LinkChange(_Measure):
    """Shares of links that sets of frames have in common, at the same time and at different times."""

    same_time: float
    """Share between the two sets of one part: how well the estimate repeats if nothing changes."""
    other_time: float
    """Share between sets of two parts."""
    links: int
    """Number of links of all sets."""
    dealt: NullTest
    """Same time less other time; null: blocks dealt out at random."""


@dataclass(frozen=True)
class LinkPersistence(_Measure):
    """Share of links that windows without a common frame have in common."""

    links: int
    """Number of links of all windows."""
    shuffled: NullTest
    """The share; null: frames of each window in random order."""
    permuted: NullTest
    """The share; null: atoms of each window permuted."""

    @property
    def share(self) -> float:
        """The share itself."""
        return self.shuffled.value


def measure_change(film: Result, nulls: Sequence[Result]) -> LinkChange:
    """Change of links, from what `link_sets` returned for the film's sets and for sets of randomly dealt blocks."""
    same_time, other_time = _shares_by_time(film)
    null = np.array([np.nan_to_num(np.subtract(*_shares_by_time(draw))) for draw in nulls])
    return LinkChange(same_time, other_time, len(film["edges"]), NullTest(same_time - other_time, null))


def measure_lasting(film: Result, nulls: Sequence[Result], *, n_permutations: int, seed: int) -> LinkPersistence:
    """Persistence of links, from what `link_sets` returned for the film's windows and for shuffled frames."""
    pairs = list(combinations(range(len(film["counts"])), 2))
    value = shared_links(film, pairs)
    rng = np.random.default_rng([seed, 2])
    # In a draw without links, no link lasts.
    shuffled = np.array([np.nan_to_num(shared_links(draw, pairs)) for draw in nulls])
    permuted = [np.nan_to_num(shared_links(_permute_atoms(film, rng), pairs)) for _ in range(n_permutations)]
    return LinkPersistence(len(film["edges"]), NullTest(value, shuffled), NullTest(value, np.array(permuted)))


def shared_links(links: Result, pairs: Sequence[tuple[int, int]]) -> float:
    """Share of the links of two sets that both have, over all pairs of sets together; NaN without links.

    Twice the number of common links over the number of links of both sets (Dice coefficient).
    """
    sets = np.split(_keys(links["edges"], links["used"].shape[1]), np.cumsum(links["counts"])[:-1])
    either = sum(len(sets[i]) + len(sets[j]) for i, j in pairs)
    both = sum(len(np.intersect1d(sets[i], sets[j], assume_unique=True)) for i, j in pairs)
    return 2 * both / either if either else np.nan


def _keys(edges: Ints, n_atoms: int) -> Ints:
    """A number (n_edges,) for each pair of atoms."""
    return edges[:, 0].astype(np.int64) * n_atoms + edges[:, 1]


def _shares_by_time(links: Result) -> tuple[float, float]:
    """Shares of links that two sets of one part have in common, and two sets of different parts."""
    pairs = list(combinations(range(len(links["counts"])), 2))
    same, other = ([(i, j) for i, j in pairs if (i // 2 == j // 2) is together] for together in (True, False))
    return shared_links(links, same), shared_links(links, other)


def _permute_atoms(links: Result, rng: np.random.Generator) -> Result:
    """The links with the atoms of each set permuted, among those that may have links.

    A set is permuted once for all its pairs: pairs with a common set depend on each other in the null, too.
    """
    edges = []
    for own, used in zip(np.split(links["edges"], np.cumsum(links["counts"])[:-1]), links["used"], strict=True):
        label = np.arange(len(used))
        label[used] = rng.permutation(np.flatnonzero(used))
        edges.append(np.sort(label[own], axis=1))
    return {**links, "edges": np.concatenate(edges)}


# Likeness of pictures


@dataclass(frozen=True)
class Likeness(_Measure):
    """How much more alike linked atoms look than unlinked ones."""

    linked: float
    """Mean likeness of linked pairs, each counted once per window in which it is linked; NaN without links."""
    unlinked: float
    """Mean likeness of the pairs that are never linked, of atoms that may have links."""
    permuted: NullTest
    """Linked less unlinked; null: pictures of the atoms permuted, graphs unchanged."""
    shuffled: NullTest
    """Linked less unlinked; null: links of frames in random order."""

    @property
    def difference(self) -> float:
        """Linked less unlinked."""
        return self.permuted.value


def picture_likeness(atoms: Array, *, max_shift: int = 0) -> Array:
    """Likeness of atoms (n_atoms, n_features) as pictures: (n_atoms, n_atoms), from -1 to 1.

    Signed correlation of pixels: codes are not negative, so an atom and its negative are two different pictures. With
    `max_shift`, the largest correlation over all shifts by up to that many pixels, for square pictures. Pixels that
    are shifted out of the picture count as different.
    """
    centred = atoms - atoms.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(centred, axis=1, keepdims=True)
    unit = np.divide(centred, norms, out=np.zeros_like(centred), where=norms > 0)
    best: Array = unit @ unit.T
    if max_shift == 0:
        return best
    side = isqrt(atoms.shape[1])
    if side * side != atoms.shape[1]:
        raise ValueError(f"atoms have {atoms.shape[1]} features, which is not a square picture; give square patches")
    pictures = unit.reshape(len(unit), side, side)
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


def measure_likeness(
    likeness: Array, film: Result, nulls: Sequence[Result], *, n_permutations: int, seed: int
) -> Likeness:
    """Likeness of linked pairs, from a matrix (n_atoms, n_atoms) and what `link_sets` returned for film and nulls.

    Pictures are permuted among the atoms that may have links, in all windows at once.
    """
    pairs = _LinkedPairs(likeness, film)
    linked, unlinked = pairs.means()
    rng = np.random.default_rng(seed)
    # In a draw without links, no linked pictures are alike.
    permuted = [np.nan_to_num(np.subtract(*pairs.means(rng))) for _ in range(n_permutations)]
    shuffled = [np.nan_to_num(np.subtract(*_LinkedPairs(likeness, draw).means())) for draw in nulls]
    tests = [NullTest(linked - unlinked, np.array(null)) for null in (permuted, shuffled)]
    return Likeness(linked, unlinked, *tests)


class _LinkedPairs:
    """Pairs of atoms that may have links, and how often each is linked."""

    def __init__(self, likeness: Array, links: Result) -> None:
        atoms = np.flatnonzero(links["used"].any(axis=0))
        self.alike = likeness[np.ix_(atoms, atoms)].astype(np.float32)
        found, self.times = np.unique(links["edges"], axis=0, return_counts=True)
        self.first, self.second = np.searchsorted(atoms, found).reshape(-1, 2).T
        self.count = len(atoms) * (len(atoms) - 1) // 2
        self.total = (float(self.alike.sum(dtype=np.float64)) - float(np.trace(self.alike))) / 2

    def means(self, rng: np.random.Generator | None = None) -> tuple[float, float]:
        """Mean likeness of linked and of unlinked pairs; with an `rng`, of permuted pictures."""
        order = np.arange(len(self.alike)) if rng is None else rng.permutation(len(self.alike))
        pairs = self.alike[order[self.first], order[self.second]].astype(np.float64)
        n_unlinked = self.count - len(pairs)
        linked = float(pairs @ self.times / self.times.sum()) if len(pairs) else np.nan
        return linked, (self.total - float(pairs.sum())) / n_unlinked if n_unlinked else np.nan


# Links as the window slides on: reported, not tested, because neighbouring windows share most frames


@dataclass(frozen=True)
class SlidingOverlap(_Measure):
    """Share of links that stay as the window slides on."""

    lags: Ints
    """(n_lags,) in frames."""
    shared: Array
    """(n_lags,): share of links that two windows at that distance have in common; NaN without links."""
    always_linked: int
    sometimes_linked: int
    never_linked: int
    """Number of atoms with links in all, some or none of the windows, of those that may have links in any window."""


def measure_persistence(graphs: Sequence[Result], starts: Ints) -> SlidingOverlap:
    """Links that stay, from the graphs of windows that begin at `starts`, which are equally spaced."""
    keys = [_keys(graph["edges"], len(graphs[0]["used"])) for graph in graphs]
    counts = np.array([len(key) for key in keys], dtype=np.float64)
    _, edge = np.unique(np.concatenate(keys), return_inverse=True)
    window = np.repeat(np.arange(len(graphs)), counts.astype(int))
    has = csr_array((np.ones(len(edge)), (window, edge)), shape=(len(graphs), int(edge.max(initial=-1)) + 1))
    in_common = np.zeros(len(graphs))  # by distance between windows
    # All pairs of windows at once would take memory with the square of the film's length.
    for first in range(0, len(graphs), _BLOCK):
        for row, common in enumerate((has[first : first + _BLOCK] @ has.T).toarray(), start=first):
            in_common[: len(graphs) - row] += common[row:]
    lags = np.arange(1, len(graphs))
    either = np.array([counts[lag:].sum() + counts[:-lag].sum() for lag in lags])
    linked = np.array([graph["neighbours"] > 0 for graph in graphs])
    used = np.logical_or.reduce([graph["used"] for graph in graphs])
    always, ever = linked.all(axis=0), linked.any(axis=0)
    return SlidingOverlap(
        lags=int(starts[1] - starts[0]) * lags,
        shared=np.divide(2 * in_common[1:], either, out=np.full(len(lags), np.nan), where=either > 0),
        always_linked=int(always.sum()),
        sometimes_linked=int((ever & ~always).sum()),
        never_linked=int((used & ~ever).sum()),
    )
