"""The report of `psmt predict-video`: claims, their verdicts on this film, tables and the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO

import numpy as np
from PIL import Image

import psmt
from psmt.evaluation import Interval
from psmt.experiments.predict_video.result import FRAME_METHODS, FilmScores, FrameSummary, Loss, VideoResult
from psmt.report import (
    INCONCLUSIVE,
    TIE,
    Cell,
    Claim,
    Column,
    Evidence,
    Fact,
    Page,
    Picture,
    Section,
    Table,
    Verdict,
)
from psmt.report.numbers import error, listed, percent, ratio, seconds
from psmt.video.events import Kind

FILM = "predicted.mp4"
"""Name of the film beside the page."""

MARGIN = 0.01
"""Errors within this fraction of each other are a tie, which is inconclusive."""


@dataclass(frozen=True, kw_only=True)
class FilmFacts:
    """Properties of the film that are not in the result."""

    checksum: str | None
    """None for a camera or a stream, which cannot be read again."""
    size: tuple[int, int]
    """Height and width of its own frames."""
    n_frames: int | None
    seconds: float
    """Duration of the whole run."""


def frames_page(result: VideoResult, facts: FilmFacts, pictures: Mapping[str, bytes]) -> Page:
    """Page with PNG files by name: scores, places, stills and, if there are events, events."""
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
        facts=_facts(result, facts),
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


def _facts(result: VideoResult, film: FilmFacts) -> list[Fact]:
    settings = result.settings
    rate = 1 / result.seconds["psmt"] if result.seconds["psmt"] > 0 else float("inf")
    frames = "" if film.n_frames is None else f", {film.n_frames:,} frames"
    return [
        Fact("Film", f"{result.name}, {_by(film.size)} pixels{frames}"),
        Fact("Checksum", "none: it can be read only once" if film.checksum is None else f"sha256 {film.checksum}"),
        Fact(
            "Frames",
            f"{_by(result.shape)} pixels; learned from {result.n_past:,} frames up to {result.start - 1:,}, received "
            f"{result.start:,}, predicted {result.start + 1:,} to {result.start + result.horizon:,}",
        ),
        Fact("Colour", "luma is predicted and scored; the colours shown are those of the frame before"),
        Fact("Model", f"{settings.extrapolation}, prior {settings.prior or 'none'}"),
        Fact("Speed", f"learning {seconds(result.learning)}, then {rate:.3g} frames per second for PSMT alone"),
        Fact("In all", f"{seconds(film.seconds)} for all methods, scores, and the film"),
        Fact("Version", f"psmt {psmt.__version__}"),
    ]


def _by(shape: tuple[int, int]) -> str:
    """Width × height."""
    return f"{shape[1]} × {shape[0]}"


def verdict(result: VideoResult) -> str:
    """Whether PSMT beat copying, and where not, in words."""
    scores = result.scores
    own, lost = scores.summaries["psmt"].ratio, scores.losses
    if not np.isfinite(own):
        return f"Nothing moves in the {scores.n:,} predicted frames: copying has no error, so there is no comparison."
    if own < 1 - TIE:
        text = "PSMT beat copying the last frame on this film"
    elif own <= 1 + TIE:
        text = "PSMT did as well as copying the last frame on this film, not better"
    else:
        text = "PSMT lost to copying the last frame on this film"
    text += f": its mean squared error over {scores.n:,} predicted frames is {ratio(own)} times that of copying."
    if not lost.n:
        return f"{text} Copying was not better in any frame.{_better_methods(scores)}"
    share, cuts = percent(lost.n_frames / scores.n), lost.n_with_cut
    text += f" Copying was better in {lost.n_frames:,} of the frames ({share}), most of all in {_frames(lost.worst[0])}"
    text += f"; {cuts} of these {lost.n} stretches began with a cut" if cuts else ""
    return f"{text}.{_better_methods(scores)}"


def events_text(result: VideoResult) -> str:
    """Number of events of each kind, in words."""
    plurals: dict[Kind, str] = {"cut": "cuts", "flash": "flashes", "surprise": "surprises"}
    counts = {kind: result.event_counts.get(kind, 0) for kind in plurals}
    texts = [f"{n} {plurals[kind] if n > 1 else kind}" for kind, n in counts.items() if n]
    return f"Events: {', '.join(texts) or 'none'}."


def frame_claims(result: VideoResult) -> list[Claim]:
    """All claims on predicted frames."""
    scores = result.scores
    own = scores.summaries["psmt"]
    peers = [other for name, other in scores.summaries.items() if name not in ("psmt", "copy")]
    excess = {name: scores.excess(name) for name in scores.summaries if name != "psmt"}
    rule = f"by more than {percent(MARGIN)} over its whole 95% interval"
    worse = float(np.mean(result.place_ratios() > 1.02))
    copying = Claim.from_evidence(
        "frames_beat_copying",
        "PSMT beats copying the last frame",
        f"its mean squared error over all predicted frames is below that of copying {rule}",
        [_evidence(excess["copy"], "copying")],
        paper=False,
        size=f"{ratio(own.ratio)} × the error of copying" if np.isfinite(own.ratio) else "",
        notes=[f"copying was better in {percent(worse)} of the picture's area (see the map)" if worse > 0 else ""],
        figures={"ratio": own.ratio, "wins": own.wins, "excess": excess["copy"]._asdict()},
    )
    wins = [f"better in {percent(own.wins)} of the frames"] if own.wins > 0 else []
    losses = [f"copying was better in {_frames(loss)}" for loss in scores.losses.worst]
    # The best of the other methods comes first.
    best = next((other for other in peers if other.mse > 0), None)
    methods = Claim.from_evidence(
        "frames_beat_peers",
        "PSMT beats the other methods",
        f"its mean squared error is below that of every other method except copying {rule}",
        [_evidence(excess[other.method], FRAME_METHODS[other.method]) for other in peers],
        paper=False,
        size="" if best is None else f"{ratio(own.mse / best.mse)} × the error of {FRAME_METHODS[best.method]}",
    )
    copying = replace(copying, support=(*copying.support, *wins), against=(*copying.against, *losses))
    return [copying, methods, *([_rollout_claim(result)] if scores.rollouts else [])]


def _evidence(excess: Interval, other: str) -> Evidence:
    """Evidence that the error of PSMT is below that of another method."""
    return Evidence(
        name=f"error relative to {other}",
        statistic=excess,
        margin=MARGIN,
        lower_is_better=True,
        write=lambda value: ratio(1 + value),
        too_few="" if excess.is_finite else f"no error of {other}" if np.isnan(excess.mean) else "too few frames",
    )


def _rollout_claim(result: VideoResult) -> Claim:
    # Rollouts are few and far apart: there is no interval, only the margin.
    ratios = {step: summaries["psmt"].ratio for step, summaries in result.scores.rollouts.items()}
    evidence = {step: _evidence(Interval(*[value - 1] * 3), "copying") for step, value in ratios.items()}
    last = [*ratios.values()][-1]

    def steps(outcome: Verdict) -> tuple[str, ...]:
        texts = [f"{own.estimate} after {step}" for step, own in evidence.items() if own.verdict == outcome]
        return (", ".join(texts),) if texts else ()

    claim = Claim.from_evidence(
        "frames_left_alone",
        f"In rollouts of {result.settings.rollout} frames, PSMT stays better than copying",
        f"the mean squared error of its rollouts is below that of copying by more than {percent(MARGIN)} at every step",
        [*evidence.values()],
        paper=False,
        size=f"{ratio(last)} × the error of copying after the last step" if np.isfinite(last) else "",
        figures={},
    )
    return replace(claim, support=steps("holds"), against=steps("does not hold"), notes=steps(INCONCLUSIVE))


def _better_methods(scores: FilmScores) -> str:
    """Every horizon at which another method had the lowest error, as a sentence; '' if only one frame is predicted."""
    winners: dict[str, list[int]] = {}
    # One frame ahead all frames count, not only those at which rollouts begin.
    for step, summaries in (scores.rollouts | {1: scores.summaries}).items():
        best = next(iter(summaries.values()))
        if best.mse * (1 + TIE) < summaries["psmt"].mse:
            winners.setdefault(best.method, []).append(step)
    if winners:
        texts = [f"{FRAME_METHODS[method]} at {_steps(steps)}" for method, steps in winners.items()]
        return f" Another method was better at some horizons: {', '.join(texts)} ahead."
    ahead = max(scores.rollouts, default=1)
    return f" No other method was better at any horizon from 1 to {ahead} frames." if ahead > 1 else ""


def _steps(steps: Sequence[int]) -> str:
    """Numbers of frames in words, successive ones as ranges.

    >>> _steps([1]), _steps([2, 3, 4, 7])
    ('1 frame', '2 to 4 and 7 frames')
    """
    runs = np.split(np.array(steps), np.flatnonzero(np.diff(steps) > 1) + 1)
    text = listed([f"{run[0]}" if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs])
    return f"{text} frame{'' if text == '1' else 's'}"


def _frames(loss: Loss) -> str:
    return f"frame {loss.start:,}" if loss.start == loss.stop else f"frames {loss.start:,} to {loss.stop:,}"
