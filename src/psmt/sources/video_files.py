"""Films in any container that libav opens."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter

from psmt.errors import FrameSourceError
from psmt.sources.container_size import declared_size
from psmt.sources.contract import Frame, FrameSource, file_checksum

__all__ = ["VideoFilm", "open_video"]


@dataclass(frozen=True, kw_only=True)
class VideoFilm(FrameSource):
    """The frames of a video file. Made by `open_video`.

    Grey frames are the luma of the film with black at 0 and white at 1. ``n_frames`` is what the container
    declares; healthy films may hold a few frames more or less.
    """

    path: Path

    def checksum(self) -> str:
        """Return the sha256 of the file's bytes."""
        return file_checksum(self.path)

    def _read(self, *, colour: bool) -> Generator[Frame, None, None]:
        # One reformatter per pass: a frame's own sets up a new scaler each time, at four times the cost.
        reformatter = VideoReformatter()
        with closing(_decode(self.path)) as pictures:
            for index, picture in enumerate(pictures):
                if (picture.height, picture.width) != self.shape:
                    raise FrameSourceError(
                        f"{self.path}: frame {index} is {picture.height} x {picture.width} pixels but those "
                        f"before it are {self.shape[0]} x {self.shape[1]}; use stop={index} "
                        f"(--frames {index}) to end there, or re-encode the film to one size"
                    )
                yield _pixels(picture, reformatter, colour=colour)


def open_video(path: Path, *, stop: int | None = None) -> VideoFilm:
    """Return the film in ``path`` after decoding its first frame."""
    if path.stat().st_size == 0:
        raise FrameSourceError(f"{path} is empty (0 bytes); fetch or record the film again")
    with _container(path) as container:
        stream = _video_stream(container, path)
        n_frames = stream.frames or None
        rate = stream.average_rate or stream.guessed_rate
    with closing(_decode(path)) as pictures:
        first = next(pictures)
    film = VideoFilm(
        path=path,
        name=path.name,
        shape=(first.height, first.width),
        n_frames=n_frames,
        fps=float(rate) if rate else None,
    )
    return film.head(stop)


def _container(path: Path) -> av.container.InputContainer:
    try:
        # The absolute path keeps libav from reading a colon in a name as a protocol.
        container = av.open(str(path.absolute()))
    except EOFError as error:
        cause = _cut_short(path) or "it holds 0 frames"
        raise FrameSourceError(f"{path} ends before its first frame ({cause}); fetch it again") from error
    except (av.FFmpegError, UnicodeDecodeError) as error:
        cause = _cut_short(path) or getattr(error, "strerror", None) or str(error)
        raise FrameSourceError(
            f"{path} cannot be opened as a video ({cause}); is it complete, and is it a film?"
        ) from error
    if container.format.name == "tty":
        # libav plays text files as terminal art.
        container.close()
        raise FrameSourceError(f"{path} is a text file, not a video")
    return container


def _video_stream(container: av.container.InputContainer, path: Path) -> av.VideoStream:
    for stream in container.streams.video:
        # Music files carry their cover as a video stream of one picture.
        if not stream.disposition & av.stream.Disposition.attached_pic:
            if stream.codec_context is None:
                raise FrameSourceError(f"{path}: this build of libav has no decoder for its video; re-encode the film")
            return stream
    if lost := _cut_short(path):
        raise FrameSourceError(f"{path} is cut short ({lost}) and its tracks are lost; fetch the film again")
    kinds = ", ".join(sorted({stream.type for stream in container.streams})) or "no streams"
    raise FrameSourceError(f"{path} has no video in it (found: {kinds}); give a file with a picture track")


def _cut_short(path: Path) -> str | None:
    """Return how the file is shorter than its container says, or None when it is not known to be."""
    declared, actual = declared_size(path), path.stat().st_size
    # Some writers of AVI count the 8 bytes of the outermost header twice.
    if declared is None or declared <= actual + 8:
        return None
    return f"the container spans {declared:,} bytes, the file has {actual:,}"


def _decode(path: Path) -> Generator[VideoFrame, None, None]:
    """Yield the pictures of the film, and raise at the end when it is damaged or holds none."""
    n_read = 0
    with _container(path) as container:
        stream = _video_stream(container, path)
        stream.thread_type = "AUTO"
        # Broadcast streams flag lost packets as corrupt all the time; in a file the flag means a short read.
        flag_is_final = container.format.name != "mpegts"
        cause = None
        ends_early = False
        packets = container.demux(stream)
        while True:
            packet = None
            try:
                packet = next(packets, None)
                if packet is None:
                    break
                if packet.is_corrupt and flag_is_final:
                    cause = "the last packet is incomplete"
                    ends_early = True
                    break
                pictures = packet.decode()
            except av.FFmpegError as error:
                cause = error.strerror
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
        cause = _cut_short(path) or cause
    if not n_read:
        raise FrameSourceError(f"{path}: not one frame could be decoded ({cause or 'the film has 0 frames'})")
    if cause:
        raise FrameSourceError(
            f"{path} is cut short or damaged ({cause}): {n_read} frames could be read; "
            f"fetch the film again, or use stop={n_read} (--frames {n_read}) to work with just these"
        )


def _flush(stream: av.VideoStream) -> list[VideoFrame]:
    """Return the pictures that the decoder still holds back."""
    try:
        return stream.decode(None)
    except av.FFmpegError:
        return []


def _pixels(picture: VideoFrame, reformatter: VideoReformatter, *, colour: bool) -> Frame:
    """Return a picture as float32 with black at 0 and white at 1."""
    deep = picture.format.components[0].bits > 8
    layouts = ("rgb48le", "gray16le") if deep else ("rgb24", "gray")
    pixels = reformatter.reformat(picture, format=layouts[0 if colour else 1]).to_ndarray()
    return pixels.astype(np.float32) / np.float32(65535 if deep else 255)
