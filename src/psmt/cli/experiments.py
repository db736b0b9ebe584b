"""The commands whose work is cut into tasks: sweep, topology, reconstruct and reproduce."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from psmt.cli import files
from psmt.cli.options import TaskOptions
from psmt.cli.progress import Bars

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from psmt.experiments.plan import ReconstructionSettings, ReproduceSettings
    from psmt.experiments.reproduce import Reproduction
    from psmt.experiments.sweep import SweepResult, SweepSettings
    from psmt.experiments.topology import TopologyResult, TopologySettings
    from psmt.sources import FrameSource

RESULTS = (
    "sweep.csv",
    "sweep.png",
    "topology.csv",
    "topology.png",
    "atom_map.png",
    "reconstruction.csv",
    "reconstruction.png",
    "prediction.csv",
    "rollout.csv",
    "prediction.png",
    "summary.json",
    "report.html",
)
"""All that `reproduce` may write, besides timings.json and the tasks."""

_DPI = 150

R = TypeVar("R")


@dataclass(frozen=True)
class Job:
    """One film to work on: where it comes from, where its results go, and what runs its tasks."""

    film: FrameSource
    folder: Path
    options: TaskOptions
    executor: Executor
    progress: Bars

    def read(self) -> NDArray[Any]:
        """Patches (time, n_features)."""
        from psmt.patches import read_patches

        with self.progress.stage("read frames") as report:
            return read_patches(
                self.film,
                frame_size=self.options.size,
                patch_size=self.options.patch,
                position=self.options.position,
                progress=report,
            ).values

    @property
    def run(self) -> dict[str, Any]:
        """How tasks are run."""
        return {"executor": self.executor, "progress": self.progress, "device": self.options.engine}


def for_each_film(
    sources: Sequence[str],
    options: TaskOptions,
    out: Path,
    *,
    largest: int,
    work: Callable[[Job], R],
    show: Callable[[Job, R], None],
) -> None:
    """Do the work for each film, all on one executor, and show what came out; several films have a sub-folder each.

    `largest` is the largest M, which decides how many workers fit into memory.
    """
    from psmt.experiments.reproduce import suggested_workers
    from psmt.experiments.running.executors import open_executor
    from psmt.sources import open_frames

    films = [open_frames(source, stop=options.n_frames) for source in sources]
    names = files.sub_folders(film.name for film in films)
    workers = options.workers
    if workers is None and options.cluster is None:
        # A GPU is kept busy by one process; torch and CUDA graphs do not bear several threads.
        workers = suggested_workers(largest) if options.device == "cpu" else 1
    with files.folder(out), open_executor(workers, options.cluster) as executor:
        for film, name in zip(films, names, strict=True):
            with files.folder(out / name if len(films) > 1 else out) as target:
                if options.force:
                    files.start_over(target)
                with Bars() as progress:
                    task = Job(film, target, options, executor, progress)
                    result = work(task)
            show(task, result)


def run_sweep(task: Job, settings: SweepSettings) -> SweepResult:
    """Sweep one film, and write its files."""
    from psmt.experiments.sweep import Row, sweep
    from psmt.experiments.tables import to_csv
    from psmt.figures import png, sweep_figure

    result = sweep(task.read(), task.folder, settings=settings, **task.run)
    files.write(
        task.folder,
        {"sweep.csv": to_csv(Row._fields, result.rows()), "sweep.png": png(sweep_figure(result), dpi=_DPI)},
    )
    return result


def run_topology(task: Job, settings: TopologySettings) -> TopologyResult:
    """Topology of one film, and its files."""
    from psmt.experiments.topology import topology

    result = topology(task.read(), task.folder, settings=settings, **task.run)
    files.write(task.folder, _topology_files(result))
    return result


def run_reconstruct(task: Job, settings: ReconstructionSettings, *, window: int, horizon: int) -> NDArray[Any]:
    """MSE (time,) of one film's frames, and the files."""
    from psmt.experiments.reproduce import reconstruct_film

    errors = reconstruct_film(task.read(), task.folder, settings=settings, **task.run)
    files.write(task.folder, _reconstruction_files(errors, (), window, horizon))
    return errors


def run_reproduce(task: Job, settings: ReproduceSettings) -> Reproduction:
    """All experiments on one film, and the report."""
    from psmt.experiments.reproduce import reproduce, run_key
    from psmt.experiments.running.tasks import clear_stale
    from psmt.experiments.running.timings import StageClock
    from psmt.report import Film, make_page, make_summary, render

    began = perf_counter()
    patches = task.read()
    read = perf_counter() - began
    clear_stale(task.folder, "*")
    clock = StageClock(task.folder / "timings.json", run_key(patches, settings), task.progress)
    clock.add("read frames", read)
    done = reproduce(patches, task.folder, settings=settings, **task.run | {"progress": clock})
    film = Film(
        name=task.film.name,
        checksum=task.film.checksum(),
        n_frames=len(patches),
        patch_size=task.options.patch,
        frame_size=task.options.size,
        position=task.options.position,
    )
    clock("draw figures", 0, 1)
    written = _reproduction_files(done)
    phases = _phase_pictures(done)
    clock("draw figures", 1, 1)
    clock.save()
    pictures = {name.removesuffix(".png"): content for name, content in written.items() if name.endswith(".png")}
    written["summary.json"] = make_summary(done, film)
    written["report.html"] = render(make_page(done, film, pictures | phases, clock.seconds))
    files.write(task.folder, written)
    # What an earlier run with other settings left would be taken for a result of this one.
    for name in set(RESULTS) - written.keys():
        (task.folder / name).unlink(missing_ok=True)
    return done


def _reproduction_files(done: Reproduction) -> dict[str, bytes]:
    from psmt.experiments.sweep import Row
    from psmt.experiments.tables import prediction_csv, to_csv
    from psmt.figures import png, prediction_figure, sweep_figure

    made: dict[str, bytes] = {}
    if done.sweep is not None:
        made["sweep.csv"] = to_csv(Row._fields, done.sweep.rows())
        made["sweep.png"] = png(sweep_figure(done.sweep), dpi=_DPI)
    if done.topology is not None:
        made |= _topology_files(done.topology)
    if done.reconstruction is not None:
        used = done.plan.prediction or done.settings.prediction
        phases = [result.phase for result in done.phases]
        made |= _reconstruction_files(done.reconstruction, phases, used.window, used.horizon)
    if done.phases:
        made["prediction.csv"] = prediction_csv(done.phases, "scores")
        made["rollout.csv"] = prediction_csv(done.phases, "rollouts")
        made["prediction.png"] = png(prediction_figure(done.phases))
    return made


def _phase_pictures(done: Reproduction) -> dict[str, bytes]:
    """A picture per phase: two beside each other are too small to read on a page."""
    from psmt.figures import png, prediction_figure

    return {f"prediction-{result.phase.name}": png(prediction_figure([result]), dpi=_DPI) for result in done.phases}


def _topology_files(result: TopologyResult) -> dict[str, bytes]:
    from psmt.experiments.tables import to_csv
    from psmt.experiments.topology import Row
    from psmt.figures import atom_map_figure, png, topology_figure

    return {
        "topology.csv": to_csv(Row._fields, result.rows()),
        "topology.png": png(topology_figure(result), dpi=_DPI),
        "atom_map.png": png(atom_map_figure(result), dpi=_DPI),
    }


def _reconstruction_files(errors: NDArray[Any], phases: Sequence[Any], window: int, horizon: int) -> dict[str, bytes]:
    """Files of the errors (time,); phases are searched where none are given and the film has room for them."""
    from psmt.experiments.reconstruction import find_phases, least_error
    from psmt.experiments.tables import reconstruction_csv
    from psmt.figures import png, reconstruction_figure

    room = len(errors) > window + horizon
    if not phases and room:
        phases = find_phases(errors, window=window, horizon=horizon)
    figure = reconstruction_figure(
        errors,
        phases,
        window=window if room else 0,
        horizon=min(horizon, len(errors) - 1),
        segment=least_error(errors, window=window),
    )
    return {"reconstruction.csv": reconstruction_csv(errors), "reconstruction.png": png(figure, dpi=_DPI)}
