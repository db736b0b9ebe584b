"""Draw frames.png, when predicting whole frames helps and when it does not: python docs/pictures/frames.py

A film in four acts, made from the built-in one: steady motion, a shaking camera, a still scene with sensor noise, and a
cut to steady motion elsewhere. The model has learned from 400 frames of steady motion.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from psmt import open_frames
from psmt.data import GlideFilm
from psmt.evaluation import FrameRow, Step
from psmt.experiments.predict_video.figures import FRAME_STYLES
from psmt.experiments.predict_video.film_painter import error_colours
from psmt.experiments.predict_video.result import FRAME_METHODS
from psmt.experiments.predict_video.run import predict_video
from psmt.experiments.predict_video.settings import LEARN, VideoSettings
from psmt.figures import png
from psmt.figures.panels import WIDTH
from psmt.figures.style import INK, QUIET, SMALL, TEXT, TITLE, style_axes
from psmt.pipeline.run import Run
from psmt.video import FrameReader

SIDE, LENGTH, NOISE, SHAKE = 112, 60, 0.01, 4
ACTS = ("steady motion", "shaking camera", "only noise", "a cut, then steady motion")
SHOWN = ("frame_predictor", "fourier", "linear", "copy")
GAIN = 5


def film() -> NDArray[np.float32]:
    """Frames (time, SIDE, SIDE): LEARN + 1 to learn from and receive, then LENGTH for each act."""
    rng = np.random.default_rng(0)
    first, second = GlideFilm(seed=3, size=200), GlideFilm(seed=5, size=200)
    edge = (200 - SIDE) // 2
    frames = []
    for t in range(LEARN + 1 + 4 * LENGTH):
        act = (t - LEARN - 1) // LENGTH
        row, column = rng.integers(-SHAKE, SHAKE + 1, size=2) if act == 1 else (0, 0)
        whole = second[t - LEARN - 3 * LENGTH] if act == 3 else first[min(t, LEARN + 2 * LENGTH)]
        view = whole[edge + row : edge + row + SIDE, edge + column : edge + column + SIDE]
        frames.append(view + NOISE * rng.standard_normal((SIDE, SIDE)))
    return np.clip(frames, 0, 1).astype(np.float32)


def main() -> None:
    """Predict the film and draw the results."""
    middles = {LEARN + 1 + k * LENGTH + (0 if k == 3 else LENGTH // 2): k for k in range(4)}
    stills: dict[int, Step] = {}

    def keep(step: Step) -> None:
        if step.index in middles:
            stills[middles[step.index]] = step

    settings = VideoSettings(start=LEARN, horizon=4 * LENGTH, rollout=0)
    with TemporaryDirectory() as folder:
        run = Run(folder=Path(folder))
        result = predict_video(open_frames(film()), FrameReader("native"), settings, run, begin=lambda *_: keep)
        figure = draw([*result.rows], stills)
    Path(__file__).with_suffix(".png").write_bytes(png(figure, dpi=110))


def draw(rows: list[FrameRow], stills: dict[int, Step]) -> Figure:
    """Curves above, a frame of each act with its errors below."""
    left, right, gap = 0.85, 0.15, 0.16
    width = WIDTH - left - right
    across = (width - 3 * gap) / 4
    side = (across - 0.1) / 2
    height = 0.95 + 2.5 + 0.45 + 2 * side + 0.5
    figure = Figure(figsize=(WIDTH, height))
    figure.text(0.02, 1 - 0.28 / height, "When predicting helps", fontsize=TITLE, fontweight="bold", color=INK)
    axes = figure.add_axes((left / WIDTH, 1 - 3.45 / height, width / WIDTH, 2.5 / height))
    first = rows[0].frame
    for name in SHOWN:
        ratios = [row.ratio for row in rows if row.method == name]
        label = "copying" if name == "copy" else FRAME_METHODS[name]
        axes.plot(np.arange(len(ratios)), ratios, label=label, **FRAME_STYLES[name])
    axes.set_yscale("log", base=2)
    axes.set_ylim(1 / 40, 8)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlim(-0.5, 4 * LENGTH - 0.5)
    axes.set_xticks([])
    axes.set_ylabel("error ÷ error of copying", fontsize=TEXT, color=INK)
    style_axes(axes)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.09), ncols=4, frameon=False, fontsize=SMALL, labelcolor=INK)
    for k, act in enumerate(ACTS):
        if k:
            axes.axvline(k * LENGTH - 0.5, color=QUIET, linewidth=0.9, linestyle=(0, (2, 2)))
        own = [row for row in rows if (row.frame - first) // LENGTH == k]
        ratio = float(np.median([row.ratio for row in own if row.method == "frame_predictor"]))
        axes.text((k + 0.5) * LENGTH, 8.6, act, fontsize=TEXT, fontweight="bold", color=INK, ha="center")
        axes.text(
            (k + 0.5) * LENGTH,
            5.6,
            f"{FRAME_METHODS['frame_predictor']}: median {ratio:.2f}",
            fontsize=TEXT,
            color=FRAME_STYLES["frame_predictor"]["color"],
            ha="center",
            zorder=9,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.9},
        )
        step = stills[k]
        pictures = (
            ("film", np.repeat(step.frame[:, :, None], 3, axis=2)),
            ("prediction", np.repeat(np.clip(step.predicted["frame_predictor"], 0, 1)[:, :, None], 3, axis=2)),
            ("error of copying", error_colours(step.last, step.frame, GAIN)),
            ("its error", error_colours(step.predicted["frame_predictor"], step.frame, GAIN)),
        )
        for i, (title, picture) in enumerate(pictures):
            x = left + k * (across + gap) + (i % 2) * (side + 0.1)
            y = 0.12 + (1 - i // 2) * (side + 0.3)
            place = figure.add_axes((x / WIDTH, y / height, side / WIDTH, side / height))
            place.imshow(np.clip(picture, 0, 1))
            place.set_axis_off()
            figure.text(x / WIDTH, (y + side + 0.06) / height, title, fontsize=SMALL, color=QUIET)
    return figure


if __name__ == "__main__":
    main()
