"""State that is declared once: a schema names the attributes that a file keeps, with their shapes and ranges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from psmt.engines.frame_kernels import FrameKernels
from psmt.persistence.model_file import part
from psmt.persistence.schema import Field, Schema, State, Stateful
from psmt.utils.validation import LARGEST_LEVEL

FRAME_FIELD = Field(("height", "width"), "float32", low=-LARGEST_LEVEL, high=LARGEST_LEVEL)
"""A saved frame: grey levels, in the range that input is checked for."""


class DeclaredState:
    """Base of classes whose state is a set of attributes, which start at zero, and of parts with a state of their own.

    A subclass declares its attributes in a schema and passes it here, with its parts by the prefix that their arrays
    have in a file. Fields of float32 and complex64 are arrays on the device of the kernels, other arrays stay in NumPy,
    and fields without axes are Python numbers.
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
        """Continue, in a new object, from what `get_state` returned."""
        for name, field in self._fields.items():
            setattr(self, name, from_array(self._kernels, field, state[name]))
        restore(self._parts, state)


def joined(parts: Mapping[str, Stateful]) -> State:
    """States of several parts in one, each name behind the prefix of its part."""
    return {prefix + name: value for prefix, one in parts.items() for name, value in one.get_state().items()}


def restore(parts: Mapping[str, Stateful], state: Mapping[str, NDArray[Any]]) -> None:
    """Let each part continue from its arrays in what `joined` returned."""
    for prefix, one in parts.items():
        one.set_state(part(state, prefix))


def to_array(kernels: FrameKernels, field: Field, value: Any) -> NDArray[Any]:
    """Copy an attribute into a NumPy array."""
    return np.array(kernels.numpy(value) if _on_device(field) else value, field.dtype)


def from_array(kernels: FrameKernels, field: Field, array: NDArray[Any]) -> Any:
    """Copy an array of a file into an attribute: an array on the device, a NumPy array or a Python number."""
    if not field.shape:
        return array.item()
    return kernels.levels(array.copy()) if _on_device(field) else array.copy()


def _on_device(field: Field) -> bool:
    return field.dtype in ("float32", "complex64")
