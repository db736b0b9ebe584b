"""Dynamic topology: which atoms move together, window by window, and whether they look alike (Fig. 3 of the paper).

One dictionary serves the whole film, so that an atom keeps its number while the window slides and only P changes.

    dictionary -> codes -> window_graph, a task per window -> chosen atoms over time, likeness, persistence
                        -> arrange_atoms, one task         -> all atoms on a grid, neighbours in P side by side
"""

from psmt.experiments.topology.atom_map import AtomMap, arrange_atoms, grid_by_similarity
from psmt.experiments.topology.experiment import assemble, map_task, topology, window_tasks, write_topology
from psmt.experiments.topology.graph import similarity_graph, window_graph
from psmt.experiments.topology.likeness import Likeness, likeness_test, picture_likeness, picture_side
from psmt.experiments.topology.persistence import Overlap, Persistence, measure_persistence
from psmt.experiments.topology.result import TopologyResult, choose_atoms
from psmt.experiments.topology.settings import RULE, THRESHOLD, Row, TopologySettings

__all__ = [
    "RULE",
    "THRESHOLD",
    "AtomMap",
    "Likeness",
    "Overlap",
    "Persistence",
    "Row",
    "TopologyResult",
    "TopologySettings",
    "arrange_atoms",
    "assemble",
    "choose_atoms",
    "grid_by_similarity",
    "likeness_test",
    "map_task",
    "measure_persistence",
    "picture_likeness",
    "picture_side",
    "similarity_graph",
    "topology",
    "window_graph",
    "window_tasks",
    "write_topology",
]
