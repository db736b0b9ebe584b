"""How long each stage took, over all runs that it needed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from time import perf_counter

from psmt.types import Progress, silent
from psmt.utils.files import writing

_SAVE_SECONDS = 1.0
"""A run that is killed loses at most about so much of its time."""


class StageClock:
    """Progress that passes on what it hears, and adds up the time of each stage in a file.

    Time belongs to the stage that was last heard of, so that all of it is counted. Results never depend on this file:
    durations differ from run to run.

    Parameters
    ----------
    path : path
        JSON file; what it holds for the same `key` is continued.
    key : str
        What is being timed. A file of another key is begun anew.
    progress : callable
        Called in turn.
    """

    def __init__(self, path: str | os.PathLike[str], key: str, progress: Progress = silent) -> None:
        self.seconds: dict[str, float] = _stored(Path(path), key)
        self._path, self._key, self._progress = Path(path), key, progress
        self._stage: str | None = None
        self._heard = self._saved = perf_counter()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Count the time since the last call for the stage of that call."""
        changed = stage != self._stage
        self._count()
        self._stage = stage
        self.seconds.setdefault(stage, 0.0)
        if changed or perf_counter() - self._saved > _SAVE_SECONDS:
            self.save()
        self._progress(stage, done, total)

    def add(self, stage: str, seconds: float) -> None:
        """Count time that was spent on a stage before there was a clock."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    def save(self) -> None:
        """Write the file."""
        self._count()
        with writing(self._path) as file:
            file.write(json.dumps({"key": self._key, "seconds": self.seconds}, indent=2).encode() + b"\n")
        self._saved = perf_counter()

    def _count(self) -> None:
        now = perf_counter()
        if self._stage is not None:
            self.seconds[self._stage] += now - self._heard
        self._heard = now


def _stored(path: Path, key: str) -> dict[str, float]:
    try:
        content = json.loads(path.read_bytes())
        if content["key"] == key:
            return {str(stage): float(value) for stage, value in content["seconds"].items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass
    return {}
