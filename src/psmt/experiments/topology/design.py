"""Which frames the tests compare, and the null models of each test.

The film is divided into parts without a common frame, spread over its whole length. Two questions are tested:

- *Do links last?* The windows of different parts are compared. Null model: the frames of each window in random order.
  Which atoms are active together is kept; how they move is lost.
- *Do links change?* Each part is split into two sets, block by block in turn. Two sets of one part are of the same
  time, sets of two parts are not. Null model: pairs of neighbouring blocks, one block of each set, are dealt out to
  the parts at random. How atoms move is kept; when they moved is lost. Pairs stay together because neighbouring blocks
  depend on each other where they meet. Dealt out one by one, sets of one part would be more alike in the film than
  in the null model even if nothing changes (p <= 0.05 in 15 of 100 films with constant clusters; with pairs, in 4).

Both tests are exact: if the order of frames, or of pairs, has no effect, the film is exchangeable with the draws.
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
"""Parts of a long film: more would cost more than they add."""

FORGOTTEN = np.exp(-1)
"""The memory of codes ends at the lag at which their autocorrelation falls below this."""

BLOCK_MEMORIES, MIN_BLOCK, MIN_BLOCKS = 4, 16, 4
"""Length of a block in memories, so that blocks depend little on each other; its least number of frames; and the least
number of blocks in a set."""


@dataclass(frozen=True)
class Design:
    """Frames that are compared with each other."""

    windows: Ints
    """(n_parts, n_frames): the window of each part, no frame in two of them."""
    sets: Ints
    """(2 n_parts, n_frames): the two sets of each part one after the other; (0, 0) if a part has too few blocks."""
    block: int
    """Frames in a block of `sets`."""
    memory: int
    """Memory of the codes in frames, at most the number that leaves a part too few blocks."""

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

    def summary(self) -> dict[str, Any]:
        """Values for JSON."""
        return {
            "windows": self.windows[:, 0].tolist(),
            "window": self.windows.shape[1],
            "set": self.sets.shape[1],
            "block": self.block,
            "memory": self.memory,
        }


def _memory(codes: csr_array, parts: Ints) -> int:
    """Memory of the codes (time, n_atoms) of the parts, in frames; at most one more than the longest that is usable."""
    length = int(parts.shape[1])
    pieces = [csr_array(codes[part]) for part in parts]
    # About the mean of each part: an atom that is active in only one part is change, not memory.
    squared_means = sum(float(np.sum(piece.mean(axis=0) ** 2)) for piece in pieces)

    def covariance(lag: int) -> float:
        products = sum(float(piece[: length - lag].multiply(piece[lag:]).sum()) for piece in pieces)
        return products / (length - lag) - squared_means

    variance = covariance(0)
    too_long = length // (2 * MIN_BLOCKS * BLOCK_MEMORIES) + 1
    return next((lag for lag in range(1, too_long) if covariance(lag) < FORGOTTEN * variance), too_long)
