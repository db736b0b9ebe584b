"""`psmt predict-video`: its parameters, its options and its command."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from psmt.errors import NotEnoughFramesError, PSMTError
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
"""Frames that are learned from before the start: by default, and at least."""
HORIZON = 500
"""Frames that are predicted by default, at most."""
DEFAULT_SIZE = 200
"""Side of the frame, for films that are at least as large."""

SlowBaselines = tuple[Literal["blocks", "ridge"], ...]


@dataclass(frozen=True, kw_only=True)
class VideoSettings(Settings):
    """What to predict, and with what."""

    start: Annotated[
        int | None,
        Option(
            "--start",
            "T: frame to start from; frames before it are only learned from.",
            default=f"{LEARN}, or half of a short film",
        ),
        count(LEAST),
    ] = None
    """The last frame that is received before the first prediction."""
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
    """Frames before the start that are learned from, at most."""
    extrapolation: Annotated[
        Literal["phase", "gain", "linear", "hold"], Option("--extrapolation", "How PSMT continues what it has seen.")
    ] = "phase"
    prior: Annotated[
        str | None,
        Option(
            "--prior",
            "What was learned from other films: default, none, or a file of psmt learn.",
            none=True,
            metavar="default|none|FILE",
        ),
    ] = "default"
    baselines: Annotated[
        SlowBaselines,
        Option(
            "--baselines",
            "One more method to compare with, slower than the others: block motion or ridge regression; may be "
            "repeated.",
        ),
    ] = ()
    rollout: Annotated[int, count(0)] = 10
    """Frames that each method predicts ahead, now and then."""
    every: int | None = None
    """Frames from the beginning of one rollout to that of the next. None: a tenth of the horizon, but 10 to 50."""
    false_alarms: Annotated[
        float,
        Option(
            "--false-alarms", "Share of the frames of an uneventful film that may count as surprises in events.csv."
        ),
        real(open_bound=True),
    ] = 1e-3
    device: Device = "cpu"
    raw: Annotated[
        str | None,
        Option(
            "--raw",
            "One more film to write: the plain prediction of each frame, in the film's own size and colours.",
            metavar="FILE.mp4",
        ),
    ] = None
    peers: Annotated[SlowBaselines, Option("--peers", "Old name of --baselines.", hidden=True)] = ()

    def __post_init__(self) -> None:
        from psmt.surprise import SurpriseAlarm

        super().__post_init__()
        SurpriseAlarm(self.false_alarms)
        if self.peers:
            warnings.warn("--peers is now --baselines; the old name will go with the next release", FutureWarning, 2)
            object.__setattr__(self, "baselines", self.baselines + self.peers)
            object.__setattr__(self, "peers", ())
        if self.raw is not None:
            raw = Path(self.raw)
            if not raw.absolute().parent.is_dir():
                raise PSMTError(f"raw={raw}: the folder {raw.parent} does not exist; make it first")
            object.__setattr__(self, "raw", str(raw.absolute()))

    def check(self, n_frames: int, /) -> None:
        """Raise unless the film has frames to learn from and to predict."""
        extent(n_frames, self)

    def methods(self) -> dict[str, FrameMethod]:
        """The methods that are compared, not yet fitted."""
        from psmt.video import FRAME_BASELINES, FramePSMT

        psmt = FramePSMT(extrapolation=self.extrapolation, prior=self.prior, device=self.device)
        taking_part = (name for name, entry in FRAME_BASELINES.items() if name in self.baselines or not entry.slow)
        return {"psmt": psmt, **{name: FRAME_BASELINES[name].make() for name in taking_part}}


def extent(n_frames: int | None, settings: VideoSettings) -> tuple[int, int | None]:
    """Start and number of frames to predict in a film of `n_frames`; None: until its end, wherever that is."""
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
    """Message for a film with fewer frames than start and horizon need."""
    text = f"the film has {n_frames} frames, but start={start} and horizon={horizon} need {start + horizon + 1}"
    if n_frames < LEAST + 2:
        return f"{text}; give a film of at least {LEAST + 2} frames"
    return f"{text}; use an earlier start (>= {LEAST}) or a smaller horizon"


@dataclass(frozen=True, kw_only=True)
class VideoOptions(FilmOptions):
    """Options of `psmt predict-video` that are not parameters of the prediction."""

    size: Annotated[
        int | Literal["native"] | None,
        Option(
            "--size",
            "Side of the frame in pixels, after its centred square is shrunk; native keeps the film's own picture.",
            default=f"{DEFAULT_SIZE}, or the whole square of a smaller film",
            metavar="native|INT",
        ),
        anything,
    ] = None

    SOURCE_HELP: ClassVar[str] = "Video, folder of images, .npy, .npz, camera:0, address of a stream, or builtin:glide."

    def check(self, settings: Iterable[Settings], /) -> None:
        """As for all commands; and a size that can be predicted, and films of two names."""
        from psmt.video import FrameReader

        super().check(settings)
        if self.size is not None:
            FrameReader(self.size)
        shown = str((self.out / "predicted.mp4").absolute())
        if any(getattr(own, "raw", None) == shown for own in settings):
            raise PSMTError(f"--raw {shown} is the film that shows errors too; give another name")

    def open(self, spec: str, /) -> FrameSource:
        """Frames that are read once: a film, or a stream."""
        from psmt.data import open_frames

        return open_frames(spec, stop=self.frames)

    def read(self, source: FrameSource, _progress: Progress, /) -> tuple[FrameSource, FrameReader]:
        """The film, which is read while it is predicted, and the reader that reduces its frames."""
        from psmt.video import FrameReader

        return source, FrameReader(min(DEFAULT_SIZE, *source.shape) if self.size is None else self.size)


COMMAND = Command(
    name="predict-video",
    help="""Predict whole frames, each from those before it, with PSMT and all it is compared with.

Writes predicted.mp4 (film, prediction and error side by side, with the score so far), scores.csv (one frame ahead), \
rollout.csv (10 frames ahead, again and again), events.csv (cuts, flashes and surprises, with times) and report.html: \
one page that opens with whether PSMT beat copying on this film, and where it or another method did better. Ends with \
a table that compares every method with copying. The paper predicts one patch, so there is no --literal.""",
    settings=VideoSettings,
    options=VideoOptions,
    group=SEE,
    no_departures="the paper predicts one patch, and does not mention whole frames; psmt predict takes it",
)
