"""The sliding window of codes and its moments (step 4 of the paper).

The embedding needs two matrices of the latest H codes: their covariance V and the moment of their second differences
S. Both are sums over time, so a window that slides by one code changes them by a few outer products of sparse vectors.
An engine updates the sums; this module turns them into V and S.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from psmt.engines import engine_for
from psmt.engines.contract import Engine, LowRankChange
from psmt.engines.window import Slide, Sums, half_stencil
from psmt.numerics.arrays import array_namespace, robust_peak, subtract_outer
from psmt.persistence.schema import LARGEST_SQUARE, Field, Size, State, counter
from psmt.types import Array, Mask

ROUNDING = 1e-6  # largest relative difference between updated sums and those computed afresh
_SUMS = ("products", "curvature", "total", "peak")  # arrays of a window that are saved beside its codes
CONSTANT = 1e-12  # an atom whose variance is below this fraction of its mean square is constant, but for rounding


def covariance_of(sums: Sums, *, centred: bool) -> Array:
    """V (n_features, n_features): `np.cov` of the window, or the second moment about zero."""
    xp, n = array_namespace(sums.total), sums.n
    if not centred:
        return sums.products / n
    covariance = (sums.products - sums.total[:, None] * (sums.total / n)) / (n - 1)
    constant = xp.linalg.diagonal(covariance) <= CONSTANT * xp.linalg.diagonal(sums.products) / n
    if bool(xp.any(constant)):
        covariance[constant] = 0.0
        covariance[:, constant] = 0.0
    return covariance


def second_moment_of_differences(sums: Sums) -> Array:
    """S (n_features, n_features): ``A D D' A'`` of the paper."""
    moment = sums.curvature
    for end in sums.ends:
        moment = moment + end[:, None] * end
    return moment


def variances_of(squares: Array, total: Array, n: int, *, centred: bool) -> Array:
    """Diagonal (n_features,) of V, given that of the products and the sum of n codes."""
    if not centred:
        return squares / n
    variances = (squares - total * (total / n)) / (n - 1)
    return array_namespace(squares).where(variances <= CONSTANT * squares / n, 0.0, variances)


def covariance_times(sums: Sums, vectors: Array, *, centred: bool) -> Array:
    """V times the columns of `vectors` (n_features, k), without forming V."""
    n, images = sums.n, sums.products_times(vectors)
    if not centred:
        return images / n
    images = subtract_outer(images, sums.total, (sums.total @ vectors) / n)
    images /= n - 1
    return images


def change_weights(n: int, *, centred: bool, half_stencils: bool) -> tuple[Array, Array]:
    """Weights of V and of S in the `LowRankChange` of a slide of a window of n codes."""
    curvature = [0.0, 0.0, 1.0, -1.0] + [1.0, -1.0, 1.0, -1.0] * half_stencils
    covariance = np.zeros(len(curvature))
    covariance[:2] = (n / (n + 1) / (n - 1), -(n + 1) / n / (n - 1)) if centred else (1.0 / n, -1.0 / n)
    return covariance, np.array(curvature)


class WindowMoments:
    """Codes of a window that grows at its young end (`update`), shrinks at its old end (`revert`), or does both.

    The `engine` stores the codes and their sums as `window`; None is the engine of the CPU. `changes` is the number of
    changes so far.

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
        """Moments of a whole window of codes (time, n_features), which may be sparse.

        `begins` (time,) marks the first code of a series: second differences do not reach across the seam before it.
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
        """Add the code (n_features,) that follows the youngest, or `begins` another series."""
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
        """Add the code (n_features,) that follows the youngest, or `begins` another series, and remove the oldest."""
        self._slide = self.window.slide(code, begins=begins)
        self.changes += 1

    def last_change(self, since: int, *, centred: bool = True, half_stencils: bool = False) -> LowRankChange | None:
        """Change by the last slide, or None if anything else happened after the first `since` changes."""
        if self._slide is None or self.changes != since + 1:
            return None
        key = len(self), centred, half_stencils
        if key not in self._weights:  # they go to the device once, not at every slide
            covariance, curvature = change_weights(len(self), centred=centred, half_stencils=half_stencils)
            self._weights = {key: (self.engine.array(covariance), self.engine.array(curvature))}
        vectors, oldest, youngest = self._slide
        xp, n = array_namespace(vectors), len(self)
        arrived, gone, *bends, total = vectors
        if centred:  # about the mean of all other codes in the window at that time
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
        """The window (time, n_features), oldest first."""
        return self.window.codes

    @property
    def begins(self) -> Mask:
        """Whether each code (time,) is the first of its series, oldest first."""
        return np.array(self.window.begins, dtype=bool)

    def latest(self, count: int) -> Array:
        """The youngest codes (count, n_features), oldest first."""
        return self.window.latest(count)

    @property
    def peak_activity(self) -> Array:
        """Largest sum () of a code in the window, with outliers clipped (see `robust_peak`); zero if it is empty."""
        return robust_peak(self.window.activities)

    @property
    def total(self) -> Array:
        """Sum of the codes (n_features,)."""
        return self.window.total

    def covariance(self, *, centred: bool = True) -> Array:
        """V (n_features, n_features): `np.cov` of the window, or the second moment about zero."""
        return covariance_of(self.window.sums(half_stencils=False), centred=centred)

    def second_differences(self, *, half_stencils: bool = False) -> Array:
        """S (n_features, n_features): ``A D D' A'`` of the paper, with or without half stencils at both ends."""
        return second_moment_of_differences(self.window.sums(half_stencils=half_stencils))

    # State

    def get_state(self) -> State:
        """Return all codes and sums as NumPy arrays, rounding included, so that a copy continues exactly alike."""
        window, numpy = self.window, self.engine.numpy
        arrays = {name: numpy(getattr(window, name)) for name in ("codes", *_SUMS)}
        return {**arrays, "reverted": np.array(window.reverted), "begins": self.begins.astype(np.int8)}

    @staticmethod
    def schema(n_codes: Size, n_features: Size) -> dict[str, Field]:
        """Declaration of the state of a window of `n_codes` codes."""
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
        """Continue from a state that `get_state` returned: its codes, and its sums with their rounding."""
        self._begin(self.engine.array(state["codes"]), state["begins"].astype(bool) if "begins" in state else None)
        made = self.get_state()
        for name in ("products", "curvature", "total"):
            size = np.abs(made["products" if name == "curvature" else name]).max(initial=0.0)
            if state[name].shape != made[name].shape or np.abs(state[name] - made[name]).max() > ROUNDING * size:
                raise ValueError(f"moments.{name} is not that of the codes")
        if np.any(state["peak"] < (1.0 - ROUNDING) * made["peak"]):
            raise ValueError("moments.peak is below what the codes have")
        window, array = self.window, self.engine.array
        for name in _SUMS:
            getattr(window, name)[...] = array(state[name])
        window.reverted = int(state["reverted"])
        return self
