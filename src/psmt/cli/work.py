"""What commands do: open films and the folder, run one experiment or all of the paper, write files, show results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from psmt.cli import folders
from psmt.cli.bars import Bars
from psmt.cli.screen import show
from psmt.experiments import command_of, experiment_of

if TYPE_CHECKING:
    from psmt.experiments.contract import Shown
    from psmt.experiments.options import FilmOptions
    from psmt.experiments.reproduce.command import ReproduceOptions
    from psmt.experiments.running.context import Run

REPORT, SUMMARY = "report.html", "summary.json"
"""Files of `reproduce` that belong to no experiment."""


def run_alone(name: str, film: str, options: FilmOptions) -> None:
    """Run one experiment on a film, after those that it needs; write the files of all, and show what came out."""
    options.check()
    from psmt.experiments.output import write_files

    experiment, settings = experiment_of(name), options.settings()

    def work(source: Any, run: Run) -> Iterable[Shown]:
        if source.n_frames is not None:
            experiment.check(settings, source.n_frames)
        material = options.read(source, run.progress)
        results = _results(name, settings, options, material, run)
        run.progress("draw figures", 0, 1)
        files = {
            file: content
            for part, result in results.items()
            for file, content in experiment_of(part).written(result).items()
        }
        run.progress("draw figures", 1, 1)
        with experiment.meanwhile(results[name], run.folder):
            write_files(run.folder, files)
        shown = [*options.remarks(source, material), *experiment.shown(results[name])]
        return [*shown, str(run.folder / REPORT if REPORT in files else run.folder)]

    _for_each_film([film], options, settings, work)


def reproduce_films(films: Sequence[str], options: ReproduceOptions) -> None:
    """Run all experiments of the paper on each film, and write their files, the summary and the report."""
    options.check()
    from psmt.experiments.output import write_files
    from psmt.experiments.reproduce.page import FilmRecord, all_claims, make_page, make_sections, make_summary
    from psmt.experiments.reproduce.run import chapters, reproduce, run_key
    from psmt.experiments.running.timings import StageClock
    from psmt.files import clear_stale
    from psmt.report import render
    from psmt.sources import SeriesSource

    settings = options.settings()

    def work(source: Any, run: Run) -> Iterable[Shown]:
        began = perf_counter()
        values = options.read(source, run.progress)
        read = perf_counter() - began
        clear_stale(run.folder, "*")
        clock = StageClock(run.folder / "timings.json", run_key(values, settings), run.progress)
        clock.add("read frames", read)
        done = reproduce(values, settings, replace(run, progress=clock))
        patch: dict[str, Any] = {
            "patch_size": options.patch,
            "frame_size": options.size,
            "position": options.position,
        }
        film = FilmRecord(
            name=source.name,
            checksum=source.checksum(),
            n_frames=len(values),
            regime=options.regime(source, values),
            **({} if isinstance(source, SeriesSource) else patch),
        )
        clock("draw figures", 0, 1)
        files: dict[str, bytes] = {}
        for name, result in done.results.items():
            files |= experiment_of(name).written(result)
        sections = make_sections(done, files)
        clock("draw figures", 1, 1)
        clock.save()
        files[SUMMARY] = make_summary(done, film)
        files[REPORT] = render(make_page(done, film, sections, clock.seconds, options.still(source)))
        write_files(run.folder, files)
        # What an earlier run with other settings left would be taken for a result of this one.
        for name in settings:
            for file in experiment_of(name).files.keys() - files.keys():
                (run.folder / file).unlink(missing_ok=True)
        return [
            f"{film.name}, {done.n_frames:,} frames",
            *(thing for name, result in done.results.items() for thing in chapters()[name].shown(result)),
            *all_claims(done),
            str(run.folder / REPORT),
        ]

    _for_each_film(films, options, settings, work)


def _results(name: str, settings: Any, options: FilmOptions, material: Any, run: Run) -> dict[str, Any]:
    """Results of an experiment and of all that it needs, by name."""
    experiment = experiment_of(name)
    earlier: dict[str, Any] = {}
    for need in experiment.needs(settings):
        asked = command_of(need).options.within(options).settings()
        earlier |= _results(need, asked, options, material, run)
    return earlier | {name: experiment.run(material, settings, run, earlier)}


def _for_each_film(
    sources: Sequence[str],
    options: FilmOptions,
    settings: Any,
    work: Callable[[Any, Run], Iterable[Shown]],
) -> None:
    """Do the work for each film, all on one executor, and show what it gives; several films have a sub-folder each."""
    from psmt.experiments.running.context import Run

    films = [options.open(source) for source in sources]
    names = folders.sub_folders(film.name for film in films)
    with folders.folder(options.out) as out, options.executor(settings) as executor:
        for film, name in zip(films, names, strict=True):
            with folders.folder(out / name if len(films) > 1 else out) as target:
                if options.force:
                    folders.start_over(target)
                with Bars() as progress:
                    shown = work(film, Run(folder=target, executor=executor, progress=progress, device=options.engine))
            show(shown)
