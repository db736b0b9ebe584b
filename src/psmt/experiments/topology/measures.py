"""Tests of links between atoms: which frames they compare, their null models, and what they measure.

The film is divided into parts without a common frame, spread over its whole length. Two questions are tested:

- *Do links last?* The windows of different parts are compared. Null model: the frames of each window in random order.
  Which atoms are active together is kept; how they move is lost.
- *Do links change?* Each part is split into two sets, block by block in turn. Two sets of one part are of the same
  time, sets of two parts are not. Null model: pairs of neighbouring blocks, one block of each set, are dealt out to
  the parts at random. How atoms move is kept; when they moved is lost. Pairs stay together because neighbouring blocks
  depend on each other where they meet. Dealt out one by one, sets of one part would be more alike in the film than
  in the null model even if nothing changes (p <= 0.05 in 15 of 100 films with constant clusters; with pairs, in 4).

Both tests are exact: if the order of frames, or of pairs, has no effect, the film is exchangeable with the draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isqrt
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from psmt.evaluation.null_models import NullTest
from psmt.experiments.coding_tasks import unpack_codes
from psmt.experiments.topology.settings import TopologySettings
from psmt.types import Array, Ints, Result

MAX_PARTS = 4
"""Parts of a long film: more would cost more than they add."""

FORGOTTEN = np.exp(-1)
"""The memory of codes ends at the lag at which their autocorrelation falls below this."""

BLOCK_MEMORIES, MIN_BLOCK, MIN_BLOCKS = 4, 16, 4
"""Length of a block in memories, so that blocks depend little on each other; its least number of frames; and the least
number of blocks in a set."""


@dataclass(frozen=True)
class Design:
    """Frames that are compared with each other."""

    windows: Ints
    """(n_parts, n_frames): the window of each part, no frame in two of them."""
    sets: Ints
    """(2 n_parts, n_frames): the two sets of each part one after the other; (0, 0) if a part has too few blocks."""
    block: int
    """Frames in a block of `sets`."""
    memory: int
    """Memory of the codes in frames, at most the number that leaves a part too few blocks."""

    @classmethod
    def of(cls, codes: Result, settings: TopologySettings) -> Design:
        """The design for a film's packed codes."""
        n_frames = len(codes["offsets"]) - 1
        n_parts = int(np.clip(n_frames // (2 * settings.window), 2, MAX_PARTS))
        length = min(n_frames // n_parts, 2 * settings.window)
        starts = np.linspace(0, n_frames - length, n_parts).astype(np.int64)
        parts = starts[:, None] + np.arange(length)
        memory = _memory(unpack_codes(**codes, n_atoms=settings.n_atoms), parts)
        block = max(MIN_BLOCK, BLOCK_MEMORIES * memory)
        per_set = length // (2 * block)
        sets = np.zeros((0, 0), dtype=np.int64)
        if per_set >= MIN_BLOCKS:
            # (part, block, set, frame) -> (part, set, block, frame): blocks go to the two sets in turn.
            blocks = parts[:, : 2 * per_set * block].reshape(n_parts, per_set, 2, block)
            sets = blocks.transpose(0, 2, 1, 3).reshape(2 * n_parts, per_set * block)
        return cls(windows=parts[:, : settings.window], sets=sets, block=block, memory=memory)

    def shuffled(self, count: int, seed: int) -> Iterator[Ints]:
        """`windows`, `count` times with the frames of each in random order."""
        rng = np.random.default_rng([seed, 0])
        return (rng.permuted(self.windows, axis=1) for _ in range(count))

    def dealt(self, count: int, seed: int) -> Iterator[Ints]:
        """`sets`, `count` times with all pairs of neighbouring blocks dealt out at random."""
        rng = np.random.default_rng([seed, 1])
        n_parts = len(self.sets) // 2
        # (part, set, block, frame) -> (pair, set, frame), and back.
        pairs = self.sets.reshape(n_parts, 2, -1, self.block).swapaxes(1, 2).reshape(-1, 2, self.block)
        for _ in range(count):
            dealt = rng.permutation(pairs).reshape(n_parts, -1, 2, self.block)
            yield dealt.swapaxes(1, 2).reshape(self.sets.shape)

    def summary(self) -> dict[str, Any]:
        """Values for JSON."""
        return {
            "windows": self.windows[:, 0].tolist(),
            "window": self.windows.shape[1],
            "set": self.sets.shape[1],
            "block": self.block,
            "memory": self.memory,
        }


def _memory(codes: csr_array, parts: Ints) -> int:
    """Memory of the codes (time, n_atoms) of the parts, in frames; at most one more than the longest that is usable."""
    length = int(parts.shape[1])
    pieces = [csr_array(codes[part]) for part in parts]
    # About the mean of each part: an atom that is active in only one part is change, not memory.
    squared_means = sum(float(np.sum(piece.mean(axis=0) ** 2)) for piece in pieces)

    def covariance(lag: int) -> float:
        products = sum(float(piece[: length - lag].multiply(piece[lag:]).sum()) for piece in pieces)
        return products / (length - lag) - squared_means

    variance = covariance(0)
    too_long = length // (2 * MIN_BLOCKS * BLOCK_MEMORIES) + 1
    return next((lag for lag in range(1, too_long) if covariance(lag) < FORGOTTEN * variance), too_long)


LEAST = 0.05
"""Smallest effect that counts: 5 links in 100, or a correlation of 0.05, beyond the null model."""

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
        """Mean correlation of linked pairs minus that of unlinked pairs."""
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
