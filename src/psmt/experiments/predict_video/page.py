"""The page of `psmt predict-video`: whether PSMT beat copying on this film, and where it did not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from PIL import Image

import psmt
from psmt.experiments.predict_video.claims import events_told, frame_claims, verdict
from psmt.experiments.predict_video.course import FrameSummary, summary_of
from psmt.experiments.predict_video.methods import FRAME_METHODS
from psmt.experiments.predict_video.result import VideoResult
from psmt.report import TIE, Cell, Fact, Page, Picture, Section, Table
from psmt.report.numbers import error, percent, ratio, seconds

COLUMNS = ("method", "MSE", "÷ copying", "better in", "PSNR, dB", "SSIM", "ms")
"""Heads of the table of methods."""


FILM = "predicted.mp4"
"""Name of the film beside the page."""


@dataclass(frozen=True, kw_only=True)
class FilmFacts:
    """Of the film, what only who opened it knows."""

    checksum: str | None
    """None for a camera or a stream, which cannot be read again."""
    size: tuple[int, int]
    """Height and width of its own frames."""
    n_frames: int | None
    seconds: float
    """That all of it took."""


def frames_page(result: VideoResult, facts: FilmFacts, pictures: Mapping[str, bytes]) -> Page:
    """Page with PNG files by name: scores, places, stills and, where there are events, events."""
    first, last = result.start + 1, result.start + result.horizon
    sections = [
        Section(
            title="Frame by frame",
            text=[
                f"Each of the frames {first:,} to {last:,} is predicted from those before it. Below 1 is better than "
                "copying the last frame. PSNR and SSIM are taken of each frame, then averaged; higher is better. The "
                "last column is what a frame takes, in milliseconds. The film shows every frame: what came, what was "
                "expected, and the error.",
            ],
            film=FILM,
            pictures=[Picture(pictures["scores"], alt="Error of each method divided by that of copying, by frame")],
            tables=[frames_table(result)],
        ),
        Section(
            title="Left alone, and place by place",
            text=[
                f"Every {result.every} frames each method predicts {result.settings.rollout} frames by "
                "itself, from its own predictions; copying is then the frame at which it was left alone. The map "
                "shows where in the picture the next frame is predicted better than by copying (blue) and where "
                "worse (orange).",
            ],
            pictures=[
                Picture(
                    pictures["places"],
                    alt="Error by steps ahead, a frame, and a map of better and worse",
                    caption="Lines have the colours of the figure above." if result.course.rollouts else "",
                )
            ],
            tables=[rollout_table(result)] if result.course.rollouts else [],
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
        still=_still(result),
        facts=_facts(result, facts),
    )


def _still(result: VideoResult) -> Picture:
    """The film at a glance: its last frame."""
    last = result.stills["last"]
    file = BytesIO()
    Image.fromarray(np.clip(255 * last.frame, 0, 255).round().astype(np.uint8)).save(file, format="png", optimize=True)
    caption = f"Frame {last.row.frame:,} of {result.name}. All of its {_by(result.shape)} pixels are predicted."
    return Picture(file.getvalue(), alt="A frame of the film", caption=caption)


def _events_section(result: VideoResult, pictures: Mapping[str, bytes]) -> Section:
    """What happened in the film, and when."""
    once = f"{1 / result.settings.false_alarms:,.0f}"
    text = [
        "A cut is a frame that PSMT takes for the first of another scene, a flash one after which the old picture is "
        f"back within a few frames. Any other surprise is listed only if a film that goes on as this one did would "
        f"bring one as large in at most one of {once} frames; that takes 100 frames to know. Sizes are errors of the "
        "prediction in units of what is usual. All are in events.csv.",
        events_told(result),
    ]
    n_events, n_listed = sum(result.event_counts.values()), len(result.largest_events)
    rows = [
        [
            Cell(event.kind),
            Cell(f"{event.frame:,}"),
            Cell(f"{event.time:.2f}" if math.isfinite(event.time) else "–"),
            Cell(f"{event.size:.3g}"),
        ]
        for event in result.largest_events
    ]
    caption = "Events" if n_events == n_listed else f"The {n_listed} largest of {n_events:,} events"
    return Section(
        title="Events",
        text=text,
        pictures=[Picture(pictures["events"], alt="Frames before, at, and expected at the largest events")]
        if result.event_stills
        else [],
        tables=[Table(caption, ("kind", "frame", "time, s", "size"), rows)] if rows else [],
    )


def frames_table(result: VideoResult) -> Table:
    """All methods, least error first."""
    summaries = result.course.summaries
    caption = f"One frame ahead, means over {result.horizon:,} frames of {_by(result.shape)} pixels"
    return Table(caption, COLUMNS, [_row(summary, summaries, result.seconds) for summary in summaries])


def rollout_table(result: VideoResult) -> Table:
    """Error divided by that of copying, by steps ahead."""
    steps = [step for step in (1, 2, 3, 5, 7, 10) if step <= result.settings.rollout]
    rows = []
    by_step = result.course.rollouts
    for method in result.seconds:
        cells = [Cell(FRAME_METHODS[method])]
        for step in steps:
            value = summary_of(by_step[step], method).ratio if step in by_step else float("nan")
            loses = method != "copy" and value > 1 + TIE
            cells.append(Cell("1" if method == "copy" else ratio(value), "loses" if loses else ""))
        rows.append(cells)
    return Table(
        f"Error ÷ copying, left alone for so many frames, means over {result.course.n_rollouts} rollouts",
        ("method", *(f"{step}" for step in steps)),
        rows,
    )


def _row(summary: FrameSummary, summaries: Sequence[FrameSummary], durations: Mapping[str, float]) -> list[Cell]:
    def best(name: str, text: str, *, highest: bool = False) -> Cell:
        values = [getattr(other, name) for other in summaries]
        return Cell(text, "best" if getattr(summary, name) == (max if highest else min)(values) else "")

    copies = summary.method == "copy"
    return [
        Cell(FRAME_METHODS[summary.method]),
        best("mse", error(summary.mse)),
        Cell("1" if copies else ratio(summary.ratio), "loses" if not copies and summary.ratio > 1 + TIE else ""),
        Cell("–" if copies else percent(summary.wins)),
        best("psnr", f"{summary.psnr:.2f}", highest=True),
        best("ssim", f"{summary.ssim:.3f}", highest=True),
        Cell(f"{1000 * durations[summary.method]:.0f}"),
    ]


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
        Fact("Speed", f"learning {seconds(result.learning)}, then {rate:.3g} frames per second of PSMT alone"),
        Fact("In all", f"{seconds(film.seconds)} for all methods, scores, and the film"),
        Fact("Version", f"psmt {psmt.__version__}"),
    ]


def _by(shape: tuple[int, int]) -> str:
    """Width by height, as films are named."""
    return f"{shape[1]} × {shape[0]}"
