"""Fig. 3 of the paper: how the links between atoms change over time."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from psmt.experiments.topology.run import TopologyResult
from psmt.figures.graphs import draw_graph, stable_positions
from psmt.figures.panels import as_picture, contrast, heading, label_axes, panel_figure
from psmt.figures.style import COLOURS, INK, MARKERS, QUIET, RULE, SMALL, TEXT, style_axes
from psmt.types import AnyArray, Ints

SHADE = "#d62728"
"""Shading of the windows and of the components that are shown, red as in Fig. 3 of the paper."""


def topology_figure(result: TopologyResult, *, n_times: int = 5) -> Figure:
    """Draw Fig. 3: links of some atoms over time (a), their components at `n_times` times (b), and linked atoms (c)."""
    times, rows, settings = result.shown_windows(n_times), range(len(result.chosen)), result.settings
    lower = [[*(f"graph {i} {k}" for k in range(len(times))), *(f"picture {i} {k}" for k in range(3))] for i in rows]
    figure, panels = panel_figure(
        [[[["sizes"], ["counts"]]], [lower]],
        height=4.7 + 1.4 * len(rows),
        heights=[3.6, 0.55 + 1.4 * len(rows)],
        note=f"{len(result.dictionary):,} atoms, {len(result.graphs)} windows of {settings.window:,} frames, "
        f"{settings.components:,} directions. Atoms are linked if their columns of P have a cosine above "
        f"{settings.threshold:g}.\nb shows, for each part of the film, the window in which these atoms have the most "
        "links (red in a); the atom's component is shaded red.",
    )
    _draw_over_time(panels["sizes"], panels["counts"], result, times)
    _draw_components(panels, result, times)
    _draw_companions(panels, result)
    return figure


def _colour(i: int) -> str:
    return COLOURS[i % len(COLOURS)]


def _head(axes: Axes, letter: str, text: str, *, lift: float = 7) -> None:
    """Write a heading `lift` points above a panel. The layout ignores its width; a blank title reserves its height."""
    heading(axes, letter, text, lift=lift)
    axes.texts[-1].set_in_layout(False)
    if not axes.get_title():
        axes.set_title(" ")


def _draw_over_time(sizes: Axes, counts: Axes, result: TopologyResult, times: Ints) -> None:
    margin = 0.02 * (result.centers[-1] - result.centers[0])
    look: dict[str, Any] = {"linewidth": 1.8, "markersize": 4.6, "markeredgecolor": "white", "markeredgewidth": 0.6}
    look |= {"markevery": max(1, len(result.centers) // 24), "clip_on": False}
    for axes, values in ((sizes, result.component_size), (counts, result.neighbours)):
        style_axes(axes)
        for time in times:
            axes.axvline(result.centers[time], color=SHADE, linewidth=5, alpha=0.2, zorder=1)
        for i, atom in enumerate(result.chosen):
            look |= {"color": _colour(i), "marker": MARKERS[i % len(MARKERS)], "zorder": 3 + i}
            axes.plot(result.centers, values[:, atom], label=f"atom {atom}", **look)
        axes.set_xlim(result.centers[0] - margin, result.centers[-1] + margin)
    most = max(4, int(result.component_size[:, list(result.chosen)].max()))
    sizes.set_yscale("log", base=2)
    sizes.set_ylim(0.88, 1.2 * most)
    sizes.set_yticks([2**k for k in range(int(np.log2(most)) + 1)])
    sizes.tick_params(labelbottom=False)
    label_axes(sizes, "", "atoms in component")
    most = max(2, int(result.neighbours[:, list(result.chosen)].max()))
    counts.set_yscale("symlog", linthresh=2, linscale=0.6)
    counts.set_ylim(-0.15, 1.3 * most)
    counts.set_yticks([tick for tick in (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if tick <= most])
    counts.xaxis.set_major_formatter("{x:,.0f}")
    label_axes(counts, "frame at the centre of the window", "neighbours")
    for axes in (sizes, counts):
        axes.yaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
    _head(sizes, "a", "Links over time")
    place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": min(len(result.chosen), 4)}
    sizes.legend(**place, fontsize=TEXT, labelcolor="linecolor", handlelength=1.4, borderaxespad=0.25, frameon=False)


def _draw_components(panels: Mapping[str, Axes], result: TopologyResult, times: Ints) -> None:
    """Draw the graph around each chosen atom in some windows. A node has the same position in all windows."""

    def component(time: int, atom: int) -> AnyArray:
        label = result.graphs[time]["component"]
        return np.flatnonzero(label == label[atom])

    for i, atom in enumerate(result.chosen):
        nodes = np.unique(np.concatenate([component(time, atom) for time in times]))
        every = [result.graphs[time]["edges"] for time in times]
        edges = [np.searchsorted(nodes, own[np.isin(own, nodes).all(axis=1)]) for own in every]
        positions = stable_positions(edges, len(nodes))
        for k, time in enumerate(times):
            axes = panels[f"graph {i} {k}"]
            members = np.isin(nodes, component(time, atom))
            size = draw_graph(axes, positions, edges[k], np.where(members, _colour(i), RULE))
            x, y = positions[np.searchsorted(nodes, atom)]
            axes.scatter(x, y, s=max(1.8 * size, 26), color=_colour(i), linewidths=1.3, edgecolors=INK, zorder=5)
            axes.set_ylim(-1.44, 1.16)
            axes.spines[:].set_color(RULE)
            count = int(members.sum())
            if count > 1:
                shade: dict[str, Any] = {"s": 12 * size, "color": SHADE, "alpha": 0.2, "linewidths": 0, "zorder": 0}
                axes.scatter(positions[members, 0], positions[members, 1], **shade)
            text, colour = (f"{count} atoms", _colour(i)) if count > 1 else ("no links", QUIET)
            note = axes.annotate(text, (0, 0), (4, 4), "axes fraction", "offset points", fontsize=7.5, color=colour)
            note.set_in_layout(False)
            if i == 0:
                axes.set_title(f"\nframe {result.centers[time]:,}", fontsize=SMALL, color=QUIET, pad=4)
        first = panels[f"graph {i} 0"]
        first.set_ylabel(f"atom {atom}", fontsize=TEXT, fontweight="bold", color=_colour(i), labelpad=6)
    _head(panels["graph 0 0"], "b", "Components; each atom keeps its place", lift=20)


def _draw_companions(panels: Mapping[str, Axes], result: TopologyResult) -> None:
    """Draw each chosen atom as a picture, beside the two atoms that it is most often linked to."""
    for i, atom in enumerate(result.chosen):
        shown = [(atom, 0), *result.companions(atom)]
        for k in range(3):
            axes = panels[f"picture {i} {k}"]
            axes.set(xticks=[], yticks=[])
            if k >= len(shown):
                axes.set_visible(False)
                continue
            number, linked = shown[k]
            picture = as_picture(contrast(result.dictionary[number]), result.picture_shape)
            axes.imshow(picture, cmap="gray", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
            axes.set_box_aspect(1)
            axes.spines[:].set(color=_colour(i) if k == 0 else RULE, linewidth=2.4 if k == 0 else 0.8)
            about = "" if k == 0 else f"\nlinked in {linked} of {len(result.graphs)}"
            look: dict[str, Any] = {"fontweight": "bold", "color": _colour(i)} if k == 0 else {"color": QUIET}
            axes.set_xlabel(f"atom {number}{about}", fontsize=7.5, labelpad=3, **look)
    _head(panels["picture 0 0"], "c", "With the two most often linked", lift=20)
