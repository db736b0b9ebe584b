"""The parts of predict-video, put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from psmt.evaluation import FrameRow, RolloutRow, Step
from psmt.experiments.contract import Experiment
from psmt.experiments.predict_video.claims import verdict
from psmt.experiments.predict_video.figure import places_figure, scores_figure, stills_figure
from psmt.experiments.predict_video.film_painter import FilmPainter, error_gain
from psmt.experiments.predict_video.page import FilmFacts, frames_page, frames_table
from psmt.experiments.predict_video.run import Sink, VideoResult, VideoSettings, extent, predict_video
from psmt.experiments.running.context import Run
from psmt.figures import png
from psmt.report import render, to_csv
from psmt.sources import FrameSource
from psmt.sources.film_writer import writing_film
from psmt.types import Levels
from psmt.video.reader import ColourFrame, FrameReader


@dataclass(frozen=True, kw_only=True)
class PredictedFilm:
    """What came out, and what only who opened the film knows."""

    result: VideoResult
    facts: FilmFacts
    gain: int
    """How often errors are enlarged to be seen."""


def predict_film(
    material: tuple[FrameSource, FrameReader], settings: VideoSettings, run: Run, _earlier: Mapping[str, Any]
) -> PredictedFilm:
    """Predict a film frame by frame, and write predicted.mp4 as it goes."""
    film, reader = material
    began = perf_counter()
    gain = 1
    with writing_film(run.folder / "predicted.mp4", fps=film.fps) as add:

        def begin(past: Levels, horizon: int | None) -> Sink:
            nonlocal gain
            gain = error_gain(past)
            painter = FilmPainter((past.shape[1], past.shape[2]), horizon=horizon, gain=gain)

            def sink(step: Step, now: ColourFrame, before: ColourFrame) -> None:
                predicted = step.predicted["psmt"]
                add(
                    painter.paint(
                        step.rows["psmt"],
                        step.rows["copy"].psnr,
                        now.coloured(now.luma),
                        before.coloured(predicted),
                        predicted - step.frame,
                    )
                )

            return sink

        result = predict_video(film, reader, settings, begin=begin, progress=run.progress)
    facts = FilmFacts(checksum=film.checksum(), size=film.shape, n_frames=film.n_frames, seconds=perf_counter() - began)
    return PredictedFilm(result=result, facts=facts, gain=gain)


def _page(done: PredictedFilm) -> bytes:
    pictures = {
        "scores": png(scores_figure(done.result)),
        "places": png(places_figure(done.result)),
        "stills": png(stills_figure(done.result, gain=done.gain)),
    }
    return render(frames_page(done.result, done.facts, pictures))


def _check(settings: VideoSettings, n_frames: int) -> None:
    extent(n_frames, settings)


EXPERIMENT = Experiment[VideoSettings, PredictedFilm](
    run=predict_film,
    check=_check,
    files={
        "scores.csv": lambda done: to_csv(FrameRow._fields, done.result.rows),
        "rollout.csv": lambda done: to_csv(RolloutRow._fields, done.result.rollouts),
        "report.html": _page,
    },
    shown=lambda done: [frames_table(done.result), verdict(done.result)],
)
