"""What is claimed of PSMT on whole frames, whether it holds on a film, and where copying was better."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psmt.evaluation import Interval
from psmt.experiments.predict_video.course import Loss, summary_of
from psmt.experiments.predict_video.methods import FRAME_METHODS
from psmt.experiments.predict_video.result import VideoResult
from psmt.report import INCONCLUSIVE, TIE, Claim, Verdict, all_hold, judged, some
from psmt.report.numbers import percent, ratio
from psmt.video.events import Kind

MARGIN = 0.01
"""Errors within this share of each other are a tie, which inconclusive."""


def verdict(result: VideoResult) -> str:
    """Whether PSMT beat copying, and where not, in words."""
    own = result.course.summary("psmt")
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
        f"of copying. {_where_not(result)}{_won_by_others(result)}"
    )


def events_told(result: VideoResult) -> str:
    """What happened in the film, in words."""
    names: dict[Kind, tuple[str, str]] = {
        "cut": ("cut", "cuts"),
        "flash": ("flash", "flashes"),
        "surprise": ("surprise", "surprises"),
    }
    counts = {kind: result.event_counts.get(kind, 0) for kind in names}
    told = [f"{count} {names[kind][count > 1]}" for kind, count in counts.items() if count]
    return f"Events: {', '.join(told)}." if told else "Events: none."


def frame_claims(result: VideoResult) -> list[Claim]:
    """What is claimed of PSMT on whole frames, and whether it holds on this film."""
    own = result.course.summary("psmt")
    excess = result.course.excess("copy")
    outcome = judged(excess, margin=MARGIN)
    line = _compared(excess, "copying")
    beats = Claim(
        key="frames_beat_copying",
        text="PSMT beats copying the last frame",
        paper=False,
        rule=f"its mean squared error over all predicted frames is below that of copying, {_SURE}",
        verdict=outcome,
        size=f"{ratio(own.ratio)} × the error of copying" if np.isfinite(own.ratio) else "",
        support=some(
            line if outcome == "holds" else "",
            f"better in {percent(own.wins)} of the frames" if own.wins > 0 else "",
        ),
        against=some(
            line if outcome == "does not hold" else "",
            *(_named(loss) for loss in result.course.losses.worst),
        ),
        notes=some(line if outcome == INCONCLUSIVE else "", _places(result)),
        figures={"ratio": own.ratio, "wins": own.wins, "excess": excess._asdict()},
    )
    return [beats, _beats_baselines(result), *([_rollouts(result)] if result.course.rollouts else [])]


def _where_not(result: VideoResult) -> str:
    lost = result.course.losses
    if not lost.n:
        return "There is not one frame in which copying was better."
    share, near = percent(lost.n_frames / result.horizon), lost.n_with_cut
    text = f"Copying was better in {lost.n_frames:,} of the frames ({share}), most of all in {_span(lost.worst[0])}"
    if near:
        text += "; " + ("one" if near == 1 else f"{near}") + f" of these {lost.n} stretches began with a cut"
    return text + "."


def _won_by_others(result: VideoResult) -> str:
    """Every horizon at which another method had the least error, in a sentence; '' where there is none."""
    winners: dict[str, list[int]] = {}
    # One frame ahead every frame counts, and not only those that rollouts begin at.
    for step, summaries in (result.course.rollouts | {1: result.course.summaries}).items():
        best, own = summaries[0], summary_of(summaries, "psmt")
        if best.mse * (1 + TIE) < own.mse:
            winners.setdefault(best.method, []).append(step)
    if not winners:
        ahead = max(result.course.rollouts, default=1)
        return f" No other method was better at any horizon from 1 to {ahead} frames." if ahead > 1 else ""
    told = [f"{FRAME_METHODS[method]} at {_steps(steps)}" for method, steps in winners.items()]
    return f" Another method was better at some horizons: {', '.join(told)} ahead."


def _steps(steps: Sequence[int]) -> str:
    """Numbers of frames in words, runs as ranges.

    >>> _steps([1]), _steps([2, 3, 4, 7])
    ('1 frame', '2 to 4 and 7 frames')
    """
    runs: list[list[int]] = []
    for step in steps:
        if runs and step == runs[-1][-1] + 1:
            runs[-1].append(step)
        else:
            runs.append([step])
    names = [f"{run[0]}" if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    text = " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
    return f"{text} frame{'' if text == '1' else 's'}"


_SURE = f"with the 95% interval of the difference beyond {percent(MARGIN)} of it (a tie within that inconclusive)"


def _beats_baselines(result: VideoResult) -> Claim:
    lines: dict[Verdict, list[str]] = {"holds": [], "does not hold": [], INCONCLUSIVE: []}
    own, size = result.course.summary("psmt"), ""
    for other in result.course.summaries:
        if other.method not in ("psmt", "copy"):
            # The best of them comes first.
            if not size and other.mse > 0:
                size = f"{ratio(own.mse / other.mse)} × the error of {FRAME_METHODS[other.method]}"
            excess = result.course.excess(other.method)
            lines[judged(excess, margin=MARGIN)].append(_compared(excess, FRAME_METHODS[other.method]))
    return Claim(
        key="frames_beat_peers",
        text="PSMT beats the other methods",
        paper=False,
        rule=f"its mean squared error is below that of every other method that was run, copying aside, {_SURE}",
        verdict=all_hold([outcome for outcome, found in lines.items() for _ in found]),
        size=size,
        support=tuple(lines["holds"]),
        against=tuple(lines["does not hold"]),
        notes=tuple(lines[INCONCLUSIVE]),
    )


def _rollouts(result: VideoResult) -> Claim:
    lines: dict[Verdict, list[str]] = {"holds": [], "does not hold": [], INCONCLUSIVE: []}
    value = np.nan
    for step, summaries in result.course.rollouts.items():
        value = summary_of(summaries, "psmt").ratio
        # Rollouts are few and far apart: no interval, but a tie is a tie.
        lines[judged(Interval(*[value - 1] * 3), margin=MARGIN)].append(f"{ratio(value)} after {step}")
    return Claim(
        key="frames_left_alone",
        text=f"Left alone for {result.settings.rollout} frames, PSMT stays better than copying",
        paper=False,
        rule=f"the mean squared error of its rollouts is below that of copying at every step, by {percent(MARGIN)} or "
        "more (a tie inconclusive)",
        verdict=all_hold([outcome for outcome, found in lines.items() for _ in found]),
        size=f"{ratio(value)} × the error of copying after the last" if np.isfinite(value) else "",
        support=some(", ".join(lines["holds"])),
        against=some(", ".join(lines["does not hold"])),
        notes=some(", ".join(lines[INCONCLUSIVE])),
    )


def _compared(excess: Interval, other: str) -> str:
    if np.isnan(excess.mean):
        return f"{other} is flawless: nothing moves"
    if not excess.is_finite:
        return f"{ratio(1 + excess.mean)} times the error of {other}, over too few frames to tell"
    return f"{ratio(1 + excess.mean)} times the error of {other} ({ratio(1 + excess.low)} to {ratio(1 + excess.high)})"


def _places(result: VideoResult) -> str:
    worse = float(np.mean(result.place_ratios() > 1.02))
    return f"copying was better in {percent(worse)} of the picture's area (see the map)" if worse > 0 else ""


def _named(loss: Loss) -> str:
    return f"copying was better in {_span(loss)}"


def _span(loss: Loss) -> str:
    return f"frame {loss.start:,}" if loss.start == loss.stop else f"frames {loss.start:,} to {loss.stop:,}"
