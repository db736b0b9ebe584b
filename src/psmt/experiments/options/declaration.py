"""Declare each parameter once, as a dataclass field with its type, option, help, constraint and default.

    n_atoms: Annotated[int, Option("--atoms", "M: number of atoms in the dictionary."), count()] = 512

Everything else is derived from this field: the check of values, the options of the command and of ``psmt reproduce``,
the names in error messages, the facts in a report, and the table of options in the docs. A field without an `Option`
cannot be set on the command line. A field without a constraint gets that of its type, see `constraint_of`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from importlib import import_module
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, Union, get_args, get_origin, get_type_hints

from psmt.errors import NotEnoughFramesError
from psmt.utils.constraints import Constraint, allowing, check_parameters, choice, count, each, real, text, truth

LEFT_OUT: Any = object()
"""Value of an option that was not given."""

Presets = Mapping[str, Mapping[str, Any]]
"""Values of parameters, by the name of the preset and the name of the parameter."""

LADDER = (512, 256, 128, 64, 32)
"""Numbers of atoms that are tried, largest first, if a film is too short for the default."""

RATIO = 3
"""Number of frames in a window per atom. The paper found this ratio best."""


@dataclass(frozen=True)
class Option:
    """The command-line option of a parameter."""

    name: str = ""
    """The option as it is typed, such as ``--atoms``. It is empty for a parameter of the library only."""
    help: str = ""
    """Help text. It begins with the paper's symbol and a colon, if there is a symbol."""
    default: str = ""
    """Text that says what happens if the option is left out. It is empty if the default value itself says this."""
    auto: bool = False
    """Whether the word ``auto`` means the same as leaving the option out."""
    none: bool = False
    """Whether the word ``none`` stands for the value None."""
    metavar: str = ""
    """Placeholder for the value in help texts. If it is empty, it is made from the type."""
    parse: Callable[[Any], Any] | None = None
    """Function that converts the typed text to the value, or None for the conversion of the type."""
    is_flag: bool = False
    """Whether the option has no value. The function `parse` is then called with True."""


class Derived(NamedTuple):
    """A default value ``make(value)``, which is used if the user gives a `value` for the parameter `source`."""

    source: str
    make: Callable[[Any], Any]


class Declaration(NamedTuple):
    """Everything that a dataclass field declares about a parameter."""

    name: str
    type: Any
    default: Any
    quick: Any
    """Default value with --quick."""
    option: Option
    constraint: Constraint | None
    derived: Derived | None

    @property
    def default_text(self) -> str:
        """The default value in words, for help and docs, or '' if there is none to show."""
        if self.option.default or self.default is False or self.default in (None, (), LEFT_OUT):
            return self.option.default
        text = value_text(self.default)
        return text if self.quick == self.default else f"{text}, with --quick {value_text(self.quick)}"


_KNOWN: dict[type, dict[str, Declaration]] = {}


def declarations(cls: type) -> dict[str, Declaration]:
    """Return the declaration of each field of a dataclass, by the name of the field."""
    if cls in _KNOWN:
        return _KNOWN[cls]
    hints, quick = get_type_hints(cls, include_extras=True), getattr(cls, "PRESETS", {}).get("quick", {})
    found = _KNOWN[cls] = {}
    for item in fields(cls):
        hint = hints[item.name]
        kind, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        # The last annotation of each kind counts, so that an experiment can change a part of a shared declaration.
        known = {type(extra): extra for extra in extras}
        default = LEFT_OUT if item.default is MISSING else item.default
        found[item.name] = Declaration(
            name=item.name,
            type=kind,
            default=default,
            quick=quick.get(item.name, default),
            option=known.get(Option, Option()),
            constraint=constraint_of(kind, next((extra for extra in reversed(extras) if callable(extra)), None)),
            derived=known.get(Derived),
        )
    return found


_BY_TYPE: dict[Any, Constraint] = {int: count(), float: real(), str: text, bool: truth}


def constraint_of(kind: Any, own: Constraint | None = None) -> Constraint | None:
    """Return the function that checks values of the type `kind`, or None if any value is allowed.

    Values must satisfy the constraint `own`. If it is None, integers must be >= 1 and floats >= 0. None and the words
    of a `Literal` are also allowed if they are part of the type.

    >>> constraint_of(tuple[int, ...] | None, count(3))("window", (4, 2))
    Traceback (most recent call last):
    ...
    ValueError: window=2 is too small; use window >= 3
    """
    parts = get_args(kind)
    if get_origin(kind) is Literal:
        return choice(*parts)
    if get_origin(kind) is tuple and parts[-1] is Ellipsis:
        inner = constraint_of(parts[0], own)
        return None if inner is None else each(inner)
    if get_origin(kind) in (Union, UnionType):
        words = [part for part in parts if part is NoneType or get_origin(part) is Literal]
        found, *_ = [constraint_of(part, own) for part in parts if part not in words] or [constraint_of(words[0])]
        for word in words:
            found = found and allowing(None if word is NoneType else get_args(word)[0], found)
        return found
    return own or _BY_TYPE.get(kind)


def anything(_name: str, _value: object) -> None:
    """Accept any value: a constraint for parameters that are checked elsewhere."""


def from_library(module: str, name: str) -> Any:
    """Return a dataclass field whose default is the constant `name` of a `module`. The import is made on demand."""
    return field(default_factory=lambda: getattr(import_module(module), name))


def value_text(value: Any) -> str:
    """Return a value as readable text.

    >>> value_text((512, 1024, 2048)), value_text(0.1), value_text("auto")
    ('512, 1024 and 2048', '0.1', 'auto')
    """
    if isinstance(value, tuple) and value:
        *most, last = map(value_text, value)
        return f"{', '.join(most)} and {last}" if most else last
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, kw_only=True)
class Declared:
    """Base of dataclasses whose fields declare parameters. The values are checked when an object is created."""

    def __post_init__(self) -> None:
        found = declarations(type(self)).values()
        check_parameters(self, {one.name: one.constraint for one in found if one.constraint is not None})


@dataclass(frozen=True, kw_only=True)
class Settings(Declared):
    """Base of the parameters of an experiment."""

    PRESETS: ClassVar[Presets] = {}
    """Values that replace defaults, by preset: 'quick', and 'demo' for the built-in film."""
    OWN_MEANING: ClassVar[tuple[str, ...]] = ()
    """Parameters that have another meaning in other experiments, so that `psmt reproduce` does not set them."""

    @classmethod
    def make(cls, given: Mapping[str, Any] | None = None, *, preset: str = "", **fallbacks: Any) -> Self:
        """Return settings. The mapping `given` has values by parameter name.

        A parameter that is not in it gets the first of these that exists: the value that its `Derived` computes from
        the mapping, the fallback, the value of the preset, or the default. Names that this class does not have are
        ignored, so that several experiments can use one mapping.
        """
        found, values = declarations(cls), dict(cls.PRESETS.get(preset, {}))
        values |= {name: value for name, value in fallbacks.items() if name in found}
        own = {name: value for name, value in (given or {}).items() if name in found}
        for name, declared in found.items():
            if declared.derived is not None and declared.derived.source in own:
                values[name] = declared.derived.make(own[declared.derived.source])
            if name in own:
                several = isinstance(declared.default, tuple) and not isinstance(own[name], tuple)
                values[name] = (own[name],) if several else own[name]
        return cls(**values)

    def shared_with(self, other: "type[Settings]") -> "Settings":
        """Return settings of the class `other`. Parameters that both classes have keep the values of these settings."""
        mine = {name: getattr(self, name) for name in declarations(type(self))}
        return other.make({name: value for name, value in mine.items() if value != "auto"})

    @property
    def largest(self) -> int:
        """The largest number of atoms, from which the number of worker processes is computed."""
        sizes: int | tuple[int, ...] = getattr(self, "n_atoms", 0)
        return max(sizes) if isinstance(sizes, tuple) else sizes

    def check(self, n_frames: int, /) -> None:
        """Raise `NotEnoughFramesError` if a film of `n_frames` is too short."""

    def fitted(self, n_frames: int) -> tuple[Self | None, str]:
        """Return settings that suit a film of `n_frames` (None if it is too short), and a note on what was changed."""
        self.check(n_frames)
        return self, ""

    def text(self) -> str:
        """Return the parameters with their values in one line, for the facts in a report."""
        parts = []
        for name, declared in declarations(type(self)).items():
            value = getattr(self, name)
            shown = declared.option.default if value in (None, ()) else value_text(value)
            if declared.option.is_flag or value is False or not shown:
                continue
            symbol, colon, _ = declared.option.help.partition(": ")
            parts.append(f"{symbol} = {shown}" if colon and len(symbol) == 1 else f"{name.replace('_', ' ')} {shown}")
        return ", ".join(parts)


@dataclass(frozen=True, kw_only=True)
class WindowSettings(Settings):
    """Base of settings with a number of atoms and a window length. The method `fitted` reduces both for short films."""

    def needed(self) -> int:
        """Return the smallest number of frames that a film must have."""
        raise NotImplementedError

    def smaller(self, n_atoms: int) -> Self:
        """Return these settings with `n_atoms` atoms, and a window of `RATIO` frames per atom."""
        return replace(self, n_atoms=n_atoms, window=RATIO * n_atoms)  # type: ignore[call-arg]  # fields of subclasses

    def fitted(self, n_frames: int) -> tuple[Self | None, str]:
        """Return settings and a note as `Settings.fitted` does. They have fewer atoms if the film is too short."""
        asked: Any = self
        used: Any = self
        for used in (self, *map(self.smaller, smaller_sizes(asked.n_atoms))):
            try:
                used.check(n_frames)
            except NotEnoughFramesError:
                continue
            return used, "" if used is self else (
                f"the film has {n_frames:,} frames, too few for M = {asked.n_atoms:,} with H = {asked.window:,}; "
                f"M = {used.n_atoms:,} with H = {used.window:,} was used, the largest of "
                f"{', '.join(map(str, LADDER))} that fits"
            )
        if n_frames >= used.needed():
            used.check(n_frames)  # the film is long enough, so a given start frame is the reason why nothing fits
        return None, (
            f"the film has {n_frames:,} frames; M = {used.n_atoms:,} with H = {used.window:,}, the smallest that is "
            f"tried, needs {used.needed():,}"
        )


def check_length(n_frames: int, *, window: int, horizon: int) -> None:
    """Raise if a film of `n_frames` is too short for a window, one more frame, and `horizon` frames to predict."""
    needed = window + horizon + 1
    if n_frames < needed:
        raise NotEnoughFramesError(
            f"the film has {n_frames} frames; window={window} and horizon={horizon} need at least {needed}: "
            f"use a smaller window or horizon, or a longer film"
        )


def smaller_sizes(n_atoms: int) -> Iterable[int]:
    """Return the numbers in `LADDER` below `n_atoms`. They are tried if a film is too short for `n_atoms` atoms."""
    return [size for size in LADDER if size < n_atoms]


def quarter(n_atoms: int, n_components: int | None) -> int:
    """Return the number of dimensions of the embedding: `n_components` if it is given, else a quarter of the atoms."""
    return max(n_atoms // 4, 1) if n_components is None else n_components
