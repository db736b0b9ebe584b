"""What an experiment is: the parts that the command line, `psmt reproduce` and the report use."""

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
    from psmt.report import Claim, Fact, Page, Section, Table

S = TypeVar("S")
R = TypeVar("R")

Shown: TypeAlias = "Table | Claim | str"
"""What can be printed at the end."""

SEE, USE, PAPER = "See it", "Use it", "The paper"
"""Groups of commands in ``psmt --help``."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """The command of an experiment. Free of heavy imports."""

    name: str
    help: str
    settings: type[Settings]
    options: type[FilmOptions] = PatchOptions
    group: str = PAPER
    chapter: bool = False
    """Whether `psmt reproduce` runs it."""
    motion: bool = False
    """Whether speed and noise of the film are measured, to say what to expect of a prediction."""
    no_departures: str = ""
    """Why it has no flags for departures from the paper, such as --literal, if it has none."""


@dataclass(frozen=True, kw_only=True)
class Experiment(Generic[S, R]):
    """The parts of an experiment. Only `run` and `shown` are required.

    Parameters
    ----------
    run : callable
        ``run(material, settings, run, earlier)`` returns the result. The material is what `FilmOptions.read` returns:
        values (time, n_features) for most. `earlier` holds the results that this one needs, by experiment.
    shown : callable
        What the command prints of a result.
    files : mapping
        Functions that make a file from the result, by the name of the file. They return bytes, or yield the parts of
        a file that grows with the film: these are made while they are written.
    meanwhile : callable
        Context of a result and the folder, entered while the files are written: for outputs that are committed together
        with them.
    needs : callable
        Names of the experiments whose results the settings ask for.
    claims : callable
        Claims of a result, or of None for a film that is too short; and of the note on settings that are not as asked.
    sections : callable
        Sections of the report, from a result and the files by name.
    facts : callable, optional
        Facts about a result in the report; None lists the settings.
    summary : callable, optional
        Plain numbers of a result for summary.json and --json.
    overview : callable
        What `psmt reproduce` prints of a result before the claims.
    page : callable, optional
        A report of its own, from the result and the files by name. What is said of every film is added: a still, the
        checksum, versions.
    complete : bool
        Whether `page` and `summary` are used as they are: nothing about a film is added.
    """

    run: Callable[[Any, S, Run, Mapping[str, Any]], R]
    shown: Callable[[R], Sequence[Shown]]
    files: Mapping[str, Callable[[R], bytes | Iterable[bytes]]] = field(default_factory=dict)
    meanwhile: Callable[[R, Path], AbstractContextManager[object]] = lambda *_: nullcontext()
    needs: Callable[[S], Sequence[str]] = lambda _: ()
    claims: Callable[[R | None, str], Sequence[Claim]] = lambda *_: ()
    sections: Callable[[R, Mapping[str, Any]], Sequence[Section]] = lambda *_: ()
    facts: Callable[[R], Sequence[Fact]] | None = None
    summary: Callable[[R], Any] = lambda _: None
    overview: Callable[[R], Sequence[Shown]] = lambda _: ()
    page: Callable[[R, Mapping[str, Any]], Page] | None = None
    complete: bool = False

    def written(self, result: R) -> dict[str, Any]:
        """Content of all files, by name: bytes, or an iterator over parts."""
        return {name: make(result) for name, make in self.files.items()}
