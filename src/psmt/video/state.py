"""Base class of objects that can be saved: a schema declares the shape, type and range of each saved attribute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from psmt.engines.frame_kernels import FrameKernels
from psmt.persistence.schema import Field, Schema, State, Stateful, joined, restore
from psmt.utils.validation import LARGEST_LEVEL

FRAME_FIELD = Field(("height", "width"), "float32", low=-LARGEST_LEVEL, high=LARGEST_LEVEL)
"""A saved frame: grey levels, in the range that input is checked for."""


class DeclaredState:
    """Base of classes whose saved attributes are declared in a schema.

    The attributes start at zero. The state also includes that of `parts`, a mapping of other objects with a state. Its
    keys are the prefixes of array names in a file. Attributes of type float32 and complex64 are arrays on the device of
    the kernels, and other arrays are NumPy arrays. Attributes without axes are Python numbers.
    """

    def __init__(self, kernels: FrameKernels, schema: Schema, parts: Mapping[str, Stateful] | None = None) -> None:
        self._kernels, self._parts = kernels, parts or {}
        inside = joined(self._parts)
        self._fields = {name: field for name, field in schema.items() if name not in inside}
        for name, field in self._fields.items():
            setattr(self, name, from_array(kernels, field, np.zeros(cast(tuple[int, ...], field.shape), field.dtype)))

    def get_state(self) -> State:
        """Return copies of the declared attributes, and of the state of all parts, as arrays by name."""
        own = {name: to_array(self._kernels, field, getattr(self, name)) for name, field in self._fields.items()}
        return own | joined(self._parts)

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the state of a new object from the arrays of `get_state`."""
        for name, field in self._fields.items():
            setattr(self, name, from_array(self._kernels, field, state[name]))
        restore(self._parts, state)

    def undo(self) -> Callable[[], None]:
        """Return a function that undoes what is learned after this call. See the function `undo`."""
        return undo(self, self._parts.values())


def undo(known: object, parts: Iterable[object]) -> Callable[[], None]:
    """Return a function that restores the attributes of an object and its parts. It does not undo changes in place."""
    attributes = dict(vars(known))
    others = [one.undo() if isinstance(one, DeclaredState) else undo(one, ()) for one in parts]

    def restore() -> None:
        known.__dict__ = attributes
        for other in others:
            other()

    return restore


def to_array(kernels: FrameKernels, field: Field, value: Any) -> NDArray[Any]:
    """Return a copy of an attribute's value as a NumPy array."""
    return np.array(kernels.numpy(value) if _on_device(field) else value, field.dtype)


def from_array(kernels: FrameKernels, field: Field, array: NDArray[Any]) -> Any:
    """Return the value of an attribute (device array, NumPy array or number), given its array in a file."""
    if not field.shape:
        return array.item()
    return kernels.levels(array.copy()) if _on_device(field) else array.copy()


def _on_device(field: Field) -> bool:
    return field.dtype in ("float32", "complex64")
