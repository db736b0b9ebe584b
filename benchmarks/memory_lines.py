"""All that `psmt predict-video` keeps and makes of a film, without the model and the painter, which take hours.

    python -m benchmarks.memory_lines FRAMES FOLDER

Scores of made-up frames go through the same lines, checkpoints, figures, page and files. `benchmarks.memory` runs it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from psmt.evaluation import FrameRow, Rollout, RolloutRow, Step
from psmt.experiments.predict_video.recording import Checkpoint, Recorder
from psmt.experiments.predict_video.report import EXPERIMENT
from psmt.experiments.predict_video.result import VideoResult
from psmt.experiments.predict_video.run import STRETCH
from psmt.experiments.predict_video.settings import VideoSettings
from psmt.report import render
from psmt.utils.files import write_files

METHODS = ("psmt", "copy", "linear", "fourier")
SHAPE = (16, 16)
START, EVERY, ROLLOUT = 20, 50, 10
SCENE = 250
"""Frames from cut to cut."""


def steps(n: int) -> Iterator[Step]:
    """Yield steps of noise, with rollouts and cuts as films have them."""
    rng = np.random.default_rng(0)
    pictures = rng.random((64, *SHAPE), dtype=np.float32)
    under_way: list[Rollout] = []
    for index in range(START + 1, START + n + 1):
        frame, last, *predicted = (pictures[k] for k in rng.integers(64, size=2 + len(METHODS)))
        cut = index % SCENE == 0
        scores = rng.random((len(METHODS), 3)).tolist()
        surprise = 50.0 if cut else float(rng.lognormal(sigma=0.3))
        rows = {
            name: FrameRow(index, name, *score, 0.5, 2 * score[0], surprise, int(cut))
            for name, score in zip(METHODS, scores, strict=True)
        }
        rollouts = [
            RolloutRow(going.start, name, index - going.start, index, *score, 0.5, 2 * score[0])
            for going in under_way
            for name, score in zip(METHODS, scores, strict=True)
        ]
        expected = dict(zip(METHODS, predicted, strict=True))
        yield Step(index, frame, last, expected, rows, rollouts, dict.fromkeys(METHODS, 0.01), under_way)
        under_way = [going for going in under_way if index - going.start < ROLLOUT]
        if (index - START) % EVERY == 0:
            under_way.append(Rollout(index, frame, dict.fromkeys(METHODS, pictures[:ROLLOUT])))


def main() -> None:
    n, folder = int(sys.argv[1]), Path(sys.argv[2])
    checkpoint = Checkpoint(folder, "0" * 64)
    with checkpoint.opened():
        recorder = Recorder(SHAPE, METHODS, fps=25.0, false_alarms=1e-3, path=checkpoint.path)
        for step in steps(n):
            recorder.add(step)
            if recorder.n % STRETCH == 0:
                checkpoint.save(recorder, {})
        result = VideoResult.from_recorder(
            recorder, name="made up", settings=VideoSettings(), start=START, n_past=START, shape=SHAPE, every=EVERY
        )
        done = result
        assert EXPERIMENT.page is not None
        page = render(EXPERIMENT.page(done, {}))
        write_files(folder, {"report.html": page, **EXPERIMENT.written(done)})
        checkpoint.clear()


if __name__ == "__main__":
    main()
