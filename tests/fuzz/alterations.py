"""Every way in which an array or a value of JSON can be other than it should be, by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]


def _filled(value: float) -> Callable[[np.ndarray], np.ndarray]:
    def fill(array: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.full_like(array, value) if array.dtype.kind in "fc" else np.full(array.shape, value)

    return fill


def _one(value: float) -> Callable[[np.ndarray], np.ndarray]:
    def spoil(array: np.ndarray) -> np.ndarray:
        spoilt = array.astype(complex if array.dtype.kind == "c" else float).astype(
            array.dtype if array.dtype.kind in "fc" else float
        )
        with np.errstate(all="ignore"):
            spoilt.reshape(-1)[-1:] = value
        return spoilt

    return spoil


def _noise(scale: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda array: (scale * np.random.default_rng(0).standard_normal(array.shape)).astype(array.dtype)


def _cast(dtype: str) -> Callable[[np.ndarray], np.ndarray]:
    def cast(array: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return array.real.astype(dtype) if array.dtype.kind == "c" and dtype != "c16" else array.astype(dtype)

    return cast


def _largest(array: np.ndarray) -> np.ndarray:
    kind = np.iinfo if array.dtype.kind in "iu" else np.finfo
    return np.full_like(array, kind(array.dtype).max)


def _record(array: np.ndarray) -> np.ndarray:
    return np.zeros(array.shape, dtype=[("a", array.dtype), ("b", "i4")])


ARRAY_WAYS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    # another kind of number
    **{f"as {dtype}": _cast(dtype) for dtype in ("f2", "f4", "f8", "g", "i1", "i4", "i8", "u8", "c8", "c16", "?")},
    "big-endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "as text": lambda array: array.astype("U8"),
    "as bytes": lambda array: array.astype("S8"),
    "as dates": lambda array: np.zeros(array.shape, "datetime64[s]"),
    "as objects": lambda array: array.astype(object),
    "as records": _record,
    # another shape
    "0-d": lambda array: np.array(array.reshape(-1)[0] if array.size else 0, array.dtype),
    "flat": lambda array: array.reshape(-1),
    "transposed": lambda array: array.T,
    "Fortran order": np.asfortranarray,
    "one axis more": lambda array: array[None],
    "a last axis more": lambda array: array[..., None],
    "empty": lambda array: array.reshape(-1)[:0],
    "no rows": lambda array: np.zeros((0, *array.shape[1:]), array.dtype),
    "no columns": lambda array: np.zeros((*array.shape[:-1], 0), array.dtype),
    "a row less": lambda array: array[:-1] if array.ndim else array,
    "a row more": lambda array: np.concatenate([array, array[:1]]) if array.ndim else array[None],
    "a column less": lambda array: array[..., :-1] if array.ndim else array,
    "a column more": lambda array: np.concatenate([array, array[..., :1]], axis=-1) if array.ndim else array,
    "one element": lambda array: array.reshape(-1)[:1],
    "long and thin": lambda array: np.zeros((4, 250_000), array.dtype),
    "short and tall": lambda array: np.zeros((250_000, 4), array.dtype),
    "twenty axes": lambda array: np.zeros((1,) * 20, array.dtype),
    # other numbers
    "NaN": _filled(np.nan),
    "one NaN": _one(np.nan),
    "inf": _filled(np.inf),
    "one -inf": _one(-np.inf),
    "largest": _largest,
    "one 1e300": _one(1e300),
    "1e36": _filled(9e35),
    "1e15": _filled(1e15),
    "tiny": _filled(5e-324),
    "1e-30": _filled(1e-30),
    "negative": lambda array: -np.abs(array) - np.ones_like(array),
    "one -1": _one(-1),
    "zeros": np.zeros_like,
    "ones": np.ones_like,
    "half": _filled(0.5),
    "2 ** 40": _filled(2**40),
    "noise": _noise(1.0),
    "loud noise": _noise(1e12),
    "plus one": lambda array: array + np.ones_like(array),
    "a thousandfold": lambda array: (1000 * array).astype(array.dtype),
    "backwards": lambda array: np.ascontiguousarray(array[::-1]) if array.ndim else array,
    "rows rolled": lambda array: np.roll(array, 1),
    "signs in turn": lambda array: (array * (1 - 2 * (np.arange(array.size) % 2)).reshape(array.shape)).astype(
        array.dtype
    ),
}
"""An array in another way; what cannot be made of it is skipped."""


def altered_arrays(parts: Arrays) -> Iterator[tuple[str, Callable[[], Arrays]]]:
    """Yield what is done, and a function that gives the parts with one of them altered, missing, or made up.

    Not everything can be made of every array: the function raises TypeError, ValueError or OverflowError then.
    """
    for name, array in parts.items():
        other = parts[next(key for key in [*parts, *parts] if key != name)]
        yield f"{name}: missing", partial(_without, parts, (name,))
        yield f"{name}: renamed", lambda name=name: {key + "_" * (key == name): value for key, value in parts.items()}
        yield f"{name}: another", lambda name=name, other=other: parts | {name: other}
        yield f"{name}: zeros of another", lambda name=name, other=other: parts | {name: 0 * other}
        for way, change in ARRAY_WAYS.items():
            yield (
                f"{name}: {way}",
                lambda name=name, array=array, change=change: parts | {name: change(array)},
            )
    yield "one part more", lambda: parts | {"colour": np.ones(3)}
    yield "nothing", dict


VALUES: dict[str, Any] = {
    "null": None,
    "true": True,
    "false": False,
    "0": 0,
    "1": 1,
    "-1": -1,
    "2": 2,
    "0.5": 0.5,
    "-0.5": -0.5,
    "1e308": 1e308,
    "5e-324": 5e-324,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "10 ** 9": 10**9,
    "10 ** 30": 10**30,
    "10 ** 400": 10**400,
    "text": "x",
    "no text": "",
    "auto": "auto",
    "linear": "linear",
    "phase": "phase",
    "hold": "hold",
    "list": [],
    "list of numbers": [1, 2],
    "deep list": [[[[[[]]]]]],
    "object": {},
    "object with a key": {"a": 1},
    "NUL": "\0",
    "long text": "a" * 10_000,
}
"""What JSON may hold in place of what should be there."""


def altered_header(header: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what was done, and the JSON text of a header with one value altered, missing or made up."""
    for path in _paths(header):
        told = ".".join(map(str, path))
        for way, value in VALUES.items():
            yield f"{told} = {way}", json.dumps(_with(header, path, value))
        yield f"{told}: missing", json.dumps(_without(header, path))
        yield f"{told}: renamed", json.dumps(_with(_without(header, path), (*path[:-1], f"{path[-1]}_"), 1))
    for told, text in (
        ("no JSON", "{"),
        ("an empty header", ""),
        ("a list", "[]"),
        ("a number", "1"),
        ("deep", "[" * 100_000),
        ("digits", json.dumps(header)[:-1] + ', "x": ' + "9" * 10_000 + "}"),
        ("NUL", "\0" + json.dumps(header)),
    ):
        yield f"header: {told}", text


def _paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*above, key)
            yield from _paths(inner, (*above, key))
    elif isinstance(value, list) and value:
        yield (*above, 0)
        yield from _paths(value[0], (*above, 0))


def _with(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    key, *rest = path
    if isinstance(value, list):
        if not isinstance(key, int):
            return value
        return [_with(inner, tuple(rest), new) if index == key else inner for index, inner in enumerate(value)]
    return value | {key: _with(value.get(key), tuple(rest), new)}


def _without(value: Any, path: tuple[Any, ...]) -> Any:
    key, *rest = path
    if not rest:
        return value[1:] if isinstance(value, list) else {name: inner for name, inner in value.items() if name != key}
    return _with(value, (key,), _without(value[key], tuple(rest)))
