"""Checks of arrays. Error messages name the value, the bound and a remedy. Parameters are checked in `constraints`."""

import warnings
from collections.abc import Sequence
from math import isqrt
from os import PathLike
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from psmt.errors import NotEnoughFramesError, SeriesWarning
from psmt.types import Array
from psmt.utils.disk_series import DiskSeries

Float = TypeVar("Float", bound=np.floating[Any])

LARGEST = 1e36
"""Largest value in a series or in the state of a model, chosen so that its eighth power is finite."""

LARGEST_LEVEL = 1e6
"""Largest grey level, chosen so that the squares of sums of cross-spectra stay finite in float32."""


def check_series(
    values: ArrayLike,
    *,
    name: str = "X",
    n_features: int | None = None,
    minimum: int = 1,
    largest: float = LARGEST,
    columns: Sequence[str] | None = None,
) -> NDArray[np.float64]:
    """Return `values` as a finite float64 array (time, features) with at least `minimum` rows, or raise an error.

    A `DiskSeries` is returned as it is. `columns` are the names of features in messages; a table has its own names.
    Some messages contain words that scikit-learn's checks of estimators require.
    """
    if isinstance(values, list | tuple) and any(getattr(part, "ndim", 0) == 2 for part in values):
        raise ValueError(
            f"{name} is a {type(values).__name__} of {len(values)} series; one array is needed: "
            f"{name}, lengths = psmt.series.join_series({name}), then fit({name}, lengths=lengths)"
        )
    _check_names(values, name)
    names = getattr(values, "columns", columns)
    array: Any = values if isinstance(values, DiskSeries) else as_array(values, name=name)
    if array.ndim != 2:
        way = f"by np.reshape({name}, (-1, 1)) if it is one feature over time, or by .reshape(1, -1) if it is one frame"
        if array.ndim > 2:
            way = f"by {name}.reshape({len(array)}, -1); psmt.FramePredictor takes frames (time, height, width)"
        elif isinstance(values, str | PathLike):
            way = "after reading it from the file, as by psmt.datasets.load(path).X"
        raise ValueError(f"{name} has shape {array.shape}; a series is (time, features). Reshape your data {way}")
    if array.dtype.kind in "OM":  # columns of a table without a common type, or dates
        array = _numbers(array, name, names)
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
    if isinstance(array, DiskSeries):  # its values were checked when it was written
        return cast(NDArray[np.float64], array)
    array = as_floats(array, np.float64)
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        bad = int(np.argmin(finite))
        column = _column(int(np.argmin(np.isfinite(array[bad]))), names)
        raise ValueError(
            f"{name} has a NaN or infinite value in frame {bad}, {column}; remove such frames, or fill the gaps, as by "
            "interpolate() of pandas"
        )
    check_size(array, name=name, largest=largest)
    return cast(NDArray[np.float64], array)


def as_array(values: object, *, name: str) -> NDArray[Any]:
    """Return `values` as a NumPy array of any dtype. Raise an error if that is not possible.

    >>> as_array([[1.0], [2.0, 3.0]], name="X")
    Traceback (most recent call last):
    ...
    ValueError: X is a list that is no array of numbers: its rows differ in length, or not all entries are numbers
    """
    if issparse(values):
        raise TypeError(f"{name} is sparse, which is not supported: frames are dense; give {name}.toarray()")
    if isinstance(values, np.ma.MaskedArray) and values.dtype.names is None and np.ma.is_masked(values):
        raise ValueError(f"{name} has masked values, and no model handles gaps; fill them, as by {name}.filled(0)")
    try:
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:  # torch refuses tensors that are part of a graph
        why = "its rows differ in length, or not all entries are numbers"
        raise ValueError(
            f"{name} is a {type(values).__name__} that is no array of numbers: "
            f"{' '.join(str(error).split()) if isinstance(error, RuntimeError) else why}"
        ) from error


def real_array(values: ArrayLike, *, name: str) -> NDArray[Any]:
    """Return `values` as an array of real numbers, of any shape and not necessarily finite, or raise an error."""
    array = as_array(values, name=name)
    if array.dtype.kind == "O":
        array = _numbers(array, name)
    if array.dtype.kind not in "buif":
        raise ValueError(f"{name} has dtype {array.dtype}; give real numbers")
    return array


def _check_names(table: ArrayLike, name: str) -> None:
    """Raise an error if two columns of a table have the same name. (scikit-learn's own error is hard to read.)"""
    names = list(getattr(table, "columns", ()))
    if repeated := sorted({repr(one) for one in names if names.count(one) > 1}):
        raise ValueError(f"{name} has several columns named {repeated[0]:.200}; rename them, or give {name}.to_numpy()")


def check_samples(estimator: Any, X: ArrayLike, *, reset: bool = True, finite: bool = True) -> NDArray[np.float64]:
    """Return samples (n_samples, n_features), validated by scikit-learn. If `finite`, refuse NaN and huge values.

    If `reset` is True, the estimator stores the feature names of a table. Otherwise they must equal the stored names.
    """
    from sklearn.utils.validation import validate_data

    _check_names(X, "X")
    given = X if hasattr(X, "columns") else as_array(X, name="X")
    samples = validate_data(estimator, given, dtype=np.float64, reset=reset, ensure_all_finite=finite)
    if finite:
        check_size(samples, name="X")
    return cast(NDArray[np.float64], samples)


def check_size(values: NDArray[Any], *, name: str, largest: float = LARGEST) -> None:
    """Raise an error if a number is so large that computations with it would overflow.

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


@np.errstate(over="ignore")
def as_floats(array: NDArray[Any], dtype: type[Float]) -> NDArray[Float]:
    """Return an array converted to `dtype`, without a copy if possible. Numbers beyond its range become infinite."""
    return array.astype(dtype, copy=False)


@np.errstate(all="ignore")
def check_numbers(values: NDArray[np.float64], *, name: str) -> None:
    """Raise scikit-learn's error if a value is NaN or infinite, and `check_size`'s error if one is too large."""
    from sklearn.utils import assert_all_finite

    flat = values.reshape(-1)
    length = float(flat @ flat) ** 0.5
    if not length <= LARGEST:  # also true for NaN; no number is larger than the root of the sum of squares
        assert_all_finite(values, input_name=name)
        check_size(values, name=name)


def _column(i: int, names: Any) -> str:
    return f"column {i if names is None else repr(names[i])}"


def _numbers(array: NDArray[Any], name: str, columns: Any = None) -> NDArray[np.float64]:
    """Convert an array of Python objects to float64. If that fails, the error names the column."""
    kind, why = cast(type[Exception], ValueError), f"dates of dtype {array.dtype}"
    try:
        if array.dtype.kind != "M":
            return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        kind, why = type(error), str(error)
    each = enumerate(array.T if array.ndim == 2 else [array])
    odd = ((i, value) for i, values in each for value in values.ravel() if not is_number(value))
    i, example = next(odd, (0, None))
    way = "drop it"
    if hasattr(example, "isoformat") or isinstance(example, np.datetime64 | np.timedelta64):
        why = "a date"
        way = "drop it" if columns is None else f"make it the index, as by set_index({columns[i]!r})"
    elif isinstance(example, str):
        why = "text"
    raise kind(
        f"{name} has a value that is not a number: {str(example)[:40]!r} in {_column(i, columns)} is {why}; {way}, or "
        "convert the column to numbers"
    )


def to_number(text: str) -> float:
    """Return the number that a text represents. Raise ValueError also for ``1_5``, which Python reads as 15."""
    return float(text.replace("_", "?"))


def is_number(value: object) -> bool:
    """Return whether a value is a number, or a text that represents one. Dates and ``1_5`` are not numbers."""
    try:
        to_number(value) if isinstance(value, str) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return not isinstance(value, np.datetime64 | np.timedelta64)


_FEW = 20  # a series with fewer rows than this causes a warning
_IRREGULAR = 0.15  # if this fraction of the steps of an index or more are long, the index is irregular


def warn_of_mistakes(values: object, array: NDArray[np.float64]) -> None:
    """Warn if the series given to `fit` is very short or probably transposed, or has constant columns."""
    (n, n_features), names = array.shape, getattr(values, "columns", getattr(values, "feature_names", None))
    if n < _FEW:
        warn(f"the series has {n} rows, which are too few to learn from; give at least {_FEW}, better some hundreds")
    if n_features > n > 1 and n * n_features < _LARGEST_CHECKED and _is_transposed(array):
        warn(
            f"the series has {n} rows and {n_features} columns, and columns change more smoothly than rows; rows are "
            "times, and columns are features: if yours are the other way round, transpose the table, or give X.T"
        )
    constant = np.flatnonzero((array == array[:1]).all(axis=0) & (n > 1))
    if len(constant):
        shown = ", ".join(_column(int(i), names).removeprefix("column ") for i in constant[:5])
        more = f" and {len(constant) - 5} more" if len(constant) > 5 else ""
        warn(f"the series has {len(constant)} of {n_features} columns that are constant ({shown}{more}); drop them")


_LARGEST_CHECKED = 10_000_000  # largest number of values for which the smoothness along both axes is compared


def _is_transposed(array: NDArray[np.float64]) -> bool:
    """Return whether the steps from column to column are so small that columns must be times, not pixels.

    Neighbouring pixels are similar too. But even in a fast film, their mean squared difference is rarely below a tenth
    of that between frames, and it is larger where one row of pixels ends and the next begins.
    """
    ratio = _roughness(array.T) / _roughness(array)
    for channels in (1, 3):
        side = isqrt(array.shape[1] // channels)
        if side >= 4 and channels * side**2 == array.shape[1]:
            steps = np.abs(np.diff(array, axis=1)).mean(axis=0)
            row_ends = steps[channels * side - 1 :: channels * side]
            return ratio < 0.1 and float(np.median(row_ends)) < 1.5 * float(np.median(steps))
    return ratio < 0.25


def _roughness(array: NDArray[np.float64]) -> float:
    """Return the mean square of the steps from row to row, divided by the variance of the columns."""
    centred = array - array.mean(axis=0)
    scale = float(np.sum(centred**2))
    return float(np.sum(np.diff(array, axis=0) ** 2)) / scale if scale > 0 else 1.0


def warn(message: str) -> None:
    """Warn of a probable mistake in a series."""
    warnings.warn(message, SeriesWarning, stacklevel=3)


def _gaps(steps: Array) -> NDArray[np.intp]:
    """Return the indices of steps (n,) longer than 1.5 medians, or none if such steps are frequent (weekends)."""
    gaps = np.flatnonzero(steps > 1.5 * np.median(steps)) if len(steps) else np.zeros(0, dtype=np.intp)
    return gaps if len(gaps) < _IRREGULAR * len(steps) else gaps[:0]


def warn_of_times(labels: Any, steps: Array, rows: NDArray[np.intp] | None = None, fill: str = "") -> None:
    """Warn if times repeat or have gaps. `labels` are the times to show, and `fill` says how to fill gaps.

    `steps` (n,) are the times from each of the `rows` (n,) to the next row. By default, `rows` are all rows but the
    last.
    """
    one = "keep one row per time, as by X.groupby(level=0).mean() of pandas, or put series that share times in columns"
    split = fill or "fill gaps, or split the series there"
    for found, what, way in ((np.flatnonzero(steps == 0), "repeated time", one), (_gaps(steps), "gap", split)):
        if len(found):
            row = int(found[0] if rows is None else rows[found[0]])
            warn(
                f"the times of the rows have {len(found)} {what}{'s' * (len(found) > 1)}, the first between row {row} "
                f"({labels[row]}) and row {row + 1} ({labels[row + 1]}); rows count as evenly spaced: {way}"
            )


def check_time_index(values: object, lengths: Sequence[int]) -> None:
    """Raise an error if the index of a table (dates or numbers) decreases within a series.

    Warn if times repeat or have gaps. `lengths` are the numbers of rows of the series that make up the table.
    """
    index = getattr(values, "index", None)
    if index is None or getattr(getattr(index, "dtype", None), "kind", "O") not in "iufM":
        return
    times = np.asarray(getattr(index, "asi8", index), dtype=np.float64)
    starts = np.cumsum([0, *lengths])
    steps = np.delete(np.diff(times), starts[1:-1] - 1)
    rows = np.delete(np.arange(len(times) - 1), starts[1:-1] - 1)
    if (steps < 0).any():
        row = int(rows[np.argmax(steps < 0)])
        raise ValueError(
            f"the index of X is out of order: {index[row]} in row {row} is followed by {index[row + 1]}; rows must be "
            "in order of time: use X.sort_index(), or X.reset_index(drop=True) if they are"
        )
    parts = np.diff(np.union1d(starts, rows[_gaps(steps)] + 1)).tolist()
    apart = f"lengths={parts}" if len(parts) < 9 and min(parts) > 2 else "the lengths of the parts between them"
    way = f"fill gaps, as by X.resample(..).interpolate(), or give {apart} to fit: nothing is then learned across them"
    warn_of_times(index, steps, rows, way)


def check_film(values: ArrayLike) -> NDArray[np.float64]:
    """Validate the patches or series of an experiment. Return a contiguous array (time, features) or a `DiskSeries`."""
    film = check_series(values, name="patches")
    return film if isinstance(film, DiskSeries) else np.ascontiguousarray(film)


def check_frame(value: ArrayLike, n_features: int, *, name: str = "x", largest: float = LARGEST) -> NDArray[np.float64]:
    """Return `value` as a float64 vector (n_features,). Raise an error if it has another size or is not finite."""
    array = as_array(value, name=name)
    if array.shape != (n_features,):
        ways = f"one frame ({n_features},)"
        if array.shape == (1, n_features):
            ways += ", as table.iloc[i] or X[i] without a second pair of brackets; partial_fit takes several rows"
        raise ValueError(
            f"{name} has shape {array.shape}; the model was fitted with frames of {n_features} features: give {ways}"
        )
    return cast(NDArray[np.float64], check_series(array[None], name=name, largest=largest)[0])


def check_finite(values: NDArray[np.floating], *, name: str, error: type[ValueError] = ValueError) -> None:
    """Raise an error unless all numbers are finite."""
    if not np.isfinite(values).all():
        raise error(f"{name} holds NaN or infinite values in {values.dtype}; repair or drop such frames")


def check_levels(values: ArrayLike, *, name: str, n_axes: int) -> NDArray[np.float32]:
    """Return float32 levels ([time,] height, width) with `n_axes` axes. Colour has one more axis, of length 3."""
    array = as_array(values, name=name)
    wanted = "time, height, width" if n_axes == 3 else "height, width"
    colour = array.ndim == n_axes + 1 and array.shape[-1] == 3
    if not (array.ndim == n_axes or colour) or 0 in array.shape[n_axes - 2 :] or array.dtype.kind not in "buif":
        raise ValueError(
            f"{name} has shape {array.shape} and dtype {array.dtype}; give grey levels ({wanted}) or colours "
            f"({wanted}, 3)"
        )
    array = as_floats(array, np.float32)
    check_finite(array, name=name)
    check_size(array, name=name, largest=LARGEST_LEVEL)
    return array
