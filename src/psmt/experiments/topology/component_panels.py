"""The components of the chosen atoms as graphs, each node in one place at all times (b of Fig. 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from psmt.experiments.topology.result import TopologyResult
from psmt.figures.graphs import draw_graph, stable_positions
from psmt.figures.panels import heading, panel
from psmt.figures.style import COLOURS, INK, QUIET, RULE, SMALL, TEXT
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
    size = draw_graph(axes, positions, edges, np.where(members, colour, RULE))
    x, y = positions[at]
    axes.scatter(x, y, s=max(1.8 * size, 26), color=colour, linewidths=1.3, edgecolors=INK, zorder=5)
    axes.set_ylim(-1.44, 1.16)
    for spine in axes.spines.values():
        spine.set_color(RULE)


def _component(result: TopologyResult, time: int, atom: int) -> NDArray[Any]:
    component = result.graphs[time]["component"]
    return np.flatnonzero(component == component[atom])


def _among(edges: NDArray[Any], nodes: NDArray[Any]) -> NDArray[Any]:
    """Edges between the given sorted nodes, numbered by their place among them."""
    return np.searchsorted(nodes, edges[np.isin(edges, nodes).all(axis=1)])
