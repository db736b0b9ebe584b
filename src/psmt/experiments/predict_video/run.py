"""A film predicted frame by frame as it runs, by `FramePSMT` and its baselines, in constant memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, nullcontext
from dataclasses import asdict
from itertools import chain, islice
from time import perf_counter

import numpy as np

from psmt.data import Film, FrameSource
from psmt.data.readers.film_writer import Picture
from psmt.errors import NotEnoughFramesError
from psmt.evaluation import FrameRow, RolloutRow, Step, score_stream
from psmt.experiments.predict_video.checkpoint import Checkpoint
from psmt.experiments.predict_video.course import Course
from psmt.experiments.predict_video.events import Event, EventWatch
from psmt.experiments.predict_video.gathered import Gathered
from psmt.experiments.predict_video.lines import Lines
from psmt.experiments.predict_video.result import VideoResult
from psmt.experiments.predict_video.settings import HORIZON, LEAST, FrameMethod, VideoSettings, extent, too_short
from psmt.pipeline.cache import hash_code, hash_values
from psmt.pipeline.run import Run
from psmt.types import Levels, Progress, silent
from psmt.video import ColourFrame, FrameReader

PAST_BYTES = 1 << 28
"""Memory for the frames that are learned from; large frames are fewer."""

STRETCH = 100
"""Frames from one checkpoint to the next."""

Sink = Callable[[Step, ColourFrame, ColourFrame], Mapping[str, Picture]]
"""Called with each step, and with the frame that came and the one before in colour; gives pictures, by film."""

Begin = Callable[[Levels, int | None, Iterable[FrameRow]], Sink]
"""Called with the past frames (time, height, width), with the number of frames to come, if that is known, and with
PSMT's lines of the frames for which there are pictures already."""


def predict_video(
    film: FrameSource,
    reader: FrameReader,
    settings: VideoSettings,
    *,
    begin: Begin | None = None,
    run: Run | None = None,
) -> VideoResult:
    """Learn from the frames before the start, then predict each frame after it from those before it.

    With a `run`, what is done is kept in its folder, stretch by stretch: after an interruption the same call goes on
    with the next stretch, and its result is that of an unbroken run. Once that is written, `clear_checkpoints` removes
    what was kept.

    Parameters
    ----------
    film : FrameSource
        A `Film` can be gone on with after an interruption; what comes by only once cannot.
    reader : FrameReader
        Gives the frames their size.
    settings : VideoSettings
        What is predicted, and with what.
    begin : callable, optional
        Called once, before the first prediction. What it returns is called with each step; with a `run`, the pictures
        that it gives are the `segments` of the result.
    run : Run, optional
        Says where stretches are kept, whether those that are there count, and who is told how far it is.
    """
    shape = reader.shape(film)
    start, horizon = extent(film.n_frames, settings)
    every = settings.every or min(max((horizon or HORIZON) // 10, 10), 50)
    progress = silent if run is None else run.progress
    methods = settings.methods()
    with ExitStack() as stack:
        checkpoint, resumed = None, False
        if run is not None:
            checkpoint = Checkpoint(run.folder, _key(film, reader, settings, begin))
            if run.force:
                checkpoint.clear()
            stack.enter_context(checkpoint)
        gathered = _nothing_yet(film, shape, settings, methods, checkpoint)
        if checkpoint is not None:
            resumed = checkpoint.resume(gathered, methods)
            if not resumed:
                # `fit` begins with clean methods.
                gathered = _nothing_yet(film, shape, settings, methods, checkpoint)
        frames = stack.enter_context(closing(reader.read(film)))
        past = _past(frames, start, min(settings.window, max(PAST_BYTES // (4 * shape[0] * shape[1]), LEAST)), progress)
        n_past = len(past)
        if not resumed:
            gathered.learning = _fit(methods.values(), past, progress)
        sink = None if begin is None else begin(past, horizon, gathered.of("psmt"))
        del past
        lane = _Lane(islice(frames, None if horizon is None else horizon + 1))
        coming = iter(lane)
        if resumed:
            # The methods know these frames; the last one is where the stream goes on.
            deque(islice(coming, gathered.n + 1), maxlen=0)
            coming = chain([lane.current.luma], coming)
        steps = score_stream(
            methods,
            coming,
            start=start,
            rollout=settings.rollout,
            every=every,
            workers=2,
            first=start + gathered.n if resumed else None,
            under_way=gathered.under_way,
        )
        for stretch in _stretches(steps):
            with nullcontext(_ignore) if checkpoint is None else checkpoint.segment(fps=film.fps) as add:
                for step in stretch:
                    gathered.add(step)
                    if sink is not None:
                        add(sink(step, lane.current, lane.before))
                    progress("predict frames", gathered.n, max(horizon or 0, gathered.n + 1))
            if checkpoint is not None:
                checkpoint.save(gathered, methods)
    wanted = settings.horizon if isinstance(settings.horizon, int) else 1
    if gathered.n < wanted:
        if checkpoint is not None:
            checkpoint.clear()
        raise NotEnoughFramesError(too_short(start + lane.received, start, wanted))
    progress("predict frames", gathered.n, gathered.n)
    gathered.watch.finish()
    return VideoResult(
        name=film.name,
        settings=settings,
        start=start,
        n_past=n_past,
        shape=shape,
        every=every,
        rows=gathered.rows,
        rollouts=gathered.rollouts,
        course=Course.of(gathered.rows, gathered.rollouts),
        stills=gathered.stills,
        error_maps={name: total / gathered.n for name, total in gathered.errors.items()},
        seconds={name: total / gathered.n for name, total in gathered.seconds.items()},
        learning=gathered.learning,
        events=gathered.watch.lines,
        event_counts=gathered.watch.counts,
        largest_events=gathered.watch.largest,
        event_stills=gathered.watch.stills,
        segments={} if checkpoint is None else {film: (*paths,) for film, paths in checkpoint.segments.items()},
    )


def _nothing_yet(
    film: FrameSource,
    shape: tuple[int, int],
    settings: VideoSettings,
    methods: Iterable[str],
    checkpoint: Checkpoint | None,
) -> Gathered:
    """What is gathered of a film before its first step; lines lie beside the checkpoint, where there is one."""
    rows, rollouts, events = (
        None if checkpoint is None else checkpoint.path(f"{name}.csv") for name in ("scores", "rollout", "events")
    )
    watch = EventWatch(film.fps, settings.false_alarms, Lines(Event, events))
    return Gathered(shape, tuple(methods), watch, Lines(FrameRow, rows), Lines(RolloutRow, rollouts))


def _key(film: FrameSource, reader: FrameReader, settings: VideoSettings, begin: Begin | None) -> str | None:
    """Return a hash of all that the result depends on; None where nobody could read the film once more."""
    if not isinstance(film, Film):
        return None
    parts = {
        "film": [film.checksum(), film.stop, film.n_frames, film.fps],
        "size": reader.size,
        "settings": asdict(settings),
        "code": [hash_code(predict_video), None if begin is None else hash_code(begin)],
    }
    return hash_values(parts, where="predict-video:")


def _past(frames: Iterator[ColourFrame], start: int, n_past: int, progress: Progress) -> Levels:
    """Return the last `n_past` frames (time, height, width) before the start."""
    kept: deque[Levels] = deque(maxlen=n_past)
    done = 0
    for done, frame in enumerate(islice(frames, start), start=1):
        kept.append(frame.luma)
        progress("read frames", done, start)
    if done < start:
        raise NotEnoughFramesError(too_short(done, start, 1))
    return np.stack(kept)


def _fit(methods: Collection[FrameMethod], past: Levels, progress: Progress) -> float:
    """Fit methods to the past frames (time, height, width); return the seconds that it took."""
    progress("learn", 0, len(methods))
    began = perf_counter()
    for done, method in enumerate(methods, start=1):
        method.fit(past)
        progress("learn", done, len(methods))
    return perf_counter() - began


def _ignore(pictures: Mapping[str, Picture]) -> None:
    """Keep no picture."""


def _stretches(steps: Iterator[Step]) -> Iterator[Iterator[Step]]:
    """Cut steps into stretches, each to be used up before the next."""
    for step in steps:
        yield chain([step], islice(steps, STRETCH - 1))


class _Lane:
    """Luma, frame by frame, for the methods; the colours of the last two frames stay at hand."""

    def __init__(self, frames: Iterable[ColourFrame]) -> None:
        self._frames = frames
        self._latest: deque[ColourFrame] = deque(maxlen=2)
        self.received = 0

    def __iter__(self) -> Iterator[Levels]:
        for frame in self._frames:
            self._latest.append(frame)
            self.received += 1
            yield frame.luma

    @property
    def current(self) -> ColourFrame:
        """The last frame that was given out."""
        return self._latest[-1]

    @property
    def before(self) -> ColourFrame:
        """The one before it."""
        return self._latest[0]
