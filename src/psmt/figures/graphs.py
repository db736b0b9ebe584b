"""Graphs of atoms: a place for each node that stays while links come and go, and the drawing of nodes and links."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from psmt.figures.style import RULE
from psmt.numerics.rank import fix_signs
from psmt.types import Array


def draw_graph(axes: Axes, positions: Array, edges: NDArray[Any], colours: NDArray[Any]) -> float:
    """Size of the nodes, once they (n, 2) and their links (n_links, 2) are drawn in colours (n,); `RULE` is background.

    Nodes that are linked have one colour.
    """
    size = float(np.clip(600 / len(positions), 5, 24))
    # The background comes first, and all links come before all nodes.
    groups = list(dict.fromkeys([RULE, *colours.tolist()]))
    for colour in groups:
        own = edges[colours[edges[:, 0]] == colour]
        strength = 0.6 if colour == RULE else float(np.clip(40 / max(len(own), 1), 0.04, 0.8))
        axes.add_collection(LineCollection(list(positions[own]), colors=colour, linewidths=0.8, alpha=strength))
    for colour in groups:
        behind = colour == RULE
        x, y = positions[colours == colour].T
        edge, width = ("none", 0.0) if behind else ("white", 0.4)
        look: dict[str, Any] = {"color": colour, "edgecolors": edge, "linewidths": width, "zorder": 3 if behind else 4}
        axes.scatter(x, y, s=0.6 * size if behind else size, **look)
    axes.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), xticks=[], yticks=[])
    return size


def stable_positions(edges: list[NDArray[Any]], n_nodes: int) -> Array:
    """One place (n_nodes, 2) in the unit disc for each node of a graph whose edges (n, 2) change over time.

    Distances follow the number of steps between nodes in the union of all times (stress majorisation from classical
    scaling), so that a node stays where it is while its links come and go.
    """
    if n_nodes == 1:
        return np.zeros((1, 2))
    # scipy 1.13 walks graphs of 32-bit indices only.
    pairs = np.concatenate([np.zeros((0, 2)), *edges]).astype(np.int32)
    union = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n_nodes, n_nodes)).tocsr()
    steps = shortest_path(union, directed=False, unweighted=True)
    reachable = np.isfinite(steps)
    steps[~reachable] = steps[reachable].max() + 1.0
    weights = np.divide(1.0, steps**2, out=np.zeros_like(steps), where=steps > 0)
    factor = scipy.linalg.cho_factor((np.diag(weights.sum(axis=1)) - weights)[1:, 1:])
    positions = _classical_scaling(steps)
    for _ in range(60):
        apart = np.linalg.norm(positions[:, None] - positions[None], axis=2)
        pull = np.divide(weights * steps, apart, out=np.zeros_like(steps), where=apart > 1e-9)
        right = (np.diag(pull.sum(axis=1)) - pull) @ positions
        # The first node is pinned at the origin: distances do not change if all move together.
        positions = np.vstack([np.zeros(2), scipy.linalg.cho_solve(factor, right[1:])])
    return _fill_disc(positions - positions.mean(axis=0))


def _classical_scaling(distances: Array) -> Array:
    """Points (n, 2) whose distances are like those given, no two at the same place."""
    n = len(distances)
    inner = -0.5 * distances**2
    inner = inner - inner.mean(axis=0) - inner.mean(axis=1)[:, None] + inner.mean()
    # All eigenvectors, to use two: asked for two, LAPACK may return none where most eigenvalues are the same. That is
    # so where each node is linked to each other, as the atoms of a moving grating.
    values, vectors = scipy.linalg.eigh(inner)
    values, vectors = values[-2:], vectors[:, -2:]
    points: Array = fix_signs((vectors * np.sqrt(np.maximum(values, 0.0))).T).T
    # Nodes with the same neighbours would fall on one point and never part; the golden angle sets them off.
    angle = np.pi * (3 - np.sqrt(5)) * np.arange(n)
    spiral: Array = np.sqrt((np.arange(n) + 1) / n)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return points + 0.1 * spiral


def _fill_disc(positions: Array) -> Array:
    """The points (n, 2) in the unit disc, in the same directions, outliers drawn in and a crowded middle spread."""
    radius = np.linalg.norm(positions, axis=1)
    rank = np.empty(len(radius))
    rank[np.argsort(radius, kind="stable")] = np.arange(1, len(radius) + 1)
    wanted = 0.35 * radius / max(float(radius.max()), 1e-12) + 0.65 * np.sqrt(rank / len(radius))
    factors: Array = np.divide(wanted, radius, out=np.zeros_like(radius), where=radius > 1e-9)
    return positions * factors[:, None]
