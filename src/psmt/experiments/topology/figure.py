"""Fig. 3 of the paper, the topology of the embedding over time; and, beyond the paper, a map of all atoms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from psmt.experiments.topology.measures import LEAST, Likeness
from psmt.experiments.topology.run import TopologyResult
from psmt.figures.graphs import draw_graph, stable_positions
from psmt.figures.layouts import Estimate, draw_estimates, panel_figure
from psmt.figures.panels import WIDTH, as_picture, contrast, heading, label_axes, show_tiles, tile_gap, tiled
from psmt.figures.style import COLOURS, INK, MARKERS, QUIET, RULE, SMALL, TEXT, style_axes
from psmt.report.numbers import signed
from psmt.types import AnyArray, Ints

_DOTTED = (0, (1, 2))


def topology_figure(result: TopologyResult, *, n_times: int = 5) -> Figure:
    """Figure of the chosen atoms: over time (a), their components (b), the most similar (c); and tests (d to f)."""
    times, rows, settings = result.times(n_times), range(len(result.chosen)), result.settings
    components = [
        [*(f"graph {i} {k}" for k in range(len(times))), *(f"picture {i} {k}" for k in range(3))] for i in rows
    ]
    figure, panels = panel_figure(
        [[[["sizes"], ["counts"]]], [components], [[["d", "e", "f"]]]],
        height=6.9 + 1.4 * len(rows),
        heights=[3.6, 0.55 + 1.4 * len(rows), 2.0],
        note=f"{len(result.dictionary):,} atoms, {len(result.graphs)} windows of {settings.window:,} frames, "
        f"{settings.components:,} directions. Atoms are linked if their columns of P have a cosine above "
        f"{settings.threshold:g}.\nb shows, for each part of the film, the window in which these atoms have the most "
        "links (dotted in a).\nf shows the film less its null model, with the 90% interval. Null model: blocks dealt "
        f"out at random (change), frames in random order (others). Dashed: {LEAST:g}.",
    )
    _draw_over_time(panels["sizes"], panels["counts"], result, times)
    _draw_components(panels, result, times)
    _draw_companions(panels, result)
    _draw_likeness(panels["d"], result.likeness)
    _draw_persistence(panels["e"], result)
    _draw_beyond(panels["f"], result)
    return figure


def _colour(i: int) -> str:
    return COLOURS[i % len(COLOURS)]


def _head(axes: Axes, letter: str, text: str, *, lift: float = 7) -> None:
    """Heading that may be wider than its panel: the layout takes the height of an empty title instead."""
    heading(axes, letter, text, lift=lift)
    axes.texts[-1].set_in_layout(False)
    if not axes.get_title():
        axes.set_title(" ")


def _legend(axes: Axes, **how: Any) -> None:
    look = {"fontsize": SMALL, "handlelength": 1.4, "labelspacing": 0.3, "borderaxespad": 0.25, "frameon": False}
    axes.legend(**{**look, **how})


def _draw_over_time(sizes: Axes, counts: Axes, result: TopologyResult, times: Ints) -> None:
    margin = 0.02 * (result.centers[-1] - result.centers[0])
    look: dict[str, Any] = {"linewidth": 1.8, "markersize": 4.6, "markeredgecolor": "white", "markeredgewidth": 0.6}
    look |= {"markevery": max(1, len(result.centers) // 24), "clip_on": False}
    for axes, values in ((sizes, result.component_size), (counts, result.neighbours)):
        style_axes(axes)
        for time in times:
            axes.axvline(result.centers[time], color=QUIET, linewidth=0.8, linestyle=_DOTTED, zorder=1)
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
    columns = min(len(result.chosen), 4)
    _legend(sizes, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=columns, fontsize=TEXT, labelcolor="linecolor")


def _draw_components(panels: Mapping[str, Axes], result: TopologyResult, times: Ints) -> None:
    """The component of each chosen atom at some times, each node at the same place at all times."""

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
            text, colour = (f"{count} atoms", _colour(i)) if count > 1 else ("no links", QUIET)
            axes.annotate(
                text, (0, 0), (4, 4), "axes fraction", "offset points", fontsize=7.5, color=colour
            ).set_in_layout(False)
            if i == 0:
                axes.set_title(f"\nframe {result.centers[time]:,}", fontsize=SMALL, color=QUIET, pad=4)
        first = panels[f"graph {i} 0"]
        first.set_ylabel(f"atom {atom}", fontsize=TEXT, fontweight="bold", color=_colour(i), labelpad=6)
    _head(panels["graph 0 0"], "b", "Components; each atom keeps its place", lift=20)


def _draw_companions(panels: Mapping[str, Axes], result: TopologyResult) -> None:
    """Pictures of each chosen atom and of the two most similar ones."""
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
    _head(panels["picture 0 0"], "c", "With the two most similar", lift=20)


def _draw_likeness(axes: Axes, likeness: Likeness) -> None:
    style_axes(axes)
    _head(axes, "d", "Do linked atoms look alike?")
    label_axes(axes, "correlation, linked less unlinked", "permutations")
    if not np.isfinite(likeness.difference):
        axes.text(0.5, 0.5, "no links to compare", transform=axes.transAxes, ha="center", fontsize=SMALL, color=QUIET)
        axes.set(xticks=[], yticks=[])
        return
    shuffled, value = likeness.shuffled.null, likeness.difference
    values = np.concatenate([likeness.permuted.null, shuffled, [0.0, value]])
    low, high = float(values.min()), float(values.max())
    margin = 0.06 * (high - low)
    film = f"film: {signed(likeness.linked)} linked, {signed(likeness.unlinked)} not"
    axes.axvline(value, color=COLOURS[1], linewidth=2.4, label=film)
    counts, *_ = axes.hist(likeness.permuted.null, bins=20, color=QUIET, alpha=0.55, label="pictures permuted")
    most = float(np.max(counts))
    tick: dict[str, Any] = {"marker": "|", "markersize": 9, "markeredgewidth": 1.2, "color": COLOURS[0]}
    axes.plot(shuffled, np.full(len(shuffled), 0.12 * most), linestyle="", label="frames in random order", **tick)
    # The legend has room above the bars, on the wider side of the film's line.
    axes.set(xlim=(low - margin, high + margin), ylim=(0, 2.3 * most))
    _legend(axes, loc="upper left" if value > (low + high) / 2 else "upper right")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))


def _draw_persistence(axes: Axes, result: TopologyResult) -> None:
    style_axes(axes)
    _head(axes, "e", "Do links stay?")
    label_axes(axes, "frames from window to window", "links in both (%)")
    sliding, lasting, window = result.persistence, result.lasting, result.settings.window
    known = np.isfinite(sliding.shared)
    lags, shared = sliding.lags[known], 100 * sliding.shared[known]
    axes.fill_between(lags, shared, color=COLOURS[0], alpha=0.13, linewidth=0)
    look: dict[str, Any] = {"linewidth": 1.8, "marker": "o" if len(lags) <= 40 else "", "markersize": 3}
    # Not in the layout: a line without points would extend to the corner of the figure.
    axes.plot(lags, shared, color=COLOURS[0], clip_on=False, in_layout=False, **look)
    top = 1.9 * max(float(shared.max(initial=0.0)), 100 * float(lasting.shuffled.null.max(initial=0.0)), 1.0)
    # The text has room above the curve, but no tick is above 100%.
    axes.set(xlim=(0, 1.02 * sliding.lags[-1]), ylim=(0, top))
    axes.set_yticks([tick for tick in MaxNLocator(4).tick_values(0, min(top, 100.0)) if tick <= min(top, 100.0)])
    if window < sliding.lags[-1]:
        axes.axvline(window, color=QUIET, linewidth=0.8, linestyle=_DOTTED, zorder=1)
    shares = {
        "no common frame": lasting.share,
        "frames in random order": lasting.shuffled.null_mean,
        "atoms permuted": lasting.permuted.null_mean,
    }
    lines = [f"{name}: {100 * share:.2g}%" for name, share in shares.items()]
    text = "\n".join(lines) if np.isfinite(lasting.share) else "no two windows have links"
    axes.text(0.99, 0.97, text, transform=axes.transAxes, ha="right", va="top", fontsize=SMALL, in_layout=False)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter("{x:,.0f}")


def _draw_beyond(axes: Axes, result: TopologyResult) -> None:
    """What decides each claim: the film less its null model with the interval, and the smallest effect that counts."""
    tests = {
        "change": None if result.change is None else result.change.dealt,
        "stay": result.lasting.shuffled,
        "alike": result.likeness.shuffled,
    }
    rows: dict[str, dict[str, Estimate]] = {}
    for place, (name, test) in enumerate(tests.items()):
        if test is not None and test.excess.is_finite:
            rows[name] = {"clear" if test.excess.low > LEAST else "open": Estimate(*test.excess)}
        else:
            rows[name] = {}
            axes.text(LEAST, -place, "  inconclusive", va="center", fontsize=SMALL, color=QUIET, in_layout=False)
    draw_estimates(axes, rows, {"clear": COLOURS[1], "open": INK})
    _head(axes, "f", "Beyond the null models")
    axes.axvline(LEAST, color=QUIET, linewidth=0.9, linestyle=(0, (3, 2)))
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, -0.1), max(high, 0.3))
    label_axes(axes, "share of links, or correlation", "claim")
    axes.xaxis.set_major_locator(MaxNLocator(5))


def atom_map_figure(result: TopologyResult) -> Figure:
    """Figure of all used atoms, those that move together side by side; the chosen atoms are framed."""
    atom_map = result.atom_map
    place = dict(zip(atom_map.atoms.tolist(), atom_map.places.tolist(), strict=True))
    pictures = [as_picture(contrast(result.dictionary[atom]), result.picture_shape) for atom in place]
    canvas = tiled(pictures, list(place.values()), atom_map.shape)
    tall, wide = as_picture(result.dictionary[0], result.picture_shape).shape
    gap = tile_gap(tall)
    beside, apart = (f"{value:.2f}" if np.isfinite(value) else "none" for value in (atom_map.beside, atom_map.apart))
    figure, panels = panel_figure(
        [["map"]],
        height=(WIDTH - 0.3) * canvas.shape[0] / canvas.shape[1] + 1.25,
        title="All atoms, arranged by how they move",
        note=f"{len(place):,} atoms in use; neighbours have similar columns of P. Correlation as pictures: {beside} "
        f"between neighbours, {apart} between any two.",
    )
    axes = panels["map"]
    show_tiles(axes, canvas)
    for i, atom in enumerate(result.chosen):
        if atom in place:
            row, column = place[atom]
            corner = (column * (wide + gap) - 0.5 - gap / 2, row * (tall + gap) - 0.5 - gap / 2)
            frame = Rectangle(corner, wide + gap, tall + gap, fill=False, linewidth=2.6, edgecolor=_colour(i))
            frame.set(clip_on=False, label=f"atom {atom}")
            axes.add_patch(frame)
    if axes.patches:
        place_below: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.0, 0.0), "ncols": len(axes.patches)}
        _legend(axes, **place_below, fontsize=TEXT, handlelength=1.0, handleheight=1.0, borderaxespad=0.6)
    return figure
