"""Section on the topology: Fig. 3, its tests, and the map of all atoms."""

from __future__ import annotations

import numpy as np

from psmt.experiments.topology.result import TopologyResult
from psmt.experiments.topology.settings import RULE
from psmt.report import Cell, Fact, Picture, Section, Table
from psmt.report.numbers import percent


def topology_section(result: TopologyResult, figure: bytes, atom_map: bytes) -> Section:
    """Section with the two figures as PNG files."""
    settings = result.settings
    rule = "They are the " + RULE if settings.chosen is None else "They were given"
    return Section(
        title="The topology of the embedding",
        text=[
            f"{settings.n_atoms:,} atoms, {len(result.graphs)} windows of {settings.window:,} frames, "
            f"{settings.step:,} frames from one to the next. Two atoms are linked in a window where their columns of "
            f"P have a cosine above {settings.threshold:g}; linked atoms form components. Three atoms are followed. "
            f"{rule}.",
            "Neighbouring windows are made from almost the same frames, so their graphs are alike in any film. What "
            "persists shows between windows that share no frame, held against graphs whose atoms are shuffled.",
        ],
        pictures=[
            Picture(figure, alt="Chosen atoms over time, their components, their most similar atoms, and two tests"),
            Picture(
                atom_map,
                alt="All atoms in use, arranged so that neighbours move together",
                caption="The topology as a whole, which the paper does not show: atoms that are active together, or "
                "one after the other, lie side by side.",
            ),
        ],
        tables=[_overlaps(result)],
    )


def topology_facts(result: TopologyResult) -> list[Fact]:
    """Sizes, and how links are made and tested."""
    settings = result.settings
    return [
        Fact(
            "Topology",
            f"M = {settings.n_atoms:,}, H = {settings.window:,}, f = {settings.components:,}, "
            f"{settings.step:,} frames from window to window (overlap {settings.overlap:.4g}), "
            f"links above {settings.threshold:g}, {settings.n_permutations:,} permutations per test",
        )
    ]


def _overlaps(result: TopologyResult) -> Table:
    pairs = [("neighbouring windows", result.persistence.successive), ("distant windows", result.persistence.distant)]
    if result.halves is not None:
        pairs.append(("the two halves of the film", result.halves))
    return Table(
        "What two windows have in common; p by permutation, agreement of components as adjusted Rand index",
        ("windows", "frames apart", "frames shared", "links in both", "by chance", "p", "components agree"),
        [
            [
                Cell(name),
                Cell(f"{overlap.frames_apart:,.0f}"),
                Cell(percent(overlap.frames_shared)),
                Cell(_percent(overlap.jaccard)),
                Cell(_percent(overlap.permuted)),
                Cell(f"{overlap.p_value:.2g}" if np.isfinite(overlap.p_value) else "–"),
                Cell(f"{overlap.adjusted_rand:.2f}" if np.isfinite(overlap.adjusted_rand) else "–"),
            ]
            for name, overlap in pairs
        ],
    )


def _percent(value: float) -> str:
    return percent(value) if np.isfinite(value) else "–"
