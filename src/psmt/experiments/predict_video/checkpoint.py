"""Stretches of a film that are done, on disk, so that a run that was killed goes on after the last of them.

A checkpoint is one file with all that was gathered. It appears whole, after the file of each model and the piece of
the painted film that belong to it; so what it speaks of is always there. All of it is in the folder ``tasks``, and goes
when the results are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from psmt.errors import ModelFileError
from psmt.experiments.predict_video.gathered import Gathered
from psmt.experiments.running.store import load_result, save_result
from psmt.files import clear_stale
from psmt.video.baselines import FramePredictor
from psmt.video.model import FramePSMT

_PREFIX = "predict-video-"


class Checkpoint:
    """What a run leaves behind for its successor; as a context, it leaves nothing behind that nobody can go on from.

    Parameters
    ----------
    folder : path
        Of the results.
    key : str or None
        Hash of all that the results depend on. None for a film that cannot be read twice: nobody can go on with it, and
        only pieces of the painted film are kept.
    """

    def __init__(self, folder: str | PathLike[str], key: str | None) -> None:
        self.segments: list[Path] = []
        """Pieces of the painted film, in order."""
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
            clear_checkpoints(self._folder, self._name)

    def next_segment(self) -> Path:
        """Name the file for the next piece of the painted film."""
        self.segments.append(self._segment(len(self.segments)))
        return self.segments[-1]

    def save(self, gathered: Gathered, methods: Mapping[str, FramePredictor]) -> None:
        """Write what was gathered so far, and the models as they are."""
        if self._key is None:
            return
        current = {self._model(name, gathered.n): model for name, model in models(methods).items()}
        for path, model in current.items():
            model.save(path)
        save_result(self._path, self._key, gathered.get_state() | {"segments": np.array(len(self.segments))})
        for path in set(self._tasks.glob(f"{self._name}-*.npz")) - set(current):
            path.unlink()

    def resume(self, gathered: Gathered, methods: Mapping[str, FramePredictor]) -> dict[str, FramePSMT]:
        """Bring `gathered` to the last checkpoint, and return the models of that time; {} where there is none."""
        found = None if self._key is None else load_result(self._path, self._key)
        if found is None:
            return {}
        segments = [self._segment(number) for number in range(int(found["segments"]))]
        try:
            loaded = {name: FramePSMT.load(self._model(name, int(found["n"]))) for name in models(methods)}
        except (ModelFileError, OSError):
            return {}
        if not all(path.exists() for path in segments):
            return {}
        gathered.set_state(found)
        self.segments = segments
        return loaded

    def _segment(self, number: int) -> Path:
        return self._tasks / f"{self._name}-{number:05}.mp4"

    def _model(self, name: str, step: int) -> Path:
        return self._tasks / f"{self._name}-{name}-{step}.npz"


def models(methods: Mapping[str, FramePredictor]) -> dict[str, FramePSMT]:
    """Return the methods that are saved; the others look at the last few frames only, and are brought up again."""
    return {name: method for name, method in methods.items() if isinstance(method, FramePSMT)}


def clear_checkpoints(folder: str | PathLike[str], name: str = _PREFIX) -> None:
    """Remove what runs that were broken off left in a folder of results; of all of them, if no name is given."""
    tasks = Path(folder) / "tasks"
    for path in tasks.glob(f"{name}*"):
        path.unlink(missing_ok=True)
    with suppress(OSError):  # not there, or there is something else in it
        tasks.rmdir()
