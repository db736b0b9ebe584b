"""The components of the chosen atoms as graphs, each node in one place at all times (b of Fig. 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from psmt.experiments.topology.result import TopologyResult
from psmt.figures.panels import heading, panel
from psmt.figures.style import COLOURS, INK, QUIET, RULE, SMALL, TEXT
from psmt.numerics.rank import fix_signs
from psmt.types import Array


def atom_colour(i: int) -> str:
    """Colour of the i-th chosen atom, the same in all panels."""
    return COLOURS[i % len(COLOURS)]


def draw_components(
    figure: Figure,
    result: TopologyResult,
    times: NDArray[Any],
    *,
    left: float,
    right: float,
    top: float,
    row: float,
) -> None:
    """Draw a row of `row` inches per chosen atom, a panel per window in `times`, from `left` to `right`."""
    gap, row_gap = 0.06, 0.16
    pitch = (right - left + gap) / len(times)
    width = pitch - gap
    # Square where they fit; fewer are wider instead of higher, so that rows keep their height.
    height = min(width, row - row_gap)
    for i, atom in enumerate(result.chosen):
        nodes = np.unique(np.concatenate([_component(result, time, atom) for time in times]))
        edges = [_among(result.graphs[time]["edges"], nodes) for time in times]
        positions = stable_positions(edges, len(nodes))
        for column, time in enumerate(times):
            axes = panel(figure, left + column * pitch, top - i * row - height, width, height)
            members = np.isin(nodes, _component(result, time, atom))
            _draw_graph(axes, positions, edges[column], members, int(np.searchsorted(nodes, atom)), atom_colour(i))
            count = int(members.sum())
            label = f"{count} atoms" if count > 1 else "no links"
            axes.text(
                0.05 * height / width,
                0.05,
                label,
                transform=axes.transAxes,
                fontsize=7.5,
                color=atom_colour(i) if count > 1 else QUIET,
            )
            if i == 0:
                axes.set_title(f"frame {result.centers[time]:,}", fontsize=SMALL, color=QUIET, pad=4)
            if column == 0:
                axes.set_ylabel(f"atom {atom}", fontsize=TEXT, fontweight="bold", color=atom_colour(i), labelpad=6)
            if i == column == 0:
                heading(axes, "b", "The components, each atom in its place at all times", lift=20)


def _draw_graph(axes: Axes, positions: Array, edges: NDArray[Any], members: NDArray[Any], at: int, colour: str) -> None:
    """One graph, the component of node `at` in colour."""
    inside = members[edges[:, 0]]
    strength = float(np.clip(40 / max(int(inside.sum()), 1), 0.04, 0.8))
    size = float(np.clip(600 / len(positions), 5, 24))
    for kept, shade, alpha in ((~inside, RULE, 0.6), (inside, colour, strength)):
        axes.add_collection(LineCollection(list(positions[edges[kept]]), colors=shade, linewidths=0.8, alpha=alpha))
    x, y = positions.T
    axes.scatter(x[~members], y[~members], s=0.6 * size, color=RULE, linewidths=0, zorder=3)
    axes.scatter(x[members], y[members], s=size, color=colour, linewidths=0.4, edgecolors="white", zorder=4)
    axes.scatter(x[at], y[at], s=max(1.8 * size, 26), color=colour, linewidths=1.3, edgecolors=INK, zorder=5)
    axes.set(xlim=(-1.3, 1.3), ylim=(-1.44, 1.16), xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_color(RULE)


def stable_positions(edges: list[NDArray[Any]], n_nodes: int) -> Array:
    """One place (n_nodes, 2) in the unit disc for each node of a graph whose edges (n, 2) change over time.

    Distances follow the number of steps between nodes in the union of all times (stress majorisation from classical
    scaling), so that a node stays where it is while its links come and go.
    """
    if n_nodes == 1:
        return np.zeros((1, 2))
    pairs = np.concatenate([np.zeros((0, 2), dtype=np.int64), *edges])
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


def _component(result: TopologyResult, time: int, atom: int) -> NDArray[Any]:
    component = result.graphs[time]["component"]
    return np.flatnonzero(component == component[atom])


def _among(edges: NDArray[Any], nodes: NDArray[Any]) -> NDArray[Any]:
    """Edges between the given sorted nodes, numbered by their place among them."""
    return np.searchsorted(nodes, edges[np.isin(edges, nodes).all(axis=1)])
