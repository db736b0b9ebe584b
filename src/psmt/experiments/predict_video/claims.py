"""What is claimed of PSMT on whole frames, whether it holds on a film, and where copying was better."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from psmt.evaluation import FrameRow
from psmt.experiments.predict_video.result import FrameSummary, VideoResult, summarise_frames
from psmt.experiments.predict_video.settings import FRAME_METHODS
from psmt.report import TIE, UNTOLD, Claim, Outcome, decided, some
from psmt.report.numbers import percent, ratio


class Loss(NamedTuple):
    """Frames from `start` to `stop` (both of them) in which copying was better."""

    start: int
    stop: int
    excess: float
    """By how much, summed over the frames."""


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
        outcome=_below_copying(own.ratio),
        support=some(
            f"{ratio(own.ratio)} times the error of copying" if own.ratio < 1 - TIE else "",
            f"better in {percent(own.wins)} of the frames" if own.wins > 0 else "",
        ),
        against=some(
            f"{ratio(own.ratio)} times the error of copying" if own.ratio >= 1 - TIE else "",
            *(_named(loss) for loss in losses(result.of("psmt"))[:3]),
        ),
        notes=some(_places(result)),
        figures={"ratio": own.ratio, "wins": own.wins},
    )
    return [beats, _beats_baselines(result, own), *([_rollouts(result)] if result.rollouts else [])]


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


def _beats_baselines(result: VideoResult, own: FrameSummary) -> Claim:
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
        outcome=decided(support, against),
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
        outcome=decided(support, against),
        support=some(", ".join(support)),
        against=some(", ".join(against)),
    )


def _summary(result: VideoResult, method: str) -> FrameSummary:
    return summarise_frames(result.of(method))[0]


def _below_copying(value: float) -> Outcome:
    if not np.isfinite(value):
        return UNTOLD
    return "holds" if value < 1 - TIE else "does not hold"


def _places(result: VideoResult) -> str:
    worse = float(np.mean(result.place_ratios() > 1.02))
    return f"copying was better in {percent(worse)} of the picture's area (see the map)" if worse > 0 else ""


def _named(loss: Loss) -> str:
    return f"copying was better in {_span(loss)}"


def _span(loss: Loss) -> str:
    return f"frame {loss.start:,}" if loss.start == loss.stop else f"frames {loss.start:,} to {loss.stop:,}"
