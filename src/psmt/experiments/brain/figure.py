"""Pictures of a study: networks, components over time, and states."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_rgb
from matplotlib.figure import Figure

from psmt.experiments.brain.components import Step
from psmt.experiments.brain.result import BrainResult
from psmt.figures.dark import ON_PAPER
from psmt.figures.panels import WIDTH, heading, panel
from psmt.figures.style import COLOURS, INK, QUIET, SMALL, TEXT, literal, style_axes
from psmt.types import Array

SHOWN_ATOMS = 24
"""Atoms in the chart, those with the most activity."""

SHOWN_PEOPLE = 8
"""People in timelines."""

SHOWN_WINDOWS = 6
"""Windows that a component is seen in before it is drawn; all are in topology.csv."""

MARKS = {"birth": "o", "merge": "^", "split": "v", "return": "s"}
"""How a component came, where it did not go on."""

GLASS = 8
"""Atoms on a glass brain."""

STATE_COLOURS = (*COLOURS, "#8c6bb1", "#7f7f7f", "#bcbd22", "#17becf", "#9e0142", "#1b1f24")
"""By state, in turn."""


def state_colour(k: int) -> str:
    """Colour of a state."""
    return STATE_COLOURS[k % len(STATE_COLOURS)]


def atoms_figure(result: BrainResult) -> Figure:
    """Atoms on a glass brain where there is an atlas of regions, and a chart of regions by networks in any case."""
    glass = _glass_images(result)
    order = np.argsort(-result.energy, kind="stable")[:SHOWN_ATOMS]
    rows = -(-len(glass) // 2)
    chart, each = 4.6, 1.7
    height = chart + 1.2 + rows * each
    figure = Figure(figsize=(WIDTH, height))
    axes = panel(figure, 0.9, 0.75 + rows * each, WIDTH - 2.1, chart - 0.3)
    atoms = result.dictionary[order].T
    limit = float(np.abs(atoms).max())
    image = axes.imshow(atoms, aspect="auto", cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    heading(axes, "a", f"Networks: the {len(order)} atoms with the most activity, of {len(result.dictionary)}")
    style_axes(axes, grid=False)
    axes.set_xticks(range(len(order)), [f"{k + 1}" for k in order], fontsize=SMALL - 1)
    axes.set_xlabel("atom (pattern of co-activation)", fontsize=TEXT, color=INK)
    every = max(1, len(result.study.regions) // 20)
    ticks = np.arange(0, len(result.study.regions), every)
    axes.set_yticks(ticks, [literal(result.study.regions[k]) for k in ticks], fontsize=SMALL - 1.5)
    bar = figure.colorbar(image, cax=panel(figure, WIDTH - 1.0, 0.75 + rows * each, 0.15, chart - 0.3))
    bar.ax.tick_params(labelsize=SMALL - 1)
    bar.set_label("weight of the region", fontsize=SMALL)
    for k, (atom, picture) in enumerate(glass):
        row, column = divmod(k, 2)
        own = panel(figure, 0.2 + column * WIDTH / 2, (rows - 1 - row) * each + 0.05, WIDTH / 2 - 0.4, each - 0.25)
        own.imshow(picture, gid=ON_PAPER)
        own.axis("off")
        own.set_title(f"atom {atom + 1}", fontsize=SMALL, color=INK, loc="left", pad=1)
    return figure


def _glass_images(result: BrainResult) -> list[tuple[int, Any]]:
    """Atoms and pictures of them on a glass brain; none without an atlas or nilearn."""
    if result.study.atlas is None:
        return []
    from psmt.experiments.brain.glass import glass_brains

    order = np.argsort(-result.energy, kind="stable")[:GLASS]
    pictures = glass_brains(result.study.atlas, result.study.regions, result.dictionary[order])
    return list(zip(order.tolist(), pictures, strict=False))


def components_figure(result: BrainResult) -> Figure:
    """Sizes of the components of the atoms' graph over time, a row per person; births, merges and ends are marked."""
    people = range(min(SHOWN_PEOPLE, len(result.steps)))
    row, foot, head = 1.15, 1.0, 0.5
    height = head + foot + len(people) * row
    figure = Figure(figsize=(WIDTH, height))
    for k in people:
        axes = panel(figure, 1.4, foot + (len(people) - 1 - k) * row, WIDTH - 1.6, row - 0.25)
        steps, starts = result.steps[k], result.starts[k]
        centre = np.asarray((starts + result.settings.window // 2) * result.seconds, dtype=np.float64)
        seen = Counter(step.component for step in steps)
        shown = [step for step in steps if seen[step.component] >= SHOWN_WINDOWS]
        _draw_components(axes, shown, centre)
        axes.set_yscale("log", base=2)
        top = max([step.size for step in shown], default=2)
        axes.set_ylim(1.7, 1.3 * max(top, 4))
        ticks = [2**i for i in range(1, int(np.log2(max(top, 4))) + 1)]
        axes.set_yticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.set_xlim(0, max(result.study.lengths[i] for i in people) * result.seconds)
        style_axes(axes)
        axes.annotate(
            literal(result.study.subjects[k].name),
            (0, 0.5),
            (-75, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=SMALL,
            color=INK,
            va="center",
            annotation_clip=False,
        )
        if k == 0:
            heading(
                axes,
                "a",
                f"Atoms in each component seen in {SHOWN_WINDOWS} windows or more",
            )
        if k == people[-1]:
            axes.set_xlabel(f"time, {result.unit}", fontsize=TEXT, color=INK)
        else:
            axes.set_xticklabels([])
    legend = panel(figure, 1.4, 0.05, WIDTH - 1.6, 0.3)
    legend.axis("off")
    for text, marker in (MARKS | {"end": "x"}).items():
        legend.plot([], [], marker, color=INK, label=text)
    legend.plot([], [], ".", color=INK, markersize=3, label="a window; alone, a return for this one")
    legend.legend(ncols=6, fontsize=SMALL, frameon=False, loc="center left")
    return figure


def _draw_components(axes: Axes, steps: Sequence[Step], centre: Array) -> None:
    """Draw the sizes of components over the middles of the windows, and mark what becomes of them.

    All that has one colour and one mark is one artist: a long scan has more components than matplotlib has room for.
    """
    lines: dict[str, list[tuple[float, float]]] = defaultdict(list)
    points: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    last: dict[str, Step] = {}
    for step in sorted(steps, key=lambda step: (step.component, step.window)):
        colour, place = state_colour(step.component), (float(centre[step.window]), float(step.size))
        before = last.get(colour)
        if before is not None and (before.component, before.window + 1) != (step.component, step.window):
            lines[colour].append((np.nan, np.nan))
        lines[colour].append(place)
        last[colour] = step
        # Who comes back for one window alone, as many do, is a dot of the line: marks are for what goes on.
        if step.event == "return" and step.ends:
            continue
        if step.event in MARKS:
            points[MARKS[step.event], colour].append(place)
        if step.ends:
            points["x", INK].append(place)
    for colour, places in lines.items():
        axes.plot(*np.transpose(places), ".-", color=colour, linewidth=1.3, markersize=3, zorder=2)
    for (marker, colour), places in points.items():
        axes.plot(*np.transpose(places), marker, color=colour, markersize=5, zorder=4 if marker == "x" else 3)


def states_figure(result: BrainResult) -> Figure:
    """Timelines of the states, what each looks like, their transitions, occupancy and dwell times."""
    people = range(min(SHOWN_PEOPLE, len(result.states)))
    band, foot = 0.3, 5.0
    height = foot + len(people) * band + 0.9
    figure = Figure(figsize=(WIDTH, height))
    colours = ListedColormap([to_rgb(state_colour(k)) for k in range(result.n_states)])
    longest = max(len(result.states[k]) for k in people)
    for k in people:
        axes = panel(figure, 1.4, foot + 0.5 + (len(people) - 1 - k) * band, WIDTH - 1.6, band - 0.06)
        axes.imshow(
            result.states[k][None],
            aspect="auto",
            cmap=colours,
            vmin=-0.5,
            vmax=result.n_states - 0.5,
            interpolation="nearest",
            extent=(0, len(result.states[k]) * result.seconds, 0, 1),
        )
        axes.set_xlim(0, longest * result.seconds)
        axes.set_yticks([0.5], [literal(result.study.subjects[k].name)], fontsize=SMALL)
        for side in axes.spines.values():
            side.set_visible(False)
        axes.tick_params(length=0, labelcolor=INK)
        if k == 0:
            heading(axes, "a", "States over time")
        if k == people[-1]:
            axes.tick_params(axis="x", labelsize=SMALL, length=3, color=QUIET)
            axes.set_xlabel(f"time, {result.unit}", fontsize=TEXT, color=INK)
        else:
            axes.set_xticks([])
    _draw_patterns(panel(figure, 1.4, 2.75, WIDTH - 2.6, 1.85), figure, result)
    dynamics = result.dynamics()
    _draw_matrix(panel(figure, 1.4, 0.6, 1.6, 1.55), dynamics.transitions)
    labels = [str(k + 1) for k in range(result.n_states)]
    for left, letter, title, values, spread, text in (
        (
            4.15,
            "d",
            "Occupancy",
            dynamics.occupancy,
            [result.dynamics(k).occupancy for k in range(len(result.states))],
            "share of time",
        ),
        (
            7.3,
            "e",
            "Dwell time",
            dynamics.dwell * result.seconds,
            [result.dynamics(k).dwell * result.seconds for k in range(len(result.states))],
            f"mean stay, {result.unit}",
        ),
    ):
        axes = panel(figure, left, 0.6, 2.4, 1.55)
        axes.bar(
            range(result.n_states),
            np.nan_to_num(values),
            color=[state_colour(k) for k in range(result.n_states)],
            alpha=0.85,
        )
        for own in spread:
            axes.plot(range(result.n_states), own, ".", color=INK, markersize=3, alpha=0.5)
        axes.set_xticks(range(result.n_states), labels)
        axes.set_xlabel("state; dots are people", fontsize=TEXT, color=INK)
        axes.set_ylabel(text, fontsize=TEXT, color=INK)
        style_axes(axes)
        heading(axes, letter, title)
    return figure


def _draw_patterns(axes: Axes, figure: Figure, result: BrainResult) -> None:
    limit = max(float(np.abs(result.patterns).max()), 1e-9)
    image = axes.imshow(result.patterns, aspect="auto", cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    heading(axes, "b", "What regions do in each state, on the mean")
    style_axes(axes, grid=False)
    axes.set_yticks(range(result.n_states), [f"state {k + 1}" for k in range(result.n_states)], fontsize=SMALL)
    every = max(1, len(result.study.regions) // 10)
    ticks = np.arange(0, len(result.study.regions), every)
    axes.set_xticks(ticks, [literal(result.study.regions[k]) for k in ticks], fontsize=SMALL - 1)
    box = axes.get_position()
    bar = figure.colorbar(image, cax=figure.add_axes((box.x1 + 0.012, box.y0, 0.012, box.height)))
    bar.ax.tick_params(labelsize=SMALL - 1)
    bar.set_label("standard deviations", fontsize=SMALL)


def _draw_matrix(axes: Axes, transitions: Array) -> None:
    n = len(transitions)
    axes.imshow(transitions, cmap="Blues", vmin=0, vmax=1)
    for i in range(n):
        for j in range(n):
            if i != j and np.isfinite(transitions[i, j]):
                value = transitions[i, j]
                axes.text(
                    j,
                    i,
                    f"{value:.2f}".lstrip("0"),
                    ha="center",
                    va="center",
                    fontsize=max(5.5, SMALL - 0.4 * n),
                    color="white" if value > 0.55 else INK,
                )
    axes.set_xticks(range(n), [str(k + 1) for k in range(n)])
    axes.set_yticks(range(n), [str(k + 1) for k in range(n)])
    axes.set_xlabel("to state", fontsize=TEXT, color=INK)
    axes.set_ylabel("from state", fontsize=TEXT, color=INK)
    style_axes(axes, grid=False)
    heading(axes, "c", "Transitions")
