"""Commands made from the declarations of their experiments: one experiment, or all of the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, make_dataclass
from functools import cached_property, reduce
from operator import or_
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from cyclopts import Parameter

from psmt.experiments import chapters, command_of
from psmt.experiments.contract import PAPER, SEE
from psmt.experiments.options.declaration import LEFT_OUT, Declaration, Settings, declarations, offered
from psmt.experiments.options.parameters import FLAG_NAMES
from psmt.experiments.options.sources import FilmOptions
from psmt.utils.constraints import choice

_METAVARS = {int: "INT", float: "FLOAT", str: "TEXT", Path: "PATH"}


class _Owned(NamedTuple):
    """A declaration, and the class and the command that it belongs to."""

    declared: Declaration
    owner: type
    command: str


@dataclass(frozen=True, kw_only=True)
class CommandLine:
    """A command: its experiments, and the options that their declarations give it."""

    name: str
    help: str
    group: str
    experiments: tuple[str, ...]
    options: type[FilmOptions]
    paper: bool = False
    """Whether it runs all experiments of the paper."""
    preset: str = ""
    source: str = ""
    """The film, if none can be given."""
    only: tuple[str, ...] = ()
    """Parameters that it offers, if not all."""
    no_departures: str = ""

    @cached_property
    def declared(self) -> dict[str, list[_Owned]]:
        """What is offered, by the name of the parameter: one declaration per experiment that has it."""
        found: dict[str, list[_Owned]] = {}
        settings = [(command_of(name).settings, command_of(name).name) for name in self.experiments]
        for owner, command in [(self.options, ""), *settings]:
            for one in offered(owner):
                own_meaning = self.paper and one.name in getattr(owner, "OWN_MEANING", ())
                if not own_meaning and (not self.only or one.name in self.only):
                    found.setdefault(one.name, []).append(_Owned(one, owner, command))
        return found

    @cached_property
    def names(self) -> dict[str, str]:
        """Options by the names that error messages have for them: those of parameters, and their own."""
        options = {name: _chosen(owned).option.name for name, owned in self.declared.items()}  # type: ignore[union-attr]
        return {option[2:].replace("-", "_"): option for option in options.values()} | options

    def function(self) -> Callable[..., None]:
        """The function that cyclopts calls: with the source, and a dataclass of all options."""
        parts = [(name, self._annotation(owned), LEFT_OUT) for name, owned in self.declared.items()]
        # cyclopts takes a class of the module `types` for a built-in type.
        described = {"__module__": __name__, "__doc__": "What was given."}
        given_class: Any = make_dataclass("Given", parts, kw_only=True, repr=False, eq=False, namespace=described)
        options, nothing_given = self.options, given_class()
        parameter = Parameter(name=options.SOURCE_NAME or "FILM", help=options.SOURCE_HELP, negative=())
        several = self.paper or options.SEVERAL_SOURCES

        def call(source: Any, /, *, given: Any = nothing_given) -> None:
            from psmt.cli.work import carry_out

            carry_out(self.job(self.values(given)), source if self.paper and not self.source else [source])

        def call_on_source(*, given: Any = nothing_given) -> None:
            call(self.source, given=given)

        made: Any = call_on_source if self.source else call
        if options.DEFAULT_SOURCE is not None:
            made.__defaults__ = (options.DEFAULT_SOURCE,)
        given = {"given": Annotated[given_class, Parameter(name="*")]}
        source = {"source": Annotated[tuple[str, ...] if several else str, parameter]}
        made.__annotations__ = given if self.source else source | given
        return made  # type: ignore[no-any-return]

    def values(self, parsed: Any) -> dict[str, Any]:
        """Parameters that were given, by name."""
        found = {}
        for name, owned in self.declared.items():
            value, option = getattr(parsed, name), _chosen(owned).option
            assert option is not None
            if value is LEFT_OUT or (option.auto and value == "auto"):
                continue
            if option.parse is not None:
                try:
                    value = option.parse(value)
                except ValueError as error:
                    raise ValueError(f"Invalid value for {option.name}: {error}") from None
            found[name] = None if option.none and value == "none" else value
        return found

    def job(self, given: Mapping[str, Any]) -> Job:
        """What the given parameters ask for."""
        known = declarations(self.options)
        own = {name: value for name, value in given.items() if name in known}
        return Job(command=self, given=given, options=self.options(**{"out": Path(f"psmt-{self.name}")} | own))

    def rows(self) -> list[tuple[str, str, str]]:
        """Option, help and default of each parameter, for the docs."""
        chosen = {name: _chosen(owned).option for name, owned in self.declared.items()}
        return [
            (option.name, option.help, self._default(name, self.declared[name]))
            for name, option in chosen.items()
            if option is not None and not option.hidden
        ]

    def _annotation(self, owned: list[_Owned]) -> Any:
        """Type and parameter for cyclopts."""
        one = _chosen(owned)
        option = one.option
        assert option is not None
        kind = reduce(or_, _without_none(one.type))
        if kind is str and isinstance(one.constraint, choice):
            kind = Literal[one.constraint.choices]
        metavar = option.metavar or _METAVARS.get(get_args(kind)[0] if get_origin(kind) is tuple else kind)
        words = tuple(word for word, known in (("auto", option.auto), ("none", option.none)) if known)
        if words:
            numbers = [part for part in _without_none(kind) if get_origin(part) is not Literal]
            kind = reduce(or_, [Literal[words], *numbers])
            metavar = option.metavar or "|".join([*words, *(_METAVARS[number] for number in numbers)])
        return Annotated[
            str if option.parse else kind,
            Parameter(
                name=option.name,
                help=option.help,
                metavar=metavar,
                show=not option.hidden,
                show_choices=not words and not option.metavar,
                show_default=self._default(one.name, owned) or False,
                negative=None if kind is bool and one.type is not bool else (),
            ),
        ]

    def _default(self, name: str, owned: list[_Owned]) -> str:
        """What the option is if it is left out; by command where that differs."""
        if name == "out":
            return f"psmt-{self.name}"
        texts: dict[str, list[str]] = {}
        for one in owned:
            texts.setdefault(one.declared.default_text(one.owner), []).append(one.command)
        if len(texts) == 1:
            return next(iter(texts))
        return "; ".join(f"{text} ({', '.join(commands)})" for text, commands in texts.items())


@dataclass(frozen=True, kw_only=True)
class Job:
    """What was asked for on the command line."""

    command: CommandLine
    options: FilmOptions
    given: Mapping[str, Any]

    def settings(self, source: Any = None) -> dict[str, Settings]:
        """Settings by experiment, with defaults that fit the kind of the source."""
        fallbacks = {} if source is None else self.options.defaults_for(source)
        preset = self.command.preset or ("quick" if getattr(self.options, "quick", False) else "")
        found = {}
        for name in self.command.experiments:
            cls = command_of(name).settings
            hidden = cls.OWN_MEANING if self.command.paper else ()
            given = {key: value for key, value in self.given.items() if key not in hidden}
            found[name] = cls.make(given, preset=preset, **fallbacks)
        return found

    @property
    def motion(self) -> bool:
        """Whether speed and noise of the film are measured."""
        return any(command_of(name).motion for name in self.command.experiments)

    @property
    def sizes_given(self) -> bool:
        """Whether M or H were given, so that they may not be changed for a film that is too short."""
        return not self.command.paper and bool({"n_atoms", "window"} & self.given.keys())


def of_experiment(name: str) -> CommandLine:
    """The command of one experiment."""
    known = command_of(name)
    return CommandLine(
        name=known.name,
        help=known.help,
        group=known.group,
        experiments=(name,),
        options=known.options,
        no_departures=known.no_departures,
    )


_REPRODUCE = """Carry out every experiment of the paper on your film, and report on its claims.

Writes what sweep, topology, reconstruct and predict write, summary.json with all numbers, and report.html: one page \
that opens with each claim of the paper and whether it holds. Experiments that the film is too short for are named. \
Several films get a sub-folder each. Full size on 10,000 frames: seven to twenty minutes on two cores, below 4 GiB of \
memory."""

_DEMO = """Reproduce the paper, small, on the built-in film: about a minute on two cores; the first time longer, while \
kernels are compiled.

Writes what reproduce writes, above all report.html: one page with verdicts, figures, tables and settings."""

DEMO_FILM = "builtin:glide?frames=6000"


def of_paper() -> list[CommandLine]:
    """`reproduce` and `demo`: they have the options of all experiments of the paper, and declare none of their own."""
    names = chapters()
    parts: dict[str, Any] = {"experiments": names, "options": command_of(names[0]).options, "paper": True}
    only = ("seed", "out", "json", *FLAG_NAMES)
    return [
        CommandLine(name="demo", help=_DEMO, group=SEE, preset="demo", source=DEMO_FILM, only=only, **parts),
        CommandLine(name="reproduce", help=_REPRODUCE, group=PAPER, **parts),
    ]


def _chosen(owned: list[_Owned]) -> Declaration:
    """The declaration that the command line shows: one value rather than several, if experiments differ in that."""
    declared = [one.declared for one in owned]
    return next((one for one in declared if get_origin(one.type) is not tuple), declared[0])


def _without_none(kind: Any) -> list[Any]:
    parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return [part for part in parts if part is not NoneType]
