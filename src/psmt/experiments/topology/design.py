"""Which frames are held against which, and the films without the claimed effect (nulls) that go with them.

Parts of the film, spread over its whole length, have no frame in common. Two things are asked of them:

- *Do links last?* The window of each part is compared with those of the others. Null: the frames of each window in
  random order. Which atoms are active together stays, how they move is lost.
- *Do links change?* Each part is dealt out to two sets, block by block in turn, as one deals cards. Sets of one part
  are of the same time, sets of two parts are not. Null: the pairs of neighbouring blocks, one of each set, are dealt
  out to the parts at random. How atoms move stays, when they did is lost. Pairs stay together because neighbours
  depend on each other where they meet: dealt out one by one, sets of one part would be alike in the film and not in
  the null, whether anything changes or not (15 of 100 films whose clusters stay had p <= 0.05; of pairs, 4).

Both nulls are exact: on a film in which the order of frames, or of pairs, means nothing, the film is one more draw.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from psmt.experiments.coding_tasks import unpack_codes
from psmt.experiments.topology.settings import TopologySettings
from psmt.types import Ints, Result

MAX_PARTS = 4
"""Parts of a long film: more would cost more than they tell."""

FORGOTTEN = np.exp(-1)
"""Codes have forgotten what was a time ago when their correlation with it is below this."""

BLOCK_MEMORIES, MIN_BLOCK, MIN_BLOCKS = 4, 16, 4
"""A block lasts so many times as codes remember, so that blocks depend little on each other, and at least so many
frames; a set has so many blocks at the least, or there is little to deal."""


@dataclass(frozen=True)
class Design:
    """Frames that are compared with each other."""

    windows: Ints
    """(n_parts, n_frames): the window of each part, no frame in two of them."""
    sets: Ints
    """(2 n_parts, n_frames): the two sets of each part one after the other; (0, 0) where a part has too few blocks."""
    block: int
    """Frames in a block of `sets`."""
    memory: int
    """Frames after which codes have forgotten, or so many that a part has too few blocks."""

    @classmethod
    def of(cls, codes: Result, settings: TopologySettings) -> Design:
        """The design for a film's packed codes."""
        n_frames = len(codes["offsets"]) - 1
        n_parts = int(np.clip(n_frames // (2 * settings.window), 2, MAX_PARTS))
        length = min(n_frames // n_parts, 2 * settings.window)
        starts = np.linspace(0, n_frames - length, n_parts).astype(np.int64)
        parts = starts[:, None] + np.arange(length)
        memory = _memory(unpack_codes(**codes, n_atoms=settings.n_atoms), parts)
        block = max(MIN_BLOCK, BLOCK_MEMORIES * memory)
        per_set = length // (2 * block)
        sets = np.zeros((0, 0), dtype=np.int64)
        if per_set >= MIN_BLOCKS:
            # (part, block, set, frame) -> (part, set, block, frame): blocks go to the two sets in turn.
            blocks = parts[:, : 2 * per_set * block].reshape(n_parts, per_set, 2, block)
            sets = blocks.transpose(0, 2, 1, 3).reshape(2 * n_parts, per_set * block)
        return cls(windows=parts[:, : settings.window], sets=sets, block=block, memory=memory)

    @property
    def apart(self) -> int:
        """Frames from the beginning of one part to that of the next."""
        return int(self.windows[1, 0] - self.windows[0, 0])

    def summary(self) -> dict[str, Any]:
        """Plain numbers."""
        return {
            "windows": self.windows[:, 0].tolist(),
            "window": self.windows.shape[1],
            "set": self.sets.shape[1],
            "block": self.block,
            "memory": self.memory,
        }

    def shuffled(self, count: int, seed: int) -> Iterator[Ints]:
        """`windows`, `count` times with the frames of each in random order."""
        rng = np.random.default_rng([seed, 0])
        return (rng.permuted(self.windows, axis=1) for _ in range(count))

    def dealt(self, count: int, seed: int) -> Iterator[Ints]:
        """`sets`, `count` times with all pairs of neighbouring blocks dealt out at random."""
        rng = np.random.default_rng([seed, 1])
        n_parts = len(self.sets) // 2
        # (part, set, block, frame) -> (pair, set, frame), and back.
        pairs = self.sets.reshape(n_parts, 2, -1, self.block).swapaxes(1, 2).reshape(-1, 2, self.block)
        for _ in range(count):
            dealt = rng.permutation(pairs).reshape(n_parts, -1, 2, self.block)
            yield dealt.swapaxes(1, 2).reshape(self.sets.shape)


def _memory(codes: csr_array, parts: Ints) -> int:
    """Frames after which the codes (time, n_atoms) of the parts have forgotten; no more than would still do."""
    length = int(parts.shape[1])
    pieces = [csr_array(codes[part]) for part in parts]
    # About the mean of each part: that an atom is active in one part and not in another is change, not memory.
    squared_means = sum(float(np.sum(piece.mean(axis=0) ** 2)) for piece in pieces)

    def covariance(lag: int) -> float:
        products = sum(float(piece[: length - lag].multiply(piece[lag:]).sum()) for piece in pieces)
        return products / (length - lag) - squared_means

    variance = covariance(0)
    too_long = length // (2 * MIN_BLOCKS * BLOCK_MEMORIES) + 1
    return next((lag for lag in range(1, too_long) if covariance(lag) < FORGOTTEN * variance), too_long)
