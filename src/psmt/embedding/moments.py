"""The sliding window of codes and its moments (step 4 of the paper).

The embedding needs two matrices of the latest H codes: their covariance V and the second moment S of their second
differences. Both are sums over time, so a slide by one code changes them by a few outer products of sparse vectors. An
engine updates the sums, and this module computes V and S from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from psmt.engines import engine_for
from psmt.engines.contract import Engine, LowRankChange
from psmt.engines.window import Slide, Sums, half_stencil
from psmt.numerics.arrays import array_namespace, positive_or_one, robust_peak, subtract_outer
from psmt.persistence.schema import LARGEST_SQUARE, Field, Size, State, counter
from psmt.types import Array, Mask

ROUNDING = 1e-6  # largest relative difference between updated sums and those computed afresh
_SUMS = ("products", "curvature", "total", "peak")  # arrays of a window that are saved beside its codes
_CANCELS = 1e5  # ratio of a mean square to the usual variance from which V is computed about the mean, not from sums
CONSTANT = 1e-12  # an atom whose variance is below this fraction of its mean square is constant, but for rounding
CODING_NOISE = 1e-16  # the same where V is computed about the mean: codes of equal frames differ by some 1e-9


def covariance_of(sums: Sums, *, centred: bool) -> Array:
    """Return V (n_features, n_features), the covariance of the codes.

    If `centred` is False, V is their second moment about zero.
    """
    xp, n = array_namespace(sums.total), sums.n
    if not centred:
        return sums.products / n
    covariance = subtract_outer(1.0 * sums.products, sums.total, sums.total / n)
    covariance /= n - 1
    constant = xp.linalg.diagonal(covariance) <= CONSTANT * xp.linalg.diagonal(sums.products) / n
    if bool(xp.any(constant)):
        covariance[constant] = 0.0
        covariance[:, constant] = 0.0
    return covariance


def second_moment_of_differences(sums: Sums) -> Array:
    """Return the second moment S (n_features, n_features) of the second differences, ``A D D' A'`` in the paper."""
    moment = sums.curvature
    for end in sums.ends:
        moment = moment + end[:, None] * end
    return moment


def variances_of(squares: Array, total: Array, n: int, *, centred: bool) -> Array:
    """Return the variance of each atom (n_features,), given the sum of n codes and the sum of their squares."""
    if not centred:
        return squares / n
    variances = (squares - total * (total / n)) / (n - 1)
    return array_namespace(squares).where(variances <= CONSTANT * squares / n, 0.0, variances)


def change_weights(n: int, *, centred: bool, half_stencils: bool) -> tuple[Array, Array]:
    """A slide of a window of n codes adds k outer products to V and S. Return their weights (k,) in V, and in S."""
    curvature = [0.0, 0.0, 1.0, -1.0] + [1.0, -1.0, 1.0, -1.0] * half_stencils
    covariance = np.zeros(len(curvature))
    covariance[:2] = (n / (n + 1) / (n - 1), -(n + 1) / n / (n - 1)) if centred else (1.0 / n, -1.0 / n)
    return covariance, np.array(curvature)


class WindowMoments:
    """Codes of a sliding window, and their moments V and S.

    `update` adds a code, `revert` removes the oldest code, and `slide` does both. The `engine` stores the codes and
    their sums in `window`; None selects the CPU. `changes` counts the changes of the window.

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

    def __init__(self, n_features: int, engine: Engine | None = None) -> None:
        self.engine = engine_for("cpu") if engine is None else engine
        self.changes = 0
        self._begin(self.engine.array(np.empty((0, n_features))))

    @classmethod
    def of(cls, codes: Any, engine: Engine | None = None, *, begins: Mask | None = None) -> Self:
        """Return the moments of a whole window of codes (time, n_features), which may be sparse.

        `begins` (time,) marks the first code of each series. No second difference crosses a boundary of series.
        """
        moments = cls(0, engine)
        own = moments.engine
        if not issparse(codes):
            codes = own.array(codes)
        elif own.device != "cpu":  # only the engine of the CPU stores sparse codes
            codes = own.dense(codes)
        moments._begin(codes, begins)
        return moments

    def _begin(self, codes: Array, begins: Mask | None = None) -> None:
        self.n_features = codes.shape[1]
        self.window = self.engine.code_window(codes, begins)
        self._slide: Slide | None = None
        self._weights: dict[tuple[int, bool, bool], tuple[Array, Array]] = {}

    def __len__(self) -> int:
        return len(self.window)

    # Changes

    def update(self, code: Array, *, begins: bool = False) -> None:
        """Add a code (n_features,) as the latest. If `begins` is True, it is the first of another series."""
        self._slide = None
        self.changes += 1
        self.window.append(code, begins=begins)

    def revert(self) -> None:
        """Remove the oldest code."""
        if not len(self):
            raise ValueError("the window is empty: there is no code to remove")
        self._slide = None
        self.changes += 1
        self.window.popleft()

    def slide(self, code: Array, *, begins: bool = False) -> None:
        """Remove the oldest code and add a code (n_features,). If `begins` is True, it is the first of a series."""
        self._slide = self.window.slide(code, begins=begins)
        self.changes += 1

    def keep(self) -> Callable[[], WindowMoments]:
        """Return a function that returns these moments as they are now, even if it is called after later changes."""
        codes, begins, changes = self.window.keep(), self.begins, self.changes

        def kept() -> WindowMoments:
            moments = WindowMoments.of(codes(), self.engine, begins=begins)
            moments.changes = changes
            return moments

        return kept

    def last_change(self, since: int, *, centred: bool = True, half_stencils: bool = False) -> LowRankChange | None:
        """Return how the last slide changed the matrices V and S, or None if that is not known.

        It is known if this slide is the only change of the window since the attribute `changes` was equal to `since`.
        """
        if self._slide is None or self.changes != since + 1:
            return None
        key = len(self), centred, half_stencils
        if key not in self._weights:  # kept, so that they go to the device only once
            covariance, curvature = change_weights(len(self), centred=centred, half_stencils=half_stencils)
            self._weights = {key: (self.engine.array(covariance), self.engine.array(curvature))}
        vectors, oldest, youngest = self._slide
        xp, n = array_namespace(vectors), len(self)
        arrived, gone, *bends, total = vectors
        if centred:  # subtract the mean of all other codes that were in the window then
            arrived, gone = arrived - total / n, gone - (total + arrived) / (n + 1)
        if half_stencils:
            first, second, third = oldest
            before, last, latest = youngest
            ends = [(latest, last), (last, before), (second, third), (first, second)]
            bends += [half_stencil(*pair) for pair in ends]
        return LowRankChange(xp.stack([arrived, gone, *bends]), *self._weights[key])

    # Contents

    @property
    def codes(self) -> Array:
        """Return the codes of the window (time, n_features), oldest first."""
        return self.window.codes

    @property
    def begins(self) -> Mask:
        """Return a mask (time,) of the codes that begin a series, oldest code first."""
        return np.array(self.window.begins, dtype=bool)

    def latest(self, count: int) -> Array:
        """Return the latest codes (count, n_features), oldest first."""
        return self.window.latest(count)

    @property
    def peak_activity(self) -> Array:
        """Return the largest sum of a code in the window, with outliers clipped. An empty window gives zero."""
        return robust_peak(self.window.activities)

    @property
    def total(self) -> Array:
        """Return the sum of the codes (n_features,)."""
        return self.window.total

    def covariance(self, *, centred: bool = True) -> Array:
        """Return V (n_features, n_features). It is the codes' covariance, or their second moment if not `centred`."""
        if not centred or not self.cancels():
            return covariance_of(self.window.sums(half_stencils=False), centred=centred)
        xp, codes = array_namespace(self.window.total), self.codes
        codes = codes - self.total / len(codes)
        codes = codes - xp.sum(codes, axis=0) / len(codes)  # the first mean is rounded
        covariance: Array = codes.T @ codes / (len(codes) - 1)
        constant = xp.linalg.diagonal(covariance) <= CODING_NOISE * xp.linalg.diagonal(self.window.products) / len(
            codes
        )
        covariance[constant] = 0.0
        covariance[:, constant] = 0.0
        return covariance

    def cancels(self) -> bool:
        """Return whether V, which is a difference of sums, loses too many digits because codes are far from zero."""
        sums = self.window.sums(half_stencils=False)
        xp, n = array_namespace(sums.total), max(sums.n, 2)
        squares = xp.linalg.diagonal(sums.products)
        variances = variances_of(squares, sums.total, n, centred=True)
        usual = xp.sum(variances**2) / positive_or_one(xp.sum(variances))
        return bool(xp.any(squares > n * _CANCELS * usual))

    def second_differences(self, *, half_stencils: bool = False) -> Array:
        """Return S (n_features, n_features), the second moment of the second differences of the window's codes.

        The paper adds a half stencil at each end of the window: the end code minus half of its neighbour. These two
        terms are included only if `half_stencils` is True.
        """
        return second_moment_of_differences(self.window.sums(half_stencils=half_stencils))

    # State

    def get_state(self) -> State:
        """Return all codes and sums as NumPy arrays.

        The sums are included because sums computed again from the codes would have other rounding errors. With them, a
        restored window gives exactly the same results.
        """
        window, numpy = self.window, self.engine.numpy
        arrays = {name: numpy(getattr(window, name)) for name in ("codes", *_SUMS)}
        return {**arrays, "reverted": np.array(window.reverted), "begins": self.begins.astype(np.int8)}

    @staticmethod
    def schema(n_codes: Size, n_features: Size) -> dict[str, Field]:
        """Return the shapes and bounds that the saved arrays must have, for a window of `n_codes` codes."""
        matrix = Field((n_features, n_features), low=-LARGEST_SQUARE, high=LARGEST_SQUARE)
        return {
            "codes": Field((n_codes, n_features), low=0.0),
            "products": matrix,
            "curvature": matrix,
            "total": Field((n_features,)),
            "peak": Field((2,), low=0.0, high=LARGEST_SQUARE),
            "reverted": counter(),
            "begins": Field((n_codes,), "int8", 0, 1, group="seams"),
        }

    def set_state(self, state: Mapping[str, NDArray[Any]], /) -> Self:
        """Restore exactly the codes and sums that `get_state` returned."""
        self._begin(self.engine.array(state["codes"]), state["begins"].astype(bool) if "begins" in state else None)
        made = self.get_state()
        for name in ("products", "curvature", "total"):
            size = np.abs(made["products" if name == "curvature" else name]).max(initial=0.0)
            if state[name].shape != made[name].shape or np.abs(state[name] - made[name]).max() > ROUNDING * size:
                raise ValueError(f"moments.{name} differs from the sum over the codes")
        if np.any(state["peak"] < (1.0 - ROUNDING) * made["peak"]):
            raise ValueError("moments.peak is smaller than the present sums of the codes")
        window, array = self.window, self.engine.array
        for name in _SUMS:
            getattr(window, name)[...] = array(state[name])
        window.reverted = int(state["reverted"])
        return self
