"""Fig. 3 of the paper: the topology of the embedding over time."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from psmt.experiments.topology.claims import LEAST
from psmt.experiments.topology.component_panels import atom_colour, draw_components
from psmt.experiments.topology.likeness import Likeness
from psmt.experiments.topology.result import TopologyResult
from psmt.figures.panels import WIDTH, as_picture, contrast, heading, panel
from psmt.figures.style import COLOURS, INK, QUIET, RULE, SMALL, TEXT, style_axes

_MARKERS = ("o", "s", "^", "D", "v", "P")
_LEFT, _MIDDLE, _RIGHT = 0.62, 6.55, 9.85
_TOP_ROW, _GRAPH_ROW = 4.7, 1.3
"""Inches: where panels begin and end, heights of the rows."""


def topology_figure(result: TopologyResult, *, n_times: int = 5) -> Figure:
    """Figure of the chosen atoms: over time (a), their components (b), their most similar (c); and tests (d to f)."""
    height = 0.45 + _TOP_ROW + 1.3 + _GRAPH_ROW * len(result.chosen) + 0.85
    figure = Figure(figsize=(WIDTH, height))
    times = result.times(n_times)
    top = height - 0.45
    _draw_over_time(figure, result, times, top=top)
    _draw_likeness(panel(figure, 7.35, top - 1.0, _RIGHT - 7.35, 1.0), result.likeness)
    _draw_persistence(panel(figure, 7.35, top - 2.95, _RIGHT - 7.35, 1.0), result)
    _draw_beyond(panel(figure, 7.35, top - _TOP_ROW, _RIGHT - 7.35, 0.8), result)
    top = height - 0.45 - _TOP_ROW - 1.3
    draw_components(figure, result, times, left=_LEFT, right=_MIDDLE, top=top, row=_GRAPH_ROW)
    _draw_companions(figure, result, top=top)
    figure.text(
        _LEFT / WIDTH,
        0.17 / height,
        f"{len(result.dictionary):,} atoms, {len(result.graphs)} windows of {result.settings.window:,} frames, "
        f"{result.settings.components:,} directions. Atoms are linked where their columns of P have a cosine above "
        f"{result.settings.threshold:g}.\nShown in b: of each part of the film, the window in which these atoms have "
        "most links (dotted in a).\nShown in f: the film less its null, 90% interval. Null: blocks dealt out (change), "
        f"frames in random order. Dashed: {LEAST:g}.",
        fontsize=SMALL,
        color=QUIET,
        linespacing=1.5,
    )
    return figure


# (a) over time


def _draw_over_time(figure: Figure, result: TopologyResult, times: NDArray[Any], *, top: float) -> None:
    half = (_TOP_ROW - 0.25) / 2
    sizes = panel(figure, _LEFT, top - half, _MIDDLE - _LEFT, half)
    counts = panel(figure, _LEFT, top - _TOP_ROW, _MIDDLE - _LEFT, half)
    every = max(1, len(result.centers) // 24)
    for axes, values in ((sizes, result.component_size), (counts, result.neighbours)):
        style_axes(axes)
        for time in times:
            axes.axvline(result.centers[time], color=QUIET, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
        for i, atom in enumerate(result.chosen):
            axes.plot(
                result.centers,
                values[:, atom],
                color=atom_colour(i),
                linewidth=1.8,
                marker=_MARKERS[i % len(_MARKERS)],
                markevery=every,
                markersize=4.6,
                markeredgecolor="white",
                markeredgewidth=0.6,
                label=f"atom {atom}",
                zorder=3 + i,
                clip_on=False,
            )
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        margin = 0.02 * (result.centers[-1] - result.centers[0])
        axes.set_xlim(result.centers[0] - margin, result.centers[-1] + margin)
    most = max(4, int(result.component_size[:, list(result.chosen)].max()))
    sizes.set_yscale("log", base=2)
    sizes.set_ylim(0.88, 1.2 * most)
    sizes.set_yticks([2**k for k in range(int(np.log2(most)) + 1)])
    sizes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    sizes.set_ylabel("atoms in component", fontsize=TEXT, color=INK)
    sizes.tick_params(labelbottom=False)
    most = max(2, int(result.neighbours[:, list(result.chosen)].max()))
    counts.set_yscale("symlog", linthresh=2, linscale=0.6)
    counts.set_ylim(-0.15, 1.3 * most)
    counts.set_yticks([tick for tick in (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if tick <= most])
    counts.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    counts.set_ylabel("neighbours", fontsize=TEXT, color=INK)
    counts.set_xlabel("frame at the centre of the window", fontsize=TEXT, color=INK)
    for axes in (sizes, counts):
        axes.minorticks_off()
    heading(sizes, "a", "Links over time")
    sizes.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=min(len(result.chosen), 4),
        frameon=False,
        fontsize=TEXT,
        handlelength=1.6,
        columnspacing=1.4,
        borderaxespad=0.25,
        labelcolor="linecolor",
    )


# (c) pictures


def _draw_companions(figure: Figure, result: TopologyResult, *, top: float) -> None:
    pitch = (_RIGHT - 6.95 + 0.12) / 3
    size = pitch - 0.12
    for i, atom in enumerate(result.chosen):
        for column, (number, linked) in enumerate([(atom, 0), *result.companions(atom)]):
            axes = panel(figure, 6.95 + column * pitch, top - i * _GRAPH_ROW - size, size, size)
            picture = as_picture(contrast(result.dictionary[number]), result.picture_shape)
            axes.imshow(picture, cmap="gray", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
            axes.set(xticks=[], yticks=[])
            colour = atom_colour(i) if column == 0 else RULE
            for spine in axes.spines.values():
                spine.set_color(colour)
                spine.set_linewidth(2.4 if column == 0 else 0.8)
            axes.set_xlabel(
                f"atom {number}" if column == 0 else f"atom {number}\nlinked in {linked} of {len(result.graphs)}",
                fontsize=7.5,
                fontweight="bold" if column == 0 else "normal",
                color=atom_colour(i) if column == 0 else QUIET,
                labelpad=3,
            )
            if i == column == 0:
                heading(axes, "c", "With the two most similar", lift=20)


# (d), (e), (f) the tests


def _draw_likeness(axes: Axes, likeness: Likeness) -> None:
    style_axes(axes)
    heading(axes, "d", "Do linked atoms look alike?")
    axes.set_xlabel("correlation, linked less unlinked", fontsize=TEXT, color=INK)
    axes.set_ylabel("permutations", fontsize=TEXT, color=INK)
    if not np.isfinite(likeness.difference):
        axes.text(0.5, 0.5, "no links to compare", transform=axes.transAxes, ha="center", fontsize=SMALL, color=QUIET)
        axes.set(xticks=[], yticks=[])
        return
    nulls = np.concatenate([likeness.permuted.null, likeness.shuffled.null, [0.0, likeness.difference]])
    low, high = float(nulls.min()), float(nulls.max())
    margin = 0.06 * (high - low)
    axes.set_xlim(low - margin, high + margin)
    counts, _, _ = axes.hist(likeness.permuted.null, bins=20, color=QUIET, alpha=0.55, linewidth=0)
    most = float(np.max(counts))
    shuffled = likeness.shuffled.null
    axes.plot(shuffled, np.full(len(shuffled), 0.12 * most), "|", color=COLOURS[0], markersize=9, markeredgewidth=1.2)
    axes.axvline(likeness.difference, color=COLOURS[1], linewidth=2.4)
    # Above the bars, so that no position of the line can hide it.
    axes.set_ylim(0, 2.2 * most)
    late = likeness.difference > (low + high) / 2
    for row, (text, colour) in enumerate(
        (
            (f"film: {likeness.linked:.2f} linked, {likeness.unlinked:.2f} not", COLOURS[1]),
            ("pictures permuted", QUIET),
            ("frames in random order", COLOURS[0]),
        )
    ):
        axes.annotate(
            text,
            (likeness.difference, 0.98 - 0.16 * row),
            (-6 if late else 6, 0),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="right" if late else "left",
            va="top",
            fontsize=SMALL,
            color=colour,
        )
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))


def _draw_persistence(axes: Axes, result: TopologyResult) -> None:
    style_axes(axes)
    heading(axes, "e", "Do links stay?")
    persistence, lasting, window = result.persistence, result.lasting, result.settings.window
    known = np.isfinite(persistence.shared)
    lags, shared = persistence.lags[known], 100 * persistence.shared[known]
    axes.fill_between(lags, shared, color=COLOURS[0], alpha=0.13, linewidth=0)
    marker = "o" if len(lags) <= 40 else ""
    axes.plot(lags, shared, color=COLOURS[0], linewidth=1.8, marker=marker, markersize=3, clip_on=False)
    top = max(float(shared.max(initial=0.0)), 100 * float(lasting.shuffled.null.max(initial=0.0)), 1.0)
    # Room for the figures above the curve, whatever its shape.
    axes.set(xlim=(0, 1.02 * persistence.lags[-1]), ylim=(0, 1.9 * top))
    if window < persistence.lags[-1]:
        axes.axvline(window, color=QUIET, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    lines = ["no two windows have links"]
    if np.isfinite(lasting.share):
        lines = [
            f"no common frame: {_percent(lasting.share)}",
            f"frames in random order: {_percent(float(lasting.shuffled.null.mean()))}",
            f"atoms permuted: {_percent(float(lasting.permuted.null.mean()))}",
        ]
    axes.text(
        0.99,
        0.97,
        "\n".join(lines),
        transform=axes.transAxes,
        ha="right",
        va="top",
        fontsize=SMALL,
        color=INK,
        linespacing=1.3,
    )
    axes.set_xlabel("frames from window to window", fontsize=TEXT, color=INK)
    axes.set_ylabel("links in both (%)", fontsize=TEXT, color=INK)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    # Room for the text above the curve, but no percentage beyond all of them.
    highest = min(100.0, axes.get_ylim()[1])
    axes.set_yticks([tick for tick in MaxNLocator(4).tick_values(0, highest) if tick <= highest])


def _draw_beyond(axes: Axes, result: TopologyResult) -> None:
    """What each claim is judged by: the film less its null, with the interval, and the least that counts."""
    style_axes(axes, grid=False)
    heading(axes, "f", "Beyond the nulls")
    rows = [
        ("change", None if result.change is None else result.change.dealt),
        ("stay", result.lasting.shuffled),
        ("alike", result.likeness.shuffled),
    ]
    for row, (_, measured) in enumerate(rows):
        beyond = None if measured is None else measured.beyond()
        if beyond is None or not beyond.is_finite:
            axes.annotate(
                "inconclusive",
                (LEAST, row),
                (5, 0),
                textcoords="offset points",
                va="center",
                fontsize=SMALL,
                color=QUIET,
            )
            continue
        told = COLOURS[1] if beyond.low > LEAST else INK
        axes.plot(beyond[1:], [row, row], color=told, linewidth=2.2, solid_capstyle="butt")
        axes.plot(beyond.mean, row, "o", color=told, markersize=4.5)
    axes.axvline(0.0, color=QUIET, linewidth=0.8)
    axes.axvline(LEAST, color=QUIET, linewidth=0.9, linestyle=(0, (3, 2)))
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, -0.1), max(high, 0.3))
    axes.set(yticks=range(len(rows)), yticklabels=[name for name, _ in rows], ylim=(len(rows) - 0.5, -0.5))
    axes.set_xlabel("share of links, or correlation", fontsize=TEXT, color=INK)
    axes.set_ylabel("claim", fontsize=TEXT, color=INK)
    axes.xaxis.set_major_locator(MaxNLocator(5))


def _percent(value: float) -> str:
    return f"{100 * value:.2g}%" if np.isfinite(value) else "none"
