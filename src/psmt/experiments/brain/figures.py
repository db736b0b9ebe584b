"""Figures of a study: networks, components over time, states, and how far to trust them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from PIL import Image

from psmt.experiments.brain.components import ComponentStep
from psmt.experiments.brain.prediction import PREDICTORS
from psmt.experiments.brain.reproducibility import COMPARED, STATE_METHODS, SURROGATES
from psmt.experiments.brain.result import BrainResult
from psmt.figures.dark import ON_PAPER
from psmt.figures.layouts import Estimate, draw_estimates, draw_key, panel_figure
from psmt.figures.panels import heading, label_axes
from psmt.figures.style import COLOURS, INK, QUIET, SMALL, TEXT, LineStyle, literal, style_axes
from psmt.types import Array

SHOWN_ATOMS, GLASS_ATOMS, SHOWN_PEOPLE = 24, 8, 8
"""Most atoms in the chart and on glass brains, and most people in timelines."""

SHOWN_WINDOWS = 6
"""Fewest windows of a component that is drawn; topology.csv has all."""

MARKS = {"birth": "o", "merge": "^", "split": "v", "return": "s"}
"""Markers of events."""

STATE_COLOURS = (*COLOURS, "#8c6bb1", "#7f7f7f", "#bcbd22", "#17becf", "#9e0142", "#1b1f24")

_STYLES = {
    "psmt": LineStyle(COLOURS[0], 3.2, layer=3),
    "ridge": LineStyle(COLOURS[1], 1.5, (0, (5, 3)), layer=4),
    "dmd": LineStyle(COLOURS[2], 1.5, (0, (1.5, 2.5)), layer=5),
    "copy": LineStyle(QUIET, 1.2, "--"),
    "mean": LineStyle(QUIET, 1.2, ":"),
}
"""By predictor. Errors are often equal: thin dashes on a broad line leave all of them visible."""


def _dress(axes: Axes, letter: str, title: str, x: str = "", y: str = "", *, grid: bool = True) -> None:
    """Frame, heading and labels of a panel."""
    style_axes(axes, grid=grid)
    heading(axes, letter, title)
    label_axes(axes, x, y)


def _heatmap(figure: Figure, axes: Axes, values: Array, label: str) -> None:
    """Draw values of both signs with a colour bar."""
    limit = max(float(np.abs(values).max()), 1e-9)
    image = axes.imshow(values, aspect="auto", cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    bar = figure.colorbar(image, ax=axes, aspect=25, pad=0.01)
    bar.ax.tick_params(labelsize=SMALL - 1)
    bar.set_label(label, fontsize=SMALL)


# Networks


def atoms_figure(result: BrainResult) -> Figure:
    """Chart of regions by atoms, and atoms on a glass brain if there is an atlas of regions."""
    order = np.argsort(-result.energy, kind="stable")[:SHOWN_ATOMS]
    study, pictures = result.study, []
    if study.atlas is not None:
        pictures = glass_brains(study.atlas, study.regions, result.dictionary[order[:GLASS_ATOMS]])
    rows = [[f"glass {k}", f"glass {k + 1}" if k + 1 < len(pictures) else "."] for k in range(0, len(pictures), 2)]
    figure, axes = panel_figure(
        [["chart", "chart"], *rows], height=5.2 + 1.7 * len(rows), heights=[4.9, *[1.6] * len(rows)]
    )
    chart = axes["chart"]
    _heatmap(figure, chart, result.dictionary[order].T, "weight of the region")
    title = f"Networks: the {len(order)} atoms with the most activity, of {len(result.dictionary)}"
    _dress(chart, "a", title, "atom (pattern of co-activation)", grid=False)
    chart.set_xticks(range(len(order)), [f"{k + 1}" for k in order], fontsize=SMALL - 1)
    ticks = range(0, len(study.regions), max(1, len(study.regions) // 20))
    chart.set_yticks(ticks, [literal(study.regions[k]) for k in ticks], fontsize=SMALL - 1.5)
    for k, picture in enumerate(pictures):
        own = axes[f"glass {k}"]
        own.imshow(picture, gid=ON_PAPER)
        own.axis("off")
        own.set_title(f"atom {order[k] + 1}", fontsize=SMALL, color=INK, loc="left", pad=1)
    return figure


def glass_brains(atlas: Path, regions: Sequence[str], patterns: Array) -> list[Any]:
    """Pictures (height, width, 3) of patterns (n, n_regions) of an atlas's regions; none for voxels."""
    import nibabel
    from nilearn.plotting import plot_glass_brain

    image: Any = nibabel.load(atlas)
    make: Any = nibabel.Nifti1Image
    labels = np.asanyarray(image.dataobj)
    numbers = region_numbers(regions)
    if not numbers or (labels.ndim == 4 and max(numbers) > labels.shape[3]):
        return []
    pictures = []
    for pattern in patterns:
        if labels.ndim == 4:
            volume = labels[..., [number - 1 for number in numbers]] @ pattern
        else:
            volume = paint_regions(labels, numbers, pattern)
        volume = make(volume.astype(np.float32), image.affine)
        figure, drawn = Figure(figsize=(4.6, 1.6)), BytesIO()
        plot_glass_brain(volume, figure=figure, display_mode="lyr", plot_abs=False, colorbar=False, annotate=False)
        figure.savefig(drawn, format="png", dpi=150, facecolor="white")
        pictures.append(np.asarray(Image.open(drawn).convert("RGB")))
    return pictures


def region_numbers(regions: Sequence[str]) -> list[int]:
    """Numbers of the regions in their atlas; empty if some have other names, which tables may give them.

    >>> [region_numbers(names) for names in (["region 3", "region 12"], ["region 3", "insula"], ["region x", ""])]
    [[3, 12], [], []]
    """
    found = [re.fullmatch(r"(?:region|map) ([1-9][0-9]{0,8})", name) for name in regions]
    return [int(own[1]) for own in found if own] if all(found) else []


def paint_regions(labels: Any, numbers: Sequence[int], pattern: Array) -> Array:
    """Volume of the shape of `labels` with the value (n_regions,) of each numbered region, 0 elsewhere.

    >>> paint_regions(np.array([0.0, 7.0, np.nan, 1e12, 2.0]), [7, 2], np.array([0.5, -1.0]))
    array([ 0. ,  0.5,  0. ,  0. , -1. ])
    """
    order = np.argsort(numbers)
    known = np.asarray(numbers)[order]
    place = np.searchsorted(known, labels).clip(max=len(known) - 1)
    return np.where(known[place] == labels, pattern[order][place], 0.0)


# Components


def components_figure(result: BrainResult) -> Figure:
    """Sizes of the components of the graph of atoms over time, a row per person, with marks for events."""
    people = range(min(SHOWN_PEOPLE, len(result.steps)))
    longest = max(result.study.lengths[k] for k in people)
    figure, panels = panel_figure([[k] for k in people], height=1.4 + 1.1 * len(people))
    for k, axes in panels.items():
        seen = Counter(step.component for step in result.steps[k])
        steps = [step for step in result.steps[k] if seen[step.component] >= SHOWN_WINDOWS]
        draw_components(axes, steps, (result.starts[k] + result.settings.window // 2) * result.seconds)
        top = max([step.size for step in steps], default=2)
        axes.set_yscale("log", base=2)
        axes.set_ylim(1.7, 1.3 * max(top, 4))
        ticks = [2**i for i in range(1, int(np.log2(max(top, 4))) + 1)]
        axes.set_yticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.set_xlim(0, longest * result.seconds)
        style_axes(axes)
        axes.set_ylabel(literal(result.study.names[k]), fontsize=SMALL, color=INK, rotation=0, ha="right", va="center")
        axes.tick_params(labelbottom=k == people[-1])
    heading(panels[0], "a", f"Atoms in each component that is seen in at least {SHOWN_WINDOWS} windows")
    panels[people[-1]].set_xlabel(f"time, {result.unit}", fontsize=TEXT, color=INK)
    for text, marker in (MARKS | {"end": "x", "a window; alone: a return for one window": "."}).items():
        axes.plot([], [], marker, color=INK, label=text, markersize=3 if marker == "." else 6)
    figure.legend(*axes.get_legend_handles_labels(), ncols=6, fontsize=SMALL, frameon=False, loc="outside lower center")
    return figure


def draw_components(axes: Axes, steps: Sequence[ComponentStep], centres: Array) -> None:
    """Draw the sizes of components over the centres of the windows, with their events.

    Everything of one colour and mark is one artist, as matplotlib cannot hold an artist for each component of a long
    scan.
    """
    lines: dict[str, list[tuple[float, float]]] = defaultdict(list)
    points: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    last: dict[str, ComponentStep] = {}
    for step in sorted(steps, key=lambda step: (step.component, step.window)):
        colour = STATE_COLOURS[step.component % len(STATE_COLOURS)]
        place = float(centres[step.window]), float(step.size)
        before = last.get(colour)
        if before is not None and (before.component, before.window + 1) != (step.component, step.window):
            lines[colour].append((np.nan, np.nan))
        lines[colour].append(place)
        last[colour] = step
        # A return for a single window, which is frequent, is only a dot of the line.
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


# States


def states_figure(result: BrainResult) -> Figure:
    """Timelines of the states, their patterns, transitions, occupancy and dwell times."""
    shown = result.states[:SHOWN_PEOPLE]
    figure, panels = panel_figure(
        [["time"] * 3, ["patterns"] * 3, ["transitions", "occupancy", "dwell"]],
        height=5.8 + 0.26 * len(shown),
        heights=[0.3 + 0.26 * len(shown), 2.2, 2.2],
        widths=[1.0, 1.3, 1.3],
    )
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
    axes.set_xticks(ticks, [literal(regions[k]) for k in ticks], fontsize=SMALL - 1)

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


# Trust


def trust_figure(result: BrainResult) -> Figure:
    """Errors by volumes ahead, and correlations of matched states between halves, with surrogates."""
    figure, panels = panel_figure(
        [["errors", "states"]], height=3.9, widths=[1.0, 1.15], title="How far the results can be trusted"
    )
    axes, errors = panels["errors"], result.mean_errors
    ahead = range(1, len(errors["psmt"]) + 1)
    for name, own in errors.items():
        axes.plot(ahead, own, label=PREDICTORS[name], **_STYLES[name].kwargs())
    axes.set_xticks(ahead)
    axes.set_ylim(0, 1.42 * max(own.max() for own in errors.values()))  # room for the legend
    axes.legend(fontsize=SMALL - 1, frameon=False, ncols=2, loc="upper left")
    _dress(axes, "a", f"Prediction, mean of {len(result.errors)} people", "volumes ahead", "MSE / variance")
    axes, colours = panels["states"], {"activity": COLOURS[0], "connectivity (less the overall)": COLOURS[1]}
    rows = {
        STATE_METHODS[method]: [
            Estimate(*result.between_means[measure][method], result.between[measure][method]) for measure in COMPARED
        ]
        for method in result.between["activity"]
    }
    for kind, tests in result.surrogate_tests.items():
        # Mean and 90% interval of the draws of a surrogate.
        drawn = [(tests[measure].null, tests[measure].value - np.array(tests[measure].excess)) for measure in COMPARED]
        rows[f"PSMT on {SURROGATES[kind]}"] = [Estimate(mean, low, high, null) for null, (mean, high, low) in drawn]
    draw_estimates(axes, {name: dict(zip(colours, own, strict=True)) for name, own in rows.items()}, colours)
    draw_key(figure, colours)
    label_axes(axes, "matched correlation")
    heading(axes, "b", "States found again in other people")
    return figure
