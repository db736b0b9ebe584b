"""Claims on predicted frames, their verdicts on a film, and where copying was better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from psmt.evaluation import Interval
from psmt.experiments.predict_video.result import FRAME_METHODS, FilmScores, Loss, VideoResult
from psmt.report import INCONCLUSIVE, TIE, Claim, Evidence, Verdict
from psmt.report.numbers import listed, percent, ratio
from psmt.video.events import Kind

MARGIN = 0.01
"""Errors within this fraction of each other are a tie, which is inconclusive."""


def verdict(result: VideoResult) -> str:
    """Say in words whether PSMT beat copying the last frame, and where it did not."""
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
