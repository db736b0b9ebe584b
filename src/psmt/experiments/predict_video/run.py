"""A film predicted frame by frame as it runs, by `FramePSMT` and its peers, in constant memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from psmt.errors import NotEnoughFramesError
from psmt.evaluation import FrameRow, RolloutRow, Step, score_stream
from psmt.sources import FrameSource
from psmt.types import Predictor, Progress, silent
from psmt.validation import check_choice, check_count
from psmt.video import FRAME_BASELINES, FRAME_EXTRAPOLATIONS, ColourFrame, FramePSMT, FrameReader

FRAME_METHODS = {"psmt": "PSMT", **{name: entry.label for name, entry in FRAME_BASELINES.items()}}
"""Methods by their name in files, with the name for people."""

SLOW_PEERS = tuple(name for name, entry in FRAME_BASELINES.items() if entry.slow)
"""Peers that cost about as much as the model, and are left out unless asked for."""

LEARN, LEAST = 400, 4
"""Frames that are learned from before the start: by default, and at the least."""
HORIZON = 500
"""Frames that are predicted at the most unless asked for more."""
PAST_BYTES = 1 << 28
"""Memory for the frames that are learned from; large frames are fewer."""


@dataclass(frozen=True, kw_only=True)
class VideoSettings:
    """What to predict, and with what."""

    start: int | None = None
    """T: the last frame that is received before the first prediction. None: after LEARN frames, or half the film."""
    horizon: int | Literal["all"] | None = None
    """K: frames that are predicted. None: as far as the film goes, but HORIZON at the most."""
    window: int = LEARN
    """Frames before the start that are learned from, at the most."""
    n_atoms: int = 256
    alpha: float = 0.2
    extrapolation: str = "phase"
    seed: int = 0
    peers: tuple[str, ...] = ()
    """Those of SLOW_PEERS that take part."""
    rollout: int = 10
    """Frames that each method predicts by itself, now and then."""
    every: int | None = None
    """Frames from the beginning of one rollout to that of the next. None: a tenth of the horizon, but 10 to 50."""

    def __post_init__(self) -> None:
        if self.start is not None:
            check_count("start", self.start, minimum=LEAST)
        if self.horizon is not None and self.horizon != "all":
            check_count("horizon", self.horizon)
        check_count("window", self.window, minimum=LEAST)
        check_count("rollout", self.rollout, minimum=0)
        if self.every is not None:
            check_count("every", self.every)
        check_choice("extrapolation", self.extrapolation, tuple(FRAME_EXTRAPOLATIONS))
        for peer in self.peers:
            check_choice("peers", peer, SLOW_PEERS)

    def methods(self) -> dict[str, Predictor]:
        """All that is compared, not yet fitted."""
        psmt = FramePSMT(
            n_atoms=self.n_atoms, alpha=self.alpha, extrapolation=self.extrapolation, random_state=self.seed
        )
        taking_part = (name for name, entry in FRAME_BASELINES.items() if name in self.peers or not entry.slow)
        return {"psmt": psmt, **{name: FRAME_BASELINES[name].make() for name in taking_part}}


class Still(NamedTuple):
    """A frame worth looking at, in luma (height, width)."""

    row: FrameRow
    last: NDArray[np.floating]
    frame: NDArray[np.floating]
    predicted: NDArray[np.floating]


@dataclass(frozen=True, kw_only=True)
class VideoResult:
    """All that came out but the film itself."""

    name: str
    settings: VideoSettings
    start: int
    n_past: int
    """Frames that were learned from: the last ones before the start."""
    shape: tuple[int, int]
    every: int
    """Frames from the beginning of one rollout to that of the next."""
    rows: list[FrameRow]
    rollouts: list[RolloutRow]
    stills: dict[str, Still]
    """The frames in which PSMT gained most ('best') and least ('worst') on copying, and the 'last' one."""
    error_maps: dict[str, NDArray[np.float64]]
    """Mean squared error (height, width) of each pixel, by method."""
    seconds: dict[str, float]
    """Per frame, by method: to predict it and to learn from it."""
    learning: float
    """Seconds that fitting took."""

    @property
    def horizon(self) -> int:
        """Frames that were predicted."""
        return len(self.of("psmt"))

    def of(self, method: str) -> list[FrameRow]:
        """Lines of one method, in order."""
        return [row for row in self.rows if row.method == method]

    def place_ratios(self) -> NDArray[np.float64]:
        """PSMT's error divided by that of copying around each pixel, (height, width).

        Where next to nothing happens both are next to nothing, and the ratio is drawn to 1.
        """
        blur = 0.01 * max(self.shape)
        ours, copied = (gaussian_filter(self.error_maps[name], blur) for name in ("psmt", "copy"))
        floor = max(0.1 * float(copied.mean()), np.finfo(float).tiny)
        return (ours + floor) / (copied + floor)


class FrameSummary(NamedTuple):
    """A method over all predicted frames, or over those of one step of the rollouts."""

    method: str
    mse: float
    psnr: float
    ssim: float
    ratio: float
    """Mean MSE divided by that of copying; below 1 is better than copying."""
    wins: float
    """Share of frames in which it was better than copying."""


def summarise_frames(rows: Iterable[FrameRow] | Iterable[RolloutRow]) -> list[FrameSummary]:
    """Means by method, least error first. PSNR and SSIM are taken frame by frame, then averaged."""
    by_method: dict[str, list[FrameRow | RolloutRow]] = {}
    for row in rows:
        by_method.setdefault(row.method, []).append(row)
    summaries = []
    for method, lines in by_method.items():
        errors, copied = np.array([(row.mse, row.copy_mse) for row in lines]).T
        summaries.append(
            FrameSummary(
                method,
                float(errors.mean()),
                float(np.mean([row.psnr for row in lines])),
                float(np.mean([row.ssim for row in lines])),
                float(errors.sum() / copied.sum()) if copied.sum() > 0 else float("nan"),
                float(np.mean(errors < copied)),
            )
        )
    return sorted(summaries, key=lambda summary: summary.mse)


Sink = Callable[[Step, ColourFrame, ColourFrame], None]
"""Called with each step, and with the frame that came and the one before in colour."""


def predict_video(
    film: FrameSource,
    reader: FrameReader,
    settings: VideoSettings,
    *,
    begin: Callable[[NDArray[np.float32], int | None], Sink] | None = None,
    progress: Progress = silent,
) -> VideoResult:
    """Learn from the frames before the start, then predict each frame after it from those before it.

    Parameters
    ----------
    film : FrameSource
    reader : FrameReader
    settings : VideoSettings
    begin : callable, optional
        Called once with the past frames (time, height, width) and the number of frames to come, if that is known;
        what it returns is called with each step.
    progress : callable
        Called with (stage, done, total).
    """
    shape = reader.shape(film)
    start, horizon = extent(film.n_frames, settings)
    with closing(reader.read(film)) as frames:
        past = _past(frames, start, min(settings.window, max(PAST_BYTES // (4 * shape[0] * shape[1]), LEAST)), progress)
        methods = settings.methods()
        progress("learn", 0, len(methods))
        began = perf_counter()
        for done, method in enumerate(methods.values(), start=1):
            method.fit(past)
            progress("learn", done, len(methods))
        learning = perf_counter() - began
        sink = None if begin is None else begin(past, horizon)
        n_past = len(past)
        del past
        gathered = _Gathered(shape, tuple(methods))
        every = settings.every or min(max((horizon or HORIZON) // 10, 10), 50)
        lane = _Lane(islice(frames, None if horizon is None else horizon + 1))
        for step in score_stream(methods, lane, start=start, rollout=settings.rollout, every=every, workers=2):
            gathered.add(step)
            if sink is not None:
                sink(step, lane.current, lane.before)
            done = step.index - start
            progress("predict frames", done, max(horizon or 0, done + 1))
    wanted = settings.horizon if isinstance(settings.horizon, int) else 1
    if gathered.n < wanted:
        raise NotEnoughFramesError(_too_short(start + lane.received, start, wanted))
    progress("predict frames", gathered.n, gathered.n)
    return VideoResult(
        name=film.name,
        settings=settings,
        start=start,
        n_past=n_past,
        shape=shape,
        every=every,
        rows=gathered.rows,
        rollouts=gathered.rollouts,
        stills=gathered.stills,
        error_maps={name: total / gathered.n for name, total in gathered.errors.items()},
        seconds={name: total / gathered.n for name, total in gathered.seconds.items()},
        learning=learning,
    )


def extent(n_frames: int | None, settings: VideoSettings) -> tuple[int, int | None]:
    """Start and number of frames to predict in a film of so many frames; None: to its end, wherever that is."""
    start, horizon = settings.start, settings.horizon
    if n_frames is None:
        return start or LEARN, None if horizon == "all" else horizon or HORIZON
    if start is None:
        start = max(min(LEARN, n_frames // 2), LEAST)
    room = n_frames - start - 1
    wanted = horizon if isinstance(horizon, int) else 1
    if room < wanted:
        raise NotEnoughFramesError(_too_short(n_frames, start, wanted))
    if isinstance(horizon, int):
        return start, horizon
    return start, None if horizon == "all" else min(room, HORIZON)


def _too_short(n_frames: int, start: int, horizon: int) -> str:
    text = f"the film has {n_frames} frames, but start={start} and horizon={horizon} need {start + horizon + 1}"
    if n_frames < LEAST + 2:
        return f"{text}; give a film of at least {LEAST + 2} frames"
    return f"{text}; use an earlier start (>= {LEAST}) or a smaller horizon"


def _past(frames: Iterator[ColourFrame], start: int, n_past: int, progress: Progress) -> NDArray[np.float32]:
    """The last `n_past` frames (time, height, width) before the start."""
    kept: deque[NDArray[np.float32]] = deque(maxlen=n_past)
    done = 0
    for done, frame in enumerate(islice(frames, start), start=1):
        kept.append(frame.luma)
        progress("read frames", done, start)
    if done < start:
        raise NotEnoughFramesError(_too_short(done, start, 1))
    return np.stack(kept)


class _Lane:
    """Luma, frame by frame, for the methods; the colours of the last two frames stay at hand."""

    def __init__(self, frames: Iterable[ColourFrame]) -> None:
        self._frames = frames
        self._latest: deque[ColourFrame] = deque(maxlen=2)
        self.received = 0

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        for frame in self._frames:
            self._latest.append(frame)
            self.received += 1
            yield frame.luma

    @property
    def current(self) -> ColourFrame:
        return self._latest[-1]

    @property
    def before(self) -> ColourFrame:
        return self._latest[0]


class _Gathered:
    """What is kept of the steps: numbers of all, pictures of a few."""

    def __init__(self, shape: tuple[int, int], methods: Sequence[str]) -> None:
        self.n = 0
        self.rows: list[FrameRow] = []
        self.rollouts: list[RolloutRow] = []
        self.errors = {name: np.zeros(shape) for name in methods}
        self.seconds = dict.fromkeys(methods, 0.0)
        self.stills: dict[str, Still] = {}

    def add(self, step: Step) -> None:
        self.n += 1
        self.rows += step.rows.values()
        self.rollouts += step.rollouts
        for name, predicted in step.predicted.items():
            self.errors[name] += (predicted - step.frame) ** 2
            self.seconds[name] += step.seconds[name]
        row = step.rows["psmt"]
        gain = row.copy_mse - row.mse
        for key, sign in (("best", 1), ("worst", -1)):
            held = self.stills.get(key)
            if held is None or sign * gain > sign * (held.row.copy_mse - held.row.mse):
                self.stills[key] = Still(row, step.last, step.frame, step.predicted["psmt"])
        self.stills["last"] = Still(row, step.last, step.frame, step.predicted["psmt"])
