"""States of objects: a protocol to save and restore them, schemas that declare them, and checks.

A state is a dict of arrays. An object that restores a state continues exactly as the object that returned it. A schema
declares the dtype, the shape and the range of each array. The length of an axis is a number or a name. The first array
that uses a name defines its length, and all others must agree. Names, dtypes and shapes are checked before any number
is read, and numbers are checked before they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import exp
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from psmt.utils.validation import LARGEST

State: TypeAlias = dict[str, NDArray[Any]]


class Stateful(Protocol):
    """An object whose state can be saved. Its class also has a function `schema` that declares each array."""

    def get_state(self) -> State:
        """Return copies of all arrays that another object of this class needs to continue in the same way."""

    def set_state(self, state: Mapping[str, NDArray[Any]], /) -> object:
        """Restore a state that `get_state` returned."""


def part(arrays: Mapping[str, NDArray[Any]], prefix: str) -> State:
    """Return the arrays whose names begin with a prefix, without the prefix.

    >>> part({"moments.total": np.zeros(1), "rest": np.zeros(1)}, "moments.")
    {'total': array([0.])}
    """
    return {key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)}


def joined(parts: Mapping[str, Stateful]) -> State:
    """Return the states of all parts in one dict. Each array name is preceded by the prefix of its part."""
    return {prefix + name: value for prefix, one in parts.items() for name, value in one.get_state().items()}


def restore(parts: Mapping[str, Stateful], state: Mapping[str, NDArray[Any]]) -> None:
    """Restore each part from a state that `joined` returned."""
    for prefix, one in parts.items():
        one.set_state(part(state, prefix))


class AttributeState:
    """Mixin that saves the array attributes named in `state_arrays` and the numbers named in `state_figures`.

    >>> class Mean(AttributeState):
    ...     state_arrays, state_figures = ("_total",), ("count",)
    ...     _total, count = np.zeros(2), 0
    >>> mean = Mean()
    >>> mean.set_state({"total": np.ones(2), "figures": np.array([3.0])})
    >>> mean.count, mean.get_state()
    (3, {'figures': array([3.]), 'total': array([1., 1.])})
    """

    state_arrays: tuple[str, ...] = ()
    """Attributes (arrays or numbers) that are saved separately, by their names without leading underscores."""
    state_figures: tuple[str, ...] = ()
    """Attributes (numbers or short vectors) that are saved together in one array, 'figures'."""
    state_parts: ClassVar[Mapping[str, str]] = {}
    """Attributes with a state of their own, and the prefix of the arrays of this state."""

    def get_state(self) -> State:
        """Return copies of all arrays that another object of this class needs to continue in the same way."""
        figures = [getattr(self, name) for name in self.state_figures]
        together = {"figures": np.hstack(figures).astype(np.float64)} if figures else {}
        arrays = {name.lstrip("_"): np.array(getattr(self, name)) for name in self.state_arrays}
        return together | arrays | joined({prefix: getattr(self, name) for name, prefix in self.state_parts.items()})

    def set_state(self, state: Mapping[str, NDArray[Any]], /) -> Any:
        """Restore a state that `get_state` returned."""
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
        restore({prefix: getattr(self, name) for name, prefix in self.state_parts.items()}, state)


LARGEST_SQUARE = 1e150
"""Largest number in sums of squares. Its square is finite. `LARGEST` is the bound for all other numbers."""

LARGEST_SINGLE = 1e16
"""Largest number in float32 and complex64 arrays. Its square is finite."""

Size: TypeAlias = int | str
"""Length of an axis, or a name that stands for it."""

Check: TypeAlias = Callable[[NDArray[Any]], bool]

Bound: TypeAlias = float | tuple[float, ...]


class SchemaError(ValueError):
    """The arrays of a state do not match their schema. The message names the array."""


class Layout(Protocol):
    """Anything with a shape and a dtype: an array, or the header of an array in a file."""

    @property
    def shape(self) -> tuple[int, ...]: ...  # noqa: D102
    @property
    def dtype(self) -> np.dtype[Any]: ...  # noqa: D102


class Field(NamedTuple):
    """Declaration of one array of a state: its shape, dtype and range."""

    shape: tuple[Size, ...] = ()
    dtype: str = "float64"
    low: Bound | None = None
    """Smallest allowed number, or one for each index of the last axis. None means minus the largest allowed number."""
    high: Bound | None = None
    """Largest allowed number, or one for each index of the last axis. None means a general bound."""
    may_be_empty: bool = False
    """If True, axes without a fixed length may have length 0."""
    check: tuple[Check, str] | None = None
    """A further condition on the numbers, and the end of the message if it fails."""
    group: str = ""
    """Fields with one non-empty group are either all present or all missing. Older files lack some groups."""


Schema: TypeAlias = Mapping[str, Field]


def flag() -> Field:
    """Return the declaration of a truth value, stored as 0 or 1."""
    return Field((), "int64", 0, 1)


def counter(least: int = 0, most: int = 2**53) -> Field:
    """Return the declaration of one whole number."""
    return Field((), "int64", least, most)


def faded(memory: float, most: float = 1.0) -> float:
    """Return an upper bound of a sum of terms <= `most`, weighted by exp(-k / memory) for k = 0, 1, 2, ...

    >>> round(faded(8.0), 3)
    8.51
    """
    return most / (1.0 - exp(-1.0 / memory)) * (1.0 + 1e-9)


def under(prefix: str, schema: Schema, *, group: str = "") -> dict[str, Field]:
    """Return the fields of a schema with a prefix added to their names. If given, `group` becomes their group.

    >>> list(under("moments.", {"total": Field((3,))}))
    ['moments.total']
    """
    return {prefix + name: field._replace(group=group or field.group) for name, field in schema.items()}


def check_layouts(schema: Schema, found: Mapping[str, Layout]) -> None:
    """Raise `SchemaError` unless names, dtypes and shapes are as declared. Numbers are not read.

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
    sizes: dict[str, int] = {}  # lengths of named axes so far
    for name, field in schema.items():
        if name not in found:
            continue
        wanted, shape, dtype = np.dtype(field.dtype), tuple(found[name].shape), found[name].dtype
        text, axes = f"{name} is {dtype} {shape}", f"({', '.join(map(str, field.shape))})"
        if (dtype.kind, dtype.itemsize) != (wanted.kind, wanted.itemsize) or len(shape) != len(field.shape):
            raise SchemaError(f"{text}, not {wanted} {axes}")
        expected = []
        for size, length in zip(field.shape, shape, strict=True):
            if isinstance(size, str) and length == 0 and not field.may_be_empty:
                raise SchemaError(f"{text}, without any {size}")
            expected.append(sizes.setdefault(size, length) if isinstance(size, str) else size)
        if shape != tuple(expected):
            raise SchemaError(f"{text}, not {wanted} {tuple(expected)}: its axes are {axes}")


def check_values(schema: Schema, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise `SchemaError` unless all numbers are finite and in range. Layouts must have been checked.

    >>> check_values({"norms": Field((2,), low=0.0)}, {"norms": np.array([1.0, -1.0])})
    Traceback (most recent call last):
    ...
    psmt.persistence.schema.SchemaError: norms has a number below 0
    """
    for name, array in arrays.items():
        field = schema[name]
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
    """Raise `SchemaError` unless the layout and the numbers of a state are as declared."""
    check_layouts(schema, state)
    check_values(schema, state)


def _is_moment(array: NDArray[Any]) -> bool:
    diagonal = np.diagonal(array, axis1=-2, axis2=-1)
    if (diagonal < 0).any():
        return False
    # Rounding errors grow with the entries that were added and subtracted again.
    root = np.sqrt(diagonal)
    reach = 1.001 * root[..., :, None] * root[..., None, :] + 1e-5 * diagonal.max(axis=-1, initial=0.0)[..., None, None]
    skew = np.abs(array - np.swapaxes(array, -2, -1))
    return bool((np.abs(array) <= reach).all() and (skew <= 1e-3 * reach).all())


MOMENT = (_is_moment, "is not a matrix of second moments: symmetric, with no entry larger than its diagonal allows")
"""Check that arrays (..., n, n) can be second moments, by the Cauchy-Schwarz inequality."""
