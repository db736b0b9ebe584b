"""Do whole-frame predictions beat copying, and all that is known to be better than copying, on real films?

    python -m benchmarks.frames [FOLDER WITH highway.mp4, ocean.mp4 AND carphone.mp4]

Every method learns from the 400 frames before a start, and is scored on the 60 after it: one frame ahead, and left
alone for 10 frames from every tenth of them. `FramePredictor` is also compared with its candidates (regret) and with
the errors that it expected of its rollouts, and is started cold at every 24th of the frames learned from. Nothing is
tuned on the frames it is scored on. Films that are not there are replaced by the built-in one.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Self

import numpy as np
import pydmd
from numpy.typing import ArrayLike, NDArray

from benchmarks.page import FILM, machine, table, write_section
from psmt import FramePredictor, open_frames
from psmt.data.patches import PatchCutter, standardise
from psmt.evaluation import FrameRow, RolloutRow, mse, score_stream
from psmt.experiments.predict_video.result import FRAME_METHODS, summarise_frames
from psmt.experiments.predict_video.settings import LEARN, VideoSettings
from psmt.types import Levels, Predictor
from psmt.video import luma

SCORED, ROLLOUT, EVERY = 60, 10, 10
STARTS = (1500, 4500, 7500)
FILMS = {
    ("highway", 200): STARTS,
    ("highway", 100): STARTS,
    ("ocean", 100): (400, 650, 900),
    ("carphone", 144): (59,),
}
"""Starts by film and size of the frame; carphone has only 120 frames."""
LABELS = FRAME_METHODS | {"dmd": "DMD"}
COLD_METHODS, COLD_EVERY = ("frame_predictor", "fourier"), 24
NEXT_FRAME = (0.47, 0.39, 0.27)
"""MSE divided by that of copying that is aimed at on highway, 100 x 100, by start."""
COLD = (0.60, 0.42)
"""The same at a cold start: frames 2 to 5, and 6 to 11."""


class DMD:
    """Dynamic mode decomposition of all pixels (PyDMD), rank by the optimal threshold.

    The modes predict the change, which is added to the last frame: what they do not hold is copied, not lost.
    """

    def fit(self, frames: ArrayLike) -> Self:
        """Find the modes of the past frames (time, height, width)."""
        past = np.asarray(frames, dtype=np.float64)
        self._shape = past.shape[1:]
        model = pydmd.DMD(svd_rank=0).fit(past.reshape(len(past), -1).T)
        self._modes, self._turns = model.modes, model.eigs
        self._amplitudes = np.linalg.pinv(model.modes)
        return self.update(past[-1])

    def update(self, frame: ArrayLike) -> Self:
        """Receive the frame (height, width) that came next."""
        self._last = np.asarray(frame, dtype=np.float64).ravel()
        return self

    def predict(self, horizon: int | None = None) -> NDArray[np.float64]:
        """Return the next frame (height, width), or the next (horizon, height, width)."""
        now = self._amplitudes @ self._last
        steps = [
            (self._last + (self._modes @ (now * (self._turns**k - 1))).real).reshape(self._shape)
            for k in range(1, (horizon or 1) + 1)
        ]
        return steps[0] if horizon is None else np.stack(steps)


@dataclass(frozen=True)
class Stretch:
    """What one start of one film at one size gave."""

    film: str
    size: int
    start: int
    rows: list[FrameRow]
    rollouts: list[RolloutRow]
    seconds: dict[str, float]
    """Of processor time per frame, by method: other work on the machine does not count."""
    patch_errors: dict[str, float]
    """`mse_vs_frame` of the centre 16 x 16, standardised, as in the paper's protocol."""
    candidate_errors: dict[str, float]
    """Mean squared error of each of its candidates that is a prediction by itself."""
    expected: dict[int, NDArray[np.float64]]
    """By start of a rollout, the errors (ROLLOUT,) that the predictor expected of it."""
    cold: dict[str, NDArray[np.float64]]
    """By method, what `cold_starts` gives of the frames learned from."""

    def ratios(self) -> dict[str, float]:
        """Return the MSE divided by that of copying, by method."""
        return {method: summary.ratio for method, summary in summarise_frames(self.rows).items()}


def squares(path: str, size: int, stop: int) -> Iterator[Levels]:
    """The luma (size, size) of the centred square of each frame, so that figures stay comparable with older ones."""
    cutter = PatchCutter(frame_size=size, patch_size=1)
    for pixels in open_frames(path, stop=stop).iter_colour():
        yield luma(np.stack([cutter.reduce(channel) for channel in pixels.transpose(2, 0, 1)], 2).astype(np.float32))


def run(film: str, path: str, size: int, start: int) -> Stretch:
    """Predict the frames after one start."""
    frames = []
    for index, frame in enumerate(squares(path, size, start + SCORED + 1)):
        if index >= start - LEARN:
            frames.append(frame)
    past = np.stack(frames[: min(LEARN, start)])
    methods: dict[str, Predictor] = VideoSettings(baselines=("blocks", "ridge")).methods() | {"dmd": DMD()}
    psmt = methods["frame_predictor"]
    assert isinstance(psmt, FramePredictor)
    for method in methods.values():
        method.fit(past)
    rows: list[FrameRow] = []
    rollouts: list[RolloutRow] = []
    times: list[dict[str, float]] = []
    patch_errors: list[list[float]] = []
    candidate_errors: list[dict[str, float]] = []
    expected: dict[int, NDArray[np.float64]] = {}
    centre = PatchCutter(frame_size=None, patch_size=16)
    for step in score_stream(
        methods, frames[len(past) :], start=start, rollout=ROLLOUT, every=EVERY, clock=process_time
    ):
        rows += step.rows.values()
        rollouts += step.rollouts
        times.append(step.seconds)
        # No candidate is known right after a cut.
        candidate_errors += [psmt.candidate_errors_] if psmt.candidate_errors_ else []
        if (step.index - start) % EVERY == 0:
            expected[step.index] = psmt.expected_mse(ROLLOUT)
        # Each patch is standardised by itself: no statistics of the target are used.
        patches = standardise([centre.cut(frame) for frame in (step.frame, *step.predicted.values())]).values
        patch_errors.append(mse(patches[1:], patches[0]).tolist())
    return Stretch(
        film,
        size,
        start,
        rows,
        rollouts,
        # The first frame pays for what is compiled.
        {name: float(np.mean([time[name] for time in times[1:]])) for name in methods},
        dict(zip(methods, np.mean(patch_errors, axis=0).tolist(), strict=True)),
        {name: float(np.mean([errors[name] for errors in candidate_errors])) for name in candidate_errors[0]},
        expected,
        {name: cold_starts(VideoSettings().methods()[name], past) for name in COLD_METHODS},
    )


def cold_starts(method: Predictor, past: NDArray[np.float32]) -> NDArray[np.float64]:
    """Errors of the method and of copying, (n_starts, 2, 2): over the frames 2 to 5, and 6 to 11, after each start.

    There the film has just begun; all that was learned before is forgotten.
    """
    found = []
    for start in range(0, len(past) - 11, COLD_EVERY):
        method.fit(past[start : start + 2])
        errors = []
        for last, frame in pairwise(past[start + 1 : start + 12]):
            errors.append([mse(method.predict(), frame, axes=2), mse(last, frame, axes=2)])
            method.update(frame)
        found.append([np.sum(errors[:4], axis=0), np.sum(errors[4:], axis=0)])
    return np.array(found)


def cold_ratios(stretches: Sequence[Stretch], method: str) -> list[tuple[float, float]]:
    """For frames 2 to 5, and 6 to 11: the errors of all starts over those of copying, and the mean of the ratios.

    Means over the stretches. The former counts a lively start more, the latter each alike.
    """
    both = []
    for stretch in stretches:
        own, copied = np.moveaxis(stretch.cold[method], -1, 0)
        both.append([own.sum(axis=0) / copied.sum(axis=0), np.mean(own / copied, axis=0)])
    summed, alike = np.mean(both, axis=0)
    return list(zip(summed.tolist(), alike.tolist(), strict=True))


def next_frame_table(stretches: Sequence[Stretch]) -> str:
    """MSE divided by that of copying at each start, and PSNR, SSIM and time over all, best first."""
    summaries = summarise_frames([row for stretch in stretches for row in stretch.rows])
    means = {name: float(np.mean([stretch.ratios()[name] for stretch in stretches])) for name in summaries}
    lines = []
    for name in sorted(means, key=lambda name: means[name]):
        summary = summaries[name]
        lines.append(
            [
                f"**{LABELS[name]}**" if name == "frame_predictor" else LABELS[name],
                *(_marked(stretch.ratios()[name]) for stretch in stretches),
                _marked(means[name]),
                f"{summary.psnr:.2f}",
                f"{summary.ssim:.4f}",
                f"{1000 * np.mean([stretch.seconds[name] for stretch in stretches]):.0f}",
            ]
        )
    starts = [f"start {stretch.start}" for stretch in stretches]
    return table(["MSE ÷ copying", *starts, "mean", "PSNR, dB", "SSIM", "CPU ms per frame"], lines)


def rollout_ratios(stretches: Sequence[Stretch], method: str) -> list[float]:
    """Mean over the starts of the MSE divided by that of copying, (ROLLOUT,) by step."""
    return [
        float(
            np.mean(
                [
                    summarise_frames([row for row in stretch.rollouts if row.step == step])[method].ratio
                    for stretch in stretches
                ]
            )
        )
        for step in range(1, ROLLOUT + 1)
    ]


def rollout_table(stretches: Sequence[Stretch]) -> str:
    """Rollouts by step, all methods."""
    names = summarise_frames([row for stretch in stretches for row in stretch.rows])
    lines = [[LABELS[name], *map(_marked, rollout_ratios(stretches, name))] for name in names if name != "copy"]
    return table(["MSE ÷ copying, frames ahead", *range(1, ROLLOUT + 1)], lines)


def regret_table(stretches: Sequence[Stretch]) -> str:
    """The predictor and the best of its own candidates at each start, and its cold start beside the Fourier phase."""
    lines = []
    for stretch in stretches:
        name = min(stretch.candidate_errors, key=stretch.candidate_errors.__getitem__)
        own = float(np.mean([row.mse for row in stretch.rows if row.method == "frame_predictor"]))
        regret = own / stretch.candidate_errors[name] - 1
        cold = [
            f"{ours[0]:.2f}, {ours[1]:.2f} ({other[0]:.2f}, {other[1]:.2f})"
            for ours, other in zip(*(cold_ratios([stretch], method) for method in COLD_METHODS), strict=True)
        ]
        lines.append([f"start {stretch.start}", name, f"{regret:+.0%}", *cold])
    return table(
        [
            "frame predictor",
            "best single candidate",
            "regret against it",
            "cold starts, frames 2 to 5: of their sum, on the mean (Fourier phase)",
            "6 to 11",
        ],
        lines,
    )


def calibration_table(stretches: Sequence[Stretch]) -> str:
    """Error that the predictor expected of its rollouts, divided by the true one, by step."""
    expected, true = np.zeros(ROLLOUT), np.zeros(ROLLOUT)
    for stretch in stretches:
        for row in stretch.rollouts:
            if (
                row.method == "frame_predictor"
                and np.isfinite(stretch.expected.get(row.start, np.array([np.nan]))).all()
            ):
                expected[row.step - 1] += stretch.expected[row.start][row.step - 1]
                true[row.step - 1] += row.mse
    line = [f"{value:.2f}" for value in expected / true]
    return table(["frames ahead", *range(1, ROLLOUT + 1)], [["expected MSE ÷ true MSE", *line]])


def target_table(found: dict[tuple[str, int], list[Stretch]]) -> str:
    """The figures that were aimed at, and what was reached."""
    lines = []
    for size in (200, 100):
        stretches = found["highway", size]
        own, fourier = (
            float(np.mean([stretch.ratios()[name] for stretch in stretches])) for name in ("frame_predictor", "fourier")
        )
        lines += [
            [f"{size} x {size}: ÷ Fourier phase advance", "≤ 0.8", *_held(own / fourier, 0.8)],
            [f"{size} x {size}: MSE ÷ copying", "< 0.5", *_held(own, 0.5)],
            [
                f"{size} x {size}: rollouts of 5 frames, worst step ÷ copying",
                "< 1",
                *_held(max(rollout_ratios(stretches, "frame_predictor")[:5]), 1),
            ],
        ]
    for stretch, bound in zip(found["highway", 100], NEXT_FRAME, strict=True):
        own = stretch.ratios()["frame_predictor"]
        lines.append([f"highway {stretch.start}, 100 x 100: MSE ÷ copying", f"≤ {bound}", *_held(own, bound)])
    small = [stretch for (_, size), stretches in found.items() if size < 200 for stretch in stretches]
    for part, bound, reached in zip(("2 to 5", "6 to 11"), COLD, cold_ratios(small, "frame_predictor"), strict=True):
        for how, value in zip(("sum over starts", "mean of starts"), reached, strict=True):
            lines.append([f"cold start, frames {part}, {how} ÷ copying", f"≤ {bound}", *_held(value, bound)])
    for (film, size), stretches in found.items():
        others = [name for name in stretches[0].ratios() if name != "frame_predictor"]
        best = np.min([[1.0] * ROLLOUT, *(rollout_ratios(stretches, name) for name in others)], axis=0)
        worst = float(np.max(rollout_ratios(stretches, "frame_predictor") / best))
        lines.append([f"{film}, {size} x {size}: rollouts, worst step ÷ best other", "≤ 1", *_held(worst, 1)])
    patches = [
        sum(stretch.patch_errors[name] for stretch in found["highway", 200]) / len(STARTS)
        for name in ("frame_predictor", "copy")
    ]
    lines.append(
        [
            f"centre patch, `mse_vs_frame` {patches[0]:.4f}, copying the last patch {patches[1]:.4f}: ratio",
            "< 1",
            *_held(patches[0] / patches[1], 1),
        ]
    )
    for film, size in (("ocean", 100), ("carphone", 144)):
        worst = max(stretch.ratios()["frame_predictor"] for stretch in found[film, size])
        lines.append([f"{film}, {size} x {size}: MSE ÷ copying, worst start", "≤ 1.02", *_held(worst, 1.02)])
    rate = 1 / np.mean([stretch.seconds["frame_predictor"] for stretch in found["highway", 200]])
    lines.append(
        [
            "frames per second of processor time at 200 x 200, `FramePredictor` alone",
            "≥ 5",
            f"{rate:.1f}",
            "yes" if rate >= 5 else "**no**",
        ]
    )
    return table(["figure", "target", "reached", "held"], lines)


def _held(value: float, bound: float) -> tuple[str, str]:
    return f"{value:.3f}", "yes" if value <= bound else "**no**"


def _marked(value: float) -> str:
    """What loses to copying is said to lose."""
    return f"{value:.2f}{' loses' if value > 1.0005 else ''}"


def main() -> None:
    """Run all films, print the tables, and write them to benchmarks/README.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=FILM.parent)
    folder = parser.parse_args().folder
    found: dict[tuple[str, int], list[Stretch]] = {}
    for (film, size), starts in FILMS.items():
        path = folder / f"{film}.mp4"
        source = str(path) if path.exists() else "builtin:glide"
        found[film, size] = [run(film, source, size, start) for start in starts]
        print(f"{film} ({source}), {size} x {size}\n{next_frame_table(found[film, size])}\n", flush=True)
    print(target_table(found))
    write_section("frames", section(found))


def section(found: dict[tuple[str, int], list[Stretch]]) -> str:
    """What benchmarks/README.md says of whole frames."""
    parts = [
        "## Whole frames",
        "    python -m benchmarks.frames [FOLDER]",
        f"Learned from the {LEARN} frames before each start (all 59 of carphone), scored on the {SCORED} after it. DMD "
        "and `FramePredictor` predict a change that is added to the last frame. PSNR and SSIM are of each frame, then "
        "averaged. "
        f"Rollouts begin at every {EVERY}th of the scored frames; copying is then the frame they begin at.",
        target_table(found),
    ]
    for (film, size), stretches in found.items():
        parts += [f"### {film}, {size} x {size}", next_frame_table(stretches), regret_table(stretches)]
        parts += [rollout_table(stretches), calibration_table(stretches)]
    return "\n\n".join([*parts, machine("pydmd")])


if __name__ == "__main__":
    main()
