"""The parts of predict-video, put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from psmt.data import Film, FrameSource
from psmt.data.readers.film_writer import Picture, joining_films
from psmt.evaluation import FrameRow, Step
from psmt.experiments.contract import Experiment
from psmt.experiments.predict_video.claims import events_text, verdict
from psmt.experiments.predict_video.figures import events_figure, places_figure, scores_figure, stills_figure
from psmt.experiments.predict_video.film_painter import FilmPainter, error_gain, pixels
from psmt.experiments.predict_video.page import FILM, FilmFacts, frames_page, frames_table
from psmt.experiments.predict_video.recording import clear_checkpoints
from psmt.experiments.predict_video.result import VideoResult
from psmt.experiments.predict_video.run import Sink, predict_video
from psmt.experiments.predict_video.settings import VideoSettings
from psmt.figures import png
from psmt.pipeline.run import Run
from psmt.report import Page
from psmt.types import Levels
from psmt.video import ColourFrame, FrameReader

_SHOWN, _RAW = "shown", "raw"
"""Names of the films in checkpoints: all side by side, and the plain prediction."""


@dataclass(frozen=True, kw_only=True)
class PredictedFilm:
    """The result, and facts about the film that was opened."""

    result: VideoResult
    facts: FilmFacts
    gain: int
    """Factor by which errors are enlarged, so that they can be seen."""


def predict_film(
    material: tuple[FrameSource, FrameReader], settings: VideoSettings, run: Run, _earlier: Mapping[str, Any]
) -> PredictedFilm:
    """Predict a film frame by frame, and draw a picture of each."""
    film, reader = material
    began = perf_counter()
    gain = 1

    def begin(past: Levels, horizon: int | None, painted: Iterable[FrameRow]) -> Sink:
        nonlocal gain
        gain = error_gain(past)
        painter = FilmPainter((past.shape[1], past.shape[2]), horizon=horizon, gain=gain, painted=painted)

        def sink(step: Step, now: ColourFrame, before: ColourFrame) -> dict[str, Picture]:
            predicted = step.predicted["psmt"]
            coloured = before.coloured(predicted)
            picture = painter.paint(
                step.rows["psmt"],
                step.rows["copy"].psnr,
                now.coloured(now.luma),
                coloured,
                predicted - step.frame,
            )
            return {_SHOWN: picture} | ({} if settings.raw is None else {_RAW: pixels(coloured)})

        return sink

    result = predict_video(film, reader, settings, begin=begin, run=run)
    facts = FilmFacts(
        checksum=film.checksum() if isinstance(film, Film) else None,
        size=film.shape,
        n_frames=film.n_frames,
        seconds=perf_counter() - began,
    )
    return PredictedFilm(result=result, facts=facts, gain=gain)


@contextmanager
def _film(done: PredictedFilm, folder: Path) -> Iterator[None]:
    """Write films together with the files that are written meanwhile; then remove the checkpoints."""
    result = done.result
    with ExitStack() as stack:
        stack.enter_context(joining_films(result.segments[_SHOWN], folder / FILM))
        if result.settings.raw is not None:
            stack.enter_context(joining_films(result.segments[_RAW], result.settings.raw))
        yield
    clear_checkpoints(folder)


def _page(done: PredictedFilm, _files: Mapping[str, bytes]) -> Page:
    pictures = {
        "events": png(events_figure(done.result, gain=done.gain)) if done.result.event_stills else b"",
        "scores": png(scores_figure(done.result)),
        "places": png(places_figure(done.result)),
        "stills": png(stills_figure(done.result, gain=done.gain)),
    }
    return frames_page(done.result, done.facts, pictures)


EXPERIMENT = Experiment[VideoSettings, PredictedFilm](
    run=predict_film,
    tables={
        "scores.csv": lambda done: done.result.rows.table(),
        "rollout.csv": lambda done: done.result.rollouts.table(),
        "events.csv": lambda done: done.result.events.table(),
    },
    meanwhile=_film,
    shown=lambda done: [frames_table(done.result), verdict(done.result), events_text(done.result)],
    page=_page,
    summary=lambda done: [one._asdict() for one in done.result.scores.summaries.values()],
)
