"""Reader of video files in any container that libav opens, and the decoding loop for all sources of libav."""

import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import BinaryIO

import av
import numpy as np
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter

from psmt.data.contract import Film, Frame, check_shape, file_checksum, scaled
from psmt.errors import FrameSourceError
from psmt.utils.files import reading, shown

PATIENCE = 10.0
"""Seconds without a frame after which a camera or a network stream is abandoned."""

_PAUSE = 0.005  # seconds between two requests to a camera that has no frame ready

_CONTAINERS = (
    "3gp apng asf av1 avi cavsvideo cine dirac dnxhd dv evc flac flic flv gif gxf h261 h263 h264 hevc ivf kux live_flv "
    "m4v matroska mjpeg mjpeg_2000 mov mp3 mpeg mpegts mpegtsraw mpegvideo mxf nsv nut nuv obu ogg pva rm roq ser "
    "smjpeg smk swf ty vc1 vc1test vvc wav wtv yuv4mpegpipe"
)
"""Formats of libav that files may have. Formats that name other files (concat, hls, dash, sdp, image2) are left out."""


@dataclass(frozen=True, kw_only=True)
class Medium:
    """File, camera or stream that libav opens. A file has a `path`. A camera or a stream has an `address`.

    `label` is the name in messages. `hint` is added to the error message if the medium cannot be opened. If `format` is
    None, libav detects the container.
    """

    label: str
    hint: str
    address: str = ""
    path: Path | None = None
    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def cut_short(self) -> str | None:
        """Return an explanation if the file is shorter than its container declares, otherwise None."""
        if self.path is None:
            return None
        declared, actual = declared_size(self.path), self.path.stat().st_size
        if declared is None or declared <= actual:
            return None
        return f"the container spans {declared:,} bytes, the file has {actual:,}"


def decode(medium: Medium) -> tuple[Generator[VideoFrame, None, None], int | None, float | None]:
    """Return a generator of the frames, the declared number of frames, and the declared frames per second.

    The numbers are None if the container does not declare them. Frames are decoded on demand. If the medium is damaged
    or empty, `FrameSourceError` is raised after the last good frame. Closing the generator closes the container.
    """
    with ExitStack() as stack:
        file = None if medium.path is None else stack.enter_context(reading(medium.path))
        container = stack.enter_context(_open_container(medium, file))
        stream = _video_stream(container, medium)
        rate = stream.average_rate or stream.guessed_rate
        pictures = _pictures(container, stream, medium, stack.pop_all())
    return pictures, stream.frames or None, float(rate) if rate else None


def frames_of(
    pictures: Iterable[VideoFrame], shape: tuple[int, int], *, label: str, colour: bool
) -> Generator[Frame, None, None]:
    """Yield pictures as float32 frames, with black 0 and white 1. Raise an error if a picture has the wrong shape."""
    # One reformatter for all frames is four times faster than VideoFrame.reformat, which sets up a scaler for each.
    reformatter = VideoReformatter()
    for index, picture in enumerate(pictures):
        check_shape(upright_shape(picture), shape, index, where=f"{label}: frame {index}")
        deep = picture.format.components[0].bits > 8
        layouts = ("rgb48le", "gray16le") if deep else ("rgb24", "gray")
        pixels = reformatter.reformat(picture, format=layouts[0 if colour else 1]).to_ndarray()
        upright = np.ascontiguousarray(np.rot90(pixels, picture.rotation // 90))
        yield scaled(upright, where=f"{label}: frame {index}")


def upright_shape(picture: VideoFrame) -> tuple[int, int]:
    """Return height and width of a picture as it is shown: phones store upright films as rotated pictures."""
    height, width = picture.height, picture.width
    return (width, height) if picture.rotation % 180 else (height, width)


def _open_container(medium: Medium, file: BinaryIO | None) -> av.container.InputContainer:
    try:
        if file is not None:
            if not os.fstat(file.fileno()).st_size:
                raise FrameSourceError(f"{medium.label} is empty (0 bytes); fetch or record the film again")
            return av.open(file, "r", options={"format_whitelist": _CONTAINERS.replace(" ", ",")})
        return av.open(medium.address, format=medium.format, options=dict(medium.options), timeout=PATIENCE)
    except EOFError as error:
        cause = medium.cut_short() or "it holds 0 frames"
        raise FrameSourceError(f"{medium.label} ends before its first frame ({cause}); fetch it again") from error
    except (av.FFmpegError, ValueError) as error:
        if isinstance(error, FrameSourceError):
            raise
        cause = medium.cut_short() or _reason(error)
        raise FrameSourceError(f"{medium.label} cannot be opened as a video ({cause}); {medium.hint}") from error


def _video_stream(container: av.container.InputContainer, medium: Medium) -> av.VideoStream:
    for stream in container.streams.video:
        # Music files contain their cover as a video stream with one frame.
        if not stream.disposition & av.stream.Disposition.attached_pic:
            if stream.codec_context is None:
                raise FrameSourceError(f"{medium.label}: this libav has no decoder for its video; re-encode the film")
            return stream
    kinds = ", ".join(sorted({stream.type for stream in container.streams})) or "no streams"
    raise FrameSourceError(f"{medium.label} has no video in it (found: {kinds}); give a file with a picture track")


def _pictures(
    container: av.container.InputContainer, stream: av.VideoStream, medium: Medium, opened: ExitStack
) -> Generator[VideoFrame, None, None]:
    """Yield the frames of the stream. Raise `FrameSourceError` after the last one if the stream is damaged or empty."""
    live = medium.path is None
    n_read = 0
    with opened:
        # Frame threads decode many frames ahead, which is faster for films but delays a camera.
        stream.thread_type = "SLICE" if live else "AUTO"
        # Broadcast streams often flag lost packets as corrupt; in a file the flag means a short read.
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
                # Some cameras (AVFoundation) do not block until the next frame, and the error ends the demuxing.
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
                # A recording may begin between two key frames: wait for the next one.
                continue
            for picture in pictures:
                yield picture
                n_read += 1
                cause = None
        if ends_early:
            # Frames that are still in the decoder; after an error inside the film they would be from beyond the gap.
            with suppress(av.FFmpegError):
                for picture in stream.decode(None):
                    yield picture
                    n_read += 1
        cause = medium.cut_short() or cause
    way_out = "open it again, or record it to a file and work with that" if live else "fetch the film again"
    if not n_read:
        cause = cause or "the film has 0 frames"
        raise FrameSourceError(f"{medium.label}: no frame could be decoded ({cause}); {way_out}")
    if cause and live:
        raise FrameSourceError(f"{medium.label} broke off ({cause}): {n_read} frames could be read; {way_out}")
    if cause:
        raise FrameSourceError(
            f"{medium.label} is cut short or damaged ({cause}): {n_read} frames could be read; "
            f"{way_out}, or use stop={n_read} (--frames {n_read}) to work with just these"
        )


def _reason(error: Exception) -> str:
    # libav raises either of these after PATIENCE.
    if isinstance(error, av.error.ExitError | BlockingIOError):
        return f"no data for {PATIENCE:g} seconds"
    if isinstance(error, av.error.ArgumentError):  # libav's answer to a format that is not in `_CONTAINERS`
        return "it is not in a container of films, such as mp4 or mkv"
    return getattr(error, "strerror", None) or str(error)


@dataclass(frozen=True, kw_only=True)
class VideoFilm(Film):
    """Frames of a video file. The number that it declares, ``n_frames``, may be wrong by a few frames."""

    path: Path

    def checksum(self) -> str:
        """Return the sha256 of the file's bytes."""
        return file_checksum(self.path)

    def _read(self, *, colour: bool) -> Generator[Frame, None, None]:
        with closing(decode(_medium(self.path))[0]) as pictures:
            yield from frames_of(pictures, self.shape, label=shown(self.path), colour=colour)


def open_video(path: Path, stop: int | None = None) -> VideoFilm:
    """Open the film in ``path`` and decode its first frame to find its shape."""
    pictures, n_frames, fps = decode(_medium(path))
    with closing(pictures):
        first = next(pictures)
    film = VideoFilm(path=path, name=shown(path.name), shape=upright_shape(first), n_frames=n_frames, fps=fps)
    return film.head(stop)


def _medium(path: Path) -> Medium:
    return Medium(label=shown(path), path=path, hint="is it complete, and is it a film?")


_EBML = b"\x1a\x45\xdf\xa3"
_SEGMENT = b"\x18\x53\x80\x67"


def declared_size(path: Path) -> int | None:
    """Return the size in bytes that a Matroska or WebM file declares, or None. libav does not check this size."""
    with reading(path) as file:
        while identifier := file.read(4):
            length = _vint(file) if identifier in (_EBML, _SEGMENT) else None
            if length is None:  # another container, or a live recording of unknown size
                return None
            if identifier == _SEGMENT:
                return file.tell() + length
            file.seek(length, os.SEEK_CUR)
    return None


def _vint(file: BinaryIO) -> int | None:
    """Read and return a variable-length integer of EBML. Return None for the reserved value "unknown"."""
    first = file.read(1)
    if not first or not first[0]:
        return None
    extra = 8 - first[0].bit_length()
    value = int.from_bytes(first + file.read(extra), "big")
    bits = 7 * (extra + 1)
    value &= (1 << bits) - 1
    return None if value == (1 << bits) - 1 else value
