"""Arrays and parameters that people hand over, as they should be or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from fuzz.alterations import ARRAY_WAYS

_LONG = ("long and thin", "short and tall")
"""Arrays that files are tried with: to be walked through frame by frame they are only long."""

Told = tuple[str, Any]
"""What it is, and the thing."""


class _Subclass(np.ndarray):
    """An array of a class of its own."""


def _pandas(array: np.ndarray) -> Any:
    import pandas as pd

    return pd.DataFrame(array, columns=[f"c{i}" for i in range(array.shape[1])])


def _nullable(array: np.ndarray) -> Any:
    table = _pandas(array).astype("Float64")
    table.iloc[0, 0] = None
    return table


def _torch(array: np.ndarray) -> Any:
    try:
        import torch
    except ImportError:  # it is an extra
        return array
    return torch.from_numpy(np.ascontiguousarray(array))


def _torch_with_gradient(array: np.ndarray) -> Any:
    tensor = _torch(array)
    return tensor if tensor is array else tensor.double().requires_grad_()


def _read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.setflags(write=False)
    return array


def _masked(array: np.ndarray) -> np.ma.MaskedArray:
    return np.ma.masked_where(np.arange(array.size).reshape(array.shape) % 7 == 3, array)


def _ragged(array: np.ndarray) -> list[Any]:
    return [*array.tolist()[:-1], [1.0]]


HOLDERS: dict[str, Callable[[np.ndarray], Any]] = {
    "as it is": lambda array: array,
    "read-only": _read_only,
    "backwards by its strides": lambda array: array[::-1, ::-1],
    "every other": lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
    "not aligned": lambda array: np.frombuffer(b"x" + array.tobytes(), array.dtype, offset=1).reshape(array.shape),
    "broadcast": lambda array: np.broadcast_to(array[:1], array.shape),
    "lists": lambda array: array.tolist(),
    "ragged lists": _ragged,
    "tuples": lambda array: tuple(map(tuple, array.tolist())),
    "a generator": lambda array: (row for row in array),
    "masked": _masked,
    "a subclass": lambda array: array.view(_Subclass),
    "a matrix": np.asmatrix,
    "sparse": csr_array,
    "a table": _pandas,
    "a table with a gap": _nullable,
    "a tensor": _torch,
    "a tensor with a gradient": _torch_with_gradient,
    "None": lambda _: None,
    "a number": lambda _: 3.0,
    "a text": lambda _: "series",
    "a mapping": lambda array: {"X": array},
    "the class itself": lambda _: np.ndarray,
}
"""What an array may come as; what cannot be made of it is skipped."""

LEVELS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "1e300": lambda array: 1e300 * array,
    "1e150": lambda array: 1e150 * array,
    "1e80": lambda array: 1e80 * array,
    "1e38": lambda array: 1e38 * array,
    "1e25": lambda array: 1e25 * array,
    "1e-300": lambda array: 1e-300 * array,
    "1e-160": lambda array: 1e-160 * array,
    "denormal": lambda array: 5e-324 * np.sign(array),
    "far from zero": lambda array: 1e12 + array,
    "one peak": lambda array: array + 1e200 * (np.arange(array.size) == array.size // 2).reshape(array.shape),
    "one small peak": lambda array: array + 1e30 * (np.arange(array.size) == array.size // 2).reshape(array.shape),
    "constant": lambda array: np.full(array.shape, 0.7),
    "one column lives": lambda array: array * (np.arange(array.shape[-1]) == 1),
    "equal columns": lambda array: np.repeat(array[..., :1], array.shape[-1], axis=-1),
    "one feature": lambda array: array[..., :1],
    "one of each": lambda array: array[:, :1, :1] if array.ndim == 3 else array[:, :1],
    "three times": lambda array: array[:3],
    "twice": lambda array: array[:2],
    "once": lambda array: array[:1],
    "stands still at the end": lambda array: np.concatenate([array[:-9], np.repeat(array[-1:], 9, axis=0)]),
    "blinks": lambda array: array * (np.arange(len(array)) % 2).reshape(-1, *[1] * (array.ndim - 1)),
    "steps of one bit": lambda array: np.nextafter(np.ones_like(array), 1 + np.sign(array)),
}
"""Numbers that are allowed to be there."""

PARAMETERS: dict[str, tuple[Any, ...]] = {
    "n_atoms": (1, 2, 7, 60, 300, "auto", 0, -1, 2.5, None, "7", True, np.int8(5), 10**30),
    "window": (3, 4, 16, 60, "auto", 2, 61, 10**9, 0, -4, None, 8.0),
    "n_components": (1, 3, 7, None, "auto", 0, 99, -1, 1.5, "all"),
    "alpha": (0.1, 1e-12, 5e-324, 1e99, 1e100, 1e300, "auto", 0.0, -1.0, np.nan, np.inf, None, "x", 1 + 0j),
    "lam": (0.0, 0.1, 1e-300, 1e99, "auto", -0.1, np.nan, np.inf, None),
    "extrapolation": ("linear", "hold", "gain", "phase", "dynamics", "", None, "Linear", 3),
    "standardise": (True, False, 1, None, "yes"),
    "on_cut": ("hold", "ignore", None),
    "centred": (True, False, 0),
    "half_stencils": (True, False, "no"),
    "rank_tol": (0.0, 1e-12, 1e-3, 0.5, 1.0, 10.0, 1e99, -1.0, np.nan),
    "embedding_tol": (0.0, 1e-12, 1e-3, 1e99, -1.0, np.nan),
    "activity_bound": (None, 2.0, 1e-300, 1e99, 0.0, -1.0, np.inf),
    "merge_parallel": (True, False, 2),
    "dictionary_from": ("past", "window", "future"),
    "gap_tol": (1e-12, 1e-300, 1.0, 1e99, 0.0),
    "random_state": (0, None, 2**32 - 1, 2**32, -1, 0.5, np.random.RandomState(1), "x"),
    "device": ("cpu", "cuda:99", "tpu", "", None, 0),
    "dtype": ("float64", "float32", "int8", None, np.float64),
    "order": (1, 2, 30, 100, 0, 1.0),
    "penalty": ("auto", 1e-300, 1e99, 0.0, np.nan),
    "prior": ("default", None, "nowhere.prior", 3),
    "rollouts": (True, False, None),
}
"""What parameters may be given: what is allowed, up to its bounds, and what is not."""


def odd(rng: np.random.Generator, array: np.ndarray) -> Told:
    """An array that is other than it should be in one or two ways, or as it should be."""
    told = []
    given: Any = array
    if rng.integers(2):
        ways = LEVELS if rng.integers(2) else ARRAY_WAYS
        way = [way for way in ways if way not in _LONG][rng.integers(len(ways.keys() - set(_LONG)))]
        with np.errstate(all="ignore"):
            given = ways[way](given)
        told.append(way)
    if rng.integers(3) == 0:
        holder = list(HOLDERS)[rng.integers(len(HOLDERS))]
        given = HOLDERS[holder](given)
        told.append(holder)
    return ", ".join(told) or "healthy", given


def parameters(rng: np.random.Generator, known: list[str], quick: dict[str, Any]) -> dict[str, Any]:
    """Up to three odd values for the parameters that a class has, and quick ones for the rest."""
    chosen = {name: value for name, value in quick.items() if name in known}
    for name in rng.permutation([name for name in known if name in PARAMETERS])[: rng.integers(0, 4)]:
        values = PARAMETERS[str(name)]
        chosen[str(name)] = values[rng.integers(len(values))]
    return chosen
