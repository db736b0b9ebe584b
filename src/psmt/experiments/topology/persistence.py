"""How many links stay as the window slides on. Told, not tested: neighbouring windows are nearly the same frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from psmt.evaluation.missing_numbers import plain
from psmt.types import Array, Ints, Result

_BLOCK = 64
"""Windows that are held against all others at a time."""


@dataclass(frozen=True)
class Persistence:
    """What stays of the graph as time goes on."""

    lags: Ints
    """(n_lags,) in frames."""
    shared: Array
    """(n_lags,): of the links of two windows that far apart, the share that both have; NaN where there are none."""
    always_linked: int
    sometimes_linked: int
    never_linked: int
    """Atoms, of those that may have links in any window, that have them in all, some or none of the windows."""

    def summary(self) -> dict[str, Any]:
        """Plain numbers."""
        return {
            "lags": self.lags.tolist(),
            "shared": [plain(share) for share in self.shared],
            "always_linked": self.always_linked,
            "sometimes_linked": self.sometimes_linked,
            "never_linked": self.never_linked,
        }


def measure_persistence(graphs: Sequence[Result], starts: Ints) -> Persistence:
    """`Persistence` of the graphs of windows that begin at `starts`, equally far from each other."""
    in_common, counts = _common_edges(graphs)
    lags = np.arange(1, len(graphs))
    sums = np.array([(2 * in_common[lag], counts[lag:].sum() + counts[:-lag].sum()) for lag in lags])
    linked = np.array([graph["neighbours"] > 0 for graph in graphs])
    used = np.logical_or.reduce([graph["used"] for graph in graphs])
    always, ever = linked.all(axis=0), linked.any(axis=0)
    return Persistence(
        lags=int(starts[1] - starts[0]) * lags,
        shared=np.divide(sums[:, 0], sums[:, 1], out=np.full(len(sums), np.nan), where=sums[:, 1] > 0),
        always_linked=int(always.sum()),
        sometimes_linked=int((ever & ~always).sum()),
        never_linked=int((used & ~ever).sum()),
    )


def _common_edges(graphs: Sequence[Result]) -> tuple[Array, Array]:
    """Edges that windows share with those so many later, summed (n_windows,); and edges of each window."""
    n_atoms = len(graphs[0]["used"])
    keys = [graph["edges"][:, 0].astype(np.int64) * n_atoms + graph["edges"][:, 1] for graph in graphs]
    counts = np.array([len(key) for key in keys])
    _, edge = np.unique(np.concatenate(keys), return_inverse=True)
    window = np.repeat(np.arange(len(graphs)), counts)
    has = csr_array((np.ones(len(edge)), (window, edge)), shape=(len(graphs), int(edge.max(initial=-1)) + 1))
    in_common = np.zeros(len(graphs))
    # All pairs of windows at once would take memory with the square of the film's length.
    for first in range(0, len(graphs), _BLOCK):
        for row, common in enumerate((has[first : first + _BLOCK] @ has.T).toarray(), start=first):
            in_common[: len(graphs) - row] += common[row:]
    return in_common, counts.astype(np.float64)
