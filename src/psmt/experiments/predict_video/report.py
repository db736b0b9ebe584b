"""The experiment `psmt predict-video`: its files, and its report with claims, tables, figures and events."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from heapq import nlargest
from math import isfinite, isnan
from pathlib import Path
from time import perf_counter
from typing import Any

from psmt.data import FrameSource
from psmt.data.readers.film_writer import joining_films
from psmt.evaluation import FrameRow, Interval
from psmt.experiments.contract import Experiment
from psmt.experiments.predict_video.figures import scores_figure
from psmt.experiments.predict_video.film_painter import FilmPainter, error_gain
from psmt.experiments.predict_video.recording import Event, clear_checkpoints
from psmt.experiments.predict_video.result import FRAME_METHODS, FilmScores, FrameSummary, VideoResult
from psmt.experiments.predict_video.run import Sink, predict_video
from psmt.experiments.predict_video.settings import VideoSettings, picture_text
from psmt.figures import png
from psmt.pipeline.run import Run
from psmt.report import TIE, Answer, Cell, Claim, Column, Evidence, Fact, Page, Picture, Section, Table, render
from psmt.report.numbers import error, listed, percent, ratio, seconds
from psmt.types import Levels
from psmt.video import FrameReader
from psmt.video.events import Kind

FILM, EVENTS = "predicted.mp4", "events.html"
"""Names of the film and of the page of events, which are in the same folder as the page."""
MARGIN = 0.01
"""Two errors are a tie if they differ by less than this fraction. A tie is inconclusive."""
_SHOWN_EVENTS = 6  # number of the largest events whose pictures are on the page
_claim = partial(Claim.from_evidence, paper=False)


def verdict(result: VideoResult) -> str:
    """Return sentences that say whether the frame predictor beat copying, and which methods beat the predictor."""
    scores = result.scores
    own, wins = scores.summaries["frame_predictor"].ratio, scores.summaries["frame_predictor"].wins
    if not isfinite(own):
        return f"Nothing moves in the {scores.n:,} predicted frames: copying has no error, so there is no comparison."
    if own < 1 - TIE:
        text = "The frame predictor beat copying the last frame on this film"
    elif own <= 1 + TIE:
        text = "The frame predictor did as well as copying the last frame on this film, not better"
    else:
        text = "The frame predictor lost to copying the last frame on this film"
    text += f": its mean squared error over {scores.n:,} predicted frames is {ratio(own)} times that of copying."
    return f"{text} It was better in {percent(wins)} of the frames.{_better_methods(scores)}"


def events_text(result: VideoResult) -> str:
    """Return a sentence with the number of cuts, flashes and surprises."""
    plurals: dict[Kind, str] = {"cut": "cuts", "flash": "flashes", "surprise": "surprises"}
    counts = {kind: result.event_counts.get(kind, 0) for kind in plurals}
    texts = [f"{n} {plurals[kind] if n > 1 else kind}" for kind, n in counts.items() if n]
    return f"Events: {', '.join(texts) or 'none'}."


def frame_claims(result: VideoResult) -> list[Claim]:
    """Return claims with verdicts: the frame predictor beats copying and other methods, also in rollouts."""
    scores = result.scores
    own = scores.summaries["frame_predictor"]
    peers = [other for name, other in scores.summaries.items() if name not in ("frame_predictor", "copy")]
    excess = {name: scores.excess(name) for name in scores.summaries if name != "frame_predictor"}
    rule = f"by more than {percent(MARGIN)} over its whole 95% interval"
    copying = _claim(
        "frames_beat_copying",
        "The frame predictor beats copying the last frame",
        f"its mean squared error over all predicted frames is below that of copying {rule}",
        [_evidence(excess["copy"], "copying")],
        size=f"{ratio(own.ratio)} × the error of copying" if isfinite(own.ratio) else "",
        figures={"ratio": own.ratio, "wins": own.wins, "excess": excess["copy"]._asdict()},
    )
    # The best of the other methods comes first.
    best = next((other for other in peers if other.mse > 0), None)
    methods = _claim(
        "frames_beat_peers",
        "The frame predictor beats the other methods",
        f"its mean squared error is below that of every other method except copying {rule}",
        [_evidence(excess[other.method], FRAME_METHODS[other.method]) for other in peers],
        size="" if best is None else f"{ratio(own.mse / best.mse)} × the error of {FRAME_METHODS[best.method]}",
    )
    if not scores.rollouts:
        return [copying, methods]
    ratios = {step: summaries["frame_predictor"].ratio for step, summaries in scores.rollouts.items()}
    last = [*ratios.values()][-1]
    rollouts = _claim(
        "frames_left_alone",
        f"In rollouts of {result.settings.rollout} frames, the frame predictor stays better than copying",
        f"the mean squared error of its rollouts is below that of copying by more than {percent(MARGIN)} at every step",
        # There are too few rollouts for an interval, so the margin alone decides.
        [_evidence(Interval(*[value - 1] * 3), f"copying after {step}") for step, value in ratios.items()],
        size=f"{ratio(last)} × the error of copying after the last step" if isfinite(last) else "",
        figures={},
    )
    return [copying, methods, rollouts]


def _evidence(excess: Interval, other: str) -> Evidence:
    """Return evidence that the frame predictor beats another method, from `FilmScores.excess`."""
    return Evidence(
        name=f"error relative to {other}",
        statistic=excess,
        margin=MARGIN,
        lower_is_better=True,
        to_ratio=lambda value: 1 + value,
        too_few="" if excess.is_finite else f"no error of {other}" if isnan(excess.mean) else "too few frames",
    )


def _better_methods(scores: FilmScores) -> str:
    """Return a sentence that says which methods beat the frame predictor, and how many frames ahead."""
    winners: dict[str, list[int]] = {}
    # For one frame ahead, all frames count, not only those at which rollouts begin.
    for step, summaries in (scores.rollouts | {1: scores.summaries}).items():
        best = next(iter(summaries.values()))
        if best.mse * (1 + TIE) < summaries["frame_predictor"].mse:
            winners.setdefault(best.method, []).append(step)
    if winners:
        texts = [f"{FRAME_METHODS[method]} at {listed(steps)}" for method, steps in winners.items()]
        return f" Another method was better at some horizons: {', '.join(texts)} frames ahead."
    ahead = max(scores.rollouts, default=1)
    return f" No other method was better at any horizon from 1 to {ahead} frames." if ahead > 1 else ""


def frames_page(result: VideoResult) -> Page:
    """Return the report of `psmt predict-video`."""
    first, last = result.start + 1, result.start + result.horizon
    sections = [
        Section(
            title="Frame by frame",
            text=[
                f"Each of the frames {first:,} to {last:,} is predicted from those before it. A ratio below 1 is "
                "better than copying the last frame. PSNR and SSIM are computed for each frame, then averaged; higher "
                "is better. The last column is the computing time per frame in milliseconds. The film shows every "
                "frame, its prediction, and the error."
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
        facts=_facts(result),
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
            Column("time, s", "time", lambda time: f"{time:.2f}" if isfinite(time) else "–"),
            Column("size", "size", "{:.3g}".format),
        ],
    )
    shown = sorted(nlargest(_SHOWN_EVENTS, largest, key=lambda event: event.size))
    pictures = [_event_picture(result, event) for event in shown]
    return Section(title="Events", text=text, pictures=pictures, tables=[table] if largest else [])


def _event_picture(result: VideoResult, event: Event) -> Picture:
    time = f", {event.time:.2f} s" if isfinite(event.time) else ""
    caption = f"{event.kind.capitalize()} at frame {event.frame:,}{time}: {event.size:.3g} times the usual error."
    alt = f"The frame before frame {event.frame}, what was expected, and what came"
    return Picture(result.event_strips[event.frame], alt=alt, caption=caption)


def events_page(result: VideoResult) -> Page:
    """Return the content of events.html: pictures of the largest events, see `event_strip`."""
    n_events, largest = sum(result.event_counts.values()), result.largest_events
    listed = "all" if n_events == len(largest) else f"the {len(largest)} largest"
    lead = f"{events_text(result)} This page shows {listed} of them, in the order of the film."
    pictures = [_event_picture(result, event) for event in largest]
    section = Section(title="The frame before, what was expected, and what came", pictures=pictures)
    return Page(title=f"Events of “{result.name}”", lead=lead, claims=[], sections=[section] if largest else [])


def frames_table(result: VideoResult) -> Table:
    """Return a table of the mean scores of each method one frame ahead, lowest error first."""
    height, width = result.shape
    caption = f"One frame ahead, means over {result.horizon:,} frames of {width} × {height} pixels"
    columns = [
        Column("method", lambda own: FRAME_METHODS[own.method]),
        Column("MSE", "mse", error, best=min),
        Column("÷ copying", _ratio_cell),
        Column("better in", lambda own: Cell("–") if own.method == "copy" else own.wins, percent),
        Column("PSNR, dB", "psnr", "{:.2f}".format, best=max),
        Column("SSIM", "ssim", "{:.3f}".format, best=max),
        *([Column("colour ÷ copying", lambda own: own.colour_ratio or Cell("–"), ratio)] if result.colour else []),
        Column("ms", lambda own: 1000 * result.seconds[own.method], "{:.0f}".format),
    ]
    return Table.of(caption, result.scores.summaries.values(), columns)


def rollout_table(result: VideoResult) -> Table:
    """Return a table of each method's error in rollouts, divided by that of copying, by number of frames ahead."""
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


def _facts(result: VideoResult) -> list[Fact]:
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
        Fact("In all", f"{seconds(result.duration)} for all methods, scores, and the film"),
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


def predict_film(
    material: tuple[FrameSource, FrameReader], settings: VideoSettings, run: Run, _earlier: Mapping[str, Any]
) -> VideoResult:
    """Predict a film, and paint a picture of each prediction for predicted.mp4. Return the result."""
    film, reader = material
    began = perf_counter()

    def begin(past: Levels, horizon: int | None, painted: Iterable[FrameRow]) -> Sink:
        painter = FilmPainter((past.shape[1], past.shape[2]), horizon=horizon, gain=error_gain(past), painted=painted)
        return lambda step: painter.paint(
            step.rows["frame_predictor"], step.rows["copy"].psnr, step.frame, step.predicted["frame_predictor"]
        )

    result = predict_video(film, reader, settings, run, begin=begin)
    return replace(result, duration=perf_counter() - began)


@contextmanager
def _film(result: VideoResult, folder: Path) -> Iterator[None]:
    """Return a context that writes the film together with the other files, and then removes the checkpoints."""
    with joining_films(result.segments, folder / FILM):
        yield
    clear_checkpoints(folder)


EXPERIMENT = Experiment[VideoSettings, VideoResult](
    run=predict_film,
    files={
        "scores.csv": lambda result: result.rows.table(),
        "rollout.csv": lambda result: result.rollouts.table(),
        "events.csv": lambda result: result.events.table(),
        EVENTS: lambda result: render(events_page(result)),
    },
    meanwhile=_film,
    shown=lambda result: [frames_table(result), events_text(result)],
    page=lambda result, _: frames_page(result),
    summary=lambda result: list(result.scores.summaries.values()),
)
