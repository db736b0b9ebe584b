"""Saved states: the protocol of everything that is saved, declarations of states, and their checks.

A state is a dict of arrays. An object that is set to a state continues exactly as the one that returned it. A `Schema`
names every array of a state with its dtype, its shape and the range of its numbers. A size that the parameters do not
determine has a name: the first array with that name defines its length, and all others must agree. So names, dtypes and
shapes are known to be consistent before a number is read, and numbers before they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import exp
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from psmt.utils.validation import LARGEST

State: TypeAlias = dict[str, NDArray[Any]]


class Stateful(Protocol):
    """An object with a state. Its class also has a function `schema`, which returns the `Field` of each array."""

    def get_state(self) -> State:
        """Return copies of all arrays that a copy of the object needs to continue alike."""

    def set_state(self, state: Mapping[str, NDArray[Any]], /) -> object:
        """Continue from a state that `get_state` returned."""


class AttributeState:
    """Mixin that makes the state from the attributes that a class names.

    >>> class Mean(AttributeState):
    ...     state_arrays, state_figures = ("_total",), ("count",)
    ...     _total, count = np.zeros(2), 0
    >>> mean = Mean()
    >>> mean.set_state({"total": np.ones(2), "figures": np.array([3.0])})
    >>> mean.count, mean.get_state()
    (3, {'figures': array([3.]), 'total': array([1., 1.])})
    """

    state_arrays: tuple[str, ...] = ()
    """Attributes, arrays or numbers, that are saved one by one; without leading underscores they name the arrays."""
    state_figures: tuple[str, ...] = ()
    """Attributes, numbers or short vectors, that are saved together in one array, 'figures'."""

    def get_state(self) -> State:
        """Return copies of all arrays that a copy of the object needs to continue alike."""
        figures = [getattr(self, name) for name in self.state_figures]
        together = {"figures": np.hstack(figures).astype(np.float64)} if figures else {}
        return together | {name.lstrip("_"): np.array(getattr(self, name)) for name in self.state_arrays}

    def set_state(self, state: Mapping[str, NDArray[Any]], /) -> Any:
        """Continue from a state that `get_state` returned."""
        start = 0
        for name in self.state_figures:
            current = getattr(self, name)
            stop = start + np.size(current)
            value = state["figures"][start:stop]
            setattr(self, name, np.array(value) if np.ndim(current) else type(current)(value[0]))
            start = stop
        for name in self.state_arrays:
            value = np.array(state[name.lstrip("_")])
            setattr(self, name, value if value.ndim else value.item())


LARGEST_SQUARE = 1e150
"""Largest number in sums of squares; squares of it are finite. `LARGEST` is the bound for all other numbers."""

LARGEST_SINGLE = 1e16
"""Largest number in float32 and complex64 arrays; squares of it are finite."""

Size: TypeAlias = int | str
"""Length of an axis, or its name."""

Check: TypeAlias = Callable[[NDArray[Any]], bool]

Bound: TypeAlias = float | tuple[float, ...]


class SchemaError(ValueError):
    """A state differs from its schema; the message names the array."""


class Layout(Protocol):
    """A shape and a dtype: of an array, or of an array that is still in its file."""

    @property
    def shape(self) -> tuple[int, ...]: ...  # noqa: D102
    @property
    def dtype(self) -> np.dtype[Any]: ...  # noqa: D102


class Field(NamedTuple):
    """One array of a state."""

    shape: tuple[Size, ...] = ()
    dtype: str = "float64"
    low: Bound | None = None
    """Smallest number, or one for each place of the last axis; by default minus the largest."""
    high: Bound | None = None
    """Largest number, or one for each place of the last axis."""
    may_be_empty: bool = False
    """Whether axes without a given length may have length 0."""
    check: tuple[Check, str] | None = None
    """A further condition on the numbers, and the words that say what is wrong where it fails."""
    group: str = ""
    """Fields of one group are all present or all missing: those that older files do not have."""


Schema: TypeAlias = Mapping[str, Field]


def flag() -> Field:
    """A truth value, as 0 or 1."""
    return Field((), "int64", 0, 1)


def counter(least: int = 0, most: int = 2**53) -> Field:
    """One whole number."""
    return Field((), "int64", least, most)


def faded(memory: float, most: float = 1.0) -> float:
    """Upper bound of an exponentially weighted sum of numbers up to `most` that fade to 1/e after `memory` steps.

    >>> round(faded(8.0), 3)
    8.51
    """
    return most / (1.0 - exp(-1.0 / memory)) * (1.0 + 1e-9)


def under(prefix: str, schema: Schema, *, group: str = "") -> dict[str, Field]:
    """The same fields, with a prefix to their names.

    >>> list(under("moments.", {"total": Field((3,))}))
    ['moments.total']
    """
    return {prefix + name: field._replace(group=group or field.group) for name, field in schema.items()}


def check_layouts(schema: Schema, found: Mapping[str, Layout]) -> None:
    """Raise `SchemaError` unless names, dtypes and shapes are as declared; numbers are not read.

    >>> schema = {"codes": Field((5, "n_atoms")), "total": Field(("n_atoms",))}
    >>> check_layouts(schema, {"codes": np.ones((5, 2)), "total": np.ones(3)})
    Traceback (most recent call last):
    ...
    psmt.persistence.schema.SchemaError: total is float64 (3,), not float64 (2,): its axes are (n_atoms)
    """
    groups = {field.group for name, field in schema.items() if name in found}
    for name, field in schema.items():
        if name not in found and (not field.group or field.group in groups):
            raise SchemaError(f"{name} is missing")
    for name in found:
        if name not in schema:
            raise SchemaError(f"{name} is not a part that this psmt knows; a newer psmt may")
    sizes: dict[str, int] = {}
    for name, field in schema.items():
        if name in found:
            _check_layout(name, field, found[name], sizes)


def _check_layout(name: str, field: Field, found: Layout, sizes: dict[str, int]) -> None:
    """Check one array; `sizes` are the lengths of named axes so far."""
    wanted, shape, dtype = np.dtype(field.dtype), tuple(found.shape), found.dtype
    text, axes = f"{name} is {dtype} {shape}", f"({', '.join(map(str, field.shape))})"
    if (dtype.kind, dtype.itemsize) != (wanted.kind, wanted.itemsize) or len(shape) != len(field.shape):
        raise SchemaError(f"{text}, not {wanted} {axes}")
    for size, length in zip(field.shape, shape, strict=True):
        if isinstance(size, str) and length == 0 and not field.may_be_empty:
            raise SchemaError(f"{text}, without any {size}")
    expected = tuple(
        sizes.setdefault(size, length) if isinstance(size, str) else size
        for size, length in zip(field.shape, shape, strict=True)
    )
    if shape != expected:
        raise SchemaError(f"{text}, not {wanted} {expected}: its axes are {axes}")


def check_values(schema: Schema, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise `SchemaError` unless the numbers of arrays, whose layouts are checked, are finite and in range.

    >>> check_values({"norms": Field((2,), low=0.0)}, {"norms": np.array([1.0, -1.0])})
    Traceback (most recent call last):
    ...
    psmt.persistence.schema.SchemaError: norms has a number below 0
    """
    for name, field in schema.items():
        if name in arrays:
            _check_numbers(name, field, arrays[name])


def _check_numbers(name: str, field: Field, array: NDArray[Any]) -> None:
    if not np.isfinite(array).all():
        raise SchemaError(f"{name} has a number that is not finite")
    largest = LARGEST_SINGLE if np.dtype(field.dtype).name in ("float32", "complex64") else LARGEST
    high = largest if field.high is None else field.high
    low = -largest if field.low is None else field.low
    if array.dtype.kind == "c":
        low, array = 0.0, np.maximum(np.abs(array.real), np.abs(array.imag))
    for bound, beyond, word in ((low, array < np.asarray(low), "below"), (high, array > np.asarray(high), "above")):
        if beyond.any():
            text = f"{bound:g}" if isinstance(bound, int | float) else f"({', '.join(f'{one:g}' for one in bound)})"
            raise SchemaError(f"{name} has a number {word} {text}")
    if field.check is not None and not field.check[0](array):
        raise SchemaError(f"{name} {field.check[1]}")


def check_state(schema: Schema, state: Mapping[str, NDArray[Any]]) -> None:
    """Raise `SchemaError` unless a state is as declared, in layout and numbers."""
    check_layouts(schema, state)
    check_values(schema, state)


def _is_moment(array: NDArray[Any]) -> bool:
    diagonal = np.diagonal(array, axis1=-2, axis2=-1)
    if (diagonal < 0).any():
        return False
    # Rounding grows with the entries that were added and subtracted again.
    root = np.sqrt(diagonal)
    reach = 1.001 * root[..., :, None] * root[..., None, :] + 1e-5 * diagonal.max(axis=-1, initial=0.0)[..., None, None]
    skew = np.abs(array - np.swapaxes(array, -2, -1))
    return bool((np.abs(array) <= reach).all() and (skew <= 1e-3 * reach).all())


MOMENT = (_is_moment, "is not a matrix of second moments: symmetric, with no entry larger than its diagonal allows")
"""Check of second moments (.., n, n), by the Cauchy-Schwarz inequality."""
