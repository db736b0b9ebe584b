"""Films in any container that libav opens."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from psmt.data.contract import Film, Opener, file_checksum
from psmt.data.pixels import Frame
from psmt.data.readers.decoding import Medium, decode, frames_of
from psmt.errors import FrameSourceError

__all__ = ["VIDEO", "VideoFilm", "open_video"]


@dataclass(frozen=True, kw_only=True)
class VideoFilm(Film):
    """The frames of a video file. Made by `open_video`.

    Grey frames are the luma of the film with black at 0 and white at 1. ``n_frames`` is what the container
    declares; healthy films may hold a few frames more or less.
    """

    path: Path

    def checksum(self) -> str:
        """Return the sha256 of the file's bytes."""
        return file_checksum(self.path)

    def _read(self, *, colour: bool) -> Generator[Frame, None, None]:
        with closing(decode(_medium(self.path)).pictures) as pictures:
            yield from frames_of(pictures, self.shape, label=str(self.path), colour=colour)


def open_video(path: Path, stop: int | None = None) -> VideoFilm:
    """Return the film in ``path`` after decoding its first frame."""
    if path.stat().st_size == 0:
        raise FrameSourceError(f"{path} is empty (0 bytes); fetch or record the film again")
    pictures, n_frames, fps = decode(_medium(path))
    with closing(pictures):
        first = next(pictures)
    film = VideoFilm(path=path, name=path.name, shape=(first.height, first.width), n_frames=n_frames, fps=fps)
    return film.head(stop)


def _medium(path: Path) -> Medium:
    # The absolute path keeps libav from reading a colon in a name as a protocol.
    return Medium(label=str(path), address=str(path.absolute()), path=path, hint="is it complete, and is it a film?")


VIDEO: Opener[VideoFilm] = Opener(lambda spec: isinstance(spec, Path) and not spec.is_dir(), open_video)
