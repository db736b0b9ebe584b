"""Whether links stay: what the graphs of two windows have in common, near and far in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics import adjusted_rand_score

from psmt.experiments.topology.scalars import nan_mean, plain
from psmt.types import Array, Ints, Result

_PAIRS_AT_ONCE = 1 << 18
"""Links that are looked up together in the permutations."""


@dataclass(frozen=True)
class Overlap:
    """How much the graphs of pairs of windows have in common, on average over the pairs."""

    frames_apart: float
    frames_shared: float
    """Share of a window's frames that the other window has too, on average."""
    jaccard: float
    """Links in both graphs, of those in either; NaN where no pair has any."""
    permuted: float
    """The same with the labels of the later window's used atoms permuted."""
    p_value: float
    """(1 + number of permutations that have at least as much in common) / (1 + n_permutations)."""
    adjusted_rand: float
    """Agreement of the components, over the atoms that are linked in either window; 0 is chance."""

    def summary(self) -> dict[str, Any]:
        """Plain numbers."""
        return {name: plain(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class Persistence:
    """What stays of the graph as time goes on."""

    successive: Overlap
    distant: Overlap
    """Pairs of windows without a common frame, or where there are none, the quarter of all lags that is longest."""
    lags: Ints
    """(n_lags,) in frames."""
    jaccard: Array
    """(n_lags,): mean over all pairs of windows that far apart."""
    always_linked: int
    sometimes_linked: int
    never_linked: int
    """Atoms, of those that are used in any window, that have a neighbour in all, some or none of the windows."""

    def summary(self) -> dict[str, Any]:
        """Plain numbers."""
        return {
            "successive": self.successive.summary(),
            "distant": self.distant.summary(),
            "always_linked": self.always_linked,
            "sometimes_linked": self.sometimes_linked,
            "never_linked": self.never_linked,
        }


def measure_persistence(
    graphs: Sequence[Result], starts: Ints, *, window: int, n_permutations: int, seed: int
) -> Persistence:
    """`Persistence` of the graphs of windows that begin at `starts`."""
    n_windows, n_atoms = len(graphs), len(graphs[0]["used"])
    in_common, counts = _common_edges(graphs)
    in_either = counts[:, None] + counts[None, :] - in_common
    jaccard = np.divide(in_common, in_either, out=np.full(in_common.shape, np.nan), where=in_either > 0)
    by_lag = [np.diagonal(jaccard, lag) for lag in range(1, n_windows)]
    step = int(starts[1] - starts[0])
    lags = step * np.arange(1, n_windows)
    disjoint = np.flatnonzero(lags >= window)
    far = int(disjoint[0]) + 1 if disjoint.size else n_windows - max(1, (n_windows - 1) // 4)
    successive = [(i, i + 1) for i in range(n_windows - 1)]
    distant = [(i, j) for i in range(n_windows) for j in range(i + far, n_windows)]
    seeds = np.random.SeedSequence(seed).spawn(2)

    def overlap(pairs: list[tuple[int, int]], entropy: np.random.SeedSequence) -> Overlap:
        # A few pairs spread over all of them are enough for the permutations, and keep their cost bounded.
        kept = [pairs[i] for i in np.unique(np.linspace(0, len(pairs) - 1, min(len(pairs), 64)).astype(int))]
        apart = np.array([starts[j] - starts[i] for i, j in kept])
        actual = nan_mean(np.array([jaccard[pair] for pair in kept]))
        permuted = _permuted_jaccard(graphs, kept, n_atoms, n_permutations, np.random.default_rng(entropy))
        at_least = np.count_nonzero(permuted >= actual)
        return Overlap(
            frames_apart=float(apart.mean()),
            frames_shared=float(np.maximum(window - apart, 0).mean() / window),
            jaccard=actual,
            permuted=nan_mean(permuted),
            p_value=(1 + int(at_least)) / (1 + n_permutations) if np.isfinite(actual) else float("nan"),
            adjusted_rand=nan_mean(np.array([_component_agreement(graphs[i], graphs[j]) for i, j in kept])),
        )

    linked = np.array([graph["neighbours"] > 0 for graph in graphs])
    used = np.logical_or.reduce([graph["used"] for graph in graphs])
    always, ever = linked.all(axis=0), linked.any(axis=0)
    return Persistence(
        successive=overlap(successive, seeds[0]),
        distant=overlap(distant, seeds[1]),
        lags=lags,
        jaccard=np.array([nan_mean(values) for values in by_lag]),
        always_linked=int(always.sum()),
        sometimes_linked=int((ever & ~always).sum()),
        never_linked=int((used & ~ever).sum()),
    )


def _common_edges(graphs: Sequence[Result]) -> tuple[Array, Array]:
    """Edges that each two windows share (n_windows, n_windows), and edges of each window."""
    n_atoms = len(graphs[0]["used"])
    keys = [graph["edges"][:, 0].astype(np.int64) * n_atoms + graph["edges"][:, 1] for graph in graphs]
    counts = np.array([len(key) for key in keys])
    _, edge = np.unique(np.concatenate(keys), return_inverse=True)
    window = np.repeat(np.arange(len(graphs)), counts)
    has = csr_array((np.ones(len(edge)), (window, edge)), shape=(len(graphs), int(edge.max(initial=-1)) + 1))
    return (has @ has.T).toarray(), counts.astype(np.float64)


def _permuted_jaccard(
    graphs: Sequence[Result], pairs: list[tuple[int, int]], n_atoms: int, n_permutations: int, rng: np.random.Generator
) -> Array:
    """Mean over the pairs (n_permutations,) with the labels of the later window's used atoms permuted."""
    values = np.full((len(pairs), n_permutations), np.nan)
    for row, (i, j) in enumerate(pairs):
        earlier, later = graphs[i]["edges"], graphs[j]["edges"]
        if len(earlier) + len(later) == 0:
            continue
        linked = np.zeros((n_atoms, n_atoms), dtype=bool)
        linked[earlier[:, 0], earlier[:, 1]] = linked[earlier[:, 1], earlier[:, 0]] = True
        used = np.flatnonzero(graphs[j]["used"])
        ends = np.searchsorted(used, later)
        # As many at once as fit into a few megabytes.
        at_once = max(1, _PAIRS_AT_ONCE // max(len(later), 1))
        for first in range(0, n_permutations, at_once):
            part = slice(first, min(first + at_once, n_permutations))
            label = rng.permuted(np.tile(used, (part.stop - first, 1)), axis=1)
            common = np.count_nonzero(linked[label[:, ends[:, 0]], label[:, ends[:, 1]]], axis=1)
            values[row, part] = common / (len(earlier) + len(later) - common)
    return np.array([nan_mean(column) for column in values.T])


def _component_agreement(earlier: Result, later: Result) -> float:
    # Atoms that are alone in both windows would agree by themselves and drown the rest.
    atoms = (earlier["neighbours"] > 0) | (later["neighbours"] > 0)
    if np.count_nonzero(atoms) < 2:
        return float("nan")
    return float(adjusted_rand_score(earlier["component"][atoms], later["component"][atoms]))
