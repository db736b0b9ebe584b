"""Run `psmt topology`: code the film, and run a task for each window and each draw of a null model."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psmt.experiments.film_tasks import code_film, slice_codes
from psmt.experiments.topology import measures
from psmt.experiments.topology.measures import Design
from psmt.experiments.topology.settings import RULE, TopologySettings
from psmt.experiments.window_graphs import compare_times, link_sets, window_graph
from psmt.pipeline.run import Run
from psmt.pipeline.tasks import Task, on_device
from psmt.types import Array, Ints, Result
from psmt.utils.validation import check_film

COLUMNS = ("center", "atom", "component_size", "neighbours")
"""Columns of topology.csv."""


def topology(values: ArrayLike, settings: TopologySettings, run: Run) -> "TopologyResult":
    """Return the graphs of atoms over time, and their tests, for patches of a film or a series (time, n_features)."""
    film = check_film(values)
    settings.check(len(film))
    run = replace(run, name="topology")
    ((dictionary, codes),) = code_film(film, [settings.n_atoms], settings, run)
    return topology_of_codes(dictionary, codes, settings, run)


def topology_of_codes(dictionary: Array, codes: Result, settings: TopologySettings, run: Run) -> "TopologyResult":
    """Return the graphs and tests as `topology` does, from packed codes and their dictionary (n_atoms, n_features)."""
    starts = settings.starts(len(codes["offsets"]) - 1)
    options: dict[str, Any] = {
        "n_atoms": settings.n_atoms,
        "n_components": settings.components,
        **settings.departures.embedding,
        **on_device(run.device),
        "threshold": settings.threshold,
        "min_uses": settings.min_uses,
    }
    name = f"topology-M{settings.n_atoms:04d}-H{settings.window:05d}"
    tasks = [
        Task(f"{name}-w{i:03d}", window_graph, options | {"codes": slice_codes(codes, start, start + settings.window)})
        for i, start in enumerate(starts)
    ]
    return TopologyResult(
        settings=settings,
        dictionary=dictionary,
        starts=starts,
        graphs=run.tasks(tasks, "windows"),
        picture_shape=run.picture_shape,
        **_compare_with_nulls(codes, options | {"codes": codes}, settings, run),
    )


def _compare_with_nulls(codes: Result, inputs: dict[str, Any], settings: TopologySettings, run: Run) -> dict[str, Any]:
    """Run the tasks that the tests need, and return fields of `TopologyResult`. `inputs` are common to all tasks."""
    design, draws = Design.of(codes, settings), (settings.n_nulls, settings.seed)
    name = f"topology-M{settings.n_atoms:04d}"
    tasks = [
        Task(f"{name}-windows{i:03d}", link_sets, {**inputs, "frames": frames})
        for i, frames in enumerate([design.windows, *design.shuffled(*draws)])
    ]
    if len(design.blocks):
        own = {key: value for key, value in inputs.items() if key != "threshold"} | {"splits": design.splits}
        tasks += [
            Task(f"{name}-times{i:03d}", compare_times, {**own, "blocks": blocks})
            for i, blocks in enumerate([design.blocks, *design.reordered(*draws)])
        ]
    found = run.tasks(tasks, "nulls")
    windows, times = found[: 1 + settings.n_nulls], found[1 + settings.n_nulls :]
    return {"design": design, "windows": windows[0], "shuffled": windows[1:], "times": times}


@dataclass(frozen=True, kw_only=True)
class TopologyResult:
    """The graphs of atoms in all windows, results on null models, and tests against these."""

    settings: TopologySettings
    dictionary: Array
    """(n_atoms, n_features)"""
    starts: Ints
    """(n_windows,): first frame of each window."""
    graphs: Sequence[Result]
    """Results of `window_graph`, one per window."""
    design: Design
    """Frames that the tests compare."""
    windows: Result
    """Result of `link_sets` for the windows of the design."""
    shuffled: Sequence[Result]
    """Results of `link_sets` for draws of the null model, in which the frames of each window are shuffled."""
    times: Sequence[Result]
    """Results of `compare_times` for the blocks of the design, and for draws of their null model. [] without blocks."""
    picture_shape: tuple[int, int] | None = None
    """Height and width of the atoms, or None if they are not pictures."""

    @property
    def step(self) -> int:
        """Number of frames from the start of one window to the start of the next."""
        return int(self.starts[1] - self.starts[0])

    @cached_property
    def centers(self) -> Ints:
        """(n_windows,): the frame in the middle of each window."""
        return self.starts + self.settings.window // 2

    @cached_property
    def component_size(self) -> Ints:
        """(n_windows, n_atoms): number of atoms in the component of each atom, including the atom itself."""
        return np.array([graph["component_size"] for graph in self.graphs])

    @cached_property
    def neighbours(self) -> Ints:
        """(n_windows, n_atoms): number of atoms that each atom is linked to."""
        return np.array([graph["neighbours"] for graph in self.graphs])

    @cached_property
    def chosen(self) -> tuple[int, ...]:
        """Indices of the atoms that the figure follows over time, chosen by `RULE`."""
        return choose_atoms(self.graphs, self.settings.n_chosen)

    @cached_property
    def change(self) -> measures.SimilarityChange | None:
        """A test whether the similarities of atoms change over time, or None if the film has too few blocks."""
        return measures.measure_change(self.times[0], self.times[1:], self.design) if self.times else None

    @cached_property
    def lasting(self) -> measures.LinkPersistence:
        """The fraction of links that two windows without a common frame share, and tests of it."""
        own = self.settings
        return measures.measure_lasting(self.windows, self.shuffled, n_permutations=own.n_permutations, seed=own.seed)

    @cached_property
    def likeness(self) -> measures.Likeness:
        """Correlations of the pixels of linked and of unlinked atoms, and tests of the difference."""
        alike, own = measures.picture_likeness(self.dictionary), self.settings
        how = {"n_permutations": own.n_permutations, "seed": own.seed}
        return measures.measure_likeness(alike, self.windows, self.shuffled, **how)

    def rows(self) -> Iterator[tuple[int, ...]]:
        """Yield the rows of topology.csv (see `COLUMNS`), one for each window and chosen atom."""
        for w, center in enumerate(self.centers):
            for atom in self.chosen:
                yield int(center), atom, int(self.component_size[w, atom]), int(self.neighbours[w, atom])

    def companions(self, atom: int, count: int = 2) -> list[tuple[int, int]]:
        """Return the `count` atoms that `atom` is linked to most often, as pairs (atom, number of windows)."""
        edges = np.concatenate([graph["edges"] for graph in self.graphs])
        others = np.sort(edges[(edges == atom).any(axis=1)].sum(axis=1) - atom)
        return Counter(others.tolist()).most_common(count)

    def shown_windows(self, count: int = 5) -> Ints:
        """Return a window from each of `count` parts of the film: that with the largest components of chosen atoms."""
        sizes = np.log(self.component_size[:, list(self.chosen)]).sum(axis=1)
        parts = np.array_split(np.arange(len(self.graphs)), min(count, len(self.graphs)))
        return np.array([part[np.argmax(sizes[part])] for part in parts])

    def summary(self) -> dict[str, Any]:
        """Return the numbers for summary.json."""
        return {
            "n_atoms": len(self.dictionary),
            "window": self.settings.window,
            "step": self.step,
            "n_windows": len(self.starts),
            "edges": [len(graph["edges"]) for graph in self.graphs],
            "used": [int(graph["used"].sum()) for graph in self.graphs],
            "largest_component": [int(sizes.max()) for sizes in self.component_size],
            "chosen": list(self.chosen),
            "rule": RULE,
            **{name: getattr(self, name) for name in ("design", "change", "lasting", "likeness")},
        }


def choose_atoms(graphs: Sequence[Result], count: int = 3) -> tuple[int, ...]:
    """Return the indices of the `count` atoms that `RULE` chooses. Ties go to the first atom."""
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
        # The share is relative to the windows in which the atom with fewer linked windows has links.
        together = ((component == component[:, [atom]]) & (sizes > 1)).sum(axis=0)
        with_links = np.minimum((sizes > 1).sum(axis=0), (sizes[:, atom] > 1).sum())
        shared = np.maximum(shared, together / np.maximum(with_links, 1))
    return tuple(chosen)
