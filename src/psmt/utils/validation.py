"""Checks of parameters and arrays: errors name the value, the bound and the way out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from psmt.errors import NotEnoughFramesError
from psmt.utils.disk_series import DiskSeries

T = TypeVar("T")

_LARGEST = 1e100
"""No parameter is larger: squares of it are finite, and so is what is computed with it."""

_MOST = 2**31 - 1
"""No count is larger: an array with so many rows would not fit into any memory."""

LARGEST = 1e36
"""No number of a series, or of a model's state, is larger: fourth powers of a product of two stay finite."""

LARGEST_LEVEL = 1e8
"""No grey level is larger, white at 1 or wherever it is: fourth powers stay finite in float32."""


def check_count(name: str, value: object, *, minimum: int = 1) -> int:
    """`value` as an int, which must be a whole number of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}={value!r} is not a whole number; give an int >= {minimum}")
    if value < minimum:
        raise ValueError(f"{name}={value} is too small; use {name} >= {minimum}")
    return int(value)


def check_real(name: str, value: object, *, minimum: float = 0.0, open_bound: bool = False) -> float:
    """`value` as a float below 1e100, which must be at least (`open_bound`: above) `minimum`."""
    sign = ">" if open_bound else ">="
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={value!r} is not a number; give a float {sign} {minimum}")
    try:
        number = float(value)
    except OverflowError:  # a whole number of hundreds of digits
        number = np.inf
    if not number <= _LARGEST or number < minimum or (open_bound and number == minimum):
        raise ValueError(f"{name}={value} is out of range; use a finite {name} {sign} {minimum}")
    return number


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    """`value`, which must be one of `choices`.

    >>> check_choice("solver", "Closed", ("closed", "sgd"))
    Traceback (most recent call last):
    ...
    ValueError: solver='Closed' is unknown; use one of 'closed', 'sgd'; did you mean 'closed'?
    """
    if value not in choices:
        known = ", ".join(map(repr, choices))
        raise ValueError(f"{name}={value!r} is unknown; use one of {known}{near_miss(value, choices)}")
    return str(value)


def near_miss(value: object, choices: Collection[str]) -> str:
    """The end of an error message that names the choice which was probably meant; nothing where there is none.

    >>> near_miss("Auto", ["auto"]), near_miss("much", ["auto"])
    ("; did you mean 'auto'?", '')
    """
    close = get_close_matches(value.lower(), choices, n=1) if isinstance(value, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""


# Parameters declare their constraints, as in scikit-learn, and one function checks them all.

Constraint = Callable[[str, object], object]
"""Called with the name and the value of a parameter, it raises unless the value is allowed."""


def count(minimum: int = 1) -> Constraint:
    """A whole number of at least `minimum`, and of 31 bits."""

    def check(name: str, value: object) -> None:
        if check_count(name, value, minimum=minimum) > _MOST:
            raise ValueError(f"{name}={value} is too large; use {name} <= {_MOST}")

    return check


def real(minimum: float = 0.0, *, open_bound: bool = False) -> Constraint:
    """A finite number of at least (`open_bound`: above) `minimum`."""
    return lambda name, value: check_real(name, value, minimum=minimum, open_bound=open_bound)


def choice(*choices: str) -> Constraint:
    """One of these words."""
    return lambda name, value: check_choice(name, value, choices)


def text() -> Constraint:
    """Any text."""

    def check(name: str, value: object) -> None:
        if not isinstance(value, str):
            raise TypeError(f"{name}={value!r} is no text")

    return check


def truth() -> Constraint:
    """True or False."""

    def check(name: str, value: object) -> None:
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{name}={value!r} is no truth value; give True or False")

    return check


def seed() -> Constraint:
    """What random numbers begin with: None, a whole number of 32 bits, or a generator of NumPy."""

    def check(name: str, value: object) -> None:
        if value is None or value is np.random or isinstance(value, np.random.RandomState):
            return
        if check_count(name, value, minimum=0) >= 2**32:
            raise ValueError(f"{name}={value} is too large; use {name} < 2**32")

    return check


def nothing(name: str, value: object) -> None:
    """Constraint: nothing but None."""
    if value is not None:
        raise ValueError(f"{name}={value!r} is not None, which is all that it can be here")


def mapping(constraints: Mapping[str, Constraint], *, complete: bool = True) -> Constraint:
    """A mapping of these names, or with `complete=False` of some of them, each as its constraint says.

    >>> mapping({"n_atoms": count()})("parameters", {"n_atoms": 5, "colour": 1})
    Traceback (most recent call last):
    ...
    ValueError: parameters has 'colour', which is not known; use n_atoms
    """

    def check(name: str, value: object) -> None:
        if not isinstance(value, Mapping):
            raise TypeError(f"{name}={value!r} is no mapping of names to values")
        for key in value:
            if key not in constraints:
                known = ", ".join(constraints)
                raise ValueError(f"{name} has {key!r}, which is not known; use {known}{near_miss(key, constraints)}")
        for key, constraint in constraints.items():
            if key in value:
                constraint(f"{name}.{key}", value[key])
            elif complete:
                raise ValueError(f"{name}.{key} is missing")

    return check


def allowing(special: object, constraint: Constraint) -> Constraint:
    """As another constraint, or this one special value, such as None or 'auto'. Errors tell of a word that is allowed.

    >>> allowing("auto", real())("lam", "auto")
    >>> allowing("auto", real())("lam", "Auto")
    Traceback (most recent call last):
    ...
    TypeError: lam='Auto' is not a number; give a float >= 0.0 or 'auto'; did you mean 'auto'?
    """

    def check(name: str, value: object) -> None:
        if value is special or value == special:
            return
        try:
            constraint(name, value)
        except (TypeError, ValueError) as error:
            if not isinstance(special, str):
                raise
            raise type(error)(f"{error} or {special!r}{near_miss(value, [special])}") from None

    return check


def each(constraint: Constraint) -> Constraint:
    """A sequence whose every item is as the constraint says."""

    def check(name: str, value: object) -> None:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise TypeError(f"{name}={value!r} is not a sequence; give a tuple")
        for item in value:
            constraint(name, item)

    return check


def check_parameters(owner: object, constraints: Mapping[str, Constraint]) -> None:
    """Raise unless the attributes of `owner` are as the constraints, by name, say.

    >>> from types import SimpleNamespace
    >>> check_parameters(SimpleNamespace(n_atoms=0), {"n_atoms": count()})
    Traceback (most recent call last):
    ...
    ValueError: n_atoms=0 is too small; use n_atoms >= 1
    """
    for name, constraint in constraints.items():
        constraint(name, getattr(owner, name))


def renamed(name: str, value: T, former: str, given: T | Literal["deprecated"]) -> T:
    """The value of a parameter that had another name, which still works for one release.

    >>> renamed("half_stencils", False, "ends", "deprecated")
    False
    """
    if given == "deprecated":
        return value
    warn_renamed(former, name)
    return given


def warn_renamed(former: str, name: str) -> None:
    """Say that the old name was used."""
    text = f"{former} is called {name} now; the old name goes with the next release"
    warnings.warn(text, FutureWarning, stacklevel=4)


def check_series(
    values: ArrayLike, *, name: str = "X", n_features: int | None = None, minimum: int = 1
) -> NDArray[np.float64]:
    """`values` as a finite float64 array (time, features) with at least `minimum` rows; a `DiskSeries` stays on disk.

    Some words are those that scikit-learn's checks of estimators ask for.
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
    if isinstance(array, DiskSeries):  # its numbers were checked before they were written
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
    """`values` as a plain array of whatever dtype; who could only guess at them raises.

    >>> as_array([[1.0], [2.0, 3.0]], name="X")
    Traceback (most recent call last):
    ...
    ValueError: X is a list that no array can be made of: its rows differ in length, or hold something else than numbers
    """
    refuse_sparse(values, name=name)
    if isinstance(values, np.ma.MaskedArray) and values.dtype.names is None and np.ma.is_masked(values):
        raise ValueError(f"{name} has masked values, and no model knows gaps; fill them, as by {name}.filled(0)")
    try:
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:  # torch refuses tensors that are part of a graph
        why = "its rows differ in length, or hold something else than numbers"
        raise ValueError(
            f"{name} is a {type(values).__name__} that no array can be made of: "
            f"{' '.join(str(error).split()) if isinstance(error, RuntimeError) else why}"
        ) from error


def real_array(values: ArrayLike, *, name: str) -> NDArray[Any]:
    """`values` as an array of real numbers, of any shape and size, finite or not."""
    array = as_array(values, name=name)
    if array.dtype.kind == "O":
        array = _numbers(array, name)
    if array.dtype.kind not in "buif":
        raise ValueError(f"{name} has dtype {array.dtype}; give real numbers")
    return array


def check_samples(estimator: Any, X: ArrayLike, *, reset: bool = True, finite: bool = True) -> NDArray[np.float64]:
    """The samples (n_samples, n_features) of an estimator, by scikit-learn's checks; values too where `finite`.

    Names of features are those of a table, which `reset` notes and later calls are held against.
    """
    from sklearn.utils.validation import validate_data

    given = X if hasattr(X, "columns") else as_array(X, name="X")
    samples = validate_data(estimator, given, dtype=np.float64, reset=reset, ensure_all_finite=finite)
    if finite:
        check_size(samples, name="X")
    return cast(NDArray[np.float64], samples)


def check_size(values: NDArray[Any], *, name: str, largest: float = LARGEST) -> None:
    """Raise where a number is so large that what is computed with it would not be finite.

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
    """Raise where a number is not finite, in scikit-learn's words, or is too large; good ones are read once."""
    from sklearn.utils import assert_all_finite

    flat = values.reshape(-1)
    with np.errstate(all="ignore"):
        length = float(flat @ flat) ** 0.5
    if not length <= LARGEST:  # NaN is not; and no single number is larger than their root sum of squares
        assert_all_finite(values, input_name=name)
        check_size(values, name=name)


def refuse_sparse(values: object, *, name: str) -> None:
    """Raise if the values are a sparse matrix: the frames of a series are dense, and their codes are sparse."""
    if issparse(values):
        raise TypeError(f"{name} is sparse, which is not supported: frames are dense; give {name}.toarray()")


def _numbers(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Python objects as float64 numbers."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} has a value that is no number ({error}); a series holds real numbers") from None


def check_film(values: ArrayLike) -> NDArray[np.float64]:
    """A film's patches, or a series, (time, features) for an experiment: contiguous, in memory or on disk."""
    return np.asanyarray(check_series(values, name="patches"), order="C")


def check_frame(value: ArrayLike, n_features: int, *, name: str = "x") -> NDArray[np.float64]:
    """`value` as a finite float64 vector (n_features,)."""
    array = as_array(value, name=name)
    if array.shape != (n_features,):
        raise ValueError(f"{name} has shape {array.shape}; the model was fitted with frames of {n_features} features")
    frame: NDArray[np.float64] = check_series(array[None], name=name)[0]
    return frame


def check_finite(values: NDArray[np.floating], *, name: str, error: type[ValueError] = ValueError) -> None:
    """Raise unless all numbers are finite."""
    if not np.isfinite(values).all():
        raise error(f"{name} holds NaN or infinite values in {values.dtype}; mend or drop such frames")


def check_levels(values: ArrayLike, *, name: str, n_axes: int) -> NDArray[np.float32]:
    """Grey levels as a finite float32 array (height, width), or with three axes (time, height, width)."""
    array = as_array(values, name=name)
    wanted = "(time, height, width)" if n_axes == 3 else "(height, width)"
    if array.ndim != n_axes or 0 in array.shape[-2:] or array.dtype.kind not in "buif":
        raise ValueError(f"{name} has shape {array.shape} and dtype {array.dtype}; give grey levels {wanted}")
    with np.errstate(over="ignore"):  # which is found below
        array = array.astype(np.float32, copy=False)
    check_finite(array, name=name)
    check_size(array, name=name, largest=LARGEST_LEVEL)
    return array
