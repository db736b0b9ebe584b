"""The engine contract: array conversions and the kernels that take most of the time.

Algorithms are written once, in the packages that use an engine. An engine's arrays stay on its device, so a model moves
only one frame in and one frame out. Code outside `psmt.engines` gets the array namespace from its input arrays.
"""

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
from psmt.numerics.arrays import array_namespace
from psmt.types import AnyArray, Array, Mask

E = TypeVar("E", bound="Engine")
Work = TypeVar("Work", bound=Callable[..., tuple[object, ...]])

_PLANES = 200  # largest number of multipliers tried for a bound; the duality gap ends the search long before


class LassoResult(NamedTuple):
    """Solutions of non-negative lassos and their duality gaps, which bound the error of the objective."""

    coef: Array
    gap: Array | float


class Bound(NamedTuple):
    """Upper bound on a weighted sum of the coefficients of a lasso."""

    worth: Array  # weights (n_columns,) of the coefficients, >= 0
    limit: Array  # largest weighted sum (n,) of each problem


def bounded_optimum(
    free: Array, solve: Callable[[Array], Array], cost: Callable[[Array], Array], bound: Bound, tolerance: Array
) -> Array:
    """Return the coefficients (.., n) of least cost whose weighted sum is at most a limit, by cutting planes.

    A Lagrange multiplier acts as a penalty on the weighted sum. The sum falls as the multiplier rises, in places by
    jumps. So the search keeps two solutions, one whose sum exceeds the limit (infeasible) and one whose sum does not
    (feasible), and combines them. The dual function maps a multiplier to the least penalised cost, which is never above
    the cost that is sought. Each solution gives a line above the dual function. The next multiplier is where the lines
    of the two solutions intersect. The search stops when the cost is within `tolerance` (..) of the largest dual value.

    `free` (.., n) are the optima without a limit. Those whose sum is within the limit are returned unchanged. `solve`
    maps multipliers (..) to the optima (.., n) with this penalty. `cost` maps coefficients (.., n) to their cost (..)
    without it. `bound` holds the weights, and a limit for each problem.
    """
    xp, (worth, limit) = array_namespace(free), bound
    found = infeasible = free
    feasible, lower = xp.zeros_like(free), cost(free)
    over = free @ worth > limit
    for _ in range(_PLANES):
        spent = feasible @ worth
        span = infeasible @ worth - spent
        share = (limit - spent) / xp.where(over, span, 1.0)
        mixed = feasible + share[..., None] * (infeasible - feasible)
        found = xp.where(over[..., None], mixed, found)
        over = over & (cost(mixed) - lower > tolerance)
        if not bool(xp.any(over)):
            break
        multiplier = xp.where(over, (cost(feasible) - cost(infeasible)) / xp.where(over, span, 1.0), 0.0)
        fresh = solve(multiplier)
        lower = xp.maximum(lower, cost(fresh) + multiplier * (fresh @ worth - limit))
        above = (fresh @ worth > limit)[..., None]
        infeasible, feasible = xp.where(above, fresh, infeasible), xp.where(above, feasible, fresh)
    return found


class LowRankChange(NamedTuple):
    """Change of the covariance V of a window's codes, and of the second moment S of the codes' second differences.

    The change is a sum of ``weight v v'`` over vectors v. When the window slides, the first vector is the code that
    arrived and the second is the code that left. If V is centred, a mean is subtracted from both. The weights of V are
    zero for all other vectors.
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
        """Return lasso coefficients (n, n_columns) of targets (n, n_features).

        If `norms` (n_columns,) are given, the coefficients are divided by them.
        """

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
        """Scale the statistics by `kept`, then add ``a a'`` and ``a x'`` for all codes a and samples x, in place."""

    def sweep_atoms(self, atoms: Array, code_code: Array, code_sample: Array, used: Mask) -> None:
        """Improve the unit-norm atoms in the mask `used` by one sweep of block-coordinate descent, in place."""

    # Low-rank updates

    def code_window(self, codes: Array, begins: Mask | None = None) -> CodeWindow:
        """Return a window of codes (n, n_features) with their sums. `begins` (n,) marks first codes of series."""

    def inverse(self, matrix: Array) -> InverseOperator:
        """Return the inverse of a complex symmetric matrix (n_features, n_features)."""

    # How work is carried out

    def capture(self, work: Work) -> Work:
        """Return a function that runs `work` in one launch. Return `work` itself if the engine cannot record it."""

    def small_work(self) -> AbstractContextManager[object]:
        """Return a context in which work on small matrices uses the number of threads that is fastest."""


def check_engine(engine: E) -> E:
    """Return the engine, after checking that it has every kernel of the contract with its arguments and type hints.

    Raises
    ------
    TypeError
        If something is missing or different; the message names it.

    Examples
    --------
    >>> from psmt.engines.numba.engine import NumbaEngine
    >>> check_engine(NumbaEngine()).device
    'cpu'
    """
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
