"""Base class of objects that declare their saved attributes, with shapes and ranges, in a schema."""

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
    """Base of classes whose state is declared in a schema.

    The state consists of attributes, which start at zero, and of parts, which are objects with a state. A subclass
    passes the schema, and its parts by the prefix of their arrays in a file. Attributes of type float32 and complex64
    are arrays on the device of the kernels, and other arrays are NumPy arrays. Fields without axes are Python numbers.
    """

    def __init__(self, kernels: FrameKernels, schema: Schema, parts: Mapping[str, Stateful] | None = None) -> None:
        self._kernels, self._parts = kernels, parts or {}
        inside = joined(self._parts)
        self._fields = {name: field for name, field in schema.items() if name not in inside}
        for name, field in self._fields.items():
            setattr(self, name, from_array(kernels, field, np.zeros(cast(tuple[int, ...], field.shape), field.dtype)))

    def get_state(self) -> State:
        """Return copies of the declared attributes, and the state of the parts."""
        own = {name: to_array(self._kernels, field, getattr(self, name)) for name, field in self._fields.items()}
        return own | joined(self._parts)

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state that `get_state` returned. The object must be new."""
        for name, field in self._fields.items():
            setattr(self, name, from_array(self._kernels, field, state[name]))
        restore(self._parts, state)

    def undo(self) -> Callable[[], None]:
        """Return a function that takes back what is learned after this call. See the function `undo`."""
        return undo(self, self._parts.values())


def undo(known: object, parts: Iterable[object]) -> Callable[[], None]:
    """Return a function that restores the attributes of `known` and its parts, but not arrays modified in place."""
    attributes = dict(vars(known))
    others = [one.undo() if isinstance(one, DeclaredState) else undo(one, ()) for one in parts]

    def restore() -> None:
        known.__dict__ = attributes
        for other in others:
            other()

    return restore


def to_array(kernels: FrameKernels, field: Field, value: Any) -> NDArray[Any]:
    """Return a copy of an attribute as a NumPy array."""
    return np.array(kernels.numpy(value) if _on_device(field) else value, field.dtype)


def from_array(kernels: FrameKernels, field: Field, array: NDArray[Any]) -> Any:
    """Return the value of an attribute, given the array of a file: a device array, a NumPy array or a number."""
    if not field.shape:
        return array.item()
    return kernels.levels(array.copy()) if _on_device(field) else array.copy()


def _on_device(field: Field) -> bool:
    return field.dtype in ("float32", "complex64")
