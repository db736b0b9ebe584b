"""The engine contract: every engine provides array conversions and the most expensive operations."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, Self, TypeVar, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from psmt.engines.frame_kernels import FrameKernels
from psmt.engines.window import CodeWindow
from psmt.types import AnyArray, Array, Mask

E = TypeVar("E", bound="Engine")
Work = TypeVar("Work", bound=Callable[..., tuple[object, ...]])


class LassoResult(NamedTuple):
    """Coefficients of non-negative lassos, and their duality gaps (upper bounds on the error of the objective)."""

    coef: Array
    gap: Array | float


class Bound(NamedTuple):
    """Constraint of n lassos: the sum of the coefficients, weighted by `worth`, is at most `limit`."""

    worth: Array  # weights (n_columns,) of the coefficients, >= 0
    limit: Array  # largest weighted sum (n,) of each problem


class LowRankChange(NamedTuple):
    """Low-rank change of the codes' covariance V, and of the second moment S of the codes' second differences.

    Both changes are sums of ``weight v v'`` over the same vectors v, with different weights. When a window slides, the
    first vector is the code that arrived and the second is the code that left. If V is centred, the mean of the other
    codes of the window is subtracted from these two. All other vectors have the weight zero in the change of V.
    """

    vectors: Array  # (n, n_features)
    covariance: Array  # weights (n,) of V
    curvature: Array  # weights (n,) of S


class Resident(ABC):
    """Argument of a captured function (`Engine.capture`) that holds several arrays.

    A call of the captured function copies some of these arrays. It uses the other arrays, called resident, in place.
    """

    @abstractmethod
    def parts(self) -> tuple[tuple[AnyArray, ...], tuple[AnyArray, ...], tuple[Hashable, ...]]:
        """Return the arrays to copy, the resident arrays (which a call may change in place), and the constants."""

    @abstractmethod
    def with_arrays(self, copied: tuple[AnyArray, ...], resident: tuple[AnyArray, ...], /) -> Self:
        """Return an object like this one that holds the given arrays, which must have the same shapes."""


class ResidentArrays(tuple[AnyArray, ...], Resident):
    """Tuple of arrays that a captured function (`Engine.capture`) uses in place, without copying them."""

    def parts(self) -> tuple[tuple[()], tuple[AnyArray, ...], tuple[()]]:  # noqa: D102
        return (), tuple(self), ()

    def with_arrays(self, _copied: tuple[AnyArray, ...], resident: tuple[AnyArray, ...], /) -> Self:  # noqa: D102
        return type(self)(resident)


class InverseOperator(Protocol):
    """Inverse (n_features, n_features) of a complex symmetric matrix. Low-rank changes can update it."""

    def times(self, vectors: Array) -> Array:
        """Return the product (n_features, n) of the inverse with a real matrix `vectors` (n_features, n)."""

    def subtract(self, left: Array, right: Array) -> None:
        """Subtract the symmetric product ``left right'`` of two matrices (n_features, n) from the inverse."""

    def refactorise(self, matrix: Array) -> None:
        """Replace the stored inverse by the inverse of a new matrix (n_features, n_features)."""


class Engine(Protocol):
    """All operations of one device in one precision. Engines are hashable."""

    device: str  # the name that `engine_for` takes
    captures: bool  # whether `capture` records work; if so, no step may read a result on the host
    linalg_errors: tuple[type[Exception], ...]  # raised for a matrix that is not positive definite or not finite

    def __hash__(self) -> int: ...

    @property
    def frames(self) -> FrameKernels:
        """Operations on whole frames, in float32."""

    # Arrays

    def array(self, values: ArrayLike) -> Array:
        """Return the values as a float64 array on this engine's device."""

    def numpy(self, values: Array) -> NDArray[np.float64]:
        """Return an array of this engine as a NumPy array."""

    def dense(self, values: csr_array) -> Array:
        """Return a sparse matrix as a dense float64 array of this engine. Only non-zero values are transferred."""

    def sparse(self, values: Array) -> csr_array:
        """Return an array of this engine as a SciPy sparse matrix. Only non-zero values are transferred."""

    def solver_array(self, values: Array) -> Array:
        """Return an array of this engine in the precision of the lasso solver, float32 or float64."""

    # Non-negative lassos: min 1/2 ||x - sum_j a_j d_j||^2 + sum_j penalty_j a_j over a >= 0, to a duality gap of
    # tol ||x||^2 / 2. Columns d_j, one per row, have unit norm or are zero. Coefficients are float64.

    def solve_many(
        self,
        columns: Array,
        targets: Array,
        penalty: Array | float,
        *,
        tol: float,
        norms: Array | None = None,
        gram: Array | None = None,
    ) -> Array:
        """Return lasso coefficients (n, n_columns) of targets (n, n_features). `norms`, if given, divide them."""

    def solve_next(
        self, columns: Array, target: Array, penalty: Array, *, tol: float, start: Array, gram: Array
    ) -> Array:
        """Return the lasso coefficients (n_columns,) of one target. The search begins at the support of `start`."""

    def solve_bounded(
        self, columns: Array, targets: Array, penalty: Array, bound: Bound, *, tol: float, start: Array
    ) -> Array:
        """Return the lasso coefficients (n, n_columns) of targets (n, n_features), with a bound on their weighted sums.

        All columns of a problem have the same penalty. `penalty` is (n,), or (1,) if it is the same for all problems.
        The search begins with the non-zero entries of `start` (n, n_columns).
        """

    # Dictionary learning

    def add_codes(self, codes: Array, samples: Array, kept: float, code_code: Array, code_sample: Array) -> None:
        """Scale `code_code` and `code_sample` by `kept`, then add ``a a'`` and ``a x'`` of each code a and sample x."""

    def sweep_atoms(self, atoms: Array, code_code: Array, code_sample: Array, used: Mask) -> None:
        """Improve unit-norm atoms in place, by a sweep of block-coordinate descent over those in the mask `used`."""

    # Low-rank updates

    def code_window(self, codes: Array, begins: Mask | None = None) -> CodeWindow:
        """Return the window of codes (n, n_features). The mask `begins` (n,) marks the first code of each series."""

    def inverse(self, matrix: Array) -> InverseOperator:
        """Return the inverse of a complex symmetric matrix (n_features, n_features)."""

    # How work is carried out

    def capture(self, work: Work) -> Work:
        """Return a function that runs `work` as one GPU launch (a CUDA graph), or `work` itself on a CPU."""

    def small_work(self) -> AbstractContextManager[object]:
        """Return a context manager that sets the number of threads that is fastest for small matrices."""


def check_engine(engine: E) -> E:
    """Return the engine. Raise TypeError if it lacks a kernel, or if a kernel lacks an argument or type hint."""
    name = type(engine).__name__
    for attribute in Engine.__annotations__:
        if not hasattr(engine, attribute):
            raise TypeError(
                f"{name} has no {attribute}, which every engine must have; see psmt.engines.contract.Engine"
            )
    for given, contract in ((engine, Engine), (getattr(engine, "frames", None), FrameKernels)):
        _check_kernels(given, contract)
    return engine


def _check_kernels(given: object, contract: type) -> None:
    name, wanted_by = type(given).__name__, f"{contract.__module__}.{contract.__name__}"
    for method, wanted in inspect.getmembers(contract, inspect.isfunction):
        if method.startswith("_"):
            continue
        own = getattr(given, method, None)
        if not callable(own) or getattr(own, "__func__", own) is wanted:  # the contract's own method does nothing
            raise TypeError(f"{name} has no kernel {method}; see {wanted_by}.{method}")
        expected, taken = list(inspect.signature(wanted).parameters)[1:], list(inspect.signature(own).parameters)
        if expected != taken:
            raise TypeError(f"{name}.{method} takes {taken}, but the contract requires {expected}")
        untyped = {*expected, "return"} - get_type_hints(own).keys()
        if untyped:
            raise TypeError(f"{name}.{method} has no type hints for {sorted(untyped)}")
