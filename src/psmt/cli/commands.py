"""Commands made from the declarations of experiments. A command runs one experiment, or all those of the paper."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, make_dataclass
from functools import cached_property, reduce
from operator import or_
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from cyclopts import Group, Parameter

from psmt.experiments import chapters, command_of
from psmt.experiments.contract import PAPER, SEE, Command
from psmt.experiments.options.declaration import LEFT_OUT, Declaration, Settings, declarations
from psmt.experiments.options.sources import FilmOptions
from psmt.utils.constraints import choice

_METAVARS = {int: "INT", float: "FLOAT", str: "TEXT", Path: "PATH"}
_METHOD, _RUN = Group("Method", sort_key=1), Group("Input, output and machine", sort_key=2)


@dataclass(frozen=True, kw_only=True)
class CommandLine(Command):
    """A command, the experiments that it runs, and the options that these declare."""

    experiments: tuple[str, ...]
    paper: bool = False
    """Whether the command runs all experiments of the paper."""
    preset: str = ""
    """Name of the preset whose values replace defaults, see `Settings.PRESETS`."""
    film: str = ""
    """The film that is used if the command does not let the user name one."""
    only: tuple[str, ...] = ()
    """Names of the parameters that the command offers. If it is empty, all parameters are offered."""

    @cached_property
    def declared(self) -> dict[str, dict[str, Declaration]]:
        """All declared options, by parameter and then by experiment. The key '' holds options of the command itself."""
        found: dict[str, dict[str, Declaration]] = {}
        commands = [command_of(name) for name in self.experiments]
        for owner, command in [(self.options, ""), *((one.settings, one.name) for one in commands)]:
            for one in declarations(owner).values():
                own_meaning = self.paper and one.name in getattr(owner, "OWN_MEANING", ())
                if one.option.name and not own_meaning and (not self.only or one.name in self.only):
                    found.setdefault(one.name, {})[command] = one
        return found

    @cached_property
    def shown(self) -> dict[str, Declaration]:
        """For each parameter, the declaration that help shows. One that takes a single value is preferred."""
        found = self.declared.items()
        return {name: min(own.values(), key=lambda one: get_origin(one.type) is tuple) for name, own in found}

    @cached_property
    def names(self) -> dict[str, str]:
        """Options such as '--atoms', keyed both by parameter ('n_atoms') and by the name in the option ('atoms')."""
        options = {name: one.option.name for name, one in self.shown.items()}
        return {option[2:].replace("-", "_"): option for option in options.values()} | options

    def function(self) -> Callable[..., None]:
        """Return the function that cyclopts calls, with the source and a dataclass of all options as arguments."""
        parts = [(name, self._annotation(one), LEFT_OUT) for name, one in self.shown.items()]
        # cyclopts takes a class in the module `types` for a built-in type.
        described = {"__module__": __name__, "__doc__": "What was given."}
        given_class: Any = make_dataclass("Given", parts, kw_only=True, repr=False, eq=False, namespace=described)
        options, default = self.options, self.film or self.options.DEFAULT_SOURCE

        def call(source: Any, /, *, given: Any = given_class()) -> None:  # noqa: B008  which holds nothing
            from psmt.cli.work import carry_out

            carry_out(self.job(self.values(given)), source)

        call.__defaults__ = None if default is None else (default,)
        parameter = Parameter(
            name=options.SOURCE_NAME,
            help=options.SOURCE_HELP,
            negative=(),
            parse=False if self.film else None,
            show_default=bool(default) and (lambda given: given if isinstance(given, str) else " ".join(given)),
        )
        call.__annotations__ = {
            "source": Annotated[tuple[str, ...] if options.SEVERAL_SOURCES else str, parameter],
            "given": Annotated[given_class, Parameter(name="*")],
        }
        return call

    def values(self, parsed: Any) -> dict[str, Any]:
        """Return the values that the user gave on the command line, by parameter name."""
        found = {}
        for name, one in self.shown.items():
            value, option = getattr(parsed, name), one.option
            if value is LEFT_OUT or (option.auto and value == "auto"):
                continue
            if option.parse is not None:
                try:
                    value = option.parse(value)
                except ValueError as error:
                    raise ValueError(f"Invalid value for {option.name}: {error}") from None
            found[name] = None if option.none and value == "none" else value
        return found

    def job(self, given: Mapping[str, Any]) -> "Job":
        """Return the `Job` for the options that the user gave. `given` is what the method `values` returns."""
        own = {name: value for name, value in given.items() if name in declarations(self.options)}
        return Job(command=self, given=given, options=self.options(**{"out": Path(f"psmt-{self.name}")} | own))

    def rows(self) -> list[tuple[str, str, str]]:
        """Return (option, help, default) of each parameter, for the docs."""
        return [(one.option.name, one.option.help, self._default(one.name)) for one in self.shown.values()]

    def _annotation(self, one: Declaration) -> Any:
        """Return the type of a parameter, annotated for cyclopts."""
        option = one.option
        parts = get_args(one.type) if get_origin(one.type) in (Union, UnionType) else (one.type,)
        kind = reduce(or_, [part for part in parts if part is not NoneType])
        if kind is str and isinstance(one.constraint, choice):
            kind = Literal[one.constraint.choices]
        metavar = _METAVARS.get(get_args(kind)[0] if get_origin(kind) is tuple else kind)
        words = tuple(word for word, known in (("auto", option.auto), ("none", option.none)) if known)
        if words:
            numbers = [part for part in parts if part in _METAVARS]
            kind = reduce(or_, [Literal[words], *numbers])
            metavar = "|".join([*words, *(_METAVARS[number] for number in numbers)])
        return Annotated[
            bool if option.is_flag else str if option.parse else kind,
            Parameter(
                name=option.name,
                help=option.help,
                metavar=option.metavar or metavar,
                show_choices=not words and not option.metavar,
                show_default=self._default(one.name) or False,
                group=_RUN if "" in self.declared[one.name] else _METHOD,
                negative=(),
            ),
        ]

    def _default(self, name: str) -> str:
        """Return the default of an option as text. If experiments have different defaults, all are listed."""
        if name == "out":
            return f"psmt-{self.name}"
        texts: dict[str, list[str]] = {}
        for command, one in self.declared[name].items():
            texts.setdefault(one.default_text, []).append(command)
        if len(texts) == 1:
            return next(iter(texts))
        return "; ".join(f"{text} ({', '.join(commands)})" for text, commands in texts.items())


@dataclass(frozen=True, kw_only=True)
class Job:
    """A parsed command line: the command, its input and output options, and the user's values by parameter name."""

    command: CommandLine
    options: FilmOptions
    given: Mapping[str, Any]

    def settings(self, source: Any = None) -> dict[str, Settings]:
        """Return the settings of each experiment, by name. Defaults depend on the kind of source (film or series)."""
        fallbacks = {} if source is None else self.options.defaults_for(source)
        if self.command.paper:  # the paper's method, on a series too
            fallbacks.pop("n_rows", None)
        preset = self.command.preset or ("quick" if getattr(self.options, "quick", False) else "")
        found = {}
        for name in self.command.experiments:
            cls = command_of(name).settings
            hidden = cls.OWN_MEANING if self.command.paper else ()
            given = {key: value for key, value in self.given.items() if key not in hidden}
            found[name] = cls.make(given, preset=preset, **fallbacks)
        return found


def of_experiment(name: str) -> CommandLine:
    """Return the command of one experiment."""
    return CommandLine(**vars(command_of(name)), experiments=(name,))


_REPRODUCE = """Carry out every experiment of the paper on your film, and report on its claims.

Writes what sweep, topology, reconstruct and predict write, summary.json with all numbers, and report.html, a page \
that begins with an answer: what predicts this film best, and which claims of the paper come out. Experiments that \
the film is too short for are named. Full size on 10,000 frames: seven to twenty minutes on two cores, below 4 GiB \
of memory."""

_DEMO = """Run a small version of the paper's experiments on the built-in film.

Takes one to three minutes on two cores; the first time longer, because kernels are compiled. Writes what reproduce \
writes, above all report.html: one page with verdicts, figures, tables and settings."""


def of_paper() -> list[CommandLine]:
    """Return the commands `reproduce` and `demo`, which offer the options of all experiments of the paper."""
    parts: dict[str, Any] = {"experiments": chapters(), "settings": Settings, "paper": True}
    film, only = "builtin:glide?frames=6000", ("seed", "out", "json", "departures")
    return [
        CommandLine(name="demo", help=_DEMO, group=SEE, preset="demo", film=film, only=only, **parts),
        CommandLine(name="reproduce", help=_REPRODUCE, group=PAPER, **parts),
    ]
