"""Record of a film while it is predicted: tables on disk, a few pictures, and checkpoints to resume from.

Memory does not grow with the film. The rows of the tables go to files in the folder ``tasks``. A checkpoint is one file
with everything else. It is written after the rows and the piece of the painted film that belong to it, so that whatever
it refers to exists. All of these files are removed once the results are written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from heapq import nlargest
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar, get_type_hints
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from psmt.data.readers.film_writer import Picture, writing_film
from psmt.errors import PSMTError
from psmt.evaluation import FrameRow, Rollout, RolloutRow, Step
from psmt.persistence.model_file import part
from psmt.persistence.schema import Stateful
from psmt.pipeline.cache import load_result, save_result
from psmt.report import csv_lines
from psmt.types import Predictor, Result
from psmt.utils.files import clear_stale
from psmt.video.events import EventDetector, Kind

Record = TypeVar("Record", bound=NamedTuple)

_BUFFERED = 1000
"""Rows that are held in memory until they are written."""

_BLOCK = 1 << 15
"""Rows that are read at a time."""

_EVENT_STILLS = 6
"""Events of which pictures are kept: the largest ones."""

_PREFIX = "predict-video-"


class FrameMethod(Predictor, Stateful, Protocol):
    """A predictor that continues, bit for bit, from the state of another one with the same parameters."""


class Event(NamedTuple):
    """A row of events.csv."""

    frame: int
    time: float
    """Seconds from the first frame of the film; NaN if the frame rate is unknown."""
    kind: Kind
    size: float
    """Prediction error of this frame relative to the usual error."""


class Snapshot(NamedTuple):
    """A predicted frame with the frame before it, in luma (height, width), and its scores."""

    row: FrameRow
    last: NDArray[np.floating]
    frame: NDArray[np.floating]
    predicted: NDArray[np.floating]


class CsvLogError(PSMTError, ValueError):
    """The file of a log is not as it was written."""


class CsvLog(Generic[Record]):
    """Rows of a CSV file, appended in chunks.

    Rows are named tuples of int, float and str. The file has no header; without a `path` it is a temporary file, which
    is removed together with the log. The log knows how many bytes of the file belong to it: a resumed run overwrites
    what a killed run wrote after its last checkpoint, and two runs at once write the same bytes to the same place.
    """

    def __init__(self, kind: type[Record], path: str | os.PathLike[str] | None = None) -> None:
        self._kind = kind
        if path is None:
            self._temporary = TemporaryDirectory(prefix="psmt-")
            path = f"{self._temporary.name}/log.csv"
        self._path = Path(path)
        self._size = self._checksum = 0
        self._buffer: list[Record] = []

    def add(self, rows: Iterable[Record]) -> None:
        """Append rows."""
        self._buffer += rows
        if len(self._buffer) >= _BUFFERED:
            self.flush()

    def flush(self) -> None:
        """Write the rows that are still in memory."""
        if not self._buffer:
            return
        text = csv_lines(self._buffer)
        self._path.touch()
        with open(self._path, "r+b") as file:
            file.seek(self._size)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        self._size, self._checksum, self._buffer = self._size + len(text), crc32(text, self._checksum), []

    def __iter__(self) -> Iterator[Record]:
        for block in self.blocks():
            yield from map(self._kind._make, block.tolist())

    def blocks(self) -> Iterator[NDArray[Any]]:
        """Yield the rows as structured arrays (n,) of limited size."""
        lines = (line.decode() for line in self._lines())
        while block := list(islice(lines, _BLOCK)):
            yield np.loadtxt(block, dtype=row_dtype(self._kind), delimiter=",", comments=None, ndmin=1)

    def table(self) -> Iterator[bytes]:
        """Yield the lines of the CSV file, its header first."""
        yield csv_lines([self._kind._fields])
        yield from self._lines()

    def get_state(self) -> tuple[int, int]:
        """Write all rows; return the number of bytes and their checksum."""
        self.flush()
        return self._size, self._checksum

    def set_state(self, state: tuple[int, int]) -> Self:
        """Continue from a state; raises CsvLogError unless the file still holds these bytes."""
        (self._size, self._checksum), self._buffer = state, []
        for _ in self._lines():
            pass
        return self

    def _lines(self) -> Iterator[bytes]:
        self.flush()
        size = checksum = 0
        with suppress(FileNotFoundError), open(self._path, "rb") as file:
            while size < self._size and (line := file.readline()):
                size, checksum = size + len(line), crc32(line, checksum)
                yield line
        if (size, checksum) != (self._size, self._checksum):
            raise CsvLogError(f"{self._path} was changed by another program; run the same command again")


def row_dtype(kind: type[Any]) -> np.dtype[Any]:
    """Structured dtype with the fields of a named tuple of int, float and str."""
    hints = get_type_hints(kind)
    return np.dtype([(name, {int: "i8", float: "f8"}.get(hints[name], "U32")) for name in kind._fields])


class Recorder:
    """Scores, rollouts and events of all steps, pictures of a few, and the rollouts under way.

    `path` gives the file of a table by its name, None for a temporary file. Events have a time if `fps` is known.
    `false_alarms` is the rate per frame at which the event detector may be wrong.
    """

    _SAVED = ("n", "learning", "seconds", "errors", "stills", "event_stills", "under_way", "last_event")

    def __init__(
        self,
        shape: tuple[int, int],
        methods: Iterable[str],
        *,
        fps: float | None,
        false_alarms: float,
        path: Callable[[str], Path | None],
    ) -> None:
        self.n = 0
        """Number of steps."""
        self.rows = CsvLog(FrameRow, path("scores.csv"))
        self.rollouts = CsvLog(RolloutRow, path("rollout.csv"))
        self.events = CsvLog(Event, path("events.csv"))
        """All events but the last one, until `finish`."""
        self._tables: tuple[CsvLog[Any], ...] = (self.rows, self.rollouts, self.events)
        self.errors = {name: np.zeros(shape) for name in methods}
        """Sums of squared errors (height, width) by method."""
        self.seconds = dict.fromkeys(self.errors, 0.0)
        self.learning = 0.0
        """Seconds that fitting took."""
        self.stills: dict[str, Snapshot] = {}
        self.event_stills: list[Snapshot] = []
        self.under_way: Sequence[Rollout] = ()
        self.last_event: Event | None = None
        self._fps, self._detector = fps, EventDetector(false_alarms)

    def add(self, step: Step) -> None:
        """Record the next step."""
        self.n += 1
        self.rows.add(step.rows.values())
        self.rollouts.add(step.rollouts)
        self.under_way = step.under_way
        for name, predicted in step.predicted.items():
            self.errors[name] += (predicted - step.frame) ** 2
            self.seconds[name] += step.seconds[name]
        still = Snapshot(step.rows["psmt"], step.last, step.frame, step.predicted["psmt"])
        for key, sign in (("best", 1), ("worst", -1)):
            held = self.stills.get(key)
            # Without motion there is no ratio.
            if held is None or np.isnan(held.row.ratio) or sign * still.row.ratio < sign * held.row.ratio:
                self.stills[key] = still
        self.stills["last"] = still
        self._detect_event(still)

    def _detect_event(self, still: Snapshot) -> None:
        row = still.row
        kind = self._detector.observe(still.last, still.frame, row.surprise, bool(row.cut))
        if kind == "flash" and self.last_event is not None:
            # The old picture is back: the last event was not a cut.
            self.last_event = self.last_event._replace(kind=kind)
        elif kind is not None:
            self.finish()
            self.last_event = Event(row.frame, row.frame / self._fps if self._fps else np.nan, kind, row.surprise)
            largest = nlargest(_EVENT_STILLS, [*self.event_stills, still], key=lambda still: still.row.surprise)
            self.event_stills = sorted(largest, key=lambda still: still.row.frame)

    def finish(self) -> None:
        """Record the last event, whose kind is now final."""
        self.events.add([] if self.last_event is None else [self.last_event])
        self.last_event = None

    def get_state(self) -> Result:
        """Everything but the tables: arrays, and the rest as JSON that refers to the arrays by name."""
        arrays: Result = {}

        def store(value: Any) -> Any:
            if not isinstance(value, np.ndarray):
                return vars(value)
            name = f"array{len(arrays)}"
            arrays[name] = value
            return {"array": name}

        values = {name: getattr(self, name) for name in self._SAVED}
        values["tables"] = [log.get_state() for log in self._tables]
        values["detector"] = self._detector.get_state()
        return {"values": np.array(json.dumps(values, default=store)), **arrays}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state of `get_state`."""
        text = str(state["values"])
        values = json.loads(text, object_hook=lambda part: state[part["array"]] if "array" in part else part)
        for name in self._SAVED:
            setattr(self, name, values[name])
        self.stills = {name: Snapshot(FrameRow(*row), *own) for name, (row, *own) in values["stills"].items()}
        self.event_stills = [Snapshot(FrameRow(*row), *own) for row, *own in values["event_stills"]]
        self.under_way = [Rollout(**own) for own in values["under_way"]]
        self.last_event = None if self.last_event is None else Event(*values["last_event"])
        for log, own in zip(self._tables, values["tables"], strict=True):
            log.set_state(own)
        self._detector.set_state(values["detector"])


class Checkpoint:
    """Files in the folder of the results from which a killed run is resumed.

    The `key` is a hash of everything that the results depend on. It is None for a film that cannot be read twice: then
    only tables and pieces of the painted films are kept.
    """

    def __init__(self, folder: str | os.PathLike[str], key: str | None) -> None:
        self.segments: dict[str, list[Path]] = {}
        """Pieces of the painted films, in order, by the name of the film."""
        self._folder, self._key = Path(folder), key
        self._name = f"{_PREFIX}{(key or 'live')[:16]}"
        self._state = self.path("state.npz")

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Prepare the folder; remove all files if the run fails before its first checkpoint."""
        self._state.parent.mkdir(parents=True, exist_ok=True)
        clear_stale(self._state.parent, f"{_PREFIX}*")
        try:
            yield
        except BaseException:
            if not self._state.exists():
                self.clear()
            raise

    def path(self, name: str) -> Path:
        """Path of a file that is removed together with the checkpoint."""
        return self._folder / "tasks" / f"{self._name}-{name}"

    @contextmanager
    def segment(self, *, fps: float | None) -> Iterator[Callable[[Mapping[str, Picture]], None]]:
        """Begin the next piece of each painted film; gives a function that adds pictures by the name of the film."""
        with ExitStack() as stack:
            films: dict[str, Callable[[Picture], None]] = {}

            def add(pictures: Mapping[str, Picture]) -> None:
                for film, picture in pictures.items():
                    if film not in films:
                        pieces = self.segments.setdefault(film, [])
                        pieces.append(self._piece(film, len(pieces)))
                        films[film] = stack.enter_context(writing_film(pieces[-1], fps=fps))
                    films[film](picture)

            yield add

    def save(self, recorder: Recorder, methods: Mapping[str, FrameMethod]) -> None:
        """Write the record so far and the states of the methods."""
        if self._key is not None:
            state = recorder.get_state()
            for name, method in methods.items():
                state |= {f"methods/{name}/{key}": value for key, value in method.get_state().items()}
            state |= {f"segments/{film}": np.array(len(paths)) for film, paths in self.segments.items()}
            save_result(self._state, self._key, state)

    def resume(self, make: Callable[[], Recorder], methods: Mapping[str, FrameMethod]) -> Recorder | None:
        """Set the methods to the last checkpoint and return its record; None if there is none, or it is damaged.

        In that case the methods may have changed, and must be fitted.
        """
        found = None if self._key is None else load_result(self._state, self._key)
        if found is None:
            return None
        counts = part(found, "segments/")
        segments = {film: [self._piece(film, k) for k in range(int(n))] for film, n in counts.items()}
        if not all(path.exists() for paths in segments.values() for path in paths):
            return None
        recorder = make()
        try:
            recorder.set_state(found)
            for name, method in methods.items():
                method.set_state(part(found, f"methods/{name}/"))
        except (LookupError, TypeError, ValueError):
            return None
        self.segments = segments
        return recorder

    def clear(self) -> None:
        """Remove the checkpoint with its tables and pieces of films."""
        clear_checkpoints(self._folder, self._name)

    def _piece(self, film: str, number: int) -> Path:
        return self.path(f"{film}-{number:05}.mp4")


def clear_checkpoints(folder: str | os.PathLike[str], name: str = _PREFIX) -> None:
    """Remove the checkpoints in a folder of results: all of them, or those whose name begins with `name`."""
    tasks = Path(folder) / "tasks"
    for path in tasks.glob(f"{name}*"):
        path.unlink(missing_ok=True)
    with suppress(OSError):  # not there, or not empty
        tasks.rmdir()
