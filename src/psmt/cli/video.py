"""`psmt predict-video`: a film through the model, and a film of the predictions out of it."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from psmt.cli import files
from psmt.cli.options import VideoOptions
from psmt.cli.progress import Bars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psmt.evaluation import FrameRow, Step
    from psmt.experiments.predict_video import Sink, VideoResult
    from psmt.sources.film_writer import Picture
    from psmt.types import Levels
    from psmt.video.reader import ColourFrame

DEFAULT_SIZE = 200
"""Side of the frame, for films that are at least as large."""

_DPI = 150


def video_of(source: str, options: VideoOptions, out: Path) -> VideoResult:
    """Predict a film, and write all files into the folder `out`."""
    from psmt.evaluation import FrameRow, RolloutRow
    from psmt.experiments.predict_video import clear_checkpoints, predict_video
    from psmt.experiments.running.context import Run
    from psmt.experiments.tables import to_csv
    from psmt.figures import places_figure, png, scores_figure, stills_figure
    from psmt.figures.film import FilmPainter, error_gain
    from psmt.report import render
    from psmt.report.frames import FilmFacts, frames_page
    from psmt.sources import open_frames
    from psmt.sources.film_writer import joining_films
    from psmt.video.reader import FrameReader

    film = open_frames(source, stop=options.frames)
    reader = FrameReader(min(DEFAULT_SIZE, *film.shape) if options.size is None else options.size)
    began = perf_counter()
    gain = 1

    def begin(past: Levels, horizon: int | None, painted: Sequence[FrameRow]) -> Sink:
        nonlocal gain
        gain = error_gain(past)
        painter = FilmPainter(past.shape[1:], horizon=horizon, gain=gain, painted=painted)

        def sink(step: Step, now: ColourFrame, before: ColourFrame) -> Picture:
            predicted = step.predicted["psmt"]
            return painter.paint(
                step.rows["psmt"],
                step.rows["copy"].psnr,
                now.coloured(now.luma),
                before.coloured(predicted),
                predicted - step.frame,
            )

        return sink

    with Bars() as progress:
        run = Run(folder=out, progress=progress, force=options.force)
        result = predict_video(film, reader, options.settings(), begin=begin, run=run)
        progress("draw figures", 0, 1)
        pictures = {
            "scores": png(scores_figure(result), dpi=_DPI),
            "places": png(places_figure(result), dpi=_DPI),
            "stills": png(stills_figure(result, gain=gain), dpi=_DPI),
        }
        progress("draw figures", 1, 1)
        facts = FilmFacts(
            checksum=film.checksum(), size=film.shape, n_frames=film.n_frames, seconds=perf_counter() - began
        )
        # Inside the film's context: should one of these fail, the film is not left there alone.
        with joining_films(result.segments, out / "predicted.mp4"):
            files.write(
                out,
                {
                    "scores.csv": to_csv(FrameRow._fields, result.rows),
                    "rollout.csv": to_csv(RolloutRow._fields, result.rollouts),
                    "report.html": render(frames_page(result, facts, pictures)),
                },
            )
        clear_checkpoints(out)
    return result
