"""The page of `psmt predict-video`: did PSMT beat copying on this film, and where did it not?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

import psmt
from psmt.evaluation import FrameRow
from psmt.experiments.predict_video import FRAME_METHODS, FrameSummary, VideoResult, summarise_frames
from psmt.report.claims import TIE, UNTESTED, Claim, Outcome
from psmt.report.numbers import percent, ratio, seconds
from psmt.report.page import Cell, Fact, Page, Picture, Section, Table

COLUMNS = ("method", "MSE", "÷ copying", "better in", "PSNR, dB", "SSIM", "ms")
"""Heads of the table of methods."""


@dataclass(frozen=True, kw_only=True)
class FilmFacts:
    """Of the film, what only who opened it knows."""

    checksum: str
    size: tuple[int, int]
    """Height and width of its own frames."""
    n_frames: int | None
    seconds: float
    """That all of it took."""


class Loss(NamedTuple):
    """Frames from `start` to `stop` (both of them) in which copying was better."""

    start: int
    stop: int
    excess: float
    """By how much, summed over the frames."""


def frames_page(result: VideoResult, facts: FilmFacts, pictures: Mapping[str, bytes]) -> Page:
    """Page with PNG files by name: scores, places and stills."""
    first, last = result.start + 1, result.start + result.horizon
    sections = [
        Section(
            title="Frame by frame",
            text=[
                f"Each of the frames {first:,} to {last:,} is predicted from those before it. Below 1 is better than "
                "copying the last frame. PSNR and SSIM are taken of each frame, then averaged; higher is better. The "
                "last column is what a frame takes, in milliseconds. The film predicted.mp4, beside this page, shows "
                "every frame.",
            ],
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
            pictures=[Picture(pictures["places"], alt="Error by steps ahead, a frame, and a map of better and worse")],
            tables=[rollout_table(result)] if result.rollouts else [],
        ),
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
        facts=_facts(result, facts),
    )


def verdict(result: VideoResult) -> str:
    """Whether PSMT beat copying, and where not, in words."""
    own = _summary(result, "psmt")
    if not np.isfinite(own.ratio):
        return (
            f"Nothing moves in the {result.horizon:,} predicted frames: copying is flawless, and there is no contest."
        )
    if own.ratio < 1 - TIE:
        outcome = "PSMT beat copying the last frame on this film"
    elif own.ratio <= 1 + TIE:
        outcome = "PSMT did as well as copying the last frame on this film, not better"
    else:
        outcome = "PSMT lost to copying the last frame on this film"
    return (
        f"{outcome}: its mean squared error over {result.horizon:,} predicted frames is {ratio(own.ratio)} times that "
        f"of copying. {_where_not(result)}"
    )


def frame_claims(result: VideoResult) -> list[Claim]:
    """What is claimed of PSMT on whole frames, and whether it holds on this film."""
    own = _summary(result, "psmt")
    beats = Claim(
        key="frames_beat_copying",
        text="PSMT beats copying the last frame",
        paper=False,
        rule="its mean squared error over all predicted frames is below that of copying",
        outcome=_decided(own.ratio),
        support=_some(
            f"{ratio(own.ratio)} times the error of copying" if own.ratio < 1 - TIE else "",
            f"better in {percent(own.wins)} of the frames" if own.wins > 0 else "",
        ),
        against=_some(
            f"{ratio(own.ratio)} times the error of copying" if own.ratio >= 1 - TIE else "",
            *(_named(loss) for loss in losses(result.of("psmt"))[:3]),
        ),
        notes=_some(_places(result)),
        figures={"ratio": own.ratio, "wins": own.wins},
    )
    return [beats, _beats_peers(result, own), *([_rollouts(result)] if result.rollouts else [])]


def frames_table(result: VideoResult) -> Table:
    """All methods, least error first."""
    summaries = summarise_frames(result.rows)
    caption = f"One frame ahead, means over {result.horizon:,} frames of {_by(result.shape)} pixels"
    return Table(caption, COLUMNS, [_row(summary, summaries, result.seconds) for summary in summaries])


def rollout_table(result: VideoResult) -> Table:
    """Error divided by that of copying, by steps ahead."""
    steps = [step for step in (1, 2, 3, 5, 7, 10) if step <= result.settings.rollout]
    rows = []
    for method in dict.fromkeys(row.method for row in result.rollouts):
        cells = [Cell(FRAME_METHODS[method])]
        for step in steps:
            lines = [row for row in result.rollouts if row.method == method and row.step == step]
            value = summarise_frames(lines)[0].ratio if lines else float("nan")
            loses = method != "copy" and value > 1 + TIE
            cells.append(Cell("1" if method == "copy" else ratio(value), "loses" if loses else ""))
        rows.append(cells)
    n = len({row.start for row in result.rollouts})
    return Table(
        f"Error ÷ copying, left alone for so many frames, means over {n} rollouts",
        ("method", *(f"{step}" for step in steps)),
        rows,
    )


def losses(rows: Sequence[FrameRow]) -> list[Loss]:
    """Stretches in which copying was better, the most costly first."""
    found = []
    for lost, group in groupby(rows, key=lambda row: row.mse > (1 + TIE) * row.copy_mse):
        if lost:
            lines = list(group)
            found.append(Loss(lines[0].frame, lines[-1].frame, sum(row.mse - row.copy_mse for row in lines)))
    return sorted(found, key=lambda loss: -loss.excess)


def _where_not(result: VideoResult) -> str:
    lost = losses(result.of("psmt"))
    if not lost:
        return "There is not one frame in which copying was better."
    n = sum(loss.stop - loss.start + 1 for loss in lost)
    cuts = [row.frame for row in result.of("psmt") if row.cut]
    near = sum(any(loss.start <= cut <= loss.stop for cut in cuts) for loss in lost)
    text = f"Copying was better in {n:,} of the frames ({percent(n / result.horizon)}), most of all in {_span(lost[0])}"
    if near:
        text += "; " + ("one" if near == 1 else f"{near}") + f" of these {len(lost)} stretches began with a cut"
    return text + "."


def _beats_peers(result: VideoResult, own: FrameSummary) -> Claim:
    support: list[str] = []
    against: list[str] = []
    for other in summarise_frames(result.rows):
        if other.method not in ("psmt", "copy") and other.mse > 0:
            line = f"{ratio(own.mse / other.mse)} times the error of {FRAME_METHODS[other.method]}"
            (support if own.mse < (1 - TIE) * other.mse else against).append(line)
    return Claim(
        key="frames_beat_peers",
        text="PSMT beats the other methods",
        paper=False,
        rule="its mean squared error is below that of every other method that was run, copying aside",
        outcome=UNTESTED if not support and not against else "does not hold" if against else "holds",
        support=tuple(support),
        against=tuple(against),
    )


def _rollouts(result: VideoResult) -> Claim:
    support: list[str] = []
    against: list[str] = []
    own = [row for row in result.rollouts if row.method == "psmt"]
    for step in sorted({row.step for row in own}):
        value = summarise_frames(row for row in own if row.step == step)[0].ratio
        (support if value < 1 - TIE else against).append(f"{ratio(value)} after {step}")
    return Claim(
        key="frames_left_alone",
        text=f"Left alone for {result.settings.rollout} frames, PSMT stays better than copying",
        paper=False,
        rule="the mean squared error of its rollouts is below that of copying at every step",
        outcome="does not hold" if against else "holds",
        support=_some(", ".join(support)),
        against=_some(", ".join(against)),
    )


def _row(summary: FrameSummary, summaries: Sequence[FrameSummary], durations: Mapping[str, float]) -> list[Cell]:
    def best(name: str, text: str, *, highest: bool = False) -> Cell:
        values = [getattr(other, name) for other in summaries]
        return Cell(text, "best" if getattr(summary, name) == (max if highest else min)(values) else "")

    copies = summary.method == "copy"
    return [
        Cell(FRAME_METHODS[summary.method]),
        best("mse", f"{summary.mse:.2e}"),
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
        Fact("Checksum", f"sha256 {film.checksum}"),
        Fact(
            "Frames",
            f"{_by(result.shape)} pixels; learned from {result.n_past:,} frames up to {result.start - 1:,}, received "
            f"{result.start:,}, predicted {result.start + 1:,} to {result.start + result.horizon:,}",
        ),
        Fact("Colour", "luma is predicted and scored; the colours shown are those of the frame before"),
        Fact(
            "Model", f"{settings.extrapolation}, M = {settings.n_atoms:,}, α = {settings.alpha:g}, seed {settings.seed}"
        ),
        Fact("Speed", f"learning {seconds(result.learning)}, then {rate:.3g} frames per second of PSMT alone"),
        Fact("In all", f"{seconds(film.seconds)} for all methods, scores, and the film"),
        Fact("Version", f"psmt {psmt.__version__}"),
    ]


def _summary(result: VideoResult, method: str) -> FrameSummary:
    return summarise_frames(result.of(method))[0]


def _decided(value: float) -> Outcome:
    if not np.isfinite(value):
        return UNTESTED
    return "holds" if value < 1 - TIE else "does not hold"


def _places(result: VideoResult) -> str:
    worse = float(np.mean(result.place_ratios() > 1.02))
    return f"copying was better in {percent(worse)} of the picture's area (see the map)" if worse > 0 else ""


def _named(loss: Loss) -> str:
    return f"copying was better in {_span(loss)}"


def _span(loss: Loss) -> str:
    return f"frame {loss.start:,}" if loss.start == loss.stop else f"frames {loss.start:,} to {loss.stop:,}"


def _by(shape: tuple[int, int]) -> str:
    """Width by height, as films are named."""
    return f"{shape[1]} × {shape[0]}"


def _some(*texts: str) -> tuple[str, ...]:
    return tuple(text for text in texts if text)
