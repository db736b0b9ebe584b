"""Tests of the links between atoms: do they last, do clusters change, and do linked atoms look alike?

- *Do links last?* The film is divided into parts without a common frame, and the links in a window of each part are
  compared. Null model: the frames of each window in random order. This keeps which atoms are active together, but not
  how they move.
- *Do clusters change?* The film is cut into blocks with gaps between them. The similarities of atoms in all blocks
  before a time are compared with those in all blocks after it. Null model: the blocks in random order. This keeps how
  atoms move, but not when. Similarities are compared instead of links, because links are noisier: they depend only on
  the few cosines near the threshold.

Both tests are exact if the order of frames, or of blocks, has no effect. The gaps make blocks nearly independent, as
the test requires: on films with constant clusters and slow activity, p <= 0.05 in 6 of 120 films with gaps, but in 87
of 320 without.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from psmt.evaluation.null_models import NullTest
from psmt.experiments.film_tasks import unpack_codes
from psmt.experiments.topology.settings import TopologySettings
from psmt.types import Array, Ints, Result

MAX_PARTS = 4
"""Largest number of parts that a film is divided into."""

BLOCK_MEMORIES, GAP_MEMORIES, MIN_BLOCK = 4, 2, 16
"""Smallest block and gap between blocks, as multiples of the memory of codes; and smallest block in frames."""

MIN_BLOCKS, MAX_BLOCKS = 12, 24
"""Bounds on the number of blocks. Fewer blocks have too few different orders. More blocks would only be shorter."""


@dataclass(frozen=True)
class Design:
    """Indices of the frames that the tests compare."""

    windows: Ints
    """(n_parts, n_frames): frames of the window of each part. No frame is in two windows."""
    blocks: Ints
    """(n_blocks, n_frames): frames of each block, in order of time. The shape is (0, 0) if there are too few blocks."""
    splits: Ints
    """(n_splits,): number of blocks before each time that is tried. It is half of all blocks, and in a long film also a
    quarter and three quarters."""
    memory: int
    """Memory of the codes in frames. It is not larger than the smallest memory with which there are too few blocks."""

    @classmethod
    def of(cls, codes: Result, settings: TopologySettings) -> Self:
        """Return the frames that the tests compare in the film with these `codes` (packed by `pack_codes`)."""
        n_frames = len(codes["offsets"]) - 1
        n_parts = int(np.clip(n_frames // (2 * settings.window), 2, MAX_PARTS))
        length = min(n_frames // n_parts, 2 * settings.window)
        starts = np.linspace(0, n_frames - length, n_parts).astype(np.int64)
        windows = starts[:, None] + np.arange(min(length, settings.window))
        halves = np.arange(2 * (n_frames // 2)).reshape(2, -1)
        memory = _memory(unpack_codes(codes, settings.n_atoms), halves)
        gap = GAP_MEMORIES * memory
        n_blocks = min(MAX_BLOCKS, n_frames // (max(MIN_BLOCK, BLOCK_MEMORIES * memory) + gap))
        blocks, stride = np.zeros((0, 0), dtype=np.int64), n_frames // max(n_blocks, 1)
        if n_blocks >= MIN_BLOCKS:
            blocks = stride * np.arange(n_blocks)[:, None] + np.arange(stride - gap)
        quarters = np.array([2, 1, 3] if n_parts == MAX_PARTS else [2])
        return cls(windows=windows, blocks=blocks, splits=quarters * n_blocks // 4, memory=memory)

    def shuffled(self, count: int, seed: int) -> Iterator[Ints]:
        """Yield `count` copies of `windows`, each with the frames of every window in random order."""
        rng = np.random.default_rng([seed, 0])
        return (rng.permuted(self.windows, axis=1) for _ in range(count))

    def reordered(self, count: int, seed: int) -> Iterator[Ints]:
        """Yield `count` copies of `blocks`, each with the blocks in random order."""
        rng = np.random.default_rng([seed, 1])
        return (rng.permutation(self.blocks) for _ in range(count))

    def summary(self) -> dict[str, Any]:
        """Return the numbers for summary.json."""
        return {
            "windows": self.windows[:, 0].tolist(),
            "window": self.windows.shape[1],
            "blocks": len(self.blocks),
            "block": self.blocks.shape[1],
            "memory": self.memory,
        }


def _memory(codes: csr_array, parts: Ints) -> int:
    """Return the memory of codes (time, n_atoms): the lag in frames at which the autocorrelation is below 1/e.

    Codes are centred in each of the `parts` (n_parts, n_frames), given by indices of frames. Only lags with which the
    film has enough blocks are tried. If the memory is longer than these, the next larger lag is returned.
    """
    length = int(parts.shape[1])
    pieces = [csr_array(codes[part]) for part in parts]
    # Codes are centred in each part, because an atom that is active in only one part is change, not memory.
    squared_means = sum(float(np.sum(piece.mean(axis=0) ** 2)) for piece in pieces)

    def covariance(lag: int) -> float:
        products = sum(float(piece[: length - lag].multiply(piece[lag:]).sum()) for piece in pieces)
        return products / (length - lag) - squared_means

    variance = covariance(0)
    too_long = length * len(parts) // (MIN_BLOCKS * (BLOCK_MEMORIES + GAP_MEMORIES)) + 1
    return next((lag for lag in range(1, too_long) if covariance(lag) < np.exp(-1) * variance), too_long)


LEAST = 0.05
"""Smallest effect that counts, compared with the null model: 5 links in 100, or a correlation of 0.05."""

LEAST_LOST = 0.1
"""Smallest change that counts: 10% less agreement of similarities before and after a time than in the null model."""

LEAST_REPEATED = 0.2
"""Smallest correlation of similarities between blocks in random order with which a change can be measured. Below it,
similarities are mostly noise."""


@dataclass(frozen=True)
class SimilarityChange:
    """A test whether similarities of atoms change at some time. Agreement is their correlation over pairs of atoms."""

    frame: int
    """The first frame after the split at which the similarities before and after agree least."""
    across: float
    """Agreement between the blocks before and after `frame`, or 0 if it is negative."""
    repeated: float
    """Mean agreement with blocks in random order: how well similarities repeat if time has no effect."""
    reordered: NullTest
    """Test of the share of agreement that is lost at `frame`, with blocks in random order as the null model."""


@dataclass(frozen=True)
class LinkPersistence:
    """The fraction of links that two windows without a common frame share, and tests of it."""

    links: int
    """Number of links of all windows."""
    shuffled: NullTest
    """Test of `share` against the null model with the frames of each window in random order."""
    permuted: NullTest
    """Test of `share` against the null model with the atoms of each window permuted."""

    @property
    def share(self) -> float:
        """The fraction of links that two windows share, over all pairs of windows (see `shared_links`)."""
        return self.shuffled.value


def measure_change(film: Result, nulls: Sequence[Result], design: Design) -> SimilarityChange:
    """Test whether the similarities of atoms change over time.

    `film` and `nulls` are results of `compare_times` for the film and for blocks in random order. The statistic is the
    largest share of agreement that is lost at any time.
    """
    across = np.maximum(film["agreement"], 0.0)
    draws = np.maximum([draw["agreement"] for draw in nulls], 0.0)
    repeated = draws.mean(axis=0)
    known = repeated >= LEAST_REPEATED
    lost, null = (np.where(known, 1 - found / np.where(known, repeated, 1.0), -np.inf) for found in (across, draws))
    k = int(np.argmax(lost)) if known.any() else 0
    test = NullTest(float(lost[k]), null.max(axis=1)) if known.any() else NullTest(np.nan, draws[:, 0])
    return SimilarityChange(int(design.blocks[design.splits[k], 0]), float(across[k]), float(repeated[k]), test)


def measure_lasting(film: Result, nulls: Sequence[Result], *, n_permutations: int, seed: int) -> LinkPersistence:
    """Test whether links last. `film` and `nulls` are results of `link_sets` for the film and for shuffled frames."""
    pairs = list(combinations(range(len(film["counts"])), 2))
    value = shared_links(film, pairs)
    rng = np.random.default_rng([seed, 2])
    # In a draw without links, no link lasts.
    shuffled = np.array([np.nan_to_num(shared_links(draw, pairs)) for draw in nulls])
    permuted = [np.nan_to_num(shared_links(_permute_atoms(film, rng), pairs)) for _ in range(n_permutations)]
    return LinkPersistence(len(film["edges"]), NullTest(value, shuffled), NullTest(value, np.array(permuted)))


def shared_links(links: Result, pairs: Sequence[tuple[int, int]]) -> float:
    """Return the Dice coefficient of links: 2 * (links in both sets of a pair) / (links in one + links in the other).

    The counts are summed over all `pairs` of sets of frames in `links`, a result of `link_sets`. NaN without links.
    """
    keys = links["edges"][:, 0].astype(np.int64) * links["used"].shape[1] + links["edges"][:, 1]
    sets = np.split(keys, np.cumsum(links["counts"])[:-1])
    either = sum(len(sets[i]) + len(sets[j]) for i, j in pairs)
    both = sum(len(np.intersect1d(sets[i], sets[j], assume_unique=True)) for i, j in pairs)
    return 2 * both / either if either else np.nan


def _permute_atoms(links: Result, rng: np.random.Generator) -> Result:
    """Return the links after a random permutation of the atoms that may have links, drawn for each set of frames."""
    edges = []
    for own, used in zip(np.split(links["edges"], np.cumsum(links["counts"])[:-1]), links["used"], strict=True):
        label = np.arange(len(used))
        label[used] = rng.permutation(np.flatnonzero(used))
        edges.append(np.sort(label[own], axis=1))
    return {**links, "edges": np.concatenate(edges)}


@dataclass(frozen=True)
class Likeness:
    """Mean correlations of the pixels of linked and of unlinked pairs of atoms, and tests of the difference."""

    linked: float
    """Mean likeness of linked pairs, each counted once per window in which it is linked, or NaN without links."""
    unlinked: float
    """Mean likeness of the pairs that are never linked, among atoms that may have links."""
    permuted: NullTest
    """Test of linked minus unlinked. Null model: pictures of the atoms permuted, graphs unchanged."""
    shuffled: NullTest
    """Test of linked minus unlinked. Null model: links of frames in random order."""


def picture_likeness(atoms: Array) -> Array:
    """Return the correlations (n_atoms, n_atoms) of all pairs of atoms (n_atoms, n_features), pixel by pixel."""
    with np.errstate(divide="ignore", invalid="ignore"):  # a constant atom correlates with none
        return np.asarray(np.nan_to_num(np.corrcoef(atoms)))


def measure_likeness(
    likeness: Array, film: Result, nulls: Sequence[Result], *, n_permutations: int, seed: int
) -> Likeness:
    """Test whether the pixels of linked atoms correlate more than those of unlinked atoms.

    `likeness` (n_atoms, n_atoms) is the result of `picture_likeness`. `film` and `nulls` are results of `link_sets` for
    the film and for shuffled frames. A second test permutes the pictures of those atoms that may have links.
    """
    pairs = _LinkedPairs(likeness, film)
    linked, unlinked = pairs.means()
    rng = np.random.default_rng(seed)
    # In a draw without links, no linked pictures are alike.
    permuted = [np.nan_to_num(np.subtract(*pairs.means(rng))) for _ in range(n_permutations)]
    shuffled = [np.nan_to_num(np.subtract(*_LinkedPairs(likeness, draw).means())) for draw in nulls]
    tests = [NullTest(linked - unlinked, np.array(null)) for null in (permuted, shuffled)]
    return Likeness(linked, unlinked, *tests)


class _LinkedPairs:
    """Correlations of the pictures of all pairs of atoms that may have links, and how often each pair is linked."""

    def __init__(self, likeness: Array, links: Result) -> None:
        atoms = np.flatnonzero(links["used"].any(axis=0))
        self.alike = likeness[np.ix_(atoms, atoms)].astype(np.float32)
        found, self.times = np.unique(links["edges"], axis=0, return_counts=True)
        self.first, self.second = np.searchsorted(atoms, found).reshape(-1, 2).T
        self.count = len(atoms) * (len(atoms) - 1) // 2
        self.total = (float(self.alike.sum(dtype=np.float64)) - float(np.trace(self.alike))) / 2

    def means(self, rng: np.random.Generator | None = None) -> tuple[float, float]:
        """Return the mean correlation of linked and of unlinked pairs. With an `rng`, pictures are permuted first."""
        order = np.arange(len(self.alike)) if rng is None else rng.permutation(len(self.alike))
        pairs = self.alike[order[self.first], order[self.second]].astype(np.float64)
        n_unlinked = self.count - len(pairs)
        linked = float(pairs @ self.times / self.times.sum()) if len(pairs) else np.nan
        return linked, (self.total - float(pairs.sum())) / n_unlinked if n_unlinked else np.nan
