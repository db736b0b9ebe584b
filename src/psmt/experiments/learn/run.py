"""Learning a prior from films that are given, or from those that the package makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from psmt.data import open_frames
from psmt.experiments.learn.films import built_in_films
from psmt.types import Levels
from psmt.video import FrameReader, Prior, learn_prior


def learn_from(films: Sequence[str], out: Path, *, size: int, frames: int) -> Prior:
    """Write the prior of films to the file `out`, and return it; without any film that of the package is made again."""
    prior = learn_prior(_read(films, size, frames) if films else built_in_films())
    prior.save(out)
    return prior


def _read(films: Sequence[str], size: int, frames: int) -> Iterator[Iterator[Levels]]:
    """Yield the films one by one, each as its frames (height, width): none is held, however long it is."""
    reader = FrameReader(size)
    for spec in films:
        yield (frame.luma for frame in islice(reader.read(open_frames(spec, stop=frames)), frames))
