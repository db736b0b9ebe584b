"""What an engine is: array conversions, and the few kernels that cost time. The algorithms are written once, above.

An engine's arrays stay on its device, so that a model moves one frame in and one frame out. All else in the package
takes the array namespace from its input and does not know which engine it has.
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
from psmt.engines.window import CodeWindow, Slide
from psmt.types import AnyArray, Array, Mask

__all__ = [
    "Bound",
    "Change",
    "CodeWindow",
    "Engine",
    "LassoResult",
    "Resident",
    "ResidentArrays",
    "ShiftInvert",
    "Slide",
    "check_engine",
]

E = TypeVar("E", bound="Engine")
Work = TypeVar("Work", bound=Callable[..., tuple[object, ...]])


class LassoResult(NamedTuple):
    """Coefficients and the duality gaps that vouch for them."""

    coef: Array
    gap: Array | float


class Bound(NamedTuple):
    """That the coefficients of a problem, each worth something, are worth no more than so much in all."""

    worth: Array
    """(n_columns,): of a unit of each coefficient, >= 0."""
    limit: Array
    """(n,): of all coefficients of a problem."""


class Change(NamedTuple):
    """A low-rank change of V and S, as sums of ``weight v v'`` over vectors v.

    By a slide, the first vector is the code that arrived and the second the one that is gone, both less a mean where V
    is centred: V changes by these two alone.
    """

    vectors: Array
    """(n, n_features)"""
    covariance: Array
    """Weights (n,) of V."""
    curvature: Array
    """Weights (n,) of S."""


class Resident(ABC):
    """An argument of captured work, made of arrays: some are copied in at each call, some stay where they are."""

    @abstractmethod
    def parts(self) -> tuple[tuple[AnyArray, ...], tuple[AnyArray, ...], tuple[Hashable, ...]]:
        """Arrays to copy, arrays that stay and may be changed in place, and constants."""

    @abstractmethod
    def with_arrays(self, copied: tuple[AnyArray, ...], resident: tuple[AnyArray, ...], /) -> Self:
        """The same argument, of other arrays of the same shapes."""


class ResidentArrays(tuple[AnyArray, ...], Resident):
    """Arrays that stay where they are, as an argument of captured work."""

    def parts(self) -> tuple[tuple[()], tuple[AnyArray, ...], tuple[()]]:
        """None is copied."""
        return (), tuple(self), ()

    def with_arrays(self, _copied: tuple[AnyArray, ...], resident: tuple[AnyArray, ...], /) -> Self:
        """The same of other arrays."""
        return type(self)(resident)


class ShiftInvert(Protocol):
    """Shift-invert operators ``(S - shift V)^-1`` of a window, kept up by low-rank changes."""

    shifts: Array
    """(n_shifts,)"""

    def update(self, change: Change) -> Array:
        """Images (n_shifts, n, n_features) of the vectors of a change under the operators before it.

        The operators become those after the change (Woodbury's formula).
        """

    def images(self, vectors: Array) -> Array:
        """Images (n_shifts, n, n_features) of vectors (n, n_features) under the operators."""

    def subtract(self, left: Array, right: Array) -> None:
        """Take ``left' right`` from the operators, each (n_shifts, n, n_features)."""

    def times(self, which: int, vectors: Array) -> Array:
        """One operator times the columns of `vectors` (n_features, n)."""

    def times_each(self, vectors: Array) -> Array:
        """Each operator times its own columns (n_shifts, n_features, n), or all times one set (1, ..)."""

    def refactorise(self, which: Mask, shifts: Array, shifted: Array, /, *, later: bool = False) -> None:
        """Set some of the operators (n_shifts,) to the inverses of `shifted`, at new shifts.

        With `later` an engine may let the operators serve on as they are meanwhile, and set them after some changes.
        """

    def dense(self) -> Array:
        """The operators as matrices (n_shifts, n_features, n_features), not to be changed."""


class Engine(Protocol):
    """Kernels for one kind of hardware. There is one engine for each device and precision, which may be a key."""

    device: str
    """Name by which `engine_for` knows it."""
    captures: bool
    """Whether `capture` records work: then no step may look at a result on the host, and masked variants are used."""
    linalg_errors: tuple[type[Exception], ...]
    """What its linear algebra raises where a matrix is not positive, or not finite."""

    def __hash__(self) -> int: ...

    @property
    def frames(self) -> FrameKernels:
        """Kernels for whole frames, in float32."""

    # Arrays

    def array(self, values: ArrayLike) -> Array:
        """Own array of float64 with these values."""

    def numpy(self, values: Array) -> NDArray[np.float64]:
        """A NumPy array with the values of an own one."""

    def dense(self, values: csr_array) -> Array:
        """Own array of float64 with the values of a sparse one; only what is not zero goes to the device."""

    def sparse(self, values: Array) -> csr_array:
        """A sparse array (n, n_columns) on the host with the values of an own one; only what is not zero leaves it."""

    def solver_array(self, values: Array) -> Array:
        """The values in the precision that lassos are solved in."""

    # Non-negative lassos: min 1/2 ||x - sum_j a_j d_j||^2 + sum_j penalty_j a_j over a >= 0, to a duality gap of
    # tol ||x||^2 / 2. Columns d_j, one per row, have unit norm or are zero. Coefficients come in float64.

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
        """Coefficients (n_columns,) of one target, sought from the support of an earlier solution on."""

    def solve_bounded(
        self, columns: Array, targets: Array, penalty: Array, bound: Bound, *, tol: float, start: Array
    ) -> Array:
        """Coefficients (n, n_columns) of targets (n, n_features), worth no more than the bound says.

        All columns of a problem have one penalty; it is the same for all problems (1,), or each has its own (n,).
        `start` (n, n_columns) are supports to begin with.
        """

    # Dictionary learning

    def add_codes(self, codes: Array, samples: Array, kept: float, code_code: Array, code_sample: Array) -> None:
        """Scale the statistics by `kept` and add ``sum a a'`` and ``sum a x'`` of a batch to them, in place."""

    def sweep_atoms(self, atoms: Array, code_code: Array, code_sample: Array, used: Mask) -> None:
        """One sweep of exact block-coordinate descent, in place, over the unit-norm atoms that are used."""

    # Low-rank updates

    def code_window(self, codes: Array, begins: Mask | None = None) -> CodeWindow:
        """Codes (n, n_features) of a window with their sums, kept up as it slides; `begins` (n,) marks first ones."""

    def shift_invert(self, shifted: Array, shifts: Array) -> ShiftInvert:
        """Inverses of the matrices `shifted` (n_shifts, n_features, n_features)."""

    # How work is carried out

    def capture(self, work: Work) -> Work:
        """The work as one launch, where the engine can record it; elsewhere the work itself."""

    def small_work(self) -> AbstractContextManager[object]:
        """Context in which small matrices are worked on: no more threads than pay."""


def check_engine(engine: E) -> E:
    """The engine, once it is sure that it has every kernel of the contract, with its arguments and fully typed.

    Raises
    ------
    TypeError
        Naming what is missing or differs.

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
    _check_kernels(engine, Engine)
    _check_kernels(getattr(engine, "frames", None), FrameKernels)
    return engine


def _check_kernels(given: object, contract: type) -> None:
    """Raise TypeError unless an object has every method of a contract, with its arguments and fully typed."""
    name, asked_by = type(given).__name__, f"{contract.__module__}.{contract.__name__}"
    for method, asked in inspect.getmembers(contract, inspect.isfunction):
        if method.startswith("_"):
            continue
        own = getattr(given, method, None)
        if not callable(own):
            raise TypeError(f"{name} has no kernel {method}; see {asked_by}.{method}")
        wanted, taken = list(inspect.signature(asked).parameters)[1:], list(inspect.signature(own).parameters)
        if wanted != taken:
            raise TypeError(f"{name}.{method} takes {taken}, but the contract asks for {wanted}")
        untyped = {*wanted, "return"} - get_type_hints(own).keys()
        if untyped:
            raise TypeError(f"{name}.{method} does not say the types of {sorted(untyped)}")
