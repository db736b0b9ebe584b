"""The whole experiment: dictionary, codes, a task per window and one for the map, and the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psmt.experiments.coding_tasks import code_film, slice_codes
from psmt.experiments.running.context import Run
from psmt.experiments.running.tasks import Task, on_device
from psmt.experiments.topology.atom_map import AtomMap, arrange_atoms
from psmt.experiments.topology.graph import window_graph
from psmt.experiments.topology.likeness import MAX_SHIFT, Likeness, likeness_test, picture_likeness
from psmt.experiments.topology.persistence import Overlap, measure_persistence
from psmt.experiments.topology.result import TopologyResult, choose_atoms
from psmt.experiments.topology.settings import TopologySettings
from psmt.types import Array, Ints, Result
from psmt.validation import check_series


def topology(values: ArrayLike, settings: TopologySettings, run: Run) -> TopologyResult:
    """Dynamic topology of a film's patches, or of a series, (time, n_features).

    Raises
    ------
    NotEnoughFramesError
        When the film is too short for two windows.
    """
    film = np.ascontiguousarray(check_series(values, name="patches"))
    starts = settings.starts(len(film))
    run = replace(run, name="topology")
    ((dictionary, codes),) = code_film(film, [settings.n_atoms], settings, run)
    # The map takes longest and goes first: nobody then waits for it at the end.
    tasks = [map_task(codes, settings, run.device), *window_tasks(codes, settings, run.device)]
    arranged, *graphs = run.tasks(tasks, "windows")
    result = assemble(graphs, arranged, dictionary=dictionary, starts=starts, settings=settings)
    if result.persistence.distant.frames_shared > 0:
        # The paper's windows are longer than half of its film: any two of them have frames in common.
        result = replace(result, halves=compare_halves(codes, settings, run))
    return result


def compare_halves(codes: Result, settings: TopologySettings, run: Run) -> Overlap | None:
    """What the graphs of the first and the second half of a film share; None where a half has too few frames."""
    n_frames = len(codes["offsets"]) - 1
    half = n_frames // 2
    if half <= settings.n_atoms:
        return None
    starts = np.array([0, n_frames - half])
    tasks = [
        Task(
            f"topology-M{settings.n_atoms:04d}-half{i}",
            window_graph,
            _graph_inputs(codes, start, half, settings, run.device),
        )
        for i, start in enumerate(starts)
    ]
    tests = {"n_permutations": settings.n_permutations, "seed": settings.seed}
    return measure_persistence(run.tasks(tasks, "halves"), starts, window=half, **tests).successive


def map_task(codes: Result, settings: TopologySettings, device: str = "cpu") -> Task:
    """Task that arranges the atoms, from the packed codes of the film."""
    inputs = {**codes, "n_atoms": settings.n_atoms, "n_components": settings.components, **on_device(device)}
    inputs |= settings.departures.embedding | {"solver": settings.solver}
    return Task(f"atom-map-M{settings.n_atoms:04d}", arrange_atoms, inputs)


def window_tasks(codes: Result, settings: TopologySettings, device: str = "cpu") -> list[Task]:
    """Tasks of all windows, from the packed codes of the film."""
    name = f"topology-M{settings.n_atoms:04d}-H{settings.window:05d}"
    return [
        Task(f"{name}-w{i:03d}", window_graph, _graph_inputs(codes, start, settings.window, settings, device))
        for i, start in enumerate(settings.starts(len(codes["offsets"]) - 1))
    ]


def _graph_inputs(codes: Result, start: int, window: int, settings: TopologySettings, device: str) -> dict[str, Any]:
    return {
        **slice_codes(codes, start, start + window),
        "n_atoms": settings.n_atoms,
        "n_components": settings.components,
        "threshold": settings.threshold,
        **settings.departures.embedding,
        "solver": settings.solver,
        **on_device(device),
    }


def assemble(
    graphs: Sequence[Result], arranged: Result, *, dictionary: Array, starts: Ints, settings: TopologySettings
) -> TopologyResult:
    """What the windows' graphs and the arranged atoms say: the part that comes after the tasks."""
    n_atoms = len(dictionary)
    times_linked = np.zeros((n_atoms, n_atoms), dtype=np.int32)
    for graph in graphs:
        times_linked[graph["edges"][:, 0], graph["edges"][:, 1]] += 1
    used = np.logical_or.reduce([graph["used"] for graph in graphs])
    tests = {"n_permutations": settings.n_permutations, "seed": settings.seed}

    def test(max_shift: int) -> Likeness:
        return likeness_test(picture_likeness(dictionary, max_shift=max_shift), times_linked, used, **tests)

    side = isqrt(dictionary.shape[1])
    pictures = side * side == dictionary.shape[1] and side > MAX_SHIFT
    return TopologyResult(
        settings=settings,
        dictionary=dictionary,
        starts=starts,
        graphs=graphs,
        chosen=choose_atoms(graphs, settings.n_chosen) if settings.chosen is None else tuple(map(int, settings.chosen)),
        likeness=test(0),
        shifted_likeness=test(MAX_SHIFT) if pictures else None,
        persistence=measure_persistence(graphs, starts, window=settings.window, **tests),
        atom_map=AtomMap.of(arranged, dictionary),
    )
