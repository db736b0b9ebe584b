"""Classes that define an experiment: its command, and the functions that run it and make its files and report."""

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
    """The command of an experiment. The module that creates it must have no heavy imports, so that --help is fast."""

    name: str
    help: str
    settings: type[Settings]
    options: type[FilmOptions] = PatchOptions
    group: str = PAPER
    chapter: bool = False
    """Whether `psmt reproduce` runs this experiment."""


@dataclass(frozen=True, kw_only=True)
class Experiment(Generic[S, R]):
    """The functions that make up an experiment. Only `run` and `shown` are required."""

    run: Callable[[Any, S, Run, Mapping[str, Any]], R]
    """``run(material, settings, run, earlier)`` returns the result. `material` is what `FilmOptions.read` returns, for
    most experiments values (time, n_features). `earlier` maps names of experiments to results that this one needs."""
    shown: Callable[[R], Sequence[Shown]]
    """``shown(result)`` returns what the command prints."""
    files: Mapping[str, Callable[[R], bytes | Iterable[bytes] | None]] = field(default_factory=dict)
    """For each file, a function of the result that returns its content, or None if this result has no such file. For a
    file that grows with the film, the function yields parts, which are written one after the other."""
    meanwhile: Callable[[R, Path], AbstractContextManager[object]] = lambda *_: nullcontext()
    """``meanwhile(result, folder)`` returns a context that is open while the files are written. It writes further
    outputs that must appear together with the files."""
    needs: Callable[[S], Sequence[str]] = lambda _: ()
    """``needs(settings)`` returns the names of the experiments whose results are needed."""
    claims: Callable[[R | None, str], Sequence[Claim]] = lambda *_: ()
    """``claims(result, note)`` returns the claims of the report with their verdicts. `result` is None if the film is
    too short. `note` says how the settings were changed to fit the film."""
    sections: Callable[[R, Mapping[str, Any]], Sequence[Section]] = lambda *_: ()
    """``sections(result, files)`` returns the sections of the report. `files` maps the names of files to contents."""
    facts: Callable[[R], Sequence[Fact]] | None = None
    """``facts(result)`` returns the list of facts in the report. If it is None, the report lists the settings."""
    summary: Callable[[R], Any] = lambda _: None
    """``summary(result)`` returns the numbers of a result for summary.json and --json, see `to_json`."""
    answer: Callable[[R, Mapping[str, Any]], Answer | None] = lambda *_: None
    """``answer(result, files)`` returns what the report and the screen begin with, or None if there is no answer."""
    overview: Callable[[R], Sequence[Shown]] = lambda _: ()
    """``overview(result)`` returns what `psmt reproduce` prints before the claims."""
    page: Callable[[R, Mapping[str, Any]], Page] | None = None
    """``page(result, files)`` returns a whole report in place of the usual one. Facts of the film are added to it."""
    complete: bool = False
    """If True, nothing about the film is added to `page` and `summary`."""

    def written(self, result: R) -> dict[str, Any]:
        """Return the content of each file by its name: bytes, or an iterator over parts of the file."""
        made = {name: make(result) for name, make in self.files.items()}
        return {name: content for name, content in made.items() if content is not None}
