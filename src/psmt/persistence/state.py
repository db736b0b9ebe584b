"""The protocol of everything that is saved: `get_state`, `set_state`, and a `schema` that declares the state.

A state is a dict of arrays. An object that is set to a state continues exactly as the one that returned it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

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
