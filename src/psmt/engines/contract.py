"""The engine contract: array conversions and the kernels that take most of the time.

The algorithms are written once, above the engines. An engine's arrays stay on its device, so a model moves one frame in
and one frame out. The rest of the package takes the array namespace from its input and does not know the engine.
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

_PLANES = 200  # most multipliers that are tried for a bound; the duality gap ends the search long before


class LassoResult(NamedTuple):
    """Coefficients, and the duality gaps that bound their error."""

    coef: Array
    gap: Array | float


class Bound(NamedTuple):
    """Upper bound on a weighted sum of the coefficients."""

    worth: Array  # weights (n_columns,) of the coefficients, >= 0
    limit: Array  # largest weighted sum (n,) of each problem


def bounded_optimum(
    free: Array, solve: Callable[[Array], Array], cost: Callable[[Array], Array], bound: Bound, tolerance: Array
) -> Array:
    """Coefficients (.., n) of least cost under a bound on their weighted sum, by cutting planes.

    The Lagrange multiplier of the bound is a penalty on the weighted sum. As it rises the sum falls, in places by
    jumps, so the solution is sought between coefficients with too large a sum (infeasible) and a smaller one
    (feasible). Each solution gives a plane below the optimum as a function of the multiplier. The planes intersect at
    the next multiplier. The search stops at a gap of `tolerance` (..) to the dual bound.

    `free` (.., n) are the optima without the bound. Those that satisfy it are returned as they are. `solve` maps
    multipliers (..) to optima (.., n) with these penalties on the weighted sum. `cost` maps coefficients (.., n) to
    their cost (..), without any multiplier. The `bound` has one limit for each problem.
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
    """Change of V and S by a sum of ``weight v v'`` over vectors v.

    For a slide of the window, the first vector is the code that arrived and the second is the code that left, both less
    a mean if V is centred. V changes only by these two.
    """

    vectors: Array  # (n, n_features)
    covariance: Array  # weights (n,) of V
    curvature: Array  # weights (n,) of S


class Resident(ABC):
    """Argument of captured work that is made of arrays: some are copied in at each call, some stay where they are."""

    @abstractmethod
    def parts(self) -> tuple[tuple[AnyArray, ...], tuple[AnyArray, ...], tuple[Hashable, ...]]:
        """Arrays to copy, arrays that stay and may be changed in place, and constants."""

    @abstractmethod
    def with_arrays(self, copied: tuple[AnyArray, ...], resident: tuple[AnyArray, ...], /) -> Self:
        """The same argument with other arrays of the same shapes."""


class ResidentArrays(tuple[AnyArray, ...], Resident):
    """Argument of captured work whose arrays all stay where they are."""

    def parts(self) -> tuple[tuple[()], tuple[AnyArray, ...], tuple[()]]:  # noqa: D102
        return (), tuple(self), ()

    def with_arrays(self, _copied: tuple[AnyArray, ...], resident: tuple[AnyArray, ...], /) -> Self:  # noqa: D102
        return type(self)(resident)


class ShiftInvert(Protocol):
    """Shift-invert operators ``(S - shift V)^-1`` of a window, updated by low-rank changes."""

    shifts: Array  # (n_shifts,)

    def update(self, change: LowRankChange) -> Array:
        """Images (n_shifts, n, n_features) of the vectors of a change under the operators before it.

        The operators become those after the change (Woodbury's formula).
        """

    def images(self, vectors: Array) -> Array:
        """Images (n_shifts, n, n_features) of vectors (n, n_features) under the operators."""

    def subtract(self, left: Array, right: Array) -> None:
        """Subtract ``left' right`` from the operators, each (n_shifts, n, n_features)."""

    def times(self, which: int, vectors: Array) -> Array:
        """One operator times the columns of `vectors` (n_features, n)."""

    def times_each(self, vectors: Array) -> Array:
        """Each operator times its own columns (n_shifts, n_features, n), or all times one set (1, ..)."""

    def refactorise(self, which: Mask, shifts: Array, shifted: Array, /, *, later: bool = False) -> None:
        """Set the operators of a mask (n_shifts,) to the inverses of `shifted`, at new shifts.

        With `later`, an engine may go on using the old operators and replace them after a few changes.
        """

    def dense(self) -> Array:
        """The operators as matrices (n_shifts, n_features, n_features); read-only."""


class Engine(Protocol):
    """Kernels for one kind of hardware. There is one hashable engine for each device and precision."""

    device: str  # the name that `engine_for` takes
    captures: bool  # `capture` records work; then no step may read a result on the host, and masked variants are used
    linalg_errors: tuple[type[Exception], ...]  # raised for a matrix that is not positive definite or not finite

    def __hash__(self) -> int: ...

    @property
    def frames(self) -> FrameKernels:
        """Kernels for whole frames, in float32."""

    # Arrays

    def array(self, values: ArrayLike) -> Array:
        """Engine array of float64 with these values."""

    def numpy(self, values: Array) -> NDArray[np.float64]:
        """NumPy array with the values of an engine array."""

    def dense(self, values: csr_array) -> Array:
        """Engine array of float64 with the values of a sparse one; only non-zero values go to the device."""

    def sparse(self, values: Array) -> csr_array:
        """Sparse array (n, n_columns) on the host with the values of an engine array; only non-zero values move."""

    def solver_array(self, values: Array) -> Array:
        """The values in the precision in which lassos are solved."""

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
        """Coefficients (n, n_columns) of targets (n, n_features), divided by `norms` (n_columns,) if given."""

    def solve_next(
        self, columns: Array, target: Array, penalty: Array, *, tol: float, start: Array, gram: Array
    ) -> Array:
        """Coefficients (n_columns,) of one target, starting from the support of an earlier solution."""

    def solve_bounded(
        self, columns: Array, targets: Array, penalty: Array, bound: Bound, *, tol: float, start: Array
    ) -> Array:
        """Coefficients (n, n_columns) of targets (n, n_features) under a bound on their weighted sum.

        All columns of a problem have one penalty. It is the same for all problems (1,), or each has its own (n,).
        The supports of `start` (n, n_columns) are tried first.
        """

    # Dictionary learning

    def add_codes(self, codes: Array, samples: Array, kept: float, code_code: Array, code_sample: Array) -> None:
        """Scale the statistics by `kept` and add ``sum a a'`` and ``sum a x'`` of a batch to them, in place."""

    def sweep_atoms(self, atoms: Array, code_code: Array, code_sample: Array, used: Mask) -> None:
        """One sweep of exact block-coordinate descent, in place, over the unit-norm atoms that are used."""

    # Low-rank updates

    def code_window(self, codes: Array, begins: Mask | None = None) -> CodeWindow:
        """Window of codes (n, n_features) with their sums; `begins` (n,) marks the first code of each series."""

    def shift_invert(self, shifted: Array, shifts: Array) -> ShiftInvert:
        """Inverses of the matrices `shifted` (n_shifts, n_features, n_features)."""

    # How work is carried out

    def capture(self, work: Work) -> Work:
        """The work as one launch if the engine can record it, otherwise the work itself."""

    def small_work(self) -> AbstractContextManager[object]:
        """Context for work on small matrices, with as few threads as is fastest."""


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
