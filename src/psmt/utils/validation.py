"""Checks of arrays: errors name the value, the bound and the way out. `psmt.utils.constraints` checks parameters."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from psmt.errors import NotEnoughFramesError
from psmt.utils.disk_series import DiskSeries

LARGEST = 1e36
"""Largest value in a series or a model's state: fourth powers of a product of two stay finite."""

LARGEST_LEVEL = 1e8
"""Largest grey level: its fourth power stays finite in float32."""


def check_series(
    values: ArrayLike, *, name: str = "X", n_features: int | None = None, minimum: int = 1
) -> NDArray[np.float64]:
    """Return a finite float64 array (time, features) with at least `minimum` rows; a stored series stays one.

    Some messages use the words that scikit-learn's checks of estimators require.
    """
    array: Any = values if isinstance(values, DiskSeries) else as_array(values, name=name)
    if array.ndim != 2:
        raise ValueError(
            f"{name} has shape {array.shape}; a series is (time, features): reshape each frame to one row. "
            "Reshape your data by .reshape(1, -1) if it is a single frame"
        )
    if array.dtype.kind == "O":  # columns of a table that have no type in common
        array = _numbers(array, name)
    if array.dtype.kind not in "buif":
        what = ". Complex data not supported" if array.dtype.kind == "c" else ""
        raise ValueError(f"{name} has dtype {array.dtype}; a series holds real numbers{what}")
    if array.shape[1] == 0:
        raise ValueError(
            f"{name} has no features; a series needs at least one column: "
            f"0 feature(s) (shape={array.shape}) while a minimum of 1 is required."
        )
    if n_features is not None and array.shape[1] != n_features:
        raise ValueError(f"{name} has {array.shape[1]} features, but the model was fitted with {n_features}")
    if len(array) < minimum:
        raise NotEnoughFramesError(f"{name} has {len(array)} frames; at least {minimum} are needed")
    if isinstance(array, DiskSeries):  # checked when it was written
        return cast(NDArray[np.float64], array)
    with np.errstate(over="ignore"):  # longer floats
        array = array.astype(np.float64, copy=False)
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        bad = int(np.argmin(finite))
        raise ValueError(f"{name} has a NaN or infinite value in frame {bad}; remove or fill such frames")
    check_size(array, name=name)
    return cast(NDArray[np.float64], array)


def as_array(values: object, *, name: str) -> NDArray[Any]:
    """Return `values` as a plain array of any dtype; raise for what no array can be made of.

    >>> as_array([[1.0], [2.0, 3.0]], name="X")
    Traceback (most recent call last):
    ...
    ValueError: X is a list that no array can be made of: its rows differ in length, or hold something else than numbers
    """
    refuse_sparse(values, name=name)
    if isinstance(values, np.ma.MaskedArray) and values.dtype.names is None and np.ma.is_masked(values):
        raise ValueError(f"{name} has masked values, and no model handles gaps; fill them, as by {name}.filled(0)")
    try:
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:  # torch refuses tensors that are part of a graph
        why = "its rows differ in length, or hold something else than numbers"
        raise ValueError(
            f"{name} is a {type(values).__name__} that no array can be made of: "
            f"{' '.join(str(error).split()) if isinstance(error, RuntimeError) else why}"
        ) from error


def real_array(values: ArrayLike, *, name: str) -> NDArray[Any]:
    """Return `values` as an array of real numbers, of any shape and size, finite or not."""
    array = as_array(values, name=name)
    if array.dtype.kind == "O":
        array = _numbers(array, name)
    if array.dtype.kind not in "buif":
        raise ValueError(f"{name} has dtype {array.dtype}; give real numbers")
    return array


def check_samples(estimator: Any, X: ArrayLike, *, reset: bool = True, finite: bool = True) -> NDArray[np.float64]:
    """Return the samples (n_samples, n_features) of an estimator, checked by scikit-learn; `finite` checks values too.

    `reset` stores the names of a table's features; later calls are compared with them.
    """
    from sklearn.utils.validation import validate_data

    given = X if hasattr(X, "columns") else as_array(X, name="X")
    samples = validate_data(estimator, given, dtype=np.float64, reset=reset, ensure_all_finite=finite)
    if finite:
        check_size(samples, name="X")
    return cast(NDArray[np.float64], samples)


def check_size(values: NDArray[Any], *, name: str, largest: float = LARGEST) -> None:
    """Raise if a number is so large that computations with it would overflow.

    >>> check_size(np.array([1.0, -1e200]), name="X")
    Traceback (most recent call last):
    ...
    ValueError: X has a value of -1e+200, which is beyond 1e+36; divide it by its scale
    """
    if values.size == 0:
        return
    low, high = values.min(), values.max()
    worst = high if high > -low else low
    if abs(worst) > largest:
        raise ValueError(f"{name} has a value of {worst:.3g}, which is beyond {largest:g}; divide it by its scale")


def check_numbers(values: NDArray[np.float64], *, name: str) -> None:
    """Raise if a number is not finite, in scikit-learn's words, or too large. Good values are read once."""
    from sklearn.utils import assert_all_finite

    flat = values.reshape(-1)
    with np.errstate(all="ignore"):
        length = float(flat @ flat) ** 0.5
    if not length <= LARGEST:  # False for NaN; and no number is larger than the root of the sum of squares
        assert_all_finite(values, input_name=name)
        check_size(values, name=name)


def refuse_sparse(values: object, *, name: str) -> None:
    """Raise if the values are a sparse matrix: frames are dense, only their codes are sparse."""
    if issparse(values):
        raise TypeError(f"{name} is sparse, which is not supported: frames are dense; give {name}.toarray()")


def _numbers(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Return Python objects as float64 numbers."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} has a value that is not a number ({error}); a series holds real numbers") from None


def check_film(values: ArrayLike) -> NDArray[np.float64]:
    """Return patches or a series (time, features) for an experiment: a contiguous array, or a stored series."""
    film = check_series(values, name="patches")
    return film if isinstance(film, DiskSeries) else np.ascontiguousarray(film)


def check_frame(value: ArrayLike, n_features: int, *, name: str = "x") -> NDArray[np.float64]:
    """Return `value` as a finite float64 vector (n_features,)."""
    array = as_array(value, name=name)
    if array.shape != (n_features,):
        raise ValueError(f"{name} has shape {array.shape}; the model was fitted with frames of {n_features} features")
    frame: NDArray[np.float64] = check_series(array[None], name=name)[0]
    return frame


def check_finite(values: NDArray[np.floating], *, name: str, error: type[ValueError] = ValueError) -> None:
    """Raise unless all numbers are finite."""
    if not np.isfinite(values).all():
        raise error(f"{name} holds NaN or infinite values in {values.dtype}; repair or drop such frames")


def check_levels(values: ArrayLike, *, name: str, n_axes: int) -> NDArray[np.float32]:
    """Return grey levels as a finite float32 array (height, width), or with `n_axes=3` (time, height, width)."""
    array = as_array(values, name=name)
    wanted = "(time, height, width)" if n_axes == 3 else "(height, width)"
    if array.ndim != n_axes or 0 in array.shape[-2:] or array.dtype.kind not in "buif":
        raise ValueError(f"{name} has shape {array.shape} and dtype {array.dtype}; give grey levels {wanted}")
    with np.errstate(over="ignore"):  # found below
        array = array.astype(np.float32, copy=False)
    check_finite(array, name=name)
    check_size(array, name=name, largest=LARGEST_LEVEL)
    return array
