"""Pictures out of libav: one decoding loop for files, cameras and network streams."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

import av
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter

from psmt.data.pixels import Frame, scaled
from psmt.data.readers.container_size import declared_size
from psmt.errors import FrameSourceError

__all__ = ["Decoding", "Medium", "decode", "frames_of"]

PATIENCE = 10.0
"""Seconds without a picture after which a camera or a network stream is given up."""

_PAUSE = 0.005
"""Seconds until a camera that had no picture yet is asked again."""


@dataclass(frozen=True, kw_only=True)
class Medium:
    """What libav is to open, and how people speak of it.

    Attributes
    ----------
    label : str
        What errors call it.
    address : str
        What libav calls it.
    hint : str
        The question to ask when it cannot be opened.
    path : Path or None
        The file, where it is one: its container may tell that it was cut short. None for what is live.
    format : str or None
        The kind of container or device; None leaves it to libav.
    options : mapping
        What libav is told besides.
    """

    label: str
    address: str
    hint: str
    path: Path | None = None
    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def cut_short(self) -> str | None:
        """Return how the file is shorter than its container says, or None when it is not known to be."""
        if self.path is None:
            return None
        declared, actual = declared_size(self.path), self.path.stat().st_size
        # Some writers of AVI count the 8 bytes of the outermost header twice.
        if declared is None or declared <= actual + 8:
            return None
        return f"the container spans {declared:,} bytes, the file has {actual:,}"


class Decoding(NamedTuple):
    """Pictures to come, and what the container says of them.

    Attributes
    ----------
    pictures : generator of VideoFrame
        Raises `FrameSourceError` at its end when the medium is damaged or holds no picture. Closing it closes the
        container.
    n_frames : int or None
        How many pictures there are.
    fps : float or None
        Pictures per second.
    """

    pictures: Generator[VideoFrame, None, None]
    n_frames: int | None
    fps: float | None


def decode(medium: Medium) -> Decoding:
    """Return the pictures of a medium, opened but not yet read."""
    container = _open_container(medium)
    try:
        stream = _video_stream(container, medium)
    except FrameSourceError:
        container.close()
        raise
    rate = stream.average_rate or stream.guessed_rate
    return Decoding(_pictures(container, stream, medium), stream.frames or None, float(rate) if rate else None)


def frames_of(
    pictures: Iterable[VideoFrame], shape: tuple[int, int], *, label: str, colour: bool
) -> Generator[Frame, None, None]:
    """Yield pictures as float32 frames with black at 0 and white at 1; all must have one ``shape``."""
    # One reformatter per pass: a frame's own sets up a new scaler each time, at four times the cost.
    reformatter = VideoReformatter()
    for index, picture in enumerate(pictures):
        if (picture.height, picture.width) != shape:
            raise FrameSourceError(
                f"{label}: frame {index} is {picture.height} x {picture.width} pixels but those "
                f"before it are {shape[0]} x {shape[1]}; use stop={index} "
                f"(--frames {index}) to end there, or re-encode the film to one size"
            )
        deep = picture.format.components[0].bits > 8
        layouts = ("rgb48le", "gray16le") if deep else ("rgb24", "gray")
        pixels = reformatter.reformat(picture, format=layouts[0 if colour else 1]).to_ndarray()
        yield scaled(pixels, where=f"{label}: frame {index}")


def _open_container(medium: Medium) -> av.container.InputContainer:
    try:
        container = av.open(
            medium.address,
            format=medium.format,
            options=dict(medium.options),
            timeout=PATIENCE if medium.path is None else None,
        )
    except EOFError as error:
        cause = medium.cut_short() or "it holds 0 frames"
        raise FrameSourceError(f"{medium.label} ends before its first frame ({cause}); fetch it again") from error
    except (av.FFmpegError, ValueError) as error:
        cause = medium.cut_short() or _reason(error)
        raise FrameSourceError(f"{medium.label} cannot be opened as a video ({cause}); {medium.hint}") from error
    if container.format.name == "tty":
        # libav plays text files as terminal art.
        container.close()
        raise FrameSourceError(f"{medium.label} is a text file, not a video")
    return container


def _video_stream(container: av.container.InputContainer, medium: Medium) -> av.VideoStream:
    for stream in container.streams.video:
        # Music files carry their cover as a video stream of one picture.
        if not stream.disposition & av.stream.Disposition.attached_pic:
            if stream.codec_context is None:
                raise FrameSourceError(
                    f"{medium.label}: this build of libav has no decoder for its video; re-encode the film"
                )
            return stream
    if lost := medium.cut_short():
        raise FrameSourceError(f"{medium.label} is cut short ({lost}) and its tracks are lost; fetch the film again")
    kinds = ", ".join(sorted({stream.type for stream in container.streams})) or "no streams"
    raise FrameSourceError(f"{medium.label} has no video in it (found: {kinds}); give a file with a picture track")


def _pictures(
    container: av.container.InputContainer, stream: av.VideoStream, medium: Medium
) -> Generator[VideoFrame, None, None]:
    """Yield the pictures of the stream, and raise at the end when it is damaged or holds none."""
    live = medium.path is None
    n_read = 0
    with container:
        # Frame threads decode many pictures ahead: a film gains by it, a camera would lag behind the world.
        stream.thread_type = "SLICE" if live else "AUTO"
        # Broadcast streams flag lost packets as corrupt all the time; in a file the flag means a short read.
        flag_is_final = not live and container.format.name != "mpegts"
        cause = None
        ends_early = False
        packets = container.demux(stream)
        arrived = monotonic()
        while True:
            packet = None
            try:
                packet = next(packets, None)
                if packet is None:
                    break
                arrived = monotonic()
                if packet.is_corrupt and flag_is_final:
                    cause = "the last packet is incomplete"
                    ends_early = True
                    break
                pictures = packet.decode()
            except BlockingIOError as error:
                # Some cameras do not wait for their next picture (AVFoundation), and the error ends the demuxing.
                if monotonic() - arrived > PATIENCE:
                    cause = _reason(error)
                    break
                sleep(_PAUSE)
                packets = container.demux(stream)
                continue
            except av.FFmpegError as error:
                cause = _reason(error)
                if n_read or packet is None or packet.is_keyframe:
                    break
                # A recording may begin between two key frames: wait for the first of them.
                continue
            for picture in pictures:
                yield picture
                n_read += 1
                cause = None
        if ends_early:
            # After an error inside the film the decoder holds pictures from beyond the gap: those stay there.
            for picture in _flush(stream):
                yield picture
                n_read += 1
        cause = medium.cut_short() or cause
    way_out = "open it again, or record it to a file and work with that" if live else "fetch the film again"
    if not n_read:
        cause = cause or "the film has 0 frames"
        raise FrameSourceError(f"{medium.label}: not one frame could be decoded ({cause}); {way_out}")
    if cause and live:
        raise FrameSourceError(f"{medium.label} broke off ({cause}): {n_read} frames could be read; {way_out}")
    if cause:
        raise FrameSourceError(
            f"{medium.label} is cut short or damaged ({cause}): {n_read} frames could be read; "
            f"{way_out}, or use stop={n_read} (--frames {n_read}) to work with just these"
        )


def _flush(stream: av.VideoStream) -> list[VideoFrame]:
    """Return the pictures that the decoder still holds back."""
    try:
        return stream.decode(None)
    except av.FFmpegError:
        return []


def _reason(error: Exception) -> str:
    """Return in a few words why libav gave up."""
    # Both are what libav says when PATIENCE is over.
    if isinstance(error, av.error.ExitError | BlockingIOError):
        return f"nothing came for {PATIENCE:g} seconds"
    return getattr(error, "strerror", None) or str(error)
