"""`psmt learn`: a prior for `FramePredictor`, learned from films."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from psmt.data import open_frames
from psmt.types import Levels, Progress, silent
from psmt.video import FrameReader, Prior, learn_prior, luma


def learn_from(films: Sequence[str], out: Path, *, size: int, frames: int, progress: Progress = silent) -> Prior:
    """Learn a prior from films, write it to the file `out`, and return it. No film is held in memory."""
    reader = FrameReader(size)

    def read() -> Iterator[Iterator[Levels]]:
        for done, spec in enumerate(films):
            progress("films", done, len(films))
            yield (luma(frame) for frame in islice(reader.read(open_frames(spec, stop=frames)), frames))
        progress("films", len(films), len(films))

    prior = learn_prior(read())
    prior.save(out)
    return prior
