"""What an experiment is: the parts that the command line, `reproduce` and the report find it by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeAlias, TypeVar

if TYPE_CHECKING:
    from psmt.experiments.options import FilmOptions
    from psmt.pipeline.run import Run
    from psmt.report import Claim, Fact, Page, Section, Table

S = TypeVar("S")
R = TypeVar("R")

Shown: TypeAlias = "Table | Claim | str"
"""What can be printed at the end."""


class PaperSettings(Protocol):
    """Settings of an experiment that has a chapter in the report of the paper."""

    @property
    def seed(self) -> int:
        """Of the dictionary's first atoms."""

    @property
    def largest(self) -> int:
        """The largest M, which decides how many workers fit into memory."""

    @classmethod
    def quick(cls) -> Self:
        """The small version."""

    @classmethod
    def demo(cls) -> Self:
        """For the built-in film."""

    def check(self, n_frames: int) -> None:
        """Raise `NotEnoughFramesError` unless a film of `n_frames` is long enough."""

    def fitted(self, n_frames: int) -> tuple[Self | None, str]:
        """What of these settings fits into a film, None where no size does; and why it is not as asked, or ''."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """How an experiment is asked for on the command line. Free of heavy imports."""

    name: str
    help: str
    options: type[FilmOptions]
    undeparted: str = ""
    """Why it has no flags for departures from the paper, such as --literal, where it has none."""


@dataclass(frozen=True, kw_only=True)
class Chapter(Generic[R]):
    """An experiment in the report of the paper, and in summary.json."""

    claims: Callable[[R | None, str], Sequence[Claim]]
    """Of a result, or of None for a film that is too short; and the note on why it is not as asked, or ''."""
    sections: Callable[[R, Mapping[str, bytes]], Sequence[Section]]
    """Of a result and the experiment's files by name."""
    facts: Callable[[R], Sequence[Fact]]
    """With which settings it was made."""
    summary: Callable[[R], Any]
    """Numbers for summary.json."""
    shown: Callable[[R], Sequence[Shown]] = field(default=lambda _: ())
    """What `reproduce` prints of a result before the claims."""


@dataclass(frozen=True, kw_only=True)
class Experiment(Generic[S, R]):
    """The parts of an experiment.

    Parameters
    ----------
    run : callable
        ``run(material, settings, run, earlier)`` returns the result. The material is what `FilmOptions.read` gives:
        values (time, n_features) for most. `earlier` holds the results that this one needs, by experiment.
    check : callable
        ``check(settings, n_frames)`` raises where the film is too short, before it is read.
    files : mapping
        Each file that it writes, by name, with the function that makes it from the result.
    tables : mapping
        The same for files that grow with the film: they are made in parts, as they are written.
    meanwhile : callable
        Context of a result and the folder in which the files are written: for what must come with them or not at all.
    shown : callable
        What the command prints of a result.
    needs : callable
        Names of the experiments whose results settings ask for.
    chapter : Chapter, optional
        Its part in the report of the paper; without one it is no part of `reproduce`.
    page : callable, optional
        Its own report, from the result and its files by name; None makes one of the chapter. What is told of every
        film is added: a still, the checksum, versions.
    summary : callable, optional
        Numbers for summary.json and --json; None takes those of the chapter.
    """

    run: Callable[[Any, S, Run, Mapping[str, Any]], R]
    check: Callable[[S, int], None]
    files: Mapping[str, Callable[[R], bytes]]
    shown: Callable[[R], Sequence[Shown]]
    tables: Mapping[str, Callable[[R], Iterable[bytes]]] = field(default_factory=dict)
    meanwhile: Callable[[R, Path], AbstractContextManager[object]] = field(default=lambda *_: nullcontext())
    needs: Callable[[S], Sequence[str]] = field(default=lambda _: ())
    chapter: Chapter[R] | None = None
    page: Callable[[R, Mapping[str, bytes]], Page] | None = None
    summary: Callable[[R], Any] | None = None

    def numbers(self, result: R) -> Any:
        """Plain numbers of a result, for JSON."""
        make = self.chapter.summary if self.summary is None and self.chapter is not None else self.summary
        return None if make is None else make(result)

    def written(self, result: R) -> dict[str, bytes]:
        """Content of all files but the tables, by name."""
        return {name: make(result) for name, make in self.files.items()}

    def tabled(self, result: R) -> dict[str, Iterable[bytes]]:
        """Parts of all tables, by name."""
        return {name: make(result) for name, make in self.tables.items()}
