"""The whole experiment: dictionary, codes, tasks for windows, map and nulls, and the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from psmt.experiments.coding_tasks import code_film, slice_codes
from psmt.experiments.topology.atom_map import AtomMap, arrange_atoms
from psmt.experiments.topology.design import Design
from psmt.experiments.topology.evidence import measure_change, measure_lasting
from psmt.experiments.topology.likeness import MAX_SHIFT, Likeness, measure_likeness, picture_likeness
from psmt.experiments.topology.persistence import measure_persistence
from psmt.experiments.topology.result import TopologyResult, choose_atoms
from psmt.experiments.topology.settings import TopologySettings
from psmt.experiments.window_graphs import link_sets, window_graph
from psmt.pipeline.run import Run
from psmt.pipeline.tasks import Task, on_device
from psmt.types import Array, Ints, Result
from psmt.utils.validation import check_film


def topology(values: ArrayLike, settings: TopologySettings, run: Run) -> TopologyResult:
    """Dynamic topology of a film's patches, or of a series, (time, n_features).

    Raises
    ------
    NotEnoughFramesError
        When the film is too short for two windows.
    """
    film = check_film(values)
    settings.check(len(film))
    run = replace(run, name="topology")
    ((dictionary, codes),) = code_film(film, [settings.n_atoms], settings, run)
    return topology_of_codes(dictionary, codes, settings, run)


def topology_of_codes(dictionary: Array, codes: Result, settings: TopologySettings, run: Run) -> TopologyResult:
    """Dynamic topology of packed codes over a dictionary (n_atoms, n_features)."""
    starts = settings.starts(len(codes["offsets"]) - 1)
    # The map takes longest and goes first: nobody then waits for it at the end.
    tasks = [map_task(codes, settings, run.device), *window_tasks(codes, settings, run.device)]
    arranged, *graphs = run.tasks(tasks, "windows")
    links = compare_with_nulls(codes, settings, run)
    return assemble(
        graphs,
        arranged,
        links,
        dictionary=dictionary,
        starts=starts,
        settings=settings,
        picture_shape=run.picture_shape,
    )


class Links(NamedTuple):
    """What `link_sets` returned for the frames of a design and for its nulls."""

    design: Design
    windows: Result
    shuffled: list[Result]
    sets: Result | None
    """None where the design has no sets."""
    dealt: list[Result]


def compare_with_nulls(codes: Result, settings: TopologySettings, run: Run) -> Links:
    """Links of the frames that the tests compare, and of the nulls; a task per draw."""
    design = Design.of(codes, settings)
    inputs = {**codes, **_graph_options(settings, run.device)}

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


def map_task(codes: Result, settings: TopologySettings, device: str = "cpu") -> Task:
    """Task that arranges the atoms, from the packed codes of the film."""
    inputs = {**codes, "n_atoms": settings.n_atoms, "n_components": settings.components, **on_device(device)}
    inputs |= settings.departures.embedding | {"solver": settings.solver}
    return Task(f"atom-map-M{settings.n_atoms:04d}", arrange_atoms, inputs)


def window_tasks(codes: Result, settings: TopologySettings, device: str = "cpu") -> list[Task]:
    """Tasks of all windows, from the packed codes of the film."""
    name = f"topology-M{settings.n_atoms:04d}-H{settings.window:05d}"
    return [
        Task(f"{name}-w{i:03d}", window_graph, _graph_inputs(codes, start, settings, device))
        for i, start in enumerate(settings.starts(len(codes["offsets"]) - 1))
    ]


def _graph_inputs(codes: Result, start: int, settings: TopologySettings, device: str) -> dict[str, Any]:
    return {**slice_codes(codes, start, start + settings.window), **_graph_options(settings, device)}


def _graph_options(settings: TopologySettings, device: str) -> dict[str, Any]:
    return {
        "n_atoms": settings.n_atoms,
        "n_components": settings.components,
        "threshold": settings.threshold,
        **settings.departures.embedding,
        "solver": settings.solver,
        "min_uses": settings.min_uses,
        **on_device(device),
    }


def assemble(
    graphs: Sequence[Result],
    arranged: Result,
    links: Links,
    *,
    dictionary: Array,
    starts: Ints,
    settings: TopologySettings,
    picture_shape: tuple[int, int] | None = None,
) -> TopologyResult:
    """What the windows' graphs, the arranged atoms and the nulls say: the part that comes after the tasks."""
    tests = {"n_permutations": settings.n_permutations, "seed": settings.seed}

    def alike(max_shift: int) -> Likeness:
        return measure_likeness(
            picture_likeness(dictionary, max_shift=max_shift), links.windows, links.shuffled, **tests
        )

    return TopologyResult(
        settings=settings,
        dictionary=dictionary,
        starts=starts,
        graphs=graphs,
        chosen=choose_atoms(graphs, settings.n_chosen) if settings.chosen is None else tuple(map(int, settings.chosen)),
        design=links.design,
        change=None if links.sets is None else measure_change(links.sets, links.dealt),
        lasting=measure_lasting(links.windows, links.shuffled, **tests),
        likeness=alike(0),
        shifted_likeness=alike(MAX_SHIFT) if picture_shape is not None and min(picture_shape) > MAX_SHIFT else None,
        persistence=measure_persistence(graphs, starts),
        atom_map=AtomMap.of(arranged, dictionary),
        picture_shape=picture_shape,
    )
