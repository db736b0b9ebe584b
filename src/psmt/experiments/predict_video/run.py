"""Predict a film frame by frame with `FramePredictor` and its baselines, in constant memory."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict
from functools import partial
from itertools import chain, islice
from time import perf_counter
from typing import cast

import numpy as np

from psmt.data import Film, FrameSource
from psmt.data.readers.film_writer import Picture
from psmt.errors import NotEnoughFramesError
from psmt.evaluation import FrameRow, Step, score_stream
from psmt.experiments.predict_video.recording import Checkpoint, Recorder
from psmt.experiments.predict_video.result import VideoResult
from psmt.experiments.predict_video.settings import HORIZON, LEAST, VideoSettings, extent, too_short
from psmt.pipeline.cache import hash_code, hash_values
from psmt.pipeline.run import Run
from psmt.types import Levels, Progress
from psmt.video import FrameReader, has_colour, luma

PAST_BYTES = 1 << 28
"""Memory limit in bytes for the frames to learn from. If frames are large, fewer of them are used."""

STRETCH = 100
"""Number of frames from one checkpoint to the next."""

Sink = Callable[[Step], Picture]
"""A function of a step that returns a picture of it."""

Begin = Callable[[Levels, int | None, Iterable[FrameRow]], Sink]
"""A function that returns a `Sink`. Its arguments are the past frames (time, ..), the number of frames to predict (None
if unknown), and the rows of frames that an interrupted run has painted already."""


def predict_video(
    film: FrameSource, reader: FrameReader, settings: VideoSettings, run: Run, *, begin: Begin | None = None
) -> VideoResult:
    """Predict each frame of a film after the start from all frames before it, and return the scores of all methods.

    Frames are predicted in colour if a frame before the start has colour, unless the settings ask for grey. After every
    `STRETCH` frames, the state is saved in the folder of the `run`. If the source is a `Film`, the same call resumes an
    interrupted run, with the same result. Other sources can be read only once. When you have written the result, remove
    the saved files with `clear_checkpoints`.

    ``begin`` is called before the first prediction, and returns a function that paints a picture of each step (see
    `Begin` and `Sink`). These pictures are written to the files `VideoResult.segments`.
    """
    shape = reader.shape(film)
    start, horizon = extent(film.n_frames, settings)
    every = settings.every or min(max((horizon or HORIZON) // 10, 10), 50)
    progress, methods = run.progress, settings.methods()
    checkpoint = Checkpoint(run.folder, _key(film, reader, settings, begin))
    new_recorder = partial(Recorder, methods, fps=film.fps, false_alarms=settings.false_alarms, path=checkpoint.path)
    latest: Levels | None = None

    def received(frames: Iterable[Levels]) -> Iterator[Levels]:
        nonlocal latest
        for frame in frames:
            latest = frame if colour else luma(frame)
            yield latest

    with checkpoint.opened(), closing(reader.read(film)) as frames:
        recorder = checkpoint.resume(new_recorder, methods)
        resumed = recorder is not None
        room = max(PAST_BYTES // (12 * shape[0] * shape[1]), LEAST)
        past = _past(frames, start, min(settings.window, room), progress)
        colour = not settings.grey and has_colour(past)
        past = past if colour else luma(past)
        n_past = len(past)
        if recorder is None:
            recorder, began = new_recorder(), perf_counter()
            for done, method in enumerate(methods.values()):
                progress("learn", done, len(methods))
                method.fit(past)
            progress("learn", len(methods), len(methods))
            recorder.learning = perf_counter() - began
        painted = (row for row in recorder.rows if row.method == "frame_predictor")
        sink = None if begin is None else begin(past, horizon, painted)
        del past
        coming = received(islice(frames, None if horizon is None else horizon + 1))
        if resumed:
            # The methods have received these frames; the stream continues from the last one.
            deque(islice(coming, recorder.n + 1), maxlen=0)
            coming = chain([cast(Levels, latest)], coming)
        steps = score_stream(
            methods,
            coming,
            start=start,
            rollout=settings.rollout,
            every=every,
            workers=2,
            first=start + recorder.n if resumed else None,
            under_way=recorder.under_way,
        )
        for step in steps:
            with checkpoint.segment(fps=film.fps) as add:
                for own in chain([step], islice(steps, STRETCH - 1)):
                    recorder.add(own)
                    if sink is not None and (picture := sink(own)) is not None:
                        add(picture)
                    progress("predict frames", recorder.n, max(horizon or 0, recorder.n + 1))
            checkpoint.save(recorder, methods)
    wanted = settings.horizon if isinstance(settings.horizon, int) else 1
    if recorder.n < wanted:
        checkpoint.clear()
        raise NotEnoughFramesError(too_short(start + recorder.n + (latest is not None), start, wanted))
    progress("predict frames", recorder.n, recorder.n)
    return VideoResult.from_recorder(
        recorder,
        name=film.name,
        settings=settings,
        start=start,
        n_past=n_past,
        shape=shape,
        film_shape=film.shape,
        colour=colour,
        every=every,
        segments=checkpoint.segments,
    )


def _key(film: FrameSource, reader: FrameReader, settings: VideoSettings, begin: Begin | None) -> str | None:
    """Return a hash of the film, settings and code, or None for a source that can be read only once."""
    if not isinstance(film, Film):
        return None
    parts = {
        "film": [film.checksum(), film.stop, film.n_frames, film.fps],
        "size": reader.size,
        "settings": asdict(settings),
        "code": [hash_code(predict_video), None if begin is None else hash_code(begin)],
    }
    return hash_values(parts, where="predict-video:")


def _past(frames: Iterator[Levels], start: int, n_past: int, progress: Progress) -> Levels:
    """Read the frames before the start. Return the last `n_past` of them, (n_past, height, width, 3)."""
    kept: deque[Levels] = deque(maxlen=n_past)
    done = 0
    for done, frame in enumerate(islice(frames, start), start=1):
        kept.append(frame)
        progress("read frames", done, start)
    if done < start:
        raise NotEnoughFramesError(too_short(done, start, 1))
    return np.stack(kept)
