"""Writer of films as MP4 files. After an error, no incomplete file is left."""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import cast

import av
import numpy as np
from numpy.typing import NDArray

from psmt.errors import PSMTError
from psmt.utils.files import reading, writing

Picture = NDArray[np.uint8]

# The encoder that most players support comes first. PyAV may be built without some of them.
_ENCODERS: dict[str, dict[str, str]] = {
    "libx264": {"crf": "18", "preset": "veryfast"},
    "libopenh264": {"b": "8M"},
    "mpeg4": {"qscale": "3"},
}


@contextmanager
def writing_film(path: str | os.PathLike[str], *, fps: float | None = None) -> Iterator[Callable[[Picture], None]]:
    """Open a film for writing, as a context manager. It yields a function that adds an RGB picture (height, width, 3).

    The film is an MP4 file, whatever the suffix of `path`. The default `fps` is 25. The first picture defines the size.
    H.264 needs an even height and width. If one of them is odd, the last row or column is repeated. The file appears
    when the context ends. After an error no file is left.
    """
    name = encoder()
    rate = Fraction(fps or 25).limit_denominator(1001)
    # PyAV would write under the final name; a file object is written under a temporary one.
    with writing(Path(path)) as file, _as_os_error(), av.open(file, mode="w", format="mp4") as container:
        stream = cast(av.VideoStream, container.add_stream(name, rate=rate, options=_ENCODERS[name]))
        stream.pix_fmt = "yuv420p"
        begun = False

        def add(picture: Picture) -> None:
            nonlocal begun
            even = np.pad(picture, [(0, picture.shape[0] % 2), (0, picture.shape[1] % 2), (0, 0)], mode="edge")
            if not begun:
                stream.height, stream.width = even.shape[:2]
                begun = True
            for packet in stream.encode(av.VideoFrame.from_ndarray(even, format="rgb24")):
                container.mux(packet)

        yield add
        if begun:
            for packet in stream.encode():
                container.mux(packet)


@contextmanager
def _as_os_error() -> Iterator[None]:
    """Context manager that turns errors of PyAV, for example because the disk is full, into OSError."""
    try:
        yield
    except av.FFmpegError as error:
        if isinstance(error, OSError):
            raise
        # PyAV loses the reason of an error that the file object raised inside it.
        raise OSError(errno.EIO, f"the film cannot be written ({error.strerror}); is the disk full?") from error


def encoder() -> str:
    """Return the name of the first encoder in `_ENCODERS` that this build of PyAV has."""
    for name in _ENCODERS:
        try:
            av.codec.Codec(name, "w")
        except av.codec.codec.UnknownCodecError:
            continue
        return name
    raise PSMTError(f"this build of PyAV cannot write films: it has none of {', '.join(_ENCODERS)}; reinstall av")


@contextmanager
def joining_films(parts: Sequence[Path], path: str | os.PathLike[str]) -> Iterator[None]:
    """Concatenate films by copying their packets, without encoding them again. This is a context manager.

    `writing_film` must have written all parts, with the same size and rate. The film appears at `path` when the context
    ends, unless an error occurred in it.
    """
    # Packets are decoded some ticks before they are shown. All parts get the longest of these leads.
    lead = max(map(_lead, parts))
    with writing(path) as file:
        with _as_os_error(), av.open(file, mode="w", format="mp4") as joined:
            stream: av.VideoStream | None = None
            shift = 0
            for part in parts:
                with reading(part) as content, av.open(content, "r") as container:
                    own = container.streams.video[0]
                    stream = stream or joined.add_stream_from_template(own)
                    first = shift
                    for packet in container.demux(own):
                        if packet.pts is None or packet.duration is None:  # the end
                            continue
                        packet.pts, packet.dts, packet.stream = first + packet.pts, shift - lead, stream
                        shift += packet.duration
                        joined.mux(packet)
        yield


def _lead(part: Path) -> int:
    """Return the delay, in ticks of the stream, between decoding the first packet of a film and showing it."""
    with reading(part) as content, av.open(content, "r") as container:
        first = next(container.demux(video=0))
        return cast(int, first.pts) - cast(int, first.dts)
