"""The parts of the topology, put together."""

from __future__ import annotations

from psmt.experiments.contract import Experiment
from psmt.experiments.topology.figure import atom_map_figure, topology_figure
from psmt.experiments.topology.report import topology_claims, topology_section
from psmt.experiments.topology.run import TopologyResult, topology
from psmt.experiments.topology.settings import Row, TopologySettings
from psmt.figures import png
from psmt.report import csv_parts

EXPERIMENT = Experiment[TopologySettings, TopologyResult](
    run=lambda values, settings, run, _: topology(values, settings, run),
    files={
        "topology.png": lambda result: png(topology_figure(result)),
        "atom_map.png": lambda result: png(atom_map_figure(result)),
    },
    tables={"topology.csv": lambda result: csv_parts(Row._fields, result.rows())},
    shown=topology_claims,
    claims=topology_claims,
    sections=lambda result, files: [topology_section(result, files["topology.png"], files["atom_map.png"])],
    summary=TopologyResult.summary,
)
