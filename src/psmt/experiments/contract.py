"""What an experiment consists of: the parts that the command line, `psmt reproduce` and the report use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from psmt.experiments.options.declaration import Settings
from psmt.experiments.options.sources import FilmOptions, PatchOptions

if TYPE_CHECKING:
    from psmt.pipeline.run import Run
    from psmt.report import Answer, Claim, Fact, Page, Section, Table

S = TypeVar("S")
R = TypeVar("R")

Shown: TypeAlias = "Table | Claim | str"
"""Anything that a command can print at its end."""

SEE, USE, PAPER = "See it", "Use it", "The paper"
"""Groups of commands in ``psmt --help``."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """The command of an experiment. Its module must not have heavy imports."""

    name: str
    help: str
    settings: type[Settings]
    options: type[FilmOptions] = PatchOptions
    group: str = PAPER
    chapter: bool = False
    """Whether `psmt reproduce` runs this experiment."""


@dataclass(frozen=True, kw_only=True)
class Experiment(Generic[S, R]):
    """The parts of an experiment. Only `run` and `shown` are required.

    Parameters
    ----------
    run : callable
        ``run(material, settings, run, earlier)`` returns the result. `material` is what `FilmOptions.read` returns, for
        most experiments values (time, n_features). `earlier` maps names of experiments to results that this one needs.
    shown : callable
        ``shown(result)`` returns what the command prints.
    files : mapping
        Maps the name of each file to a function of the result that returns its content as bytes. If a file grows with
        the film, the function yields parts, which are written one after the other. None means that there is no file.
    meanwhile : callable
        ``meanwhile(result, folder)`` returns a context that is open while the files are written. It writes further
        outputs that must appear together with the files.
    needs : callable
        ``needs(settings)`` returns the names of the experiments whose results are needed.
    claims : callable
        ``claims(result, note)`` returns the claims of the report with their verdicts. `result` is None if the film is
        too short. `note` says how the settings were changed to fit the film.
    sections : callable
        ``sections(result, files)`` returns the sections of the report. `files` maps names to contents.
    facts : callable, optional
        ``facts(result)`` returns the list of facts in the report. None lists the settings.
    summary : callable, optional
        Plain numbers of a result for summary.json and --json.
    answer : callable
        The `Answer` that the report and the screen begin with, from a result and the files by name; None if the
        experiment has none.
    overview : callable
        ``overview(result)`` returns what `psmt reproduce` prints before the claims.
    page : callable, optional
        ``page(result, files)`` returns a whole report in place of the usual one. The film's checksum and versions are
        added to it.
    complete : bool
        If True, nothing about the film is added to `page` and `summary`.
    """

    run: Callable[[Any, S, Run, Mapping[str, Any]], R]
    shown: Callable[[R], Sequence[Shown]]
    files: Mapping[str, Callable[[R], bytes | Iterable[bytes] | None]] = field(default_factory=dict)
    meanwhile: Callable[[R, Path], AbstractContextManager[object]] = lambda *_: nullcontext()
    needs: Callable[[S], Sequence[str]] = lambda _: ()
    claims: Callable[[R | None, str], Sequence[Claim]] = lambda *_: ()
    sections: Callable[[R, Mapping[str, Any]], Sequence[Section]] = lambda *_: ()
    facts: Callable[[R], Sequence[Fact]] | None = None
    summary: Callable[[R], Any] = lambda _: None
    answer: Callable[[R, Mapping[str, Any]], Answer | None] = lambda *_: None
    overview: Callable[[R], Sequence[Shown]] = lambda _: ()
    page: Callable[[R, Mapping[str, Any]], Page] | None = None
    complete: bool = False

    def written(self, result: R) -> dict[str, Any]:
        """Return the content of all files by name, as bytes or as an iterator over parts."""
        made = {name: make(result) for name, make in self.files.items()}
        return {name: content for name, content in made.items() if content is not None}
