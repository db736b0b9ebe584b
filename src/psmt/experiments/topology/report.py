"""The topology as an experiment, and its report: Fig. 3, its tests, and the map of all atoms."""

from __future__ import annotations

import numpy as np

from psmt.experiments.contract import Experiment
from psmt.experiments.topology.claims import topology_claims
from psmt.experiments.topology.figure import atom_map_figure, topology_figure
from psmt.experiments.topology.run import TopologyResult, topology
from psmt.experiments.topology.settings import RULE, Row, TopologySettings
from psmt.figures import png
from psmt.report import Column, Picture, Section, Table, csv_parts
from psmt.report.numbers import signed


def topology_section(result: TopologyResult, figure: bytes, atom_map: bytes) -> Section:
    """Section with the two figures as PNG files."""
    settings = result.settings
    rule = f"They are the {RULE}" if settings.chosen is None else "They were given"
    return Section(
        title="The topology of the embedding",
        text=[
            f"{settings.n_atoms:,} atoms, {len(result.graphs)} windows of {settings.window:,} frames, "
            f"{result.step:,} frames from one to the next. Two atoms are linked in a window if their columns of "
            f"P have a cosine above {settings.threshold:g} and both are used in {settings.min_uses} frames or more. "
            f"Linked atoms form components. Atoms that are followed: {len(result.chosen)}. {rule}.",
            "Neighbouring windows share almost all frames, so their graphs are alike in any film. The tests therefore "
            f"compare {len(result.design.windows)} parts of the film that share no frame, and compare the film with "
            "null models. Frames in random order: atoms are active together as before, but do not move. Blocks of "
            "frames dealt out at random: atoms move as before, but at other times.",
        ],
        pictures=[
            Picture(figure, alt="Chosen atoms over time, their components, their most similar atoms, and three tests"),
            Picture(
                atom_map,
                alt="All used atoms, arranged so that neighbours move together",
                caption="The whole topology, which the paper does not show: atoms that are active together, or one "
                "after the other, are neighbours.",
            ),
        ],
        tables=[_tests(result)],
    )


def _tests(result: TopologyResult) -> Table:
    shared, likeness = "links shared by windows without a common frame", "correlation of linked less unlinked atoms"
    tests = [
        (shared, "frames in random order", result.lasting.shuffled),
        (shared, "atoms permuted", result.lasting.permuted),
        (likeness, "pictures permuted", result.likeness.permuted),
        (likeness, "frames in random order", result.likeness.shuffled),
    ]
    if result.change is not None:
        change = "links shared at the same time less at other times"
        tests.insert(0, (change, "blocks dealt out at random", result.change.dealt))
    return Table.of(
        "The film compared with null models; beyond: film less null model, with its 90% interval",
        tests,
        [
            Column("what", lambda row: row[0]),
            Column("null model", lambda row: row[1]),
            Column("film", lambda row: row[2].value, _number),
            Column("null model, mean", lambda row: row[2].null_mean, _number),
            Column("beyond", lambda row: row[2].excess.mean, _number),
            Column("from", lambda row: row[2].excess.low, _number),
            Column("to", lambda row: row[2].excess.high, _number),
            Column("p", lambda row: row[2].p_value, lambda p: f"{p:.2g}" if np.isfinite(p) else "–"),
        ],
    )


def _number(value: float) -> str:
    return signed(value) if np.isfinite(value) else "–"


EXPERIMENT = Experiment[TopologySettings, TopologyResult](
    run=lambda values, settings, run, _: topology(values, settings, run),
    files={
        "topology.png": lambda result: png(topology_figure(result)),
        "atom_map.png": lambda result: png(atom_map_figure(result)),
        "topology.csv": lambda result: csv_parts(Row._fields, result.rows()),
    },
    shown=topology_claims,
    claims=topology_claims,
    sections=lambda result, files: [topology_section(result, files["topology.png"], files["atom_map.png"])],
    summary=TopologyResult.summary,
)
