"""`psmt predict-video` as an experiment, and its report: whether PSMT beat copying on this film, and where not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from PIL import Image

from psmt.data import FrameSource
from psmt.data.readers.film_writer import joining_films
from psmt.evaluation import FrameRow, Step
from psmt.experiments.contract import Experiment
from psmt.experiments.predict_video.claims import events_text, frame_claims, verdict
from psmt.experiments.predict_video.figures import events_figure, places_figure, scores_figure, stills_figure
from psmt.experiments.predict_video.film_painter import FilmPainter, error_gain, pixels
from psmt.experiments.predict_video.recording import clear_checkpoints
from psmt.experiments.predict_video.result import FRAME_METHODS, FrameSummary, VideoResult
from psmt.experiments.predict_video.run import Sink, predict_video
from psmt.experiments.predict_video.settings import VideoSettings
from psmt.figures import png
from psmt.pipeline.run import Run
from psmt.report import TIE, Cell, Column, Fact, Page, Picture, Section, Table
from psmt.report.numbers import error, percent, ratio, seconds
from psmt.types import Levels
from psmt.video import ColourFrame, FrameReader

FILM = "predicted.mp4"
"""Name of the film beside the page."""


def frames_page(result: VideoResult, duration: float, pictures: Mapping[str, bytes]) -> Page:
    """Page of a run of `duration` seconds, with PNG files by name: scores, places, stills and, if any, events."""
    first, last = result.start + 1, result.start + result.horizon
    rollouts = bool(result.scores.rollouts)
    sections = [
        Section(
            title="Frame by frame",
            text=[
                f"Each of the frames {first:,} to {last:,} is predicted from those before it. A ratio below 1 is "
                "better than copying the last frame. PSNR and SSIM are computed for each frame, then averaged; higher "
                "is better. The last column is the computing time per frame in milliseconds. The film shows every "
                "frame, its prediction, and the error.",
            ],
            film=FILM,
            pictures=[Picture(pictures["scores"], alt="Error of each method divided by that of copying, by frame")],
            tables=[frames_table(result)],
        ),
        Section(
            title="Several frames ahead, and place by place",
            text=[
                f"Every {result.every} frames, each method predicts the next {result.settings.rollout} frames from its "
                "own predictions (a rollout). Copying then repeats the last frame that was received. The map shows "
                "where in the picture the next frame is predicted better than by copying (blue), and where worse "
                "(orange).",
            ],
            pictures=[
                Picture(
                    pictures["places"],
                    alt="Error by steps ahead, a frame, and a map of better and worse",
                    caption="Lines have the colours of the figure above." if rollouts else "",
                )
            ],
            tables=[rollout_table(result)] if rollouts else [],
        ),
        _events_section(result, pictures),
        Section(
            title="Stills",
            text=["Errors are coloured: orange where the prediction is too bright, blue where it is too dark."],
            pictures=[Picture(pictures["stills"], alt="Frames, predictions, and the errors of PSMT and of copying")],
        ),
    ]
    return Page(
        title=f"“{result.name}”, predicted",
        lead=verdict(result),
        claims=frame_claims(result),
        sections=sections,
        still=_last_frame(result),
        facts=_facts(result, duration),
    )


def _last_frame(result: VideoResult) -> Picture:
    last = result.stills["last"]
    file = BytesIO()
    Image.fromarray(np.clip(255 * last.frame, 0, 255).round().astype(np.uint8)).save(file, format="png", optimize=True)
    caption = f"Frame {last.row.frame:,} of {result.name}. All of its {_by(result.shape)} pixels are predicted."
    return Picture(file.getvalue(), alt="A frame of the film", caption=caption)


def _events_section(result: VideoResult, pictures: Mapping[str, bytes]) -> Section:
    n_events, largest = sum(result.event_counts.values()), result.largest_events
    text = [
        "A cut is a frame that PSMT takes for the first of another scene. A flash is a cut after which the old picture "
        "is back within a few frames. Any other surprise is listed only if one as large is expected in at most one of "
        f"{1 / result.settings.false_alarms:,.0f} frames of an uneventful film; estimating this takes 100 frames. "
        "Sizes are prediction errors relative to the usual error. All events are in events.csv.",
        events_text(result),
    ]
    table = Table.of(
        "Events" if n_events == len(largest) else f"The {len(largest)} largest of {n_events:,} events",
        largest,
        [
            Column("kind", "kind"),
            Column("frame", "frame", "{:,}".format),
            Column("time, s", "time", lambda time: f"{time:.2f}" if math.isfinite(time) else "–"),
            Column("size", "size", "{:.3g}".format),
        ],
    )
    picture = Picture(pictures["events"], alt="The largest events: the frame before, the frame, and its prediction")
    return Section(
        title="Events",
        text=text,
        pictures=[picture] if result.event_stills else [],
        tables=[table] if largest else [],
    )


def frames_table(result: VideoResult) -> Table:
    """Means of all methods, lowest error first."""
    caption = f"One frame ahead, means over {result.horizon:,} frames of {_by(result.shape)} pixels"
    columns = [
        Column("method", lambda own: FRAME_METHODS[own.method]),
        Column("MSE", "mse", error, best=min),
        Column("÷ copying", _ratio_cell),
        Column("better in", lambda own: Cell("–") if own.method == "copy" else own.wins, percent),
        Column("PSNR, dB", "psnr", "{:.2f}".format, best=max),
        Column("SSIM", "ssim", "{:.3f}".format, best=max),
        Column("ms", lambda own: 1000 * result.seconds[own.method], "{:.0f}".format),
    ]
    return Table.of(caption, result.scores.summaries.values(), columns)


def rollout_table(result: VideoResult) -> Table:
    """Error divided by that of copying, by steps ahead."""
    by_step = result.scores.rollouts

    def column(step: int) -> Column:
        return Column(f"{step}", lambda method: _ratio_cell(by_step[step][method]))

    columns = [Column("method", FRAME_METHODS.get), *(column(step) for step in (1, 2, 3, 5, 7, 10) if step in by_step)]
    caption = f"Error ÷ copying by frames ahead, means over {result.scores.n_rollouts} rollouts"
    return Table.of(caption, result.seconds, columns)


def _ratio_cell(own: FrameSummary) -> Cell:
    if own.method == "copy":
        return Cell("1")
    return Cell(ratio(own.ratio), "loses" if own.ratio > 1 + TIE else "")


def _facts(result: VideoResult, duration: float) -> list[Fact]:
    settings = result.settings
    rate = 1 / result.seconds["psmt"] if result.seconds["psmt"] > 0 else float("inf")
    return [
        Fact(
            "Frames",
            f"{_by(result.shape)} pixels; learned from {result.n_past:,} frames up to {result.start - 1:,}, received "
            f"{result.start:,}, predicted {result.start + 1:,} to {result.start + result.horizon:,}",
        ),
        Fact("Colour", "luma is predicted and scored; the colours shown are those of the frame before"),
        Fact("Model", f"{settings.extrapolation}, prior {settings.prior or 'none'}"),
        Fact("Speed", f"learning {seconds(result.learning)}, then {rate:.3g} frames per second for PSMT alone"),
        Fact("In all", f"{seconds(duration)} for all methods, scores, and the film"),
    ]


def _by(shape: tuple[int, int]) -> str:
    """Width × height."""
    return f"{shape[1]} × {shape[0]}"


_SHOWN, _RAW = "shown", "raw"
"""Names of the films in checkpoints: all side by side, and the plain prediction."""


@dataclass(frozen=True, kw_only=True)
class PredictedFilm:
    """The result, and the seconds that it took."""

    result: VideoResult
    seconds: float
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

        def sink(step: Step, now: ColourFrame, before: ColourFrame) -> dict[str, Any]:
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
    return PredictedFilm(result=result, seconds=perf_counter() - began, gain=gain)


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
    return frames_page(done.result, done.seconds, pictures)


EXPERIMENT = Experiment[VideoSettings, PredictedFilm](
    run=predict_film,
    files={
        "scores.csv": lambda done: done.result.rows.table(),
        "rollout.csv": lambda done: done.result.rollouts.table(),
        "events.csv": lambda done: done.result.events.table(),
    },
    meanwhile=_film,
    shown=lambda done: [frames_table(done.result), verdict(done.result), events_text(done.result)],
    page=_page,
    summary=lambda done: [one._asdict() for one in done.result.scores.summaries.values()],
)
