"""Section on the topology: Fig. 3, its tests, and the map of all atoms."""

from __future__ import annotations

import numpy as np

from psmt.evaluation.null_test import Measured
from psmt.experiments.topology.result import TopologyResult
from psmt.experiments.topology.settings import RULE
from psmt.report import Cell, Fact, Picture, Section, Table
from psmt.report.numbers import signed


def topology_section(result: TopologyResult, figure: bytes, atom_map: bytes) -> Section:
    """Section with the two figures as PNG files."""
    settings = result.settings
    rule = "They are the " + RULE if settings.chosen is None else "They were given"
    return Section(
        title="The topology of the embedding",
        text=[
            f"{settings.n_atoms:,} atoms, {len(result.graphs)} windows of {settings.window:,} frames, "
            f"{result.step:,} frames from one to the next. Two atoms are linked in a window where their columns of "
            f"P have a cosine above {settings.threshold:g} and both are used in {settings.min_uses} frames or more; "
            f"linked atoms form components. Three atoms are followed. {rule}.",
            "Neighbouring windows are made from almost the same frames, so their graphs are alike in any film. The "
            f"tests compare {len(result.design.windows)} parts of the film that share no frame, and hold what they "
            "find against films without it: with frames in random order atoms are active together as before but no "
            "longer move; with blocks of frames dealt out at random they move as before but at no particular time.",
        ],
        pictures=[
            Picture(figure, alt="Chosen atoms over time, their components, their most similar atoms, and three tests"),
            Picture(
                atom_map,
                alt="All atoms in use, arranged so that neighbours move together",
                caption="The topology as a whole, which the paper does not show: atoms that are active together, or "
                "one after the other, lie side by side.",
            ),
        ],
        tables=[_tests(result)],
    )


def topology_facts(result: TopologyResult) -> list[Fact]:
    """Sizes, and how links are made and tested."""
    settings = result.settings
    return [
        Fact(
            "Topology",
            f"M = {settings.n_atoms:,}, H = {settings.window:,}, f = {settings.components:,}, "
            f"{result.step:,} frames from window to window (overlap {settings.overlap:.4g}), "
            f"links above {settings.threshold:g} between atoms used in {settings.min_uses} frames or more, "
            f"{settings.n_permutations:,} permutations per test, {settings.n_nulls} draws of each null",
        )
    ]


def _tests(result: TopologyResult) -> Table:
    likeness, lasting = result.likeness, result.lasting
    rows = [
        ("links shared at the same time less at other times", "blocks dealt out at random", result.change, "dealt"),
        ("links shared by windows without a common frame", "frames in random order", lasting, "shuffled"),
        ("the same", "atoms permuted", lasting, "permuted"),
        ("correlation of linked atoms less of unlinked ones", "pictures permuted", likeness, "permuted"),
        ("the same", "frames in random order", likeness, "shuffled"),
    ]
    return Table(
        "The film against films without the effect; beyond: film less null, and its 90% interval",
        ("what", "null", "film", "null, mean", "beyond", "from", "to", "p"),
        [
            [Cell(what), Cell(null), *_cells(getattr(measured, name))]
            for what, null, measured, name in rows
            if measured is not None
        ],
    )


def _cells(measured: Measured) -> list[Cell]:
    mean = float(measured.null.mean()) if len(measured.null) else np.nan
    numbers = [Cell(_number(value)) for value in (measured.value, mean, *measured.beyond())]
    return [*numbers, Cell(f"{measured.p_value:.2g}" if np.isfinite(measured.p_value) else "–")]


def _number(value: float) -> str:
    return signed(value) if np.isfinite(value) else "–"
