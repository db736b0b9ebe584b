"""Graphs of atoms: places of the nodes that stay the same over time, and drawings of nodes and links."""

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
    """Draw nodes at positions (n, 2) and their links (n_links, 2) in colours (n,); return the size of the nodes.

    Linked nodes must have the same colour. The colour `RULE` is background.
    """
    size = float(np.clip(600 / len(positions), 5, 24))
    # Background first, and all links before all nodes.
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
    """Positions (n_nodes, 2) in the unit disc of the nodes of a graph whose edges (n, 2) change over time.

    Distances follow the number of steps between nodes in the union of all times (stress majorisation, started from
    classical scaling). So each node keeps its place while its links change.
    """
    if n_nodes == 1:
        return np.zeros((1, 2))
    # scipy 1.13 takes graphs with 32-bit indices only.
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
    # Spread over the unit disc in the same directions: outliers move in, a crowded centre out.
    positions = positions - positions.mean(axis=0)
    radius = np.linalg.norm(positions, axis=1)
    rank = np.empty(n_nodes)
    rank[np.argsort(radius, kind="stable")] = np.arange(1, n_nodes + 1)
    wanted = 0.35 * radius / max(float(radius.max()), 1e-12) + 0.65 * np.sqrt(rank / n_nodes)
    factors = np.divide(wanted, radius, out=np.zeros_like(radius), where=radius > 1e-9)
    spread: Array = positions * factors[:, None]
    return spread


def _classical_scaling(distances: Array) -> Array:
    """Points (n, 2) with approximately the given distances, no two at the same place."""
    n = len(distances)
    inner = -0.5 * distances**2
    inner = inner - inner.mean(axis=0) - inner.mean(axis=1)[:, None] + inner.mean()
    # All eigenvectors, to use two: asked for two, LAPACK may return none if most eigenvalues are equal, as in a graph
    # in which all nodes are linked to each other (the atoms of a moving grating).
    values, vectors = scipy.linalg.eigh(inner)
    values, vectors = values[-2:], vectors[:, -2:]
    points: Array = fix_signs((vectors * np.sqrt(np.maximum(values, 0.0))).T).T
    # Nodes with the same neighbours would stay on one point; a spiral with the golden angle separates them.
    angle = np.pi * (3 - np.sqrt(5)) * np.arange(n)
    spiral: Array = np.sqrt((np.arange(n) + 1) / n)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return points + 0.1 * spiral
