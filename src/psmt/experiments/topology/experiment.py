"""The whole experiment: dictionary, codes, a task per window and one for the map, and the result."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psmt.experiments.codes import code_film, slice_codes
from psmt.experiments.running.tasks import Result, Task, clear_stale, on_device, stages
from psmt.experiments.tables import to_csv
from psmt.experiments.topology.atom_map import AtomMap, arrange_atoms
from psmt.experiments.topology.graph import window_graph
from psmt.experiments.topology.likeness import MAX_SHIFT, Likeness, likeness_test, picture_likeness
from psmt.experiments.topology.persistence import Overlap, measure_persistence
from psmt.experiments.topology.result import TopologyResult, choose_atoms
from psmt.experiments.topology.settings import Row, TopologySettings
from psmt.files import writing
from psmt.types import Progress, silent
from psmt.validation import check_series

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


def topology(
    patches: ArrayLike,
    folder: str | os.PathLike[str],
    *,
    settings: TopologySettings | None = None,
    executor: Executor | None = None,
    progress: Progress = silent,
    force: bool = False,
    device: str = "cpu",
) -> TopologyResult:
    """Dynamic topology of a film's patches (time, n_features).

    Parameters
    ----------
    folder : path
        Where tasks are kept.
    executor, progress, force
        As for `run_tasks`.
    device : str
        Where to compute.

    Raises
    ------
    NotEnoughFramesError
        When the film is too short for two windows.
    """
    settings = TopologySettings() if settings is None else settings
    film = np.ascontiguousarray(check_series(patches, name="patches"))
    starts = settings.starts(len(film))

    run = stages("topology", folder, executor=executor, progress=progress, force=force)
    ((dictionary, codes),) = code_film(film, [settings.n_atoms], settings, run, device)
    # The map takes longest and goes first: nobody then waits for it at the end.
    arranged, *graphs = run([map_task(codes, settings, device), *window_tasks(codes, settings, device)], "windows")
    result = assemble(graphs, arranged, dictionary=dictionary, starts=starts, settings=settings)
    if result.persistence.distant.frames_shared > 0:
        # The paper's windows are longer than half of its film: any two of them have frames in common.
        result = replace(result, halves=compare_halves(codes, settings, lambda tasks: run(tasks, "halves"), device))
    return result


def compare_halves(
    codes: Result,
    settings: TopologySettings,
    run: Callable[[Sequence[Task]], Sequence[Result]],
    device: str = "cpu",
) -> Overlap | None:
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
            _graph_inputs(codes, start, half, settings, device),
        )
        for i, start in enumerate(starts)
    ]
    tests = {"n_permutations": settings.n_permutations, "seed": settings.seed}
    return measure_persistence(run(tasks), starts, window=half, **tests).successive


def map_task(codes: Result, settings: TopologySettings, device: str = "cpu") -> Task:
    """Task that arranges the atoms, from the packed codes of the film."""
    inputs = {**codes, "n_atoms": settings.n_atoms, "n_components": settings.components, **on_device(device)}
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

    side = round(np.sqrt(dictionary.shape[1]))
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


def write_topology(result: TopologyResult, path: str | os.PathLike[str]) -> None:
    """Write topology.csv, one line per window and chosen atom."""
    path = Path(path)
    clear_stale(path.parent, path.name)
    with writing(path) as file:
        file.write(to_csv(Row._fields, result.rows()))
