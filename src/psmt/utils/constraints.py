"""Constraints of parameters, declared once and checked by one function. Free of heavy imports.

Errors name the value, the bound and the way out. `psmt.utils.validation` has the checks of arrays.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field, fields, is_dataclass
from difflib import get_close_matches
from math import inf
from numbers import Integral, Real
from typing import Any, Literal, TypeVar

T = TypeVar("T")

_LARGEST = 1e100
"""Largest value of a real parameter: its square is finite."""

_MOST = 2**31 - 1
"""Largest count: no memory holds an array with more rows."""

Constraint = Callable[[str, object], object]
"""Called with the name and the value of a parameter; raises unless the value is allowed."""


def check_count(name: str, value: object, *, minimum: int = 1) -> int:
    """Return `value` as an int; raise unless it is a whole number of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}={value!r} is not a whole number; give an int >= {minimum}")
    if value < minimum:
        raise ValueError(f"{name}={value} is too small; use {name} >= {minimum}")
    return int(value)


def check_real(name: str, value: object, *, minimum: float = 0.0, open_bound: bool = False) -> float:
    """Return `value` as a float; raise unless it is below 1e100 and at least (`open_bound`: above) `minimum`."""
    sign = ">" if open_bound else ">="
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={value!r} is not a number; give a float {sign} {minimum}")
    try:
        number = float(value)
    except OverflowError:  # an int of hundreds of digits
        number = inf
    if not number <= _LARGEST or number < minimum or (open_bound and number == minimum):
        raise ValueError(f"{name}={value} is out of range; use a finite {name} {sign} {minimum}")
    return number


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    """Return `value`; raise unless it is one of `choices`.

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
    """End of an error message that names the most similar choice; empty if none is similar.

    >>> near_miss("Auto", ["auto"]), near_miss("much", ["auto"])
    ("; did you mean 'auto'?", '')
    """
    close = get_close_matches(value.lower(), choices, n=1) if isinstance(value, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""


def count(minimum: int = 1) -> Constraint:
    """Constraint: a whole number of at least `minimum`, of at most 31 bits."""

    def check(name: str, value: object) -> None:
        if check_count(name, value, minimum=minimum) > _MOST:
            raise ValueError(f"{name}={value} is too large; use {name} <= {_MOST}")

    return check


def real(minimum: float = 0.0, *, open_bound: bool = False) -> Constraint:
    """Constraint: a finite number of at least (`open_bound`: above) `minimum`."""
    return lambda name, value: check_real(name, value, minimum=minimum, open_bound=open_bound)


class choice:
    """Constraint: one of these words, which the command line offers too."""

    def __init__(self, *choices: str) -> None:
        self.choices = choices

    def __call__(self, name: str, value: object) -> None:
        """Raise unless the value is one of the words."""
        check_choice(name, value, self.choices)


def text(name: str, value: object) -> None:
    """Constraint: any text."""
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r} is not a text")


def truth(name: str, value: object) -> None:
    """Constraint: True or False."""
    if not isinstance(value, bool):
        import numpy as np

        if not isinstance(value, np.bool_):
            raise TypeError(f"{name}={value!r} is not a truth value; give True or False")


def seed(name: str, value: object) -> None:
    """Constraint: a seed of random numbers, which is None, a whole number of 32 bits, or a generator of NumPy."""
    import numpy as np

    if value is None or value is np.random or isinstance(value, np.random.RandomState):
        return
    if check_count(name, value, minimum=0) >= 2**32:
        raise ValueError(f"{name}={value} is too large; use {name} < 2**32")


def nothing(name: str, value: object) -> None:
    """Constraint: the value must be None."""
    if value is not None:
        raise ValueError(f"{name}={value!r} is not None, the only value that it can have here")


def mapping(constraints: Mapping[str, Constraint], *, complete: bool = True) -> Constraint:
    """Constraint: a mapping of these names (`complete=False`: of some of them), with a constraint each.

    >>> mapping({"n_atoms": count()})("parameters", {"n_atoms": 5, "colour": 1})
    Traceback (most recent call last):
    ...
    ValueError: parameters has 'colour', which is not known; use n_atoms
    """

    def check(name: str, value: object) -> None:
        if not isinstance(value, Mapping):
            raise TypeError(f"{name}={value!r} is not a mapping of names to values")
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
    """Constraint: as another one, or this special value, such as None or 'auto'. Errors name a word that is allowed.

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
    """Constraint: a sequence whose items all meet another constraint."""

    def check(name: str, value: object) -> None:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise TypeError(f"{name}={value!r} is not a sequence; give a tuple")
        for item in value:
            constraint(name, item)

    return check


def check_parameters(owner: object, constraints: Mapping[str, Constraint]) -> None:
    """Raise unless the attributes of `owner` meet the constraints, which are given by name.

    >>> from types import SimpleNamespace
    >>> check_parameters(SimpleNamespace(n_atoms=0), {"n_atoms": count()})
    Traceback (most recent call last):
    ...
    ValueError: n_atoms=0 is too small; use n_atoms >= 1
    """
    for name, constraint in constraints.items():
        constraint(name, getattr(owner, name))


def parameter(default: T, constraint: Constraint) -> T:
    """Field of a dataclass with a default and a constraint, which `Declared` finds."""
    return field(default=default, metadata={"constraint": constraint})


class Declared:
    """The constraints of a class by name: those of its fields that are made by `parameter`, if it is a dataclass."""

    def __get__(self, _owner: object, cls: Any) -> dict[str, Constraint]:
        own = fields(cls) if is_dataclass(cls) else ()
        return {field.name: field.metadata["constraint"] for field in own if field.metadata}


def renamed(name: str, value: T, former: str, given: T | Literal["deprecated"]) -> T:
    """Return the value of a parameter that was renamed; its former name works for one release.

    >>> renamed("half_stencils", False, "ends", "deprecated")
    False
    """
    if given == "deprecated":
        return value
    warn_renamed(former, name)
    return given


def warn_renamed(former: str, name: str) -> None:
    """Warn that the former name was used."""
    text = f"{former} is called {name} now; the old name goes with the next release"
    warnings.warn(text, FutureWarning, stacklevel=4)
