"""Results of a predicted film with made-up errors: figures and reports need no model."""

from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from psmt.evaluation import FrameRow, RolloutRow, psnr
from psmt.experiments.predict_video.recording import CsvLog, Event
from psmt.experiments.predict_video.result import FilmScores, VideoResult
from psmt.experiments.predict_video.settings import VideoSettings

FOLDER = TemporaryDirectory(prefix="psmt-")
_number = count()
METHODS = ("frame_predictor", "copy", "linear", "fourier")


def made_up_path(name: str) -> Path:
    """A path of its own, which is removed when the tests end."""
    return Path(FOLDER.name) / f"{next(_number)}-{name}"


def new_log(kind: type) -> CsvLog:
    """An empty table with rows of this kind."""
    return CsvLog(kind, made_up_path("log.csv"))


def make_video(
    ratios: dict[str, np.ndarray | list[float]] | None = None,
    *,
    n_frames: int = 30,
    start: int = 400,
    copy_mse: float = 1e-3,
    cuts: tuple[int, ...] = (),
    surprise: bool = True,
    rollout_ratios: tuple[float, ...] = (0.5, 0.7, 0.9),
    shape: tuple[int, int] = (20, 30),
) -> VideoResult:
    """A film of `n_frames` predicted frames in which each method has the errors `ratios` of copying."""
    given = {"frame_predictor": 0.5, "copy": 1.0, "linear": 2.0, "fourier": 0.7} | (ratios or {})
    rng = np.random.default_rng(0)
    rows, rollouts = new_log(FrameRow), new_log(RolloutRow)
    for k in range(n_frames):
        for name in METHODS:
            ratio = float(np.broadcast_to(given[name], n_frames)[k])
            mse = copy_mse * ratio
            ours = name == "frame_predictor"
            rows.add(
                [
                    FrameRow(
                        start + 1 + k,
                        name,
                        mse,
                        float(psnr(mse)),
                        0.9,
                        copy_mse,
                        ratio if copy_mse > 0 else float("nan"),
                        float(rng.uniform()) if ours and surprise else float("nan"),
                        int(ours and start + 1 + k in cuts),
                    )
                ]
            )
    for step, ratio in enumerate(rollout_ratios, start=1):
        for name in METHODS:
            own = ratio if name == "frame_predictor" else 1.0
            rollouts.add([RolloutRow(start, name, step, start + step, own * 1e-3, 30.0, 0.9, 1e-3, own)])
    return VideoResult(
        name="made up",
        settings=VideoSettings(rollout=len(rollout_ratios)),
        start=start,
        n_past=min(start, 400),
        shape=shape,
        film_shape=shape,
        colour=False,
        every=10,
        rows=rows,
        rollouts=rollouts,
        scores=FilmScores.of(rows, rollouts),
        events=new_log(Event),
        seconds=dict.fromkeys(METHODS, 0.01),
        learning=2.0,
    )
