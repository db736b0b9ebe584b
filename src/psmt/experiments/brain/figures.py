"""Figures of `psmt brain`: networks, components over time, and states."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from psmt.experiments.brain.components import ComponentStep
from psmt.experiments.brain.labels import match_networks
from psmt.experiments.brain.maps import glass_brains
from psmt.experiments.brain.result import BrainResult
from psmt.experiments.brain.subjects import Study
from psmt.figures.dark import ON_PAPER
from psmt.figures.panels import heading, label_axes, panel_figure
from psmt.figures.style import COLOURS, INK, SMALL, TEXT, literal, style_axes
from psmt.types import Array

SHOWN_ATOMS, GLASS_ATOMS, SHOWN_PEOPLE = 24, 8, 8
"""Largest number of atoms in the chart, of atoms on glass brains, and of people in timelines."""

SHOWN_COMPONENTS = 12
"""Largest number of components of a person that are drawn. The file components.csv has all components."""

STATE_COLOURS = (*COLOURS, "#8c6bb1", "#7f7f7f", "#bcbd22", "#17becf", "#9e0142", "#1b1f24")


def _dress(axes: Axes, letter: str, title: str, x: str = "", y: str = "", *, grid: bool = True) -> None:
    """Set the style, heading and axis labels of a panel."""
    style_axes(axes, grid=grid)
    heading(axes, letter, title)
    label_axes(axes, x, y)


def _heatmap(figure: Figure, axes: Axes, values: Array, label: str) -> None:
    """Draw a matrix with a diverging colour map, symmetric around 0, and a colour bar with the `label`."""
    limit = max(float(np.abs(values).max()), 1e-9)
    image = axes.imshow(values, aspect="auto", cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    bar = figure.colorbar(image, ax=axes, aspect=25, pad=0.01)
    bar.ax.tick_params(labelsize=SMALL - 1)
    bar.set_label(label, fontsize=SMALL)


def atoms_figure(result: BrainResult) -> Figure:
    """Draw the weights of the atoms as a heat map (regions by atoms), and on glass brains if there is an atlas."""
    study, dictionary = result.study, result.model.networks_
    order = np.argsort(-result.model.shares_, kind="stable")[:SHOWN_ATOMS]
    pictures, rows = _glass_rows(study, dictionary[order[:GLASS_ATOMS]])
    figure, axes = panel_figure([["chart"] * 2, *rows], height=5.2 + 1.7 * len(rows), heights=[4.9, *[1.6] * len(rows)])
    chart = axes["chart"]
    _heatmap(figure, chart, dictionary[order].T, "weight of the region")
    title = f"Networks: the {len(order)} atoms with the most activity, of {len(dictionary)}"
    _dress(chart, "a", title, "atom (pattern of co-activation)", grid=False)
    chart.set_xticks(range(len(order)), [f"{k + 1}" for k in order], fontsize=SMALL - 1)
    ticks = range(0, len(study.regions), max(1, len(study.regions) // 20))
    chart.set_yticks(ticks, [literal(study.regions[k]) for k in ticks], fontsize=SMALL - 1.5)
    known = match_networks(dictionary, study.networks)
    similar = {k: f", most similar to {name} ({value:.2f})" for k, (name, value) in enumerate(known) if name}
    _show_glass(axes, pictures, [f"atom {k + 1}{similar.get(k, '')}" for k in order])
    return figure


def _glass_rows(study: Study, patterns: Array) -> tuple[list[Any], list[list[str]]]:
    """Return pictures of patterns (n, n_regions) on glass brains, and rows of two panel names to draw them in."""
    pictures = glass_brains(study, patterns)
    names = [f"glass {k}" for k in range(len(pictures))] + ["."] * (len(pictures) % 2)
    return pictures, [names[k : k + 2] for k in range(0, len(names), 2)]


def _show_glass(axes: Mapping[Any, Axes], pictures: Sequence[Any], titles: Sequence[str]) -> None:
    for k, picture in enumerate(pictures):
        own = axes[f"glass {k}"]
        own.imshow(picture, gid=ON_PAPER)
        own.axis("off")
        own.set_title(titles[k], fontsize=SMALL, color=INK, loc="left", pad=1)


def components_figure(result: BrainResult) -> Figure:
    """Draw the sizes of the longest-lived components over time: a panel per person, a row per component."""
    people = range(min(SHOWN_PEOPLE, len(result.steps)))
    longest = max(result.study.lengths[k] for k in people)
    figure, panels = panel_figure([[k] for k in people], height=1.2 + 1.15 * len(people))
    rasters = [component_raster(result.steps[k], len(result.starts[k])) for k in people]
    top = max([float(np.nanmax(own)) for own in rasters if np.isfinite(own).any()], default=2.0)
    for (k, axes), raster in zip(panels.items(), rasters, strict=True):
        step, middle = result.settings.step, result.settings.window / 2
        ends = (np.array([0, len(result.starts[k])]) * step + middle - step / 2) * result.seconds
        look: dict[str, Any] = {"cmap": "viridis", "vmin": 2, "vmax": max(top, 3), "interpolation": "nearest"}
        image = axes.imshow(raster, aspect="auto", extent=(*ends, len(raster), 0), **look)
        style_axes(axes, grid=False)
        axes.set(xlim=(0, longest * result.seconds), yticks=[])
        axes.set_ylabel(literal(result.study.names[k]), fontsize=SMALL, color=INK, rotation=0, ha="right", va="center")
        axes.tick_params(labelbottom=k == people[-1])
    heading(panels[0], "a", f"The {SHOWN_COMPONENTS} longest components: a line each, in the order of their births")
    panels[people[-1]].set_xlabel(f"time, {result.unit}", fontsize=TEXT, color=INK)
    bar = figure.colorbar(image, ax=list(panels.values()), aspect=40, pad=0.01)
    bar.set_label("atoms in the component", fontsize=SMALL)
    return figure


def component_raster(steps: Sequence[ComponentStep], n_windows: int) -> Array:
    """Return the numbers of atoms (n_shown, n_windows) in the longest-lived components, or NaN where absent."""
    seen = Counter(step.component for step in steps)
    longest = sorted(own for own, _ in seen.most_common(SHOWN_COMPONENTS))  # numbers are in the order of birth
    raster = np.full((max(len(longest), 1), n_windows), np.nan)
    for step in steps:
        if step.component in longest:
            raster[longest.index(step.component), step.window] = step.size
    return raster


def states_figure(result: BrainResult) -> Figure:
    """Draw the states of each person over time, the pattern of each state, transitions, occupancy and dwell times."""
    shown = result.states[:SHOWN_PEOPLE]
    pictures, rows = _glass_rows(result.study, result.patterns)
    layout = [["time"] * 6, ["patterns"] * 6, [name for name in ("transitions", "occupancy", "dwell") for _ in "ab"]]
    figure, panels = panel_figure(
        [*layout, *([name for name in row for _ in "abc"] for row in rows)],
        height=5.8 + 0.26 * len(shown) + 1.7 * len(rows),
        heights=[0.3 + 0.26 * len(shown), 2.2, 2.2, *[1.6] * len(rows)],
    )
    _show_glass(panels, pictures, [f"state {k + 1}, mean activity" for k in range(result.n_states)])
    n_states, regions, dynamics = result.n_states, result.study.regions, result.group_dynamics
    axes, colours = panels["time"], [STATE_COLOURS[k % len(STATE_COLOURS)] for k in range(n_states)]
    for k, own in enumerate(shown):
        place = (0, len(own) * result.seconds, k + 0.9, k + 0.1)
        look: dict[str, Any] = {"cmap": ListedColormap(colours), "vmin": -0.5, "vmax": n_states - 0.5}
        axes.imshow(own[None], aspect="auto", interpolation="nearest", extent=place, **look)
    axes.set(xlim=(0, max(map(len, shown)) * result.seconds), ylim=(len(shown), 0))
    axes.set_yticks(np.arange(len(shown)) + 0.5, [literal(name) for name in result.study.names[: len(shown)]])
    _dress(axes, "a", "States over time", f"time, {result.unit}", grid=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(axis="y", length=0)

    axes, numbers = panels["patterns"], [str(k + 1) for k in range(n_states)]
    _heatmap(figure, axes, result.patterns, "standard deviations")
    _dress(axes, "b", "Mean activity of the regions in each state", grid=False)
    axes.set_yticks(range(n_states), [f"state {number}" for number in numbers], fontsize=SMALL)
    ticks = range(0, len(regions), max(1, len(regions) // 10))
    turn: dict[str, Any] = {"rotation": 25, "ha": "right"} if max(map(len, regions)) > 10 else {}
    axes.set_xticks(ticks, [literal(regions[k]) for k in ticks], fontsize=SMALL - 1, **turn)

    axes, moves = panels["transitions"], dynamics.transitions
    axes.imshow(moves, cmap="Blues", vmin=0, vmax=1)
    written: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": max(5.5, SMALL - 0.4 * n_states)}
    for i, j in np.argwhere(np.isfinite(moves) & ~np.eye(n_states, dtype=bool)):
        colour = "white" if moves[i, j] > 0.55 else INK
        axes.text(j, i, f"{moves[i, j]:.2f}".lstrip("0"), color=colour, **written)
    axes.set_xticks(range(n_states), numbers)
    axes.set_yticks(range(n_states), numbers)
    _dress(axes, "c", "Transitions", "to state", "from state", grid=False)

    for name, letter, title, text, scale in (
        ("occupancy", "d", "Occupancy", "share of time", 1.0),
        ("dwell", "e", "Dwell time", f"mean stay, {result.unit}", result.seconds),
    ):
        axes = panels[name]
        axes.bar(range(n_states), np.nan_to_num(scale * getattr(dynamics, name)), color=colours, alpha=0.85)
        for person in result.person_dynamics.values():
            axes.plot(range(n_states), scale * getattr(person, name), ".", color=INK, markersize=3, alpha=0.5)
        axes.set_xticks(range(n_states), numbers)
        _dress(axes, letter, title, "state; dots are people", text)
    return figure
