"""Sliding window of codes, and sums over them. Each slide updates the sums by a few outer products.

Adding a product and later subtracting it leaves rounding errors. The sums are therefore recomputed after as many slides
as the window has codes, which at most doubles the cost of a slide. They are also recomputed when codes much larger than
the rest have left the window, because their rounding errors would exceed the remaining sums.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from psmt.numerics.arrays import array_namespace, few_times, submatrix, subtract_outer
from psmt.types import Array, Ints, Mask

FALL = 1e-2
"""Sums that fall below this fraction of their peak are recomputed, because rounding errors dominate them."""


def second_difference(before: Array, middle: Array, after: Array) -> Array:
    """Return ``middle - (before + after) / 2``, which is -1/2 times the second difference of successive codes."""
    return middle - 0.5 * (before + after)


def half_stencil(end: Array, beside: Array) -> Array:
    """Return ``end - beside / 2``, the paper's second difference at an end of the window (with one neighbour)."""
    return end - 0.5 * beside


class Slide(NamedTuple):
    """What changed when a window of at least three codes slid by one code.

    The vectors are the code that arrived, the code that left, the second difference that arrived, the second difference
    that left, and the sum of the codes before the slide. A second difference that spans two series is zero, because the
    sums never contain it.
    """

    vectors: Array  # (5, n_features)
    oldest: Array  # the three oldest codes (3, n_features) before the slide
    youngest: Array  # the three youngest codes (3, n_features) after the slide


@dataclass(frozen=True)
class Sums:
    """Sums over a window's codes, for products with V (covariance) and S (second moment of second differences)."""

    products: Array  # sum of a_t a_t' (n_features, n_features)
    curvature: Array  # sum of d_t d_t' over the interior second differences
    total: Array  # sum of the codes (n_features,)
    ends: Array  # half stencils (2, n_features) at the ends of the window, or none (0, n_features)
    n: int  # number of codes

    def covariance_times(self, vectors: Array, *, centred: bool) -> Array:
        """Return V times the columns of `vectors` (n_features, k). If not `centred`, V is the codes' second moment."""
        return self._averaged(few_times(self.products, vectors), vectors, centred=centred)

    def times(self, vectors: Array, *, centred: bool) -> tuple[Array, Array]:
        """Return V and S (see `Sums`), each times the columns of `vectors` (n_features, k). S includes the `ends`."""
        rough = few_times(self.curvature, vectors)
        for end in self.ends:
            rough += end[:, None] * (end @ vectors)
        return self.covariance_times(vectors, centred=centred), rough

    def part(self, atoms: Ints) -> Sums:
        """Return a copy of the sums of some atoms (n,)."""
        products, curvature = submatrix(self.products, atoms), submatrix(self.curvature, atoms)
        return Sums(products, curvature, self.total[atoms], self.ends[:, atoms], self.n)

    def _averaged(self, images: Array, vectors: Array, *, centred: bool) -> Array:
        """Turn `images`, the sums of ``a a' x`` over the codes a, into ``V x`` in place, for all vectors x."""
        if centred:
            images = subtract_outer(images, self.total, (self.total @ vectors) / self.n)
        images /= self.n - 1 if centred else self.n
        return images


class CodeWindow(ABC):
    """Queue of codes (n_features,) with sums over them. Codes are added at the young end and removed at the old end.

    A window may hold several series, one after the other. The border between two series is called a seam, and no second
    difference is taken across it. A subclass stores the codes and updates the sums by one code at a time.
    """

    n_features: int
    total: Array
    products: Array
    curvature: Array
    uses: Ints  # number of codes (n_features,) that use each atom; rows of an unused atom are exactly zero
    peak: Array  # largest traces (2,) of `products` and `curvature` since they were computed afresh
    reverted = 0  # number of codes that have left since the sums were computed afresh
    begins: deque[bool]  # whether each code is the first of its series, oldest code first

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def codes(self) -> Array:
        """Return all codes (n, n_features), oldest first."""

    @abstractmethod
    def latest(self, count: int) -> Array:
        """Return the `count` youngest codes (count, n_features), in order of time."""

    @abstractmethod
    def oldest(self, count: int) -> Array:
        """Return a copy of the `count` oldest codes (count, n_features), or of all codes if there are fewer."""

    @property
    @abstractmethod
    def activities(self) -> Array:
        """Return the activity (sum of entries) of each code (n,), oldest first."""

    def keep(self) -> Callable[[], Any]:
        """Return a function that returns the present codes (n, n_features), even after the window has changed."""
        codes = 1.0 * self.codes
        return lambda: codes

    @property
    def n_used(self) -> int:
        """Return the number of atoms with a non-zero entry in any code of the window."""
        return int((self.uses > 0).sum())

    def used(self) -> Any:
        """Return the atoms (n_used,) that the codes of the window use."""
        return array_namespace(self.uses).nonzero(self.uses > 0)[0]

    @property
    def seams(self) -> bool:
        """Return whether the window holds parts of more than one series."""
        return any(islice(self.begins, 1, None))

    def bends_kept(self) -> Mask:
        """Return a mask (n - 2,) of the second differences whose three codes lie within one series."""
        begins = np.array(self.begins, dtype=bool)
        return np.asarray(~(begins[1:-1] | begins[2:]))

    def bends_at(self, first: int) -> bool:
        """Return whether codes ``first`` to ``first + 2`` lie within one series. Indices may count from the end."""
        return not (self.begins[first + 1] or self.begins[first + 2])

    def append(self, code: Array, *, begins: bool = False) -> None:
        """Add a code (n_features,) as the youngest. `begins` is True if it is the first code of a new series."""
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
        """Add a code and remove the oldest one. Return what changed, or None if there are fewer than three codes."""
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
        """Recompute the sums from the codes, which removes rounding errors."""
        self.reverted = 0
        self._recompute()
        self.peak[...] = self._traces()

    def ends(self) -> Array:
        """Return the half stencils ``end - beside / 2`` (2, n_features) at the oldest and at the youngest code.

        The window must hold only one series, because the paper has half stencils only at the ends of the window.
        """
        if self.seams:
            raise ValueError("half_stencils=True is for one series, and the window holds several; use False")
        old, young = self.oldest(2), self.latest(2)
        return array_namespace(old).stack([half_stencil(old[0], old[1]), half_stencil(young[1], young[0])])

    @abstractmethod
    def sums(self, *, half_stencils: bool) -> Sums:
        """Return the sums over the codes, with or without the half stencils at the ends (see `half_stencil`)."""

    def _traces(self) -> Array:
        xp = array_namespace(self.products)
        return xp.stack([xp.linalg.trace(self.products), xp.linalg.trace(self.curvature)])

    @abstractmethod
    def _enter(self, code: Array) -> None:
        """Store a code as the youngest. Add the code, and the second difference that it completes, to the sums."""

    @abstractmethod
    def _leave(self) -> None:
        """Remove the oldest code. Subtract it and the second difference that begins with it. Add 1 to `reverted`."""

    @abstractmethod
    def _recompute(self) -> None:
        """Compute all sums from the codes, in place."""


def slide_vectors(oldest: Array, youngest: Array, total: Array, *, arrives: bool = True, leaves: bool = True) -> Array:
    """Return the vectors (5, n_features) of a `Slide`, given three codes at each end and the sum before the slide.

    `arrives` (`leaves`) says whether the second difference that arrives (leaves) lies within one series.
    """
    gone, second, third = oldest
    before, last, arrived = youngest
    bends = arrives * second_difference(before, last, arrived), leaves * second_difference(gone, second, third)
    return array_namespace(total).stack([arrived, gone, *bends, total])
