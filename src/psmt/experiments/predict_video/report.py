"""Declaration and report of the experiment `psmt predict-video`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from heapq import nlargest
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from psmt.data import FrameSource
from psmt.data.readers.film_writer import joining_films
from psmt.evaluation import FrameRow
from psmt.experiments.contract import Experiment
from psmt.experiments.predict_video.claims import events_text, frame_claims, verdict
from psmt.experiments.predict_video.figures import scores_figure
from psmt.experiments.predict_video.film_painter import FilmPainter, error_gain
from psmt.experiments.predict_video.recording import Event, clear_checkpoints
from psmt.experiments.predict_video.result import FRAME_METHODS, FrameSummary, VideoResult
from psmt.experiments.predict_video.run import Sink, predict_video
from psmt.experiments.predict_video.settings import VideoSettings, picture_text
from psmt.figures import png
from psmt.pipeline.run import Run
from psmt.report import TIE, Answer, Cell, Column, Fact, Page, Picture, Section, Table, render
from psmt.report.numbers import error, percent, ratio, seconds
from psmt.types import Levels
from psmt.video import FrameReader

FILM, EVENTS = "predicted.mp4", "events.html"
"""Names of the film and of the page of events, which are in the same folder as the page."""
_SHOWN_EVENTS = 6
"""Number of the largest events whose pictures are on the page."""


def frames_page(result: VideoResult, duration: float) -> Page:
    """Return the page of a run that took `duration` seconds."""
    first, last = result.start + 1, result.start + result.horizon
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
            pictures=[
                Picture(png(scores_figure(result)), alt="Error of each method divided by that of copying, by frame")
            ],
            tables=[frames_table(result)],
        ),
        _events_section(result),
    ]
    if result.scores.rollouts:
        text = (
            f"Every {result.every} frames, each method predicts the next {result.settings.rollout} frames from its own "
            "predictions (a rollout). Copying then repeats the last frame that was received."
        )
        sections.insert(1, Section(title="Several frames ahead", text=[text], tables=[rollout_table(result)]))
    return Page(
        title=f"“{result.name}”, predicted",
        answer=Answer(verdict(result)),
        claims=frame_claims(result),
        sections=sections,
        facts=_facts(result, duration),
    )


def _events_section(result: VideoResult) -> Section:
    n_events, largest = sum(result.event_counts.values()), result.largest_events
    text = [
        "A cut is a frame that seems to be the first of another scene. A flash is a cut after which the old picture "
        "is back within a few frames. Any other surprise is listed only if one as large is expected in at most one of "
        f"{1 / result.settings.false_alarms:,.0f} frames of an uneventful film; estimating this takes 100 frames. "
        f"Sizes are prediction errors relative to the usual error. All events are in events.csv; {EVENTS}, which lies "
        "beside this page, shows pictures of each of the listed ones.",
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
    shown = sorted(nlargest(_SHOWN_EVENTS, largest, key=lambda event: event.size))
    pictures = [_event_picture(result, event) for event in shown]
    return Section(title="Events", text=text, pictures=pictures, tables=[table] if largest else [])


def _event_picture(result: VideoResult, event: Event) -> Picture:
    alt = f"The frame before frame {event.frame}, what was expected, and what came"
    return Picture(result.event_strips[event.frame], alt=alt, caption=f"{event_title(event)}.")


def event_title(event: Event) -> str:
    """Return the kind, frame, time and size of an event in words."""
    time = f", {event.time:.2f} s" if math.isfinite(event.time) else ""
    return f"{event.kind.capitalize()} at frame {event.frame:,}{time}: {event.size:.3g} times the usual error"


def events_page(result: VideoResult) -> Page:
    """Return a page with a strip of three pictures for each of the largest events."""
    n_events, largest = sum(result.event_counts.values()), result.largest_events
    listed = "all" if n_events == len(largest) else f"the {len(largest)} largest"
    lead = f"{events_text(result)} This page shows {listed} of them, in the order of the film."
    pictures = [_event_picture(result, event) for event in largest]
    section = Section(title="The frame before, what was expected, and what came", pictures=pictures)
    return Page(title=f"Events of “{result.name}”", lead=lead, claims=[], sections=[section] if largest else [])


def frames_table(result: VideoResult) -> Table:
    """Return the table of the mean scores of all methods, lowest error first."""
    caption = f"One frame ahead, means over {result.horizon:,} frames of {_by(result.shape)} pixels"
    columns = [
        Column("method", lambda own: FRAME_METHODS[own.method]),
        Column("MSE", "mse", error, best=min),
        Column("÷ copying", _ratio_cell),
        Column("better in", lambda own: Cell("–") if own.method == "copy" else own.wins, percent),
        Column("PSNR, dB", "psnr", "{:.2f}".format, best=max),
        Column("SSIM", "ssim", "{:.3f}".format, best=max),
        *([Column("colour ÷ copying", _colour_cell)] if result.colour else []),
        Column("ms", lambda own: 1000 * result.seconds[own.method], "{:.0f}".format),
    ]
    return Table.of(caption, result.scores.summaries.values(), columns)


def rollout_table(result: VideoResult) -> Table:
    """Return the table of errors divided by the error of copying, by steps ahead."""
    by_step = result.scores.rollouts

    def column(step: int) -> Column:
        return Column(f"{step}", lambda method: _ratio_cell(by_step[step][method]))

    columns = [Column("method", FRAME_METHODS.get), *(column(step) for step in (1, 2, 3, 5, 7, 10) if step in by_step)]
    caption = f"Error ÷ copying by frames ahead, means over {result.scores.n_rollouts} rollouts"
    return Table.of(caption, result.seconds, columns)


def _colour_cell(own: FrameSummary) -> Cell:
    return Cell("–" if own.colour_ratio is None else ratio(own.colour_ratio))


def _ratio_cell(own: FrameSummary) -> Cell:
    if own.method == "copy":
        return Cell("1")
    return Cell(ratio(own.ratio), "loses" if own.ratio > 1 + TIE else "")


def _facts(result: VideoResult, duration: float) -> list[Fact]:
    settings = result.settings
    rate = 1 / result.seconds["frame_predictor"] if result.seconds["frame_predictor"] > 0 else float("inf")
    return [
        Fact(
            "Frames",
            f"{picture_text(result.film_shape, result.shape)}; learned from {result.n_past:,} frames up to "
            f"{result.start - 1:,}, received {result.start:,}, predicted {result.start + 1:,} to "
            f"{result.start + result.horizon:,}",
        ),
        Fact("Colour", _colour_text(result)),
        Fact("Model", f"{settings.extrapolation}, prior {settings.prior or 'none'}"),
        Fact(
            "Speed", f"learning {seconds(result.learning)}, then {rate:.3g} frames per second without the other methods"
        ),
        Fact("In all", f"{seconds(duration)} for all methods, scores, and the film"),
    ]


def _colour_text(result: VideoResult) -> str:
    if not result.colour:
        return "predicted in grey, as --grey asks" if result.settings.grey else "the film is grey"
    own = result.scores.summaries["frame_predictor"]
    text = "the luma is learned from and scored, and the chroma follows it"
    if own.colour_mse is None or own.colour_ratio is None:
        return text
    colours = f"{error(own.colour_mse)}, {ratio(own.colour_ratio)} × copying"
    return f"{text}; over red, green and blue, the error is {colours}"


def _by(shape: tuple[int, int]) -> str:
    """Return 'width × height'."""
    return f"{shape[1]} × {shape[0]}"


class PredictedFilm(NamedTuple):
    """The result of a run, and the seconds that the run took."""

    result: VideoResult
    seconds: float


def predict_film(
    material: tuple[FrameSource, FrameReader], settings: VideoSettings, run: Run, _earlier: Mapping[str, Any]
) -> PredictedFilm:
    """Predict a film frame by frame, and paint a picture of each prediction."""
    film, reader = material
    began = perf_counter()

    def begin(past: Levels, horizon: int | None, painted: Iterable[FrameRow]) -> Sink:
        painter = FilmPainter((past.shape[1], past.shape[2]), horizon=horizon, gain=error_gain(past), painted=painted)
        return lambda step: painter.paint(
            step.rows["frame_predictor"], step.rows["copy"].psnr, step.frame, step.predicted["frame_predictor"]
        )

    result = predict_video(film, reader, settings, begin=begin, run=run)
    return PredictedFilm(result, perf_counter() - began)


@contextmanager
def _film(done: PredictedFilm, folder: Path) -> Iterator[None]:
    """Return a context in which other results are written. At its end, write the film and remove the checkpoints."""
    with joining_films(done.result.segments, folder / FILM):
        yield
    clear_checkpoints(folder)


EXPERIMENT = Experiment[VideoSettings, PredictedFilm](
    run=predict_film,
    files={
        "scores.csv": lambda done: done.result.rows.table(),
        "rollout.csv": lambda done: done.result.rollouts.table(),
        "events.csv": lambda done: done.result.events.table(),
        EVENTS: lambda done: render(events_page(done.result)),
    },
    meanwhile=_film,
    shown=lambda done: [frames_table(done.result), events_text(done.result)],
    page=lambda done, _: frames_page(*done),
    summary=lambda done: [one._asdict() for one in done.result.scores.summaries.values()],
)
