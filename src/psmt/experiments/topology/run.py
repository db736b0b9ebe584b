"""The whole experiment: dictionary, codes, a task per window and per draw of a null model, and the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from psmt.experiments.coding_tasks import code_film, slice_codes
from psmt.experiments.topology import measures
from psmt.experiments.topology.atom_map import AtomMap, arrange_atoms
from psmt.experiments.topology.measures import Design
from psmt.experiments.topology.settings import RULE, Row, TopologySettings
from psmt.experiments.window_graphs import link_sets, window_graph
from psmt.pipeline.run import Run
from psmt.pipeline.tasks import Task, on_device
from psmt.types import Array, Ints, Result
from psmt.utils.validation import check_film


def topology(values: ArrayLike, settings: TopologySettings, run: Run) -> TopologyResult:
    """Dynamic topology of a film's patches, or of a series, (time, n_features), that has at least two windows."""
    film = check_film(values)
    settings.check(len(film))
    run = replace(run, name="topology")
    ((dictionary, codes),) = code_film(film, [settings.n_atoms], settings, run)
    return topology_of_codes(dictionary, codes, settings, run)


def topology_of_codes(dictionary: Array, codes: Result, settings: TopologySettings, run: Run) -> TopologyResult:
    """Dynamic topology of packed codes over a dictionary (n_atoms, n_features)."""
    starts = settings.starts(len(codes["offsets"]) - 1)
    options = _graph_options(settings, run.device)
    of_map = {name: value for name, value in options.items() if name not in ("threshold", "min_uses")}
    name = f"topology-M{settings.n_atoms:04d}-H{settings.window:05d}"
    # The map takes longest and goes first, so that the other tasks run beside it.
    tasks = [Task(f"atom-map-M{settings.n_atoms:04d}", arrange_atoms, codes | of_map)]
    tasks += [
        Task(f"{name}-w{i:03d}", window_graph, slice_codes(codes, start, start + settings.window) | options)
        for i, start in enumerate(starts)
    ]
    arranged, *graphs = run.tasks(tasks, "windows")
    return TopologyResult(
        settings=settings,
        dictionary=dictionary,
        starts=starts,
        graphs=graphs,
        links=compare_with_nulls(codes, settings, run),
        atom_map=AtomMap.of(arranged, dictionary),
        picture_shape=run.picture_shape,
    )


def _graph_options(settings: TopologySettings, device: str) -> dict[str, Any]:
    """Inputs of a task that makes a graph, apart from codes and frames."""
    return {
        "n_atoms": settings.n_atoms,
        "n_components": settings.components,
        "threshold": settings.threshold,
        **settings.departures.embedding,
        "solver": settings.solver,
        "min_uses": settings.min_uses,
        **on_device(device),
    }


class Links(NamedTuple):
    """What `link_sets` returned for the frames of a design and for its null models."""

    design: Design
    windows: Result
    shuffled: list[Result]
    sets: Result | None
    """None if the design has no sets."""
    dealt: list[Result]


def compare_with_nulls(codes: Result, settings: TopologySettings, run: Run) -> Links:
    """Links of the frames that the tests compare, and of the null models; a task per draw."""
    design = Design.of(codes, settings)
    inputs = codes | _graph_options(settings, run.device)

    def task(name: str, frames: Ints, length: int) -> Task:
        named = f"topology-M{settings.n_atoms:04d}-{name}"
        return Task(named, link_sets, {**inputs, "frames": frames, "run": length})

    draws = settings.n_nulls, settings.seed
    length = design.windows.shape[1]
    tasks = [task("apart", design.windows, length)]
    tasks += [task(f"shuffled{i:03d}", frames, length) for i, frames in enumerate(design.shuffled(*draws))]
    if len(design.sets):
        tasks += [task("sets", design.sets, design.block)]
        tasks += [task(f"dealt{i:03d}", frames, design.block) for i, frames in enumerate(design.dealt(*draws))]
    windows, *others = run.tasks(tasks, "nulls")
    shuffled, others = others[: settings.n_nulls], others[settings.n_nulls :]
    return Links(design, windows, shuffled, others[0] if others else None, others[1:])


@dataclass(frozen=True, kw_only=True)
class TopologyResult:
    """Graphs of all windows, links of the null models, and what follows from them."""

    settings: TopologySettings
    dictionary: Array
    """(n_atoms, n_features)"""
    starts: Ints
    """(n_windows,): first frame of each window."""
    graphs: Sequence[Result]
    """What `window_graph` returned, window by window."""
    links: Links
    atom_map: AtomMap
    picture_shape: tuple[int, int] | None = None
    """Height and width of atoms that are pictures."""

    @property
    def design(self) -> Design:
        """Frames that the tests compare."""
        return self.links.design

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

    @cached_property
    def chosen(self) -> tuple[int, ...]:
        """Atoms that are followed: as given, or by `RULE`."""
        given = self.settings.chosen
        return choose_atoms(self.graphs, self.settings.n_chosen) if given is None else tuple(map(int, given))

    # Measures

    @cached_property
    def change(self) -> measures.LinkChange | None:
        """None if the film has too few blocks for the test."""
        return None if self.links.sets is None else measures.measure_change(self.links.sets, self.links.dealt)

    @cached_property
    def lasting(self) -> measures.LinkPersistence:
        """Links that windows without a common frame share."""
        return measures.measure_lasting(self.links.windows, self.links.shuffled, **self._permutations)

    @cached_property
    def likeness(self) -> measures.Likeness:
        """Likeness of linked atoms, pixel by pixel."""
        return self._likeness(max_shift=0)

    @cached_property
    def shifted_likeness(self) -> measures.Likeness | None:
        """The same with shifts of up to `MAX_SHIFT` pixels; None if atoms are not pictures."""
        if self.picture_shape is None or min(self.picture_shape) <= measures.MAX_SHIFT:
            return None
        return self._likeness(max_shift=measures.MAX_SHIFT)

    @cached_property
    def persistence(self) -> measures.SlidingOverlap:
        """Links that stay as the window slides on; it does not enter any verdict."""
        return measures.measure_persistence(self.graphs, self.starts)

    @property
    def _permutations(self) -> dict[str, int]:
        return {"n_permutations": self.settings.n_permutations, "seed": self.settings.seed}

    def _likeness(self, max_shift: int) -> measures.Likeness:
        alike = measures.picture_likeness(self.dictionary, max_shift=max_shift)
        return measures.measure_likeness(alike, self.links.windows, self.links.shuffled, **self._permutations)

    # What is shown

    def rows(self) -> Iterator[Row]:
        """Lines of topology.csv: the chosen atoms, window by window."""
        for w, center in enumerate(self.centers):
            for atom in self.chosen:
                yield Row(int(center), atom, int(self.component_size[w, atom]), int(self.neighbours[w, atom]))

    def companions(self, atom: int, count: int = 2) -> list[tuple[int, int]]:
        """The atoms most similar to `atom` over all windows, each with the number of windows that link the two.

        The most often linked come first. Ties are ordered by the sum of similarities over the windows in which an atom
        is among the nearest.
        """
        score: dict[int, float] = {}
        linked: Counter[int] = Counter()
        for graph in self.graphs:
            for other, similarity in zip(graph["nearest"][atom], graph["nearest_similarity"][atom], strict=True):
                if other >= 0:
                    score[int(other)] = score.get(int(other), 0.0) + float(similarity)
            pairs = graph["edges"][(graph["edges"] == atom).any(axis=1)]
            linked.update((pairs.sum(axis=1) - atom).tolist())
        others = sorted(score.keys() | linked.keys(), key=lambda j: (-linked[j], -score.get(j, 0.0), j))
        return [(other, linked[other]) for other in others[:count]]

    def times(self, count: int = 5) -> Ints:
        """Windows to show: from each of `count` parts of the film, the one with the largest components."""
        sizes = np.log(self.component_size[:, list(self.chosen)]).sum(axis=1)
        parts = np.array_split(np.arange(len(self.graphs)), min(count, len(self.graphs)))
        return np.array([part[np.argmax(sizes[part])] for part in parts])

    def summary(self) -> dict[str, Any]:
        """Values for JSON."""
        measured = ("design", "change", "lasting", "likeness", "shifted_likeness", "persistence", "atom_map")
        parts = {name: getattr(self, name) for name in measured}
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
            **{name: None if part is None else part.summary() for name, part in parts.items()},
        }


def choose_atoms(graphs: Sequence[Result], count: int = 3) -> tuple[int, ...]:
    """The `count` most informative atoms, by `RULE`; ties go to the lower number."""
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
        # Relative to the windows in which the less linked of the two atoms has links.
        together = ((component == component[:, [atom]]) & (sizes > 1)).sum(axis=0)
        with_links = np.minimum((sizes > 1).sum(axis=0), (sizes[:, atom] > 1).sum())
        shared = np.maximum(shared, together / np.maximum(with_links, 1))
    return tuple(chosen)
