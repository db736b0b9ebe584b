"""What a saved state must look like: a declaration beside each state, and one function that holds it against a file.

A `Schema` names every array of a state with its dtype, its shape and the range of its numbers. Sizes that the
parameters do not tell are names: the first array that has one says how long it is, and all others must agree. So names,
dtypes and shapes are known to fit together before a number is read, and numbers before anything is computed from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import exp
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from psmt.utils.validation import LARGEST

LARGEST_SQUARE = 1e150
"""The same as `LARGEST` for squares of such products."""

LARGEST_SINGLE = 1e16
"""The same for float32 and complex64: squares stay finite."""

Size: TypeAlias = int | str
"""Length of an axis, or the name of one."""

Check: TypeAlias = Callable[[NDArray[Any]], bool]

Bound: TypeAlias = float | tuple[float, ...]


class SchemaError(ValueError):
    """A state is not as its schema says; the message names the part."""


class Layout(Protocol):
    """What has a shape and a dtype: an array, or what the header of one says."""

    @property
    def shape(self) -> tuple[int, ...]: ...  # noqa: D102
    @property
    def dtype(self) -> np.dtype[Any]: ...  # noqa: D102


class Field(NamedTuple):
    """One array of a state."""

    shape: tuple[Size, ...] = ()
    dtype: str = "float64"
    low: Bound | None = None
    """Least number, or one for each place of the last axis; by default minus the largest."""
    high: Bound | None = None
    """Largest number, or one for each place of the last axis."""
    may_be_empty: bool = False
    """Whether axes without a given length may have length 0."""
    check: tuple[Check, str] | None = None
    """What else must be true of the numbers, and in words what is wrong if not."""
    group: str = ""
    """Fields of one group are all there, or all missing: what older files do not know."""


Schema: TypeAlias = Mapping[str, Field]


def flag() -> Field:
    """Whether something is so, as a number."""
    return Field((), "int64", 0, 1)


def counter(least: int = 0, most: int = 2**53) -> Field:
    """One whole number."""
    return Field((), "int64", least, most)


def faded(memory: float, most: float = 1.0) -> float:
    """Largest sum of numbers of at most `most` that have faded to 1/e after `memory` steps, but for rounding.

    >>> round(faded(8.0), 3)
    8.51
    """
    return most / (1.0 - exp(-1.0 / memory)) * (1.0 + 1e-9)


def under(prefix: str, schema: Schema, *, group: str = "") -> dict[str, Field]:
    """The same fields with a prefix to their names.

    >>> list(under("moments.", {"total": Field((3,))}))
    ['moments.total']
    """
    return {prefix + name: field._replace(group=group or field.group) for name, field in schema.items()}


def check_layouts(schema: Schema, found: Mapping[str, Layout]) -> None:
    """Raise `SchemaError` unless names, dtypes and shapes are as declared; no number is looked at.

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
            raise SchemaError(f"{name} is no part that this psmt knows; a newer psmt may")
    known: dict[str, int] = {}
    for name, field in schema.items():
        if name in found:
            _check_layout(name, field, found[name], known)


def _check_layout(name: str, field: Field, found: Layout, known: dict[str, int]) -> None:
    wanted, shape, dtype = np.dtype(field.dtype), tuple(found.shape), found.dtype
    told, sizes = f"{name} is {dtype} {shape}", f"({', '.join(map(str, field.shape))})"
    if (dtype.kind, dtype.itemsize) != (wanted.kind, wanted.itemsize) or len(shape) != len(field.shape):
        raise SchemaError(f"{told}, not {wanted} {sizes}")
    for size, length in zip(field.shape, shape, strict=True):
        if isinstance(size, str) and length == 0 and not field.may_be_empty:
            raise SchemaError(f"{told}, without any {size}")
    expected = tuple(
        known.setdefault(size, length) if isinstance(size, str) else size
        for size, length in zip(field.shape, shape, strict=True)
    )
    if shape != expected:
        raise SchemaError(f"{told}, not {wanted} {expected}: its axes are {sizes}")


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
        raise SchemaError(f"{name} holds something else than finite numbers")
    largest = LARGEST_SINGLE if np.dtype(field.dtype).name in ("float32", "complex64") else LARGEST
    high = largest if field.high is None else field.high
    low = -largest if field.low is None else field.low
    if array.dtype.kind == "c":
        low, array = 0.0, np.maximum(np.abs(array.real), np.abs(array.imag))
    if (array < np.asarray(low)).any():
        raise SchemaError(f"{name} has a number below {_told(low)}")
    if (array > np.asarray(high)).any():
        raise SchemaError(f"{name} has a number above {_told(high)}")
    if field.check is not None and not field.check[0](array):
        raise SchemaError(f"{name} {field.check[1]}")


def check_state(schema: Schema, state: Mapping[str, NDArray[Any]]) -> None:
    """Raise `SchemaError` unless a state is as declared, in layout and numbers."""
    check_layouts(schema, state)
    check_values(schema, state)


def _told(bound: Bound) -> str:
    return f"{bound:g}" if isinstance(bound, int | float) else f"({', '.join(f'{one:g}' for one in bound)})"


def _is_moment(array: NDArray[Any]) -> bool:
    diagonal = np.diagonal(array, axis1=-2, axis2=-1)
    if (diagonal < 0).any():
        return False
    # Rounding grows with the entries that were added and taken away again.
    root = np.sqrt(diagonal)
    reach = 1.001 * root[..., :, None] * root[..., None, :] + 1e-5 * diagonal.max(axis=-1, initial=0.0)[..., None, None]
    skew = np.abs(array - np.swapaxes(array, -2, -1))
    return bool((np.abs(array) <= reach).all() and (skew <= 1e-3 * reach).all())


MOMENT = (_is_moment, "is no matrix of second moments: symmetric, and no entry larger than its diagonal allows")
"""A check of second moments (.., n, n), by the inequality of Cauchy and Schwarz."""
