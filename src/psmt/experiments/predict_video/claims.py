"""Claims on predicted frames with their verdicts, and the answer in a sentence."""

from __future__ import annotations

import numpy as np

from psmt.evaluation import Interval
from psmt.experiments.predict_video.result import FRAME_METHODS, FilmScores, VideoResult
from psmt.report import TIE, Claim, Evidence
from psmt.report.numbers import listed, percent, ratio
from psmt.video.events import Kind

MARGIN = 0.01
"""Two errors are a tie if they differ by less than this fraction. A tie is inconclusive."""


def verdict(result: VideoResult) -> str:
    """Say in words whether the frame predictor beat copying the last frame, and where it did not."""
    scores = result.scores
    own, wins = scores.summaries["frame_predictor"].ratio, scores.summaries["frame_predictor"].wins
    if not np.isfinite(own):
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
    """Return a sentence with the number of events of each kind."""
    plurals: dict[Kind, str] = {"cut": "cuts", "flash": "flashes", "surprise": "surprises"}
    counts = {kind: result.event_counts.get(kind, 0) for kind in plurals}
    texts = [f"{n} {plurals[kind] if n > 1 else kind}" for kind, n in counts.items() if n]
    return f"Events: {', '.join(texts) or 'none'}."


def frame_claims(result: VideoResult) -> list[Claim]:
    """Return all claims on predicted frames."""
    scores = result.scores
    own = scores.summaries["frame_predictor"]
    peers = [other for name, other in scores.summaries.items() if name not in ("frame_predictor", "copy")]
    excess = {name: scores.excess(name) for name in scores.summaries if name != "frame_predictor"}
    rule = f"by more than {percent(MARGIN)} over its whole 95% interval"
    copying = Claim.from_evidence(
        "frames_beat_copying",
        "The frame predictor beats copying the last frame",
        f"its mean squared error over all predicted frames is below that of copying {rule}",
        [_evidence(excess["copy"], "copying")],
        paper=False,
        size=f"{ratio(own.ratio)} × the error of copying" if np.isfinite(own.ratio) else "",
        figures={"ratio": own.ratio, "wins": own.wins, "excess": excess["copy"]._asdict()},
    )
    # The best of the other methods comes first.
    best = next((other for other in peers if other.mse > 0), None)
    methods = Claim.from_evidence(
        "frames_beat_peers",
        "The frame predictor beats the other methods",
        f"its mean squared error is below that of every other method except copying {rule}",
        [_evidence(excess[other.method], FRAME_METHODS[other.method]) for other in peers],
        paper=False,
        size="" if best is None else f"{ratio(own.mse / best.mse)} × the error of {FRAME_METHODS[best.method]}",
    )
    if not scores.rollouts:
        return [copying, methods]
    ratios = {step: summaries["frame_predictor"].ratio for step, summaries in scores.rollouts.items()}
    last = [*ratios.values()][-1]
    rollouts = Claim.from_evidence(
        "frames_left_alone",
        f"In rollouts of {result.settings.rollout} frames, the frame predictor stays better than copying",
        f"the mean squared error of its rollouts is below that of copying by more than {percent(MARGIN)} at every step",
        # There are too few rollouts for an interval, so the margin alone decides.
        [_evidence(Interval(*[value - 1] * 3), f"copying after {step}") for step, value in ratios.items()],
        paper=False,
        size=f"{ratio(last)} × the error of copying after the last step" if np.isfinite(last) else "",
        figures={},
    )
    return [copying, methods, rollouts]


def _evidence(excess: Interval, other: str) -> Evidence:
    """Return the evidence that the error of the frame predictor is smaller than the error of another method."""
    return Evidence(
        name=f"error relative to {other}",
        statistic=excess,
        margin=MARGIN,
        lower_is_better=True,
        to_ratio=lambda value: 1 + value,
        too_few="" if excess.is_finite else f"no error of {other}" if np.isnan(excess.mean) else "too few frames",
    )


def _better_methods(scores: FilmScores) -> str:
    """Return a sentence on the horizons at which another method had the lowest error, or '' without rollouts."""
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
