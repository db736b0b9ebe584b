"""The sliding window of codes and its moments (step 4 of the paper).

The embedding needs two matrices of the latest H codes: their covariance V and the moment of their second differences
S. Both are sums over time, so a window that slides by one code changes them by a few outer products of sparse vectors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psmt.engines.numba.sparse_codes import SparseCodes

Array = NDArray[np.float64]

FALL = 1e-2
"""Sums that have fallen below this fraction of their peak are made afresh: what is left of the peak is rounding."""

STILL = 1e-12
"""An atom whose variance is below this fraction of its mean square stands still: the difference is rounding."""

_ENTRY = 15
"""What an entry of a sparse code costs in a product, in entries of a dense matrix."""


class Change(NamedTuple):
    """What a slide did to V and S, as ``vectors' weights vectors``, in arrays of any kind.

    The first vector is the code that arrived, the second the one that is gone. Where V is centred, the last is the sum
    of the codes before the slide. All but that one are sparse.
    """

    vectors: Any
    """(n, n_features)"""
    covariance: Any
    """Weights (n, n) of V."""
    curvature: Any
    """Weights (n, n) of S."""


class Slide(NamedTuple):
    """A slide of a window, in arrays of any kind."""

    oldest: Sequence[Any]
    """The three oldest codes before it."""
    youngest: Sequence[Any]
    """The three youngest codes after it."""
    total: Any
    """The sum of the codes before it."""

    def vectors(self, *, centred: bool, ends: bool) -> list[Any]:
        """The vectors of its `Change`."""
        gone, second, third = self.oldest
        before, last, arrived = self.youngest
        vectors = [arrived, gone, _bend(before, last, arrived), _bend(gone, second, third)]
        if ends:
            vectors += [_end_bend(arrived, last), _end_bend(last, before)]
            vectors += [_end_bend(second, third), _end_bend(gone, second)]
        return [*vectors, self.total] if centred else vectors


@lru_cache
def change_weights(n: int, *, centred: bool, ends: bool) -> tuple[Array, Array]:
    """Weights of V and of S in the `Change` by a slide of a window of n codes."""
    curvature = [0.0, 0.0, 1.0, -1.0] + [1.0, -1.0, 1.0, -1.0] * ends + [0.0] * centred
    step = np.zeros(len(curvature))
    step[[0, 1]] = 1.0, -1.0
    covariance = np.diag(step)
    if centred:
        covariance -= np.outer(step, step) / n
        covariance[-1] -= step / n
        covariance[:, -1] -= step / n
    return covariance / (n - centred), np.diag(curvature)


def _bend(before: Any, middle: Any, after: Any) -> Any:
    return middle - 0.5 * (before + after)


def _end_bend(end: Any, beside: Any) -> Any:
    return end - 0.5 * beside


def _bends(rows: Array, *, ends: bool) -> Array:
    """Second differences (n, ..) of rows (n, ..); those of the first and the last are zero, or half stencils."""
    bends = np.zeros_like(rows)
    bends[1:-1] = _bend(rows[:-2], rows[1:-1], rows[2:])
    if ends:
        bends[0], bends[-1] = _end_bend(rows[0], rows[1]), _end_bend(rows[-1], rows[-2])
    return bends


class SlidingWindow(ABC):
    """A window that counts its changes and remembers the last of them, if it was a slide."""

    def __init__(self) -> None:
        self.changes = 0
        self._slide: Slide | None = None

    @abstractmethod
    def __len__(self) -> int: ...

    def update(self, code: Any) -> None:
        """Take in the code (n_features,) that follows the youngest."""
        self._slide = None
        self.changes += 1
        self._take(code)

    def revert(self) -> None:
        """Let go of the oldest code."""
        if not len(self):
            raise ValueError("the window is empty: there is no code to let go of")
        self._slide = None
        self.changes += 1
        self._release()

    def slide(self, code: Any) -> None:
        """Take in the code (n_features,) that follows the youngest and let go of the oldest: what changed is kept."""
        oldest, total = self._oldest(), 1.0 * self.total
        self._take(code)
        self._release()
        self.changes += 1
        self._slide = Slide(oldest, self._youngest(), total) if len(self) >= 3 else None

    def last_change(self, since: int, *, centred: bool = True, ends: bool = False) -> Change | None:
        """What the last slide did, if it is all that happened since there had been so many `changes`, else None."""
        if self._slide is None or self.changes != since + 1:
            return None
        return self._change(self._slide.vectors(centred=centred, ends=ends), centred=centred, ends=ends)

    total: Any
    """Sum of the codes (n_features,)."""

    @abstractmethod
    def _take(self, code: Any) -> None: ...

    @abstractmethod
    def _release(self) -> None: ...

    @abstractmethod
    def _oldest(self) -> Sequence[Any]:
        """Up to three codes, kept as they are now."""

    @abstractmethod
    def _youngest(self) -> Sequence[Any]: ...

    @abstractmethod
    def _change(self, vectors: list[Any], *, centred: bool, ends: bool) -> Change: ...


class WindowMoments(SlidingWindow):
    """Codes of a window that grows at its young end (`update`), shrinks at its old end (`revert`), or does both.

    Parameters
    ----------
    n_features : int
        Length of a code, M of the paper.

    Attributes
    ----------
    total : (n_features,) array
        Sum of the codes.
    products : (n_features, n_features) array
        Sum of ``a_t a_t'``.
    curvature : (n_features, n_features) array
        Sum of ``d_t d_t'`` over the interior second differences ``d_t = a_t - (a_(t-1) + a_(t+1)) / 2``.
    uses : (n_features,) array
        How many codes of the window use each atom. Rows of an unused atom are exactly zero.
    changes : int
        How often the window has changed.

    Notes
    -----
    Adding and later subtracting the same product leaves rounding behind. It is kept below that of one window's worth
    of slides: after as many reverts as the window has codes, the sums are made afresh, which costs as much as those
    slides did. So they are when a lively stretch has left the window, whose rounding would drown the calm that follows.

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.abs(np.random.default_rng(0).standard_normal((50, 4)))
    >>> moments = WindowMoments.of(codes[:40])
    >>> for code in codes[40:]:
    ...     moments.slide(code)
    >>> bool(np.allclose(moments.covariance(), np.cov(codes[10:].T)))
    True
    """

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.n_features = n_features
        self._codes = SparseCodes(n_features)
        self._activity: deque[float] = deque()
        self._reverted = 0
        self._peak: Array = np.zeros(2)
        self._clear()

    @classmethod
    def of(cls, codes: ArrayLike) -> Self:
        """Moments of a whole window of codes (time, n_features) at once."""
        codes = np.array(codes, dtype=np.float64)
        moments = cls(codes.shape[1])
        moments._codes = SparseCodes.of(codes)
        moments._activity.extend(codes.sum(axis=1).tolist())
        moments._refresh()
        return moments

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def codes(self) -> Array:
        """The window (time, n_features), oldest first."""
        return self._codes.matrix.toarray()

    def latest(self, count: int) -> Array:
        """The youngest codes (count, n_features), oldest first."""
        return np.array([self._codes[i] for i in range(-count, 0)])

    @property
    def peak_activity(self) -> float:
        """Largest sum of a code in the window."""
        return max(self._activity, default=0.0)

    def covariance(self, *, centred: bool = True) -> Array:
        """V (n_features, n_features): `np.cov` of the window, or the second moment about zero."""
        n = len(self)
        if not centred:
            return self.products / n
        covariance = (self.products - np.outer(self.total, self.total / n)) / (n - 1)
        still = np.diag(covariance) <= STILL * np.diag(self.products) / n
        covariance[still] = 0.0
        covariance[:, still] = 0.0
        return covariance

    def second_differences(self, *, ends: bool = False) -> Array:
        """S (n_features, n_features): ``A D D' A'`` of the paper, with its half stencils at both ends or without."""
        if not ends:
            return self.curvature
        first, last = self._end_bends()
        return self.curvature + np.outer(first, first) + np.outer(last, last)

    def variances(self, *, centred: bool = True) -> Array:
        """Diagonal (n_features,) of V."""
        n, squares = len(self), np.diag(self.products)
        return (squares - self.total * (self.total / n)) / (n - 1) if centred else squares / n

    def covariance_times(self, vectors: Array, *, centred: bool = True) -> Array:
        """V times the columns of `vectors` (n_features, n), without making V."""
        n = len(self)
        if self._is_sparse:
            products = self._codes.transposed_times(self._codes.times(vectors))
        else:
            products = self.products @ vectors
        if not centred:
            return products / n
        products -= np.outer(self.total, (self.total @ vectors) / n)
        products /= n - 1
        return products

    def second_differences_times(self, vectors: Array, *, ends: bool = False) -> Array:
        """S times the columns of `vectors` (n_features, n)."""
        if self._is_sparse:
            bends = _bends(self._codes.times(vectors), ends=ends)
            return self._codes.transposed_times(_bends(bends, ends=True))
        products = self.curvature @ vectors
        if ends:
            for bend in self._end_bends():
                products += np.outer(bend, bend @ vectors)
        return products

    @property
    def _is_sparse(self) -> bool:
        """Whether a product with all codes and back costs less than one with the dense sums of them."""
        return len(self) >= 3 and _ENTRY * self._codes.n_entries < self.n_features**2

    def _end_bends(self) -> tuple[Array, Array]:
        return _end_bend(self._codes[0], self._codes[1]), _end_bend(self._codes[-1], self._codes[-2])

    @property
    def state(self) -> dict[str, Array]:
        """Everything as arrays, rounding included, so that a copy goes on exactly alike."""
        return {
            "codes": self.codes,
            "products": self.products,
            "curvature": self.curvature,
            "total": self.total,
            "peak": self._peak,
            "reverted": np.array(self._reverted),
        }

    @classmethod
    def from_state(cls, state: dict[str, Array]) -> Self:
        """The object that `state` was taken from."""
        codes = state["codes"]
        moments = cls.of(codes)
        for name, own in moments.state.items():
            if state[name].shape != own.shape:
                raise ValueError(f"{name} has shape {state[name].shape}, but codes have {codes.shape[1]} features")
        moments.products, moments.curvature = state["products"], state["curvature"]
        moments.total, moments._peak = state["total"], state["peak"]
        moments._reverted = int(state["reverted"])
        return moments

    def _oldest(self) -> list[Array]:
        return [self._codes[i] for i in range(min(3, len(self)))]

    def _youngest(self) -> list[Array]:
        return [self._codes[i] for i in (-3, -2, -1)]

    def _change(self, vectors: list[Array], *, centred: bool, ends: bool) -> Change:
        return Change(np.array(vectors), *change_weights(len(self), centred=centred, ends=ends))

    def _take(self, code: ArrayLike) -> None:
        code = np.array(code, dtype=np.float64)
        self._codes.append(code)
        self._activity.append(float(code.sum()))
        self._count(code, 1)
        if len(self) >= 3:
            self._curve(-3, 1.0)
        self._peak = np.maximum(self._peak, self._energy())

    def _release(self) -> None:
        if len(self) >= 3:
            self._curve(0, -1.0)
        self._count(self._codes[0], -1)
        self._codes.popleft()
        self._activity.popleft()
        self._reverted += 1
        if self._reverted >= max(len(self), 1) or (self._energy() < FALL * self._peak).any():
            self._refresh()

    def _clear(self) -> None:
        shape = (self.n_features, self.n_features)
        self.total = np.zeros(self.n_features)
        self.products = np.zeros(shape)
        self.curvature = np.zeros(shape)
        self.uses = np.zeros(self.n_features, dtype=np.int64)
        self._peak = np.zeros(2)

    def _energy(self) -> Array:
        """Size of the two sums of products."""
        return np.array([self.products.trace(), self.curvature.trace()])

    def _refresh(self) -> None:
        self._clear()
        self._reverted = 0
        # Sparse products: a code uses few atoms, and entries of unused ones stay exactly zero.
        codes = self._codes.matrix
        self.total = np.asarray(codes.sum(axis=0))
        self.uses = np.bincount(codes.indices, minlength=self.n_features)
        self.products = (codes.T @ codes).toarray()
        bends = codes[1:-1] - 0.5 * (codes[:-2] + codes[2:])
        self.curvature = (bends.T @ bends).toarray()
        self._peak = self._energy()

    def _count(self, code: Array, sign: int) -> None:
        active = np.flatnonzero(code)
        values = code[active]
        self.total[active] += sign * values
        self.products[active[:, None], active] += sign * np.outer(values, values)
        self.uses[active] += sign
        gone = active[self.uses[active] == 0]
        self.total[gone] = 0.0
        for matrix in (self.products, self.curvature):
            matrix[gone] = 0.0
            matrix[:, gone] = 0.0

    def _curve(self, at: int, sign: float) -> None:
        bend = _bend(*(self._codes[at + i] for i in range(3)))
        active = np.flatnonzero(bend)
        self.curvature[active[:, None], active] += sign * np.outer(bend[active], bend[active])
