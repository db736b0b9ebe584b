"""A picture of how far a study can be trusted: what it predicts, and whether its states are found again."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from psmt.experiments.brain.claims import COMPARED
from psmt.experiments.brain.halves import MEASURES, METHODS
from psmt.experiments.brain.prediction import METHODS as PREDICTORS
from psmt.experiments.brain.result import BrainResult
from psmt.experiments.brain.surrogates import SURROGATES
from psmt.figures.panels import WIDTH, heading, panel
from psmt.figures.style import COLOURS, INK, QUIET, RULE, SMALL, TEXT, LineStyle, style_axes

_STYLES = {
    "psmt": LineStyle(COLOURS[0], 3.2, layer=3),
    "ridge": LineStyle(COLOURS[1], 1.5, (0, (5, 3)), layer=4),
    "dmd": LineStyle(COLOURS[2], 1.5, (0, (1.5, 2.5)), layer=5),
    "copy": LineStyle(QUIET, 1.2, "--"),
    "mean": LineStyle(QUIET, 1.2, ":"),
}
"""By predictor. Where errors are the same, which they often are, thin dashes lie on a broad line, and all are seen."""

_ROOM = 1.42
"""Height of the axes, by that of the data: the legend has the rest for itself."""


def trust_figure(result: BrainResult) -> Figure:
    """Errors by volumes ahead, and matched correlations of states between halves, with surrogates."""
    figure = Figure(figsize=(WIDTH, 3.6))
    axes = panel(figure, 0.75, 0.75, 3.6, 2.3)
    means = result.errors.mean(axis=0)
    ahead = np.arange(1, means.shape[1] + 1)
    for name, errors in zip(PREDICTORS, means, strict=True):
        axes.plot(ahead, errors, label=PREDICTORS[name], **_STYLES[name].kwargs())
    axes.set_xticks(ahead)
    axes.set_ylim(0, _ROOM * float(means.max()))
    axes.set_xlabel("volumes ahead", fontsize=TEXT, color=INK)
    axes.set_ylabel("MSE / variance", fontsize=TEXT, color=INK)
    axes.legend(fontsize=SMALL - 1, frameon=False, ncols=2, loc="upper left")
    style_axes(axes)
    heading(axes, "a", f"What comes next, mean of {len(result.errors)} people")
    _draw_reproducibility(panel(figure, 5.3, 0.75, 4.5, 2.3), result)
    return figure


def _draw_reproducibility(axes: Axes, result: BrainResult) -> None:
    kinds = [*result.methods, *SURROGATES]
    for place, measure in enumerate(COMPARED):
        k = MEASURES.index(measure)
        for i, kind in enumerate(kinds):
            if kind in SURROGATES:
                values = result.against(kind, measure).null
            else:
                values = result.between[:, result.methods.index(kind), k]
                values = values[np.isfinite(values)]
            at = place + (i - (len(kinds) - 1) / 2) * 0.16
            colour = (COLOURS[0], COLOURS[1], COLOURS[2], RULE, QUIET)[i] if len(kinds) == 5 else COLOURS[i]
            if len(values):
                axes.bar(at, values.mean(), width=0.14, color=colour, label=_kind(kind) if place == 0 else None)
                axes.plot(np.full(len(values), at), values, ".", color=INK, markersize=3, alpha=0.6)
    axes.set_xticks(range(len(COMPARED)), ["activity", "connectivity\n(less the overall)"], fontsize=SMALL)
    axes.set_ylabel("matched correlation", fontsize=TEXT, color=INK)
    style_axes(axes)
    if len(result.between):
        axes.set_ylim(top=_ROOM * axes.get_ylim()[1])
        axes.legend(fontsize=SMALL - 1, frameon=False, ncols=2, loc="upper right")
    heading(axes, "b", "States found again in the other half of the people")


def _kind(kind: str) -> str:
    return METHODS.get(kind, f"PSMT on surrogates: {kind}")
