"""The parameters and options of `psmt predict-video`, and its help."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple

from psmt.errors import NotEnoughFramesError
from psmt.experiments.contract import SEE, Command
from psmt.experiments.options.declaration import Option, Settings, anything
from psmt.experiments.options.parameters import Device
from psmt.experiments.options.sources import FilmOptions
from psmt.utils.constraints import count, real

if TYPE_CHECKING:
    from psmt.data import FrameSource
    from psmt.experiments.predict_video.recording import FrameMethod
    from psmt.types import Progress
    from psmt.video import FrameReader

LEARN, LEAST = 400, 4
"""Default and smallest number of frames before the start that are learned from."""
HORIZON = 500
"""Default number of frames that are predicted. A shorter film has fewer."""
DEFAULT_SIZE = 200
"""Default height of the frame in pixels, for films that are at least as high."""


@dataclass(frozen=True, kw_only=True)
class VideoSettings(Settings):
    """Parameters of `psmt predict-video`: which frames are predicted, and by which methods."""

    start: Annotated[
        int | None,
        Option(
            "--start", "T: frame to start from, after those to learn from.", default=f"{LEARN}, or half of a short film"
        ),
        count(LEAST),
    ] = None
    """Index of the last frame that is received before the first prediction."""
    horizon: Annotated[
        int | Literal["all"] | None,
        Option(
            "--horizon",
            "K: number of frames that are predicted after the start.",
            default=f"{HORIZON}, or as many as there are",
            metavar="all|INT",
        ),
    ] = None
    window: Annotated[int, count(LEAST)] = LEARN
    """Largest number of frames before the start that are learned from."""
    extrapolation: Annotated[
        Literal["phase", "gain", "linear", "hold"], Option("--extrapolation", "How the predictor continues the film.")
    ] = "phase"
    prior: Annotated[
        str | None,
        Option(
            "--prior",
            "Weights learned on other films: default, none, or a file that psmt learn wrote.",
            none=True,
            metavar="default|none|FILE",
        ),
    ] = "default"
    baselines: Annotated[
        tuple[Literal["blocks", "ridge"], ...],
        Option(
            "--baselines",
            "One more method to compare with, slower than the others: block motion or ridge regression; may be "
            "repeated.",
        ),
    ] = ()
    rollout: Annotated[int, count(0)] = 10
    """Number of frames of each rollout, in which a method continues from its own predictions."""
    every: int | None = None
    """Number of frames between the starts of rollouts. None: a tenth of the horizon, at least 10 and at most 50."""
    false_alarms: Annotated[
        float,
        Option(
            "--false-alarms", "Share of the frames of an uneventful film that may count as surprises in events.csv."
        ),
        real(open_bound=True),
    ] = 1e-3
    grey: Annotated[bool, Option("--grey", "Predict a colour film in grey, which takes less time.")] = False
    device: Device = "cpu"

    def __post_init__(self) -> None:
        from psmt.changes import SurpriseAlarm

        super().__post_init__()
        SurpriseAlarm(self.false_alarms)

    def check(self, n_frames: int, /) -> None:
        """Raise if a film of `n_frames` has too few frames to learn from or to predict."""
        extent(n_frames, self)

    def methods(self) -> dict[str, FrameMethod]:
        """Return the methods that are compared, by name, not yet fitted."""
        from psmt.video import FRAME_BASELINES, FramePredictor

        predictor = FramePredictor(extrapolation=self.extrapolation, prior=self.prior, device=self.device)
        taking_part = (name for name, entry in FRAME_BASELINES.items() if name in self.baselines or not entry.slow)
        return {"frame_predictor": predictor, **{name: FRAME_BASELINES[name].make() for name in taking_part}}


def extent(n_frames: int | None, settings: VideoSettings) -> tuple[int, int | None]:
    """Return the start frame and the number of frames to predict. This number is None for all frames that follow.

    `n_frames` is the length of the film, or None if unknown. Raise `NotEnoughFramesError` if the film is too short.
    """
    start, horizon = settings.start, settings.horizon
    if n_frames is None:
        return start or LEARN, None if horizon == "all" else horizon or HORIZON
    if start is None:
        start = max(min(LEARN, n_frames // 2), LEAST)
    room = n_frames - start - 1
    wanted = horizon if isinstance(horizon, int) else 1
    if room < wanted:
        raise NotEnoughFramesError(too_short(n_frames, start, wanted))
    if isinstance(horizon, int):
        return start, horizon
    return start, None if horizon == "all" else min(room, HORIZON)


def too_short(n_frames: int, start: int, horizon: int) -> str:
    """Return the message of the error for a film that is too short to predict `horizon` frames after `start`."""
    text = f"the film has {n_frames} frames, but start={start} and horizon={horizon} need {start + horizon + 1}"
    if n_frames < LEAST + 2:
        return f"{text}; give a film of at least {LEAST + 2} frames"
    return f"{text}; use an earlier start (>= {LEAST}) or a smaller horizon"


class FilmMaterial(NamedTuple):
    """A film, and the reader that resizes its frames."""

    film: FrameSource
    reader: FrameReader

    @property
    def remarks(self) -> list[str]:
        """A list of one sentence on the size at which frames are predicted. The command prints it."""
        shape = self.reader.shape(self.film)
        return [f"{self.film.name}: {picture_text(self.film.shape, shape)}."]


def picture_text(film_shape: tuple[int, int], shape: tuple[int, int]) -> str:
    """Return a text on the size (height, width) of the film's frames and of the predicted frames."""
    (height, width), (small_height, small_width) = film_shape, shape
    if film_shape == shape:
        return f"the whole picture is predicted at its own size, {width} × {height} pixels"
    size = f"{small_width} × {small_height} pixels, reduced from {width} × {height}"
    return f"the whole picture is predicted at {size}; nothing is cropped"


@dataclass(frozen=True, kw_only=True)
class VideoOptions(FilmOptions):
    """Options of `psmt predict-video`: those of all commands, and the size of the frames."""

    size: Annotated[
        int | Literal["native"] | None,
        Option(
            "--size",
            "Height in pixels to which the whole picture is shrunk; its width follows. native keeps the film's size.",
            default=f"{DEFAULT_SIZE}, or the height of a smaller film",
            metavar="native|INT",
        ),
        anything,
    ] = None

    SOURCE_HELP: ClassVar[str] = "Video, folder of images, .npy, .npz, camera:0, address of a stream, or builtin:glide."

    def check(self, settings: Iterable[Settings], /) -> None:
        """Raise if the size of the frames is invalid, or an option that all commands share."""
        from psmt.video import FrameReader

        super().check(settings)
        if self.size is not None:
            FrameReader(self.size)

    def open(self, spec: str, /) -> FrameSource:
        """Open a film, a camera or a stream. Its frames are read later."""
        from psmt.data import open_frames

        return open_frames(spec, stop=self.frames)

    def read(self, source: FrameSource, _progress: Progress, /) -> FilmMaterial:
        """Return the film and the reader that resizes its frames. The frames are read when they are predicted."""
        from psmt.video import FrameReader

        return FilmMaterial(source, FrameReader(min(DEFAULT_SIZE, source.shape[0]) if self.size is None else self.size))


COMMAND = Command(
    name="predict-video",
    help="""Predict whole frames, each from the frames before it, and compare with simple methods.

The whole picture is predicted, in colour if the film has colour; scores are those of the luma. \
Writes predicted.mp4 (film, prediction and error side by side, with the score so far), scores.csv (one frame ahead), \
rollout.csv (up to 10 frames ahead), events.csv and events.html (cuts, flashes and surprises, with times and pictures) \
and report.html. The page \
begins with whether the frame predictor beat copying on this film, and where another method did better. The command \
ends with a table that compares every method with copying. The paper predicts one patch, so there is no --literal.""",
    settings=VideoSettings,
    options=VideoOptions,
    group=SEE,
)
