"""What commands do: open films and the folder, run one experiment or all of the paper, write files, show results."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from psmt.cli import folders
from psmt.cli.bars import Bars
from psmt.cli.screen import show
from psmt.errors import NotEnoughFramesError
from psmt.experiments import command_of, experiment_of

if TYPE_CHECKING:
    from psmt.experiments.contract import Shown
    from psmt.experiments.options import FilmOptions
    from psmt.experiments.reproduce.command import ReproduceOptions
    from psmt.pipeline.run import Run

REPORT, SUMMARY = "report.html", "summary.json"
"""Files of all commands."""


@dataclass(frozen=True)
class _Outcome:
    """What the work on a film gave: for people, and as the content of summary.json."""

    shown: Iterable[Shown]
    summary: bytes


def run_alone(name: str, film: Any, options: FilmOptions) -> None:
    """Run one experiment on a film, after those that it needs; write the files of all, and show what came out."""
    options.check()

    def work(source: Any, run: Run) -> _Outcome:
        # Only when the film is open: who misspelt its name need not wait for what draws figures.
        from psmt.experiments.expectation import expectation
        from psmt.experiments.output_files import write_files
        from psmt.experiments.single_report import Alone, make_page, make_summary
        from psmt.report import render

        experiment = experiment_of(name)
        own = options.suited(source)
        if source.n_frames is not None:
            _fitted(name, own, source.n_frames)
        material = own.read(source, run.progress)
        record = own.record(source, material)
        own, note = _fitted(name, own, record.n_frames)
        if note:
            print(f"psmt: {note}", file=sys.stderr, flush=True)
        settings, results = _results(name, own, material, run)
        run.progress("draw figures", 0, 1)
        files = {
            file: content
            for part, result in results.items()
            for file, content in experiment_of(part).written(result).items()
        }
        # The study of brains has a page and a summary of its own: people are no film.
        if REPORT not in files:
            done = Alone(name=name, film=record, settings=settings, results=results, notes=[note] if note else [])
            page = make_page(done, files, own.still(source))
            files |= {REPORT: render(page), SUMMARY: make_summary(done, page)}
        run.progress("draw figures", 1, 1)
        tables = {
            file: parts
            for part, result in results.items()
            for file, parts in experiment_of(part).tabled(result).items()
        }
        with experiment.meanwhile(results[name], run.folder):
            write_files(run.folder, {**files, **tables})
        told = [*own.remarks(source, material), *([expectation(record.regime)] if record.regime else [])]
        return _Outcome([*told, *experiment.shown(results[name]), str(run.folder / REPORT)], files[SUMMARY])

    _for_each_film([film], options, work)


def reproduce_films(films: Sequence[str], options: ReproduceOptions) -> None:
    """Run all experiments of the paper on each film, and write their files, the summary and the report."""
    options.check()

    def work(source: Any, run: Run) -> _Outcome:
        from psmt.experiments.output_files import write_files
        from psmt.experiments.reproduce.page import all_claims, make_page, make_sections, make_summary
        from psmt.experiments.reproduce.run import chapters, reproduce, run_key
        from psmt.pipeline.run import StageClock
        from psmt.report import render

        own = options.suited(source)
        settings = own.settings()
        began = perf_counter()
        values = own.read(source, run.progress)
        read = perf_counter() - began
        clock = StageClock(run.folder / "timings.json", run_key(values, settings), run.progress)
        clock.add("read frames", read)
        done = reproduce(values, settings, replace(run, progress=clock))
        film = own.record(source, values)
        clock("draw figures", 0, 1)
        files: dict[str, bytes] = {}
        tables: dict[str, Iterable[bytes]] = {}
        for name, result in done.results.items():
            files |= experiment_of(name).written(result)
            tables |= experiment_of(name).tabled(result)
        sections = make_sections(done, files)
        clock("draw figures", 1, 1)
        clock.save()
        files[SUMMARY] = make_summary(done, film)
        files[REPORT] = render(make_page(done, film, sections, clock.seconds, own.still(source)))
        written: dict[str, bytes | Iterable[bytes]] = {**files, **tables}
        write_files(run.folder, written)
        # What an earlier run with other settings left would be taken for a result of this one.
        for name in settings:
            experiment = experiment_of(name)
            for file in (experiment.files.keys() | experiment.tables.keys()) - written.keys():
                (run.folder / file).unlink(missing_ok=True)
        shown = [
            f"{film.name}, {done.n_frames:,} frames",
            *(thing for name, result in done.results.items() for thing in chapters()[name].shown(result)),
            *all_claims(done),
            str(run.folder / REPORT),
        ]
        return _Outcome(shown, files[SUMMARY])

    _for_each_film(films, options, work)


def _fitted(name: str, options: FilmOptions, n_frames: int | None) -> tuple[FilmOptions, str]:
    """Options whose sizes fit into a film, and why they are not the usual ones; raises where none fit.

    Sizes that somebody asked for are never changed.
    """
    experiment, settings = experiment_of(name), options.settings()
    if n_frames is None or options.sizes_given or not hasattr(settings, "fitted"):
        if n_frames is not None:
            experiment.check(settings, n_frames)
        return options, ""
    used, note = settings.fitted(n_frames)
    if used is None:
        raise NotEnoughFramesError(f"{note}; use a longer film, or give --atoms and --window that fit")
    if used == settings:
        return options, note
    sizes = {"atoms": used.n_atoms} | ({"window": used.window} if hasattr(used, "window") else {})
    return replace(options, **sizes), note


def _results(name: str, options: FilmOptions, material: Any, run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings and results of an experiment and of all that it needs, by name."""
    experiment, own = experiment_of(name), options.settings()
    settings: dict[str, Any] = {}
    results: dict[str, Any] = {}
    for need in experiment.needs(own):
        asked, found = _results(need, command_of(need).options.within(options), material, run)
        settings, results = settings | asked, results | found
    return settings | {name: own}, results | {name: experiment.run(material, own, run, results)}


def _for_each_film(sources: Sequence[Any], options: FilmOptions, work: Callable[[Any, Run], _Outcome]) -> None:
    """Do the work for each film, all on one executor, and show what it gives; several films have a sub-folder each."""
    from psmt.pipeline.run import Run
    from psmt.utils.files import clear_stale

    films = [options.open(source) for source in sources]
    names = folders.sub_folders(film.name for film in films)
    with folders.folder(options.out) as out, options.executor(options.settings()) as executor:
        clear_stale(out, "*")
        for film, name in zip(films, names, strict=True):
            with folders.folder(out / name if len(films) > 1 else out) as target:
                clear_stale(target, "*")
                if options.force:
                    folders.start_over(target)
                with Bars() as progress:
                    run = Run(folder=target, executor=executor, progress=progress, device=options.engine)
                    done = work(film, replace(run, picture_shape=options.picture_shape(film)))
            if options.json:
                # One line per film, whatever is in it: programs read lines.
                print(json.dumps(json.loads(done.summary), ensure_ascii=False))
            else:
                show(done.shown)
