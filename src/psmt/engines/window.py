"""Codes of a sliding window and their sums, updated by low-rank changes: the part that all engines share.

Adding a product and later subtracting it leaves rounding errors behind. After as many codes have left as the window
holds, the sums are computed afresh, which costs as much as those slides did. They are also computed afresh when a
lively stretch has left the window, because its rounding errors would drown the calm stretch that follows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from psmt.numerics.arrays import array_namespace, few_times
from psmt.types import Array, Ints, Mask

FALL = 1e-2
"""Sums below this fraction of their peak are computed afresh: what is left of the peak is rounding."""


def second_difference(before: Array, middle: Array, after: Array) -> Array:
    """``a_t - (a_(t-1) + a_(t+1)) / 2``."""
    return middle - 0.5 * (before + after)


def half_stencil(end: Array, beside: Array) -> Array:
    """The part of a second difference that the paper's D has at an end of the window."""
    return end - 0.5 * beside


class Slide(NamedTuple):
    """A slide of a window of three codes or more.

    The vectors are the code that arrived, the code that left, the second difference that arrived, the one that left,
    and the sum of the codes before. A second difference across a seam is zero: it was never in the sums.
    """

    vectors: Array  # (5, n_features)
    oldest: Array  # the three oldest codes (3, n_features) before the slide
    youngest: Array  # the three youngest codes (3, n_features) after it


@dataclass(frozen=True)
class Sums:
    """Sums over the codes of a window, for products with V and S."""

    products: Array  # sum of a_t a_t' (n_features, n_features)
    curvature: Array  # sum of d_t d_t' over the interior second differences
    total: Array  # sum of the codes (n_features,)
    ends: Array  # half stencils (2, n_features) at the ends of the window, or none (0, n_features)
    n: int  # number of codes

    def products_times(self, vectors: Array) -> Array:
        """`products` times the columns of `vectors` (n_features, k), as a new array."""
        return few_times(self.products, vectors)

    def second_differences_times(self, vectors: Array) -> Array:
        """S, half stencils included, times the columns of `vectors` (n_features, k), as a new array."""
        images = few_times(self.curvature, vectors)
        for end in self.ends:
            images += end[:, None] * (end @ vectors)
        return images


class CodeWindow(ABC):
    """Codes of a window that grows at its young end and shrinks at its old end, with their sums.

    A window may hold several series, one after the other. A code that `begins` a series has a seam before it, and no
    second difference reaches across a seam. A subclass stores the codes, and adds and subtracts one code's part of the
    sums.
    """

    n_features: int
    total: Array
    products: Array
    curvature: Array
    uses: Ints  # number of codes (n_features,) that use each atom; rows of an unused atom are exactly zero
    peak: Array  # largest traces (2,) of `products` and `curvature` since they were computed afresh
    reverted = 0  # codes that have left since then
    begins: deque[bool]  # whether each code is the first of its series, oldest code first

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def codes(self) -> Array:
        """All codes (n, n_features), oldest first."""

    @abstractmethod
    def latest(self, count: int) -> Array:
        """The youngest codes (count, n_features), oldest first."""

    @abstractmethod
    def oldest(self, count: int) -> Array:
        """Copy of the oldest codes (up to count, n_features)."""

    @property
    @abstractmethod
    def activities(self) -> Array:
        """Sum (n,) of each code, oldest first."""

    @property
    def seams(self) -> bool:
        """Whether the window holds parts of more than one series."""
        return any(islice(self.begins, 1, None))

    def bends_kept(self) -> Mask:
        """Which interior second differences (n - 2,) lie within one series."""
        begins = np.array(self.begins, dtype=bool)
        kept: Mask = ~(begins[1:-1] | begins[2:])
        return kept

    def bends_at(self, first: int) -> bool:
        """Whether the three codes starting at index `first` lie within one series; negative counts from the end."""
        return not (self.begins[first + 1] or self.begins[first + 2])

    def append(self, code: Array, *, begins: bool = False) -> None:
        """Add the code (n_features,) that follows the youngest, or `begins` another series."""
        self.begins.append(begins)
        self._enter(code)
        xp = array_namespace(self.peak)
        self.peak[...] = xp.maximum(self.peak, self._traces())

    def popleft(self) -> None:
        """Remove the oldest code."""
        self._leave()
        self.begins.popleft()
        if self.reverted >= max(len(self), 1) or bool((self._traces() < FALL * self.peak).any()):
            self.refresh()

    def slide(self, code: Array, *, begins: bool = False) -> Slide | None:
        """Add a code and remove the oldest; return what changed, or None for a window of fewer than three codes."""
        oldest, total = self.oldest(3), 1.0 * self.total
        left = len(self) >= 3 and self.bends_at(0)
        self.append(code, begins=begins)
        self.popleft()
        if len(self) < 3:
            return None
        youngest = self.latest(3)
        vectors = slide_vectors(oldest, youngest, total, arrives=self.bends_at(-3), leaves=left)
        return Slide(vectors, oldest, youngest)

    def refresh(self) -> None:
        """Compute the sums afresh from the codes."""
        self.reverted = 0
        self._recompute()
        self.peak[...] = self._traces()

    def ends(self) -> Array:
        """Half stencils (2, n_features) at the oldest and the youngest code.

        The paper's D is that of one series. Several would have half stencils at every seam, as if each series began and
        ended at zero.
        """
        if self.seams:
            raise ValueError("half_stencils=True is for one series, and the window holds several; use False")
        old, young = self.oldest(2), self.latest(2)
        return array_namespace(old).stack([half_stencil(old[0], old[1]), half_stencil(young[1], young[0])])

    @abstractmethod
    def sums(self, *, half_stencils: bool) -> Sums:
        """The present sums, for products with V and S."""

    def _traces(self) -> Array:
        xp = array_namespace(self.products)
        return xp.stack([xp.linalg.trace(self.products), xp.linalg.trace(self.curvature)])

    @abstractmethod
    def _enter(self, code: Array) -> None:
        """Store a code as the youngest, and add it and the second difference that it completes to the sums."""

    @abstractmethod
    def _leave(self) -> None:
        """Drop the oldest code, count it as `reverted`, and subtract it and its second difference from the sums."""

    @abstractmethod
    def _recompute(self) -> None:
        """Compute all sums from the codes, in place."""


def slide_vectors(oldest: Array, youngest: Array, total: Array, *, arrives: bool = True, leaves: bool = True) -> Array:
    """The vectors (5, n_features) of a `Slide`, from three codes at each end and the sum before.

    `arrives` and `leaves` are False for a second difference across a seam.
    """
    gone, second, third = oldest
    before, last, arrived = youngest
    bends = arrives * second_difference(before, last, arrived), leaves * second_difference(gone, second, third)
    return array_namespace(total).stack([arrived, gone, *bends, total])
