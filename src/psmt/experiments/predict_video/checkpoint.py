"""Stretches of a film that are done, on disk, so that a run that was killed goes on after the last of them.

A checkpoint is one file with all that was gathered and learned. It appears whole, and after the lines and the piece of
the painted film that belong to it; so what it speaks of is always there. All of it is in the folder ``tasks``, and goes
when the results are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from psmt.data.readers.film_writer import Picture, writing_film
from psmt.experiments.predict_video.gathered import Gathered
from psmt.experiments.predict_video.methods import FrameMethod
from psmt.persistence.model_file import part
from psmt.pipeline.cache import load_result, save_result
from psmt.utils.files import clear_stale

_PREFIX = "predict-video-"


class Checkpoint:
    """What a run leaves behind for its successor; as a context, it leaves nothing behind that nobody can go on from.

    Parameters
    ----------
    folder : path
        Of the results.
    key : str or None
        Hash of all that the results depend on. None for a film that cannot be read twice: nobody can go on with it, and
        only lines and pieces of the painted films are kept.
    """

    def __init__(self, folder: str | PathLike[str], key: str | None) -> None:
        self.segments: dict[str, list[Path]] = {}
        """Pieces of the films that are painted, in order, by the name of the film."""
        self._folder = Path(folder)
        self._tasks = self._folder / "tasks"
        self._key = key
        self._name = f"{_PREFIX}{(key or 'live')[:16]}"
        self._path = self._tasks / f"{self._name}.npz"

    def __enter__(self) -> Self:
        """Make the folder ready."""
        self._tasks.mkdir(parents=True, exist_ok=True)
        clear_stale(self._tasks, f"{_PREFIX}*")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Remove what is of no use to anybody, if the work was broken off."""
        if kind is not None and not self._path.exists():
            self.clear()

    def path(self, name: str) -> Path:
        """Of a file beside the checkpoint, which goes with it."""
        return self._tasks / f"{self._name}-{name}"

    @contextmanager
    def segment(self, *, fps: float | None) -> Iterator[Callable[[Mapping[str, Picture]], None]]:
        """Give a function that adds pictures to the next pieces of films, by name; pieces begin with the first."""
        with ExitStack() as stack:
            films: dict[str, Callable[[Picture], None]] = {}

            def add(pictures: Mapping[str, Picture]) -> None:
                for film, picture in pictures.items():
                    if film not in films:
                        pieces = self.segments.setdefault(film, [])
                        pieces.append(self._segment(film, len(pieces)))
                        films[film] = stack.enter_context(writing_film(pieces[-1], fps=fps))
                    films[film](picture)

            yield add

    def save(self, gathered: Gathered, methods: Mapping[str, FrameMethod]) -> None:
        """Write what was gathered so far, and the methods as they are."""
        if self._key is not None:
            states = {
                f"methods/{name}/{key}": value
                for name, method in methods.items()
                for key, value in method.get_state().items()
            }
            pieces = {f"segments/{film}": np.array(len(paths)) for film, paths in self.segments.items()}
            everything = gathered.get_state() | states | pieces
            save_result(self._path, self._key, everything)

    def resume(self, gathered: Gathered, methods: Mapping[str, FrameMethod]) -> bool:
        """Bring what was gathered and the methods to the last checkpoint; return whether there is one.

        Where there is none, both may be changed all the same, and must be made anew.
        """
        found = None if self._key is None else load_result(self._path, self._key)
        if found is None:
            return False
        counts = {name.removeprefix("segments/"): int(n) for name, n in found.items() if name.startswith("segments/")}
        segments = {film: [self._segment(film, number) for number in range(n)] for film, n in counts.items()}
        if not all(path.exists() for paths in segments.values() for path in paths):
            return False
        try:
            gathered.set_state(found)
            for name, method in methods.items():
                method.set_state(part(found, f"methods/{name}/"))
        except (LookupError, TypeError, ValueError):
            # What does not fit together counts as damaged, as in `load_result`.
            return False
        self.segments = segments
        return True

    def clear(self) -> None:
        """Remove it, and the pieces of the painted films."""
        clear_checkpoints(self._folder, self._name)

    def _segment(self, film: str, number: int) -> Path:
        return self.path(f"{film}-{number:05}.mp4")


def clear_checkpoints(folder: str | PathLike[str], name: str = _PREFIX) -> None:
    """Remove what runs that were broken off left in a folder of results; of all of them, if no name is given."""
    tasks = Path(folder) / "tasks"
    for path in tasks.glob(f"{name}*"):
        path.unlink(missing_ok=True)
    with suppress(OSError):  # not there, or there is something else in it
        tasks.rmdir()
