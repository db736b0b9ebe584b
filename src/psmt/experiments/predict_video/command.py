"""`psmt predict-video`: what it says of itself, and its options."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from cyclopts import Parameter

from psmt.errors import PSMTError
from psmt.experiments.contract import Command
from psmt.experiments.options import AUTO, FilmOptions, Out

if TYPE_CHECKING:
    from psmt.data import FrameSource
    from psmt.experiments.predict_video.settings import VideoSettings
    from psmt.types import Progress
    from psmt.video import FrameReader

DEFAULT_SIZE = 200
"""Side of the frame, for films that are at least as large."""


@dataclass(frozen=True, kw_only=True)
class VideoOptions(FilmOptions):
    """Options of `psmt predict-video`."""

    size: Annotated[
        Literal["native"] | int | None,
        Parameter(
            help="Side of the frame in pixels, after shrinking its centred square; native keeps the film's own "
            "picture. Left out: 200, or the whole square of a smaller film.",
            metavar="native|INT",
            show_default=False,
            **AUTO,
        ),
    ] = None
    prior: Annotated[
        str,
        Parameter(
            help="What other films have taught: default, none, or a file of psmt learn.", metavar="default|none|FILE"
        ),
    ] = "default"
    extrapolation: Annotated[
        Literal["phase", "gain", "linear", "hold"], Parameter(help="How PSMT continues what it has seen.")
    ] = "phase"
    start: Annotated[
        int | None,
        Parameter(
            help="T: frame to start from; all before it is only learned from. Left out: 400, or half of a short film.",
            metavar="INT",
            show_default=False,
        ),
    ] = None
    horizon: Annotated[
        Literal["all"] | int | None,
        Parameter(
            help="K: how many frames are predicted after the start. Left out: 500, or as many as there are.",
            metavar="all|INT",
            show_default=False,
            **AUTO,
        ),
    ] = None
    baselines: Annotated[
        tuple[Literal["blocks", "ridge"], ...],
        Parameter(
            help="One more method to compare with, slower than the rest: block motion or ridge regression; may be "
            "repeated.",
            negative=(),
            show_default=False,
        ),
    ] = ()
    false_alarms: Annotated[
        float,
        Parameter(help="Share of the frames of an uneventful film that may be called a surprise in events.csv."),
    ] = 0.001
    raw: Annotated[
        Path | None,
        Parameter(
            help="One more film to write: the plain prediction of each frame, in the film's own size and colours.",
            metavar="FILE.mp4",
            show_default=False,
        ),
    ] = None
    peers: Annotated[tuple[Literal["blocks", "ridge"], ...], Parameter(show=False, negative=())] = ()
    """The old name of `baselines`."""
    out: Out = Path("psmt-predict-video")

    film: ClassVar[str] = "Video, folder of images, .npy, .npz, camera:0, address of a stream, or builtin:glide."

    def check(self) -> None:
        """As for all commands; and a size that can be predicted, where it can be."""
        super().check()
        if self.raw is not None:
            if not self.raw.absolute().parent.is_dir():
                raise PSMTError(f"--raw {self.raw}: the folder {self.raw.parent} does not exist; make it first")
            if self.raw.absolute() == (self.out / "predicted.mp4").absolute():
                raise PSMTError(f"--raw {self.raw} is the film that shows errors too; give another name")
        self.settings()
        from psmt.video import FrameReader

        if self.size is not None:
            FrameReader(self.size)
        if self.peers:
            warnings.warn("--peers is now --baselines; the old name will go with the next release", FutureWarning, 2)

    def open(self, spec: str) -> "FrameSource":
        """Frames that are read once: a film, or a stream."""
        from psmt.data import open_frames

        return open_frames(spec, stop=self.n_frames)

    def read(self, source: "FrameSource", _progress: "Progress") -> "tuple[FrameSource, FrameReader]":
        """The film, which is read as it runs, and what reduces its frames."""
        from psmt.video import FrameReader

        return source, FrameReader(min(DEFAULT_SIZE, *source.shape) if self.size is None else self.size)

    def settings(self) -> "VideoSettings":
        """As the library takes them."""
        from psmt.experiments.predict_video.settings import VideoSettings

        return VideoSettings(
            start=self.start,
            horizon=self.horizon,
            extrapolation=self.extrapolation,
            prior=None if self.prior == "none" else self.prior,
            baselines=self.baselines + self.peers,
            false_alarms=self.false_alarms,
            device=self.device,
            raw=None if self.raw is None else str(self.raw.absolute()),
        )


COMMAND = Command(
    name="predict-video",
    help="""Predict whole frames, each from those before it, with PSMT and all it is compared to.

Writes predicted.mp4 (film, prediction and error side by side, with the score so far), scores.csv (one frame ahead), \
rollout.csv (left to itself for 10 frames, again and again), events.csv (cuts, flashes and surprises, with times) \
and report.html: one page that opens with whether PSMT beat copying on this film, and where it or another method did \
better. Ends with a table that holds every method against copying. The paper \
predicts one patch: there is no --literal for whole frames.""",
    options=VideoOptions,
    undeparted="the paper predicts one patch, and says nothing of whole frames; psmt predict takes it",
)
