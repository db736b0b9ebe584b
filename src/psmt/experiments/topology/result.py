"""What the graphs of all windows say: the atoms worth following, over time and with their companions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psmt.experiments.topology.atom_map import AtomMap
from psmt.experiments.topology.design import Design
from psmt.experiments.topology.evidence import Change, Lasting
from psmt.experiments.topology.likeness import Likeness
from psmt.experiments.topology.persistence import Persistence
from psmt.experiments.topology.settings import RULE, Row, TopologySettings
from psmt.types import Array, Ints, Result


@dataclass(frozen=True, kw_only=True)
class TopologyResult:
    """Graphs of all windows, and what they say."""

    settings: TopologySettings
    dictionary: Array
    """(n_atoms, n_features)"""
    starts: Ints
    """(n_windows,): first frame of each window."""
    graphs: Sequence[Result]
    """What `window_graph` returned, window by window."""
    chosen: tuple[int, ...]
    """Atoms that are followed: as given, or by `RULE`."""
    design: Design
    """Frames that the three tests compare."""
    change: Change | None
    """None where the film has too few blocks for the test."""
    lasting: Lasting
    likeness: Likeness
    """Of pictures in place."""
    shifted_likeness: Likeness | None
    """Of pictures that may be shifted by `MAX_SHIFT` pixels; None where atoms are no pictures."""
    persistence: Persistence
    """Of all windows; it decides nothing."""
    atom_map: AtomMap
    picture_shape: tuple[int, int] | None = None
    """Height and width of atoms that are pictures."""

    @property
    def step(self) -> int:
        """Frames from one window to the next."""
        return int(self.starts[1] - self.starts[0])

    @cached_property
    def centers(self) -> Ints:
        """(n_windows,): the frame in the middle of each window."""
        return self.starts + self.settings.window // 2

    @cached_property
    def component_size(self) -> Ints:
        """(n_windows, n_atoms): atoms in the component of each atom, itself included."""
        return np.array([graph["component_size"] for graph in self.graphs])

    @cached_property
    def neighbours(self) -> Ints:
        """(n_windows, n_atoms): atoms that each atom is linked to."""
        return np.array([graph["neighbours"] for graph in self.graphs])

    def rows(self) -> Iterator[Row]:
        """Lines of topology.csv: the chosen atoms, window by window."""
        for w, center in enumerate(self.centers):
            for atom in self.chosen:
                yield Row(int(center), atom, int(self.component_size[w, atom]), int(self.neighbours[w, atom]))

    def companions(self, atom: int, count: int = 2) -> list[tuple[int, int]]:
        """The atoms most similar to `atom` over all windows, each with the number of windows that link the two.

        Most often linked first; among equals the largest sum of similarities over the windows that count it among the
        nearest.
        """
        score: dict[int, float] = {}
        linked: dict[int, int] = {}
        for graph in self.graphs:
            for other, similarity in zip(graph["nearest"][atom], graph["nearest_similarity"][atom], strict=True):
                if other >= 0:
                    score[int(other)] = score.get(int(other), 0.0) + float(similarity)
            for pair in graph["edges"][(graph["edges"] == atom).any(axis=1)]:
                other = int(pair.sum()) - atom
                linked[other] = linked.get(other, 0) + 1
        others = sorted(score.keys() | linked.keys(), key=lambda j: (-linked.get(j, 0), -score.get(j, 0.0), j))
        return [(other, linked.get(other, 0)) for other in others[:count]]

    def times(self, count: int = 5) -> Ints:
        """Windows to show: one out of each of `count` parts of the film, where the chosen atoms are best linked."""
        sizes = np.log(self.component_size[:, list(self.chosen)]).sum(axis=1)
        parts = np.array_split(np.arange(len(self.graphs)), min(count, len(self.graphs)))
        return np.array([part[np.argmax(sizes[part])] for part in parts])

    def summary(self) -> dict[str, Any]:
        """Plain numbers, for JSON; None where there is nothing to count."""
        return {
            "n_atoms": len(self.dictionary),
            "window": self.settings.window,
            "step": self.step,
            "n_windows": len(self.starts),
            "n_components": self.settings.components,
            "threshold": self.settings.threshold,
            "edges": [len(graph["edges"]) for graph in self.graphs],
            "used": [int(graph["used"].sum()) for graph in self.graphs],
            "largest_component": [int(sizes.max()) for sizes in self.component_size],
            "chosen": list(self.chosen),
            "rule": RULE if self.settings.chosen is None else "given",
            "min_uses": self.settings.min_uses,
            "design": self.design.summary(),
            "change": None if self.change is None else self.change.summary(),
            "lasting": self.lasting.summary(),
            "likeness": self.likeness.summary(),
            "shifted_likeness": None if self.shifted_likeness is None else self.shifted_likeness.summary(),
            "persistence": self.persistence.summary(),
            "atom_map": self.atom_map.summary(),
        }


def choose_atoms(graphs: Sequence[Result], count: int = 3) -> tuple[int, ...]:
    """The `count` most informative atoms, by `RULE`; equals by their number."""
    sizes = np.array([graph["component_size"] for graph in graphs], dtype=np.float64)
    component = np.array([graph["component"] for graph in graphs])
    variance = np.log(sizes).var(axis=0)
    shared = np.zeros(sizes.shape[1])
    chosen: list[int] = []
    for _ in range(min(count, sizes.shape[1])):
        score = variance * (1.0 - shared)
        score[chosen] = -1.0
        atom = int(np.argmax(score))
        chosen.append(atom)
        # Of the windows in which the one with fewer links has any: it may not live in the other's shadow.
        together = ((component == component[:, [atom]]) & (sizes > 1)).sum(axis=0)
        with_links = np.minimum((sizes > 1).sum(axis=0), (sizes[:, atom] > 1).sum())
        shared = np.maximum(shared, together / np.maximum(with_links, 1))
    return tuple(chosen)
