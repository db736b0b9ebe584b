"""One declaration per parameter: type, option, help, constraint and default stand in one field of a dataclass.

    n_atoms: Annotated[int, Option("--atoms", "M: number of atoms in the dictionary."), count()] = 512

Everything else is made from it: the check of values, the option of the command and of ``psmt reproduce``, the names in
error messages, the facts in a report, and the table of options in the docs. A field without an `Option` is a parameter
of the library alone; one without a constraint has that of its type, see `constraint_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from importlib import import_module
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, Union, get_args, get_origin, get_type_hints

from psmt.errors import NotEnoughFramesError
from psmt.utils.constraints import Constraint, allowing, check_parameters, choice, count, each, real, text, truth

LEFT_OUT: Any = object()
"""Value of an option that was not given."""

Presets = Mapping[str, Mapping[str, Any]]
"""Values of parameters, by the name of the preset."""

LADDER = (512, 256, 128, 64, 32)
"""Numbers of atoms that are tried, largest first, if a film is too short for the default."""

RATIO = 3
"""Frames in a window per atom; the paper found this ratio best."""


@dataclass(frozen=True)
class Option:
    """How the command line offers a parameter."""

    name: str = ""
    """As it is typed: ``--atoms``; empty for a parameter of the library alone."""
    help: str = ""
    """Begins with the paper's symbol and a colon, if there is one."""
    default: str = ""
    """What happens if the option is left out, where the default value does not say it."""
    auto: bool = False
    """Whether the word ``auto`` stands for leaving the option out."""
    none: bool = False
    """Whether the word ``none`` stands for None."""
    metavar: str = ""
    """What help writes for the value; made from the type if empty."""
    parse: Callable[[str], Any] | None = None
    """Makes the value from the text that was typed."""
    hidden: bool = False
    """Whether help leaves it out."""


class Derived(NamedTuple):
    """Default of a parameter that follows another one, if only that one is given."""

    source: str
    make: Callable[[Any], Any]


class Flags(NamedTuple):
    """Options of a field that holds several parameters: fields of another class, by name."""

    owner: type
    names: tuple[str, ...]
    make: Callable[[Mapping[str, Any]], Any]


class Declaration(NamedTuple):
    """What a field declares."""

    name: str
    type: Any
    default: Any
    quick: Any
    """Default with --quick."""
    option: Option
    constraint: Constraint | None
    derived: Derived | None
    flags: Flags | None

    @property
    def default_text(self) -> str:
        """What happens if the option is left out, in words; empty for a switch and for what is simply absent."""
        if self.option.default or self.default is False or self.default in (None, (), LEFT_OUT):
            return self.option.default
        text = value_text(self.default)
        return text if self.quick == self.default else f"{text}, with --quick {value_text(self.quick)}"


_KNOWN: dict[type, dict[str, Declaration]] = {}


def declarations(cls: type) -> dict[str, Declaration]:
    """What the fields of a dataclass declare, by name."""
    if cls in _KNOWN:
        return _KNOWN[cls]
    hints, quick = get_type_hints(cls, include_extras=True), getattr(cls, "PRESETS", {}).get("quick", {})
    found = _KNOWN[cls] = {}
    for item in fields(cls):
        hint = hints[item.name]
        kind, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        # The last of each kind counts, so that an experiment can change a part of a shared declaration.
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
            flags=known.get(Flags),
        )
    return found


_BY_TYPE: dict[Any, Constraint] = {int: count(), float: real(), str: text, bool: truth}


def constraint_of(kind: Any, own: Constraint | None = None) -> Constraint | None:
    """Constraint of a type: its None and its words, else `own`, else that counts are >= 1 and numbers >= 0.

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
    """Constraint of a parameter that is checked where it is used."""


def offered(cls: type) -> Iterator[Declaration]:
    """What a dataclass declares that the command line offers."""
    for declared in declarations(cls).values():
        if declared.flags is not None:
            inner = declarations(declared.flags.owner)
            yield from (inner[name] for name in declared.flags.names)
        elif declared.option.name:
            yield declared


def from_library(module: str, name: str) -> Any:
    """Field whose default is a constant of a module that is imported when it is needed."""
    return field(default_factory=lambda: getattr(import_module(module), name))


def value_text(value: Any) -> str:
    """A value for people.

    >>> value_text((512, 1024, 2048)), value_text(0.1), value_text("auto")
    ('512, 1024 and 2048', '0.1', 'auto')
    """
    if isinstance(value, tuple) and value:
        *most, last = map(value_text, value)
        return f"{', '.join(most)} and {last}" if most else last
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, kw_only=True)
class Declared:
    """Base of dataclasses whose fields declare parameters: checks their values."""

    def __post_init__(self) -> None:
        found = declarations(type(self)).values()
        check_parameters(self, {one.name: one.constraint for one in found if one.constraint is not None})


@dataclass(frozen=True, kw_only=True)
class Settings(Declared):
    """Parameters of an experiment."""

    PRESETS: ClassVar[Presets] = {}
    """Other values than the defaults: 'quick', and 'demo' for the built-in film."""
    OWN_MEANING: ClassVar[tuple[str, ...]] = ()
    """Parameters that have another meaning in other experiments, so that `psmt reproduce` does not set them."""

    @classmethod
    def make(cls, given: Mapping[str, Any] | None = None, *, preset: str = "", **fallbacks: Any) -> Self:
        """Settings with the given values; others are derived from them, or are fallbacks, of the preset, or defaults.

        Names that this class does not have are ignored, so that one mapping serves several experiments.
        """
        found, values = declarations(cls), dict(cls.PRESETS.get(preset, {}))
        values |= {name: value for name, value in fallbacks.items() if name in found}
        own = {name: value for name, value in (given or {}).items() if name in found}
        for name, declared in found.items():
            if declared.flags is not None and name not in own:
                values[name] = declared.flags.make(given or {})
            if declared.derived is not None and declared.derived.source in own:
                values[name] = declared.derived.make(own[declared.derived.source])
            if name in own:
                several = isinstance(declared.default, tuple) and not isinstance(own[name], tuple)
                values[name] = (own[name],) if several else own[name]
        return cls(**values)

    def shared_with(self, other: type[Settings]) -> Settings:
        """Settings of an experiment whose result this one needs, with the same values as far as both have them."""
        mine = {name: getattr(self, name) for name in declarations(type(self))}
        return other.make({name: value for name, value in mine.items() if value != "auto"})

    @property
    def largest(self) -> int:
        """The largest number of atoms, which decides how many workers fit into memory."""
        sizes: int | tuple[int, ...] = getattr(self, "n_atoms", 0)
        return max(sizes) if isinstance(sizes, tuple) else sizes

    def check(self, n_frames: int, /) -> None:
        """Raise `NotEnoughFramesError` unless a film of `n_frames` is long enough."""

    def fitted(self, n_frames: int) -> tuple[Self | None, str]:
        """What of these settings fits into a film, None if no size does; and why it is not as asked, or ''."""
        self.check(n_frames)
        return self, ""

    def text(self) -> str:
        """All parameters with their values, for the list of facts in a report."""
        parts = []
        for name, declared in declarations(type(self)).items():
            value = getattr(self, name)
            shown = declared.option.default if value in (None, ()) else value_text(value)
            if declared.flags is not None or value is False or not shown:
                continue
            symbol, colon, _ = declared.option.help.partition(": ")
            parts.append(f"{symbol} = {shown}" if colon and len(symbol) == 1 else f"{name.replace('_', ' ')} {shown}")
        return ", ".join(parts)


@dataclass(frozen=True, kw_only=True)
class WindowSettings(Settings):
    """Settings of an experiment with M atoms and windows of H frames, both smaller in a film that is too short."""

    def needed(self) -> int:
        """Number of frames that a film must have."""
        raise NotImplementedError

    def smaller(self, n_atoms: int) -> Self:
        """These settings with fewer atoms."""
        return replace(self, n_atoms=n_atoms, window=RATIO * n_atoms)  # type: ignore[call-arg]  # fields of subclasses

    def fitted(self, n_frames: int) -> tuple[Self | None, str]:
        """Return the settings with the largest dictionary and window that fit into the film, and a note on changes."""
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
            used.check(n_frames)  # the film is long enough: a frame that was given lies where nothing fits
        return None, (
            f"the film has {n_frames:,} frames; M = {used.n_atoms:,} with H = {used.window:,}, the smallest that is "
            f"tried, needs {used.needed():,}"
        )


def smaller_sizes(n_atoms: int) -> Iterable[int]:
    """Numbers of atoms that are tried after `n_atoms`, largest first."""
    return [size for size in LADDER if size < n_atoms]


def quarter(n_atoms: int, n_components: int | None) -> int:
    """Dimension f of the embedding: as given, or a quarter of the atoms."""
    return max(n_atoms // 4, 1) if n_components is None else n_components
