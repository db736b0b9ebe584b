"""The engine contract: array conversions and the kernels that take most of the time."""

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
    """Solutions of non-negative lassos and their duality gaps, which bound the error of the objective."""

    coef: Array
    gap: Array | float


class Bound(NamedTuple):
    """Upper bound on a weighted sum of the coefficients of a lasso."""

    worth: Array  # weights (n_columns,) of the coefficients, >= 0
    limit: Array  # largest weighted sum (n,) of each problem


class LowRankChange(NamedTuple):
    """Change of the covariance V of a window's codes, and of the second moment S of the codes' second differences.

    The change is a sum of ``weight v v'`` over vectors v. When the window slides, the first vector is the code that
    arrived and the second is the code that left. If V is centred, the mean of the other codes of the window is
    subtracted from each of the two. The weights of V are zero for all other vectors.
    """

    vectors: Array  # (n, n_features)
    covariance: Array  # weights (n,) of V
    curvature: Array  # weights (n,) of S


class Resident(ABC):
    """Object that holds several arrays and is an argument of a function given to `Engine.capture`.

    When the captured function is called, some of the arrays are copied. The others, called resident, are used in place.
    """

    @abstractmethod
    def parts(self) -> tuple[tuple[AnyArray, ...], tuple[AnyArray, ...], tuple[Hashable, ...]]:
        """Return the arrays to copy, the resident arrays, which may be changed in place, and the constants."""

    @abstractmethod
    def with_arrays(self, copied: tuple[AnyArray, ...], resident: tuple[AnyArray, ...], /) -> Self:
        """Return a copy of this object that holds the given arrays, which have the same shapes."""


class ResidentArrays(tuple[AnyArray, ...], Resident):
    """Tuple of arrays that captured work uses in place, without copying them."""

    def parts(self) -> tuple[tuple[()], tuple[AnyArray, ...], tuple[()]]:  # noqa: D102
        return (), tuple(self), ()

    def with_arrays(self, _copied: tuple[AnyArray, ...], resident: tuple[AnyArray, ...], /) -> Self:  # noqa: D102
        return type(self)(resident)


class InverseOperator(Protocol):
    """Inverse (n_features, n_features) of a complex symmetric matrix, which changes by outer products."""

    def times(self, vectors: Array) -> Array:
        """Return the operator times the real columns of `vectors` (n_features, n)."""

    def subtract(self, left: Array, right: Array) -> None:
        """Subtract the symmetric product ``left right'`` of matrices (n_features, n) from the operator."""

    def refactorise(self, matrix: Array) -> None:
        """Replace the operator by the inverse of another matrix (n_features, n_features)."""


class Engine(Protocol):
    """Kernels for one kind of hardware. There is one hashable engine object for each device and precision."""

    device: str  # the name that `engine_for` takes
    captures: bool  # whether `capture` records work; if so, no step may read a result on the host
    linalg_errors: tuple[type[Exception], ...]  # raised for a matrix that is not positive definite or not finite

    def __hash__(self) -> int: ...

    @property
    def frames(self) -> FrameKernels:
        """Kernels for whole frames, in float32."""

    # Arrays

    def array(self, values: ArrayLike) -> Array:
        """Return an engine array of float64 with the given values."""

    def numpy(self, values: Array) -> NDArray[np.float64]:
        """Return a NumPy array with the values of an engine array."""

    def dense(self, values: csr_array) -> Array:
        """Return an engine array of float64 with the values of a sparse one. Only non-zero values are transferred."""

    def sparse(self, values: Array) -> csr_array:
        """Return a sparse host array with the values of an engine array. Only non-zero values are transferred."""

    def solver_array(self, values: Array) -> Array:
        """Return the values in the precision in which lassos are solved."""

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
        """Return lasso coefficients (n, n_columns) of targets (n, n_features), divided by `norms` if they are given."""

    def solve_next(
        self, columns: Array, target: Array, penalty: Array, *, tol: float, start: Array, gram: Array
    ) -> Array:
        """Return the lasso coefficients (n_columns,) of one target. The non-zero entries of `start` are tried first."""

    def solve_bounded(
        self, columns: Array, targets: Array, penalty: Array, bound: Bound, *, tol: float, start: Array
    ) -> Array:
        """Return the lasso coefficients (n, n_columns) of targets (n, n_features), with a bound on their weighted sums.

        All columns of a problem have the same penalty. `penalty` is (1,) for one value, or (n,) for one value per
        problem. The non-zero entries of `start` (n, n_columns) are tried first.
        """

    # Dictionary learning

    def add_codes(self, codes: Array, samples: Array, kept: float, code_code: Array, code_sample: Array) -> None:
        """Scale `code_code` and `code_sample` by `kept`. Add ``a a'`` and ``a x'`` of all codes a and samples x."""

    def sweep_atoms(self, atoms: Array, code_code: Array, code_sample: Array, used: Mask) -> None:
        """Improve the unit-norm atoms in the mask `used` by one sweep of block-coordinate descent, in place."""

    # Low-rank updates

    def code_window(self, codes: Array, begins: Mask | None = None) -> CodeWindow:
        """Return a window of codes (n, n_features) with their sums. `begins` (n,) marks first codes of series."""

    def inverse(self, matrix: Array) -> InverseOperator:
        """Return the inverse of a complex symmetric matrix (n_features, n_features)."""

    # How work is carried out

    def capture(self, work: Work) -> Work:
        """Return a function that runs `work` in one GPU launch. An engine without this returns `work` itself."""

    def small_work(self) -> AbstractContextManager[object]:
        """Return a context in which work on small matrices uses the number of threads that is fastest."""


def check_engine(engine: E) -> E:
    """Return the engine. Raise TypeError unless it has all kernels of the contract, with arguments and type hints."""
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
