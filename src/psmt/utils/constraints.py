"""Constraints on parameters: each is declared once, and `check_parameters` checks them all.

Error messages name the value, the bound and a remedy. `psmt.utils.validation` has the checks of arrays. NumPy is
imported only where it is needed, because the command line imports this module first.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field, fields, is_dataclass
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from math import inf
from numbers import Integral, Real
from typing import Any, TypeVar

T = TypeVar("T")

_LARGEST = 1e100  # largest value of a real parameter, chosen so that its square is finite
_MOST = 2**31 - 1  # largest count, because no memory can hold an array with more rows

_FARTHEST = 1_000_000  # largest number of steps ahead, which takes minutes; a billion would take days

Constraint = Callable[[str, object], object]
"""Function of the name and the value of a parameter. It raises an error unless the value is allowed."""


def check_count(name: str, value: object, *, minimum: int = 1, maximum: float = inf) -> int:
    """Return `value` as an int. Raise an error unless it is a whole number from `minimum` to `maximum`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}={value!r} is not a whole number; give an int >= {minimum}")
    if value < minimum:
        raise ValueError(f"{name}={value} is too small; use {name} >= {minimum}")
    if int(value) > maximum:
        raise ValueError(f"{name}={value} is too large; use {name} <= {maximum}")
    return int(value)


def check_horizon(horizon: object) -> int:
    """Return a number of steps ahead as an int. Raise an error unless it is a whole number from 1 to a million."""
    return check_count("horizon", horizon, maximum=_FARTHEST)


def check_real(name: str, value: object, *, minimum: float = 0.0, open_bound: bool = False) -> float:
    """Return a number from `minimum` (excluded if `open_bound`) to 1e100 as a float. Other values raise an error."""
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


def near_miss(value: object, choices: Collection[str]) -> str:
    """Return a hint for an error message that names the most similar choice, or '' if none is similar.

    >>> near_miss("Auto", ["auto"]), near_miss("much", ["auto"])
    ("; did you mean 'auto'?", '')
    """
    close = get_close_matches(value.lower(), choices, n=1) if isinstance(value, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""


def count(minimum: int = 1) -> Constraint:
    """Return the constraint that a value is a whole number of at least `minimum` and below 2**31."""
    return lambda name, value: check_count(name, value, minimum=minimum, maximum=_MOST)


def real(minimum: float = 0.0, *, open_bound: bool = False) -> Constraint:
    """Return the constraint that a value is a number from `minimum` (excluded if `open_bound`) to 1e100."""
    return lambda name, value: check_real(name, value, minimum=minimum, open_bound=open_bound)


class choice:
    """Constraint that a value is one of the given words. The command line lists these words in its help.

    >>> choice("closed", "sgd")("solver", "Closed")
    Traceback (most recent call last):
    ...
    ValueError: solver='Closed' is unknown; use one of 'closed', 'sgd'; did you mean 'closed'?
    """

    def __init__(self, *choices: str) -> None:
        self.choices = choices

    def __call__(self, name: str, value: object) -> str:
        """Return `value`. Raise an error unless it is one of the words."""
        if value not in self.choices:
            known = ", ".join(map(repr, self.choices))
            raise ValueError(f"{name}={value!r} is unknown; use one of {known}{near_miss(value, self.choices)}")
        return str(value)


def text(name: str, value: object) -> None:
    """Raise an error unless a value is a string."""
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r} is not a string; give one")


def truth(name: str, value: object) -> None:
    """Raise an error unless a value is True or False."""
    if not isinstance(value, bool):
        import numpy as np

        if not isinstance(value, np.bool_):
            raise TypeError(f"{name}={value!r} is not a truth value; give True or False")


def seed(name: str, value: object) -> None:
    """Raise an error unless a value is a seed: None, a whole number below 2**32, or a NumPy RandomState."""
    import numpy as np

    if value is None or value is np.random or isinstance(value, np.random.RandomState):
        return
    check_count(name, value, minimum=0, maximum=2**32 - 1)


def nothing(name: str, value: object) -> None:
    """Raise an error unless a value is None."""
    if value is not None:
        raise ValueError(f"{name}={value!r} is not None, the only value that it can have here")


def mapping(constraints: Mapping[str, Constraint], *, complete: bool = True) -> Constraint:
    """Return the constraint that a value is a mapping whose entries meet the given constraints, by name.

    Other names are refused. If `complete` is True, no name may be missing.

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
    """Return the constraint that a value is `special`, such as None or 'auto', or meets another constraint.

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
    """Return the constraint that a value is a sequence whose items all meet another constraint."""

    def check(name: str, value: object) -> None:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise TypeError(f"{name}={value!r} is not a sequence; give a tuple")
        for item in value:
            constraint(name, item)

    return check


def check_parameters(owner: object, constraints: Mapping[str, Constraint]) -> None:
    """Raise an error unless the attributes of `owner` meet the constraints. Keys are attribute names.

    >>> from types import SimpleNamespace
    >>> check_parameters(SimpleNamespace(n_atoms=0), {"n_atoms": count()})
    Traceback (most recent call last):
    ...
    ValueError: n_atoms=0 is too small; use n_atoms >= 1
    """
    for name, constraint in constraints.items():
        constraint(name, getattr(owner, name))


def parameter(default: T, constraint: Constraint) -> T:
    """Return a dataclass field with a default and a constraint. `Declared` finds the constraints of a class."""
    return field(default=default, metadata={"constraint": constraint})


def by_name(cls: type[T]) -> type[T]:
    """Class decorator: refuse positional arguments and unknown parameters, and suggest the right name.

    >>> @by_name
    ... class Model:
    ...     def __init__(self, *, n_atoms=512):
    ...         self.n_atoms = n_atoms
    >>> Model(n_atom=64)
    Traceback (most recent call last):
    ...
    TypeError: Model has no parameter 'n_atom'; did you mean 'n_atoms'? Its parameters are n_atoms
    """
    init = cls.__init__
    known = [name for name, one in signature(init).parameters.items() if one.kind is one.KEYWORD_ONLY]

    @wraps(init)
    def checked(self: Any, *args: Any, **parameters: Any) -> None:
        if args:
            given = f"{known[0]}={args[0]!r}" if len(args) == 1 else f"{known[0]}=..."
            name = type(self).__name__
            raise TypeError(f"{name} takes parameters by name, and {len(args)} came without: write {name}({given})")
        for name in parameters:
            if name not in known:
                raise TypeError(
                    f"{type(self).__name__} has no parameter {name!r}{near_miss(name, known) or ';'} "
                    f"Its parameters are {', '.join(known)}"
                )
        init(self, **parameters)

    cls.__init__ = checked  # type: ignore[method-assign]
    return cls


class Declared:
    """Descriptor that returns the constraints of all fields made by `parameter`, by field name."""

    def __get__(self, _owner: object, cls: Any) -> dict[str, Constraint]:
        own = fields(cls) if is_dataclass(cls) else ()
        return {field.name: field.metadata["constraint"] for field in own if field.metadata}
