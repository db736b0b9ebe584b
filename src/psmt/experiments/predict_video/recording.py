"""Record scores of a film while it is predicted: tables on disk, a few pictures, and checkpoints to resume from.

Memory does not grow with the film, because the rows of the tables are written to files in the folder ``tasks``. A
checkpoint is a file with the rest of the state. It is written after the rows and the pieces of the film that it refers
to. All these files are removed when the results have been written.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from heapq import nlargest
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar, get_type_hints
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from psmt.data.readers.film_writer import Picture, writing_film
from psmt.errors import PSMTError
from psmt.evaluation import FrameRow, Rollout, RolloutRow, Step
from psmt.experiments.predict_video.film_painter import event_strip
from psmt.persistence.schema import Stateful, part
from psmt.pipeline.cache import load_result, save_result
from psmt.report.tables import csv_lines
from psmt.types import Predictor, Result
from psmt.utils.files import clear_stale, reading
from psmt.video.events import EventDetector, Kind

Record = TypeVar("Record", bound=NamedTuple)

_BUFFERED = 1000  # number of rows that are held in memory until they are written

_BLOCK = 1 << 15  # number of rows that are read at a time

MOST_EVENTS = 50
"""Number of events of which pictures are kept. The largest events are kept."""

_PREFIX = "predict-video-"


class FrameMethod(Predictor, Stateful, Protocol):
    """A predictor whose state can be saved and restored, so that a resumed run gives identical results."""


class Event(NamedTuple):
    """A row of events.csv: a cut, a flash, or another surprise."""

    frame: int
    time: float
    """Seconds from the first frame of the film, or NaN if the frame rate is unknown."""
    kind: Kind
    size: float
    """Prediction error of this frame, divided by the usual error."""


class CsvLogError(PSMTError, ValueError):
    """Raised if another program changed the file of a `CsvLog`."""


class CsvLog(Generic[Record]):
    """A table that grows row by row in a CSV file without a header. Iteration yields the rows.

    `kind` is the type of the rows: a named tuple of int, float and str. The log counts the bytes that it wrote, so a
    resumed run overwrites the rows that a killed run wrote after its last checkpoint, and two runs at the same time
    write the same bytes.
    """

    def __init__(self, kind: type[Record], path: Path) -> None:
        self._kind, self._path = kind, path
        self._size = self._checksum = 0
        self._buffer: list[Record] = []

    def add(self, rows: Iterable[Record]) -> None:
        """Append rows. They may stay in memory until `flush`."""
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
        """Yield the rows in structured arrays (n,) of limited length."""
        lines = (line.decode() for line in self._lines())
        while block := list(islice(lines, _BLOCK)):
            yield np.loadtxt(block, dtype=row_dtype(self._kind), delimiter=",", comments=None, ndmin=1)

    def table(self) -> Iterator[bytes]:
        """Yield the lines of a CSV file with all rows, after a header line."""
        yield csv_lines([self._kind._fields])
        yield from self._lines()

    def get_state(self) -> tuple[int, int]:
        """Write all rows to the file. Return the number of bytes in the file and their checksum."""
        self.flush()
        return self._size, self._checksum

    def set_state(self, state: tuple[int, int]) -> Self:
        """Continue from a state that `get_state` returned. Raise `CsvLogError` if the file was changed since."""
        (self._size, self._checksum), self._buffer = state, []
        for _ in self._lines():
            pass
        return self

    def _lines(self) -> Iterator[bytes]:
        self.flush()
        size = checksum = 0
        with suppress(FileNotFoundError), reading(self._path, CsvLogError) as file:
            while size < self._size and (line := file.readline()):
                size, checksum = size + len(line), crc32(line, checksum)
                yield line
        if (size, checksum) != (self._size, self._checksum):
            raise CsvLogError(f"{self._path} was changed by another program; run the same command again")


def row_dtype(kind: type[Any]) -> np.dtype[Any]:
    """Return a structured dtype with the fields of `kind`, a named tuple of int, float and str."""
    hints = get_type_hints(kind)
    return np.dtype([(name, {int: "i8", float: "f8"}.get(hints[name], "U32")) for name in kind._fields])


class Recorder:
    """Collects the results of a film step by step: scores, rollouts, events, and pictures of the largest events.

    ``path(name)`` returns the file of a table. `fps`, if known, gives events a time. `false_alarms` is the accepted
    rate of false events per frame.
    """

    _SAVED = ("n", "learning", "seconds", "event_strips", "under_way", "last_event")

    def __init__(
        self, methods: Iterable[str], *, fps: float | None, false_alarms: float, path: Callable[[str], Path]
    ) -> None:
        self.n = 0
        """Number of steps."""
        self.rows = CsvLog(FrameRow, path("scores.csv"))
        self.rollouts = CsvLog(RolloutRow, path("rollout.csv"))
        self.events = CsvLog(Event, path("events.csv"))
        """All events. The last event is added by `finish`, because its kind may still change."""
        self._tables: tuple[CsvLog[Any], ...] = (self.rows, self.rollouts, self.events)
        self.seconds = dict.fromkeys(methods, 0.0)
        self.learning = 0.0
        """Seconds that fitting took."""
        self.event_strips: list[tuple[int, float, NDArray[np.uint8]]] = []
        """Frame, size and picture (a JPEG file, see `event_strip`) of the largest events."""
        self.under_way: Sequence[Rollout] = ()
        self.last_event: Event | None = None
        self._fps, self._detector = fps, EventDetector(false_alarms)

    def add(self, step: Step) -> None:
        """Record the predictions of the next frame."""
        self.n += 1
        self.rows.add(step.rows.values())
        self.rollouts.add(step.rollouts)
        self.under_way = step.under_way
        for name, seconds in step.seconds.items():
            self.seconds[name] += seconds
        row = step.rows["frame_predictor"]
        kind = self._detector.observe(step.last, step.frame, row.surprise, bool(row.cut))
        if kind == "flash" and self.last_event is not None:
            # The earlier picture has returned, so the last event was not a cut.
            self.last_event = self.last_event._replace(kind=kind)
        elif kind is not None:
            self.finish()
            self.last_event = Event(row.frame, row.frame / self._fps if self._fps else np.nan, kind, row.surprise)
            strip = np.frombuffer(event_strip(step.last, step.predicted["frame_predictor"], step.frame), np.uint8)
            strips = [*self.event_strips, (row.frame, row.surprise, strip)]
            self.event_strips = nlargest(MOST_EVENTS, strips, key=itemgetter(1))

    def finish(self) -> None:
        """Write the last event to the table, because its kind can no longer change."""
        self.events.add([] if self.last_event is None else [self.last_event])
        self.last_event = None

    def get_state(self) -> Result:
        """Return the state as arrays, except rows of tables. ``values`` is a JSON text that names the other arrays."""
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
        """Continue from a state that `get_state` returned."""
        text = str(state["values"])
        values = json.loads(text, object_hook=lambda part: state[part["array"]] if "array" in part else part)
        for name in self._SAVED:
            setattr(self, name, values[name])
        self.event_strips = [(frame, size, jpeg) for frame, size, jpeg in values["event_strips"]]
        self.under_way = [Rollout(**own) for own in values["under_way"]]
        self.last_event = None if self.last_event is None else Event(*values["last_event"])
        for log, own in zip(self._tables, values["tables"], strict=True):
            log.set_state(own)
        self._detector.set_state(values["detector"])


class Checkpoint:
    """Saves the state of a run in files in the folder of results, so that a killed run can be resumed.

    `key` is a hash of everything that the results depend on. It is None for a source that can be read only once: then
    no state is saved, but the tables and pieces of the film are written to the same place.
    """

    def __init__(self, folder: str | os.PathLike[str], key: str | None) -> None:
        self.segments: list[Path] = []
        """Pieces of the painted film, in order."""
        self._folder, self._key = Path(folder), key
        self._name = f"{_PREFIX}{(key or 'live')[:16]}"
        self._state = self.path("state.npz")

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Return a context that creates the folder. If the run fails without a checkpoint, it removes the files."""
        self._state.parent.mkdir(parents=True, exist_ok=True)
        clear_stale(self._state.parent, f"{_PREFIX}*")
        try:
            yield
        except BaseException:
            if not self._state.exists():
                self.clear()
            raise

    def path(self, name: str) -> Path:
        """Return the path of the file `name` of this run. The method `clear` removes this file."""
        return self._folder / "tasks" / f"{self._name}-{name}"

    def segment(self, *, fps: float | None) -> AbstractContextManager[Callable[[Picture], None]]:
        """Return a context that writes the next piece of the film. It yields a function that appends a picture."""
        self.segments.append(self._piece(len(self.segments)))
        return writing_film(self.segments[-1], fps=fps)

    def save(self, recorder: Recorder, methods: Mapping[str, FrameMethod]) -> None:
        """Save the states of the recorder and of the methods, unless the key is None."""
        if self._key is not None:
            state = recorder.get_state()
            for name, method in methods.items():
                state |= {f"methods/{name}/{key}": value for key, value in method.get_state().items()}
            save_result(self._state, self._key, state | {"segments": np.array(len(self.segments))})

    def resume(self, make: Callable[[], Recorder], methods: Mapping[str, FrameMethod]) -> Recorder | None:
        """Restore the methods from the last checkpoint. Return a restored recorder, or None without a checkpoint."""
        found = None if self._key is None else load_result(self._state, self._key)
        if found is None:
            return None
        segments = [self._piece(k) for k in range(int(found["segments"]))]
        if not all(path.exists() for path in segments):
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
        """Remove the saved state, the tables and the pieces of the film."""
        clear_checkpoints(self._folder, self._name)

    def _piece(self, number: int) -> Path:
        return self.path(f"film-{number:05}.mp4")


def clear_checkpoints(folder: str | os.PathLike[str], name: str = _PREFIX) -> None:
    """Remove the checkpoint files in a folder of results whose names begin with `name` (by default all)."""
    tasks = Path(folder) / "tasks"
    for path in tasks.glob(f"{name}*"):
        path.unlink(missing_ok=True)
    with suppress(OSError):  # not there, or not empty
        tasks.rmdir()
