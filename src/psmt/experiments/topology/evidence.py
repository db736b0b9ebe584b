"""What the film's links say, held against nulls: size first, then how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from psmt.evaluation.missing_numbers import plain
from psmt.evaluation.null_test import Measured
from psmt.types import Result


@dataclass(frozen=True)
class Lasting:
    """How many of a window's links are in windows without a common frame, too."""

    shuffled: Measured
    """The share of links; null: the frames of each window in random order."""
    permuted: Measured
    """The same share; null: the atoms of each window permuted."""
    links: int
    """Of all windows together."""

    @property
    def share(self) -> float:
        """Of the links of a window, those that another one has."""
        return self.shuffled.value

    def summary(self) -> dict[str, Any]:
        """Plain numbers."""
        return {"links": self.links, "shuffled": self.shuffled.summary(), "permuted": self.permuted.summary()}


@dataclass(frozen=True)
class Change:
    """How many of a set's links are in sets of the same time, and of other times."""

    same_time: float
    """Share of links that two sets of one part both have: what the estimate repeats if nothing changes."""
    other_time: float
    """Share of links that sets of two parts both have."""
    dealt: Measured
    """The first less the second; null: blocks dealt out at random."""
    links: int
    """Of all sets together."""

    def summary(self) -> dict[str, Any]:
        """Plain numbers."""
        shares = {"same_time": plain(self.same_time), "other_time": plain(self.other_time)}
        return shares | {"links": self.links, "dealt": self.dealt.summary()}


def measure_lasting(film: Result, nulls: Sequence[Result], *, n_permutations: int, seed: int) -> Lasting:
    """`Lasting` of what `link_sets` returned for the film's windows and for these with shuffled frames."""
    pairs = list(combinations(range(len(film["counts"])), 2))
    value = shared_links(film, pairs)
    rng = np.random.default_rng([seed, 2])
    # A draw without links has none that last.
    shuffled = np.array([np.nan_to_num(shared_links(draw, pairs)) for draw in nulls])
    permuted = [np.nan_to_num(shared_links(permute_atoms(film, rng), pairs)) for _ in range(n_permutations)]
    return Lasting(Measured(value, shuffled), Measured(value, np.array(permuted)), len(film["edges"]))


def measure_change(film: Result, nulls: Sequence[Result]) -> Change:
    """`Change` of what `link_sets` returned for the film's sets and for these with blocks dealt out at random."""
    same_time, other_time = _by_time(film)
    null = np.array([np.nan_to_num(np.subtract(*_by_time(draw))) for draw in nulls])
    return Change(same_time, other_time, Measured(same_time - other_time, null), len(film["edges"]))


def shared_links(links: Result, pairs: Sequence[tuple[int, int]]) -> float:
    """Of the links of two sets, the share that both have, over all pairs together; NaN where there are no links.

    Twice the common links over the links of both (Dice): the share of a window's links that last.
    """
    n_atoms = links["used"].shape[1]
    keys = links["edges"][:, 0].astype(np.int64) * n_atoms + links["edges"][:, 1]
    sets = np.split(keys, np.cumsum(links["counts"])[:-1])
    either = sum(len(sets[i]) + len(sets[j]) for i, j in pairs)
    both = sum(len(np.intersect1d(sets[i], sets[j], assume_unique=True)) for i, j in pairs)
    return 2 * both / either if either else np.nan


def permute_atoms(links: Result, rng: np.random.Generator) -> Result:
    """The links with the atoms of each set permuted, once for all pairs that the set is in.

    Pairs with a common set depend on each other, and do so here too. Only atoms that may have links change places.
    """
    edges = []
    for own, used in zip(np.split(links["edges"], np.cumsum(links["counts"])[:-1]), links["used"], strict=True):
        label = np.arange(len(used))
        label[used] = rng.permutation(np.flatnonzero(used))
        edges.append(np.sort(label[own], axis=1))
    return {**links, "edges": np.concatenate(edges)}


def _by_time(links: Result) -> tuple[float, float]:
    """Shares of links that two sets of one part, and of two parts, both have."""
    every = list(combinations(range(len(links["counts"])), 2))
    same = [(i, j) for i, j in every if i // 2 == j // 2]
    other = [(i, j) for i, j in every if i // 2 != j // 2]
    return shared_links(links, same), shared_links(links, other)
