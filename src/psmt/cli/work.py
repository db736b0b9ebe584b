"""Carry out a command: open the film and the output folder, run experiments, write files, and print results."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psmt.cli.terminal import DRAW, Bars, planned, show
from psmt.errors import NotEnoughFramesError, PSMTError
from psmt.experiments import command_of, experiment_of

if TYPE_CHECKING:
    from psmt.cli.commands import Job
    from psmt.experiments.contract import Shown
    from psmt.experiments.film_report import FilmResults
    from psmt.experiments.options.declaration import Settings
    from psmt.pipeline.run import Run
    from psmt.report import Page

REPORT, SUMMARY = "report.html", "summary.json"
"""Names of the files that all commands write."""


def carry_out(job: Job, source: Any) -> None:
    """Run the experiments of a job on a film, or on several sources together, and print the results."""
    from psmt.utils.files import clear_stale, locked, shown

    options, given = job.options, source if isinstance(source, tuple) else (source,)
    title = " ".join([job.command.name, *map(shown, given[:3]), *[".."][: len(given) > 3]])
    with Bars(title, planned(job.command.experiments)) as progress:
        from psmt.pipeline.run import Run

        # The film is opened first, so that a wrong name is reported before the libraries are imported.
        options.check(())
        film = options.open(source)
        settings = job.settings().values()
        options.check(settings)
        largest = max(own.largest for own in settings)
        with folder(options.out) as out, options.executor(largest) as executor, locked(out, _say):
            clear_stale(out, "*")
            run = Run(folder=out, executor=executor, progress=progress, device=options.engine)
            told, summary = _work(job, film, run, str(source))
        with progress.paused():
            if options.json:
                print(json.dumps(json.loads(summary), ensure_ascii=False))
            else:
                show(told)


def _say(sentence: str) -> None:
    print(f"psmt: {sentence}", file=sys.stderr, flush=True)


def _work(job: Job, source: Any, run: Run, spec: str) -> tuple[list[Shown], bytes]:
    """Run experiments on the film that was given as `spec`, and write files. Return what to print, and summary.json."""
    # Imported when the film is open, so that a wrong name is reported before the libraries for figures are imported.
    from psmt.experiments.film_report import FilmResults
    from psmt.report.wording import in_rows
    from psmt.utils.threads import one_blas_thread

    options, paper = job.options, job.command.paper
    asked = job.settings(source)
    # A single experiment raises an error if the film is too short for the given sizes, or for any size.
    fit = {} if paper else {"fixed": bool({"n_atoms", "window"} & job.given.keys()), "required": True}
    if source.n_frames is not None and not paper:
        try:
            fit_settings(asked, source.n_frames, **fit)
        except NotEnoughFramesError as error:
            raise error if not hasattr(source, "n_features") else NotEnoughFramesError(in_rows(str(error))) from None
    material = options.read(source, run.progress)
    film = options.record(source, material)
    used, notes = (dict(asked), {}) if film.n_frames is None else fit_settings(asked, film.n_frames, **fit)
    is_series = film.kind == "series"
    told = [] if paper else [in_rows(note) if is_series else note for note in notes.values()]
    if (index := getattr(source, "index_name", None)) is not None:
        told += [f"{index!r} is the index of the rows, not a feature"]
    for note in told:
        _say(note)
    used = with_needed(used)
    run = replace(run, picture_shape=film.picture_shape, surroundings=options.surroundings(source))
    run = replace(run, series=source if is_series else None)
    # Results of work between tasks must not depend on the number of cores of this machine.
    with one_blas_thread() if paper else nullcontext():
        made = run_experiments(material, used, run)
    done = FilmResults(
        command=job.command.name, film=film, asked=asked, used=used, notes=notes, results=made, paper=paper, source=spec
    )
    page, summary = _write(done, run)
    shown: list[Shown] = [*getattr(material, "remarks", ()), *filter(None, [page.answer.text])]
    shown += [f"Next: {page.answer.command} {page.answer.reason}."] if page.answer.command else []
    if paper:
        shown += [f"{film.name}, {film.n_frames:,} frames"]
        shown += [thing for name, result in made.items() for thing in experiment_of(name).overview(result)]
        shown += page.claims
    else:
        shown += experiment_of(done.experiment).shown(made[done.experiment])
    return [*(in_rows(shown) if is_series else shown), str(run.folder / REPORT)], summary


def _write(done: FilmResults, run: Run) -> tuple[Page, bytes]:
    """Write all result files into the folder of the run. Return the report page and the content of summary.json."""
    from psmt.experiments.film_report import make_page, make_summary
    from psmt.report import render
    from psmt.utils.files import write_files

    run.progress(DRAW, 0, 1)
    files: dict[str, Any] = {}
    for name, result in done.results.items():
        files |= experiment_of(name).written(result)
    page = make_page(done, files)
    run.progress(DRAW, 1, 1)
    summary = make_summary(done, page)
    files |= {REPORT: render(page), SUMMARY: summary}
    meanwhile = experiment_of(done.experiment).meanwhile
    with nullcontext() if done.paper else meanwhile(done.results[done.experiment], run.folder):
        write_files(run.folder, files)
    # Remove files of an earlier run with other settings, which could be mistaken for results of this run.
    for experiment in map(experiment_of, done.asked):
        for file in experiment.files.keys() - files.keys():
            (run.folder / file).unlink(missing_ok=True)
    return page, summary


def fit_settings(
    asked: Mapping[str, Settings], n_frames: int, *, fixed: bool = False, required: bool = False
) -> tuple[dict[str, Any], dict[str, str]]:
    """Adapt settings to a film of `n_frames`. Return the settings and notes on the changes, each by experiment.

    If the film is too short, the number of atoms and the window are reduced, unless `fixed` is True. The settings of an
    experiment are None if no size fits. `NotEnoughFramesError` is raised instead if `fixed` or `required` is True.
    """
    used: dict[str, Any] = {}
    notes: dict[str, str] = {}
    for name, own in asked.items():
        if fixed:
            own.check(n_frames)
        used[name], note = (own, "") if fixed else own.fitted(n_frames)
        if used[name] is None and required:
            raise NotEnoughFramesError(f"{note}; use a longer film, or give --atoms and --window that fit")
        if note:
            notes[name] = note
    return used, notes


def with_needed(used: Mapping[str, Settings]) -> dict[str, Settings]:
    """Return the settings `used`. Before them come settings of further experiments whose results they need."""
    found: dict[str, Settings] = {}
    for name, own in used.items():
        for need in () if own is None else experiment_of(name).needs(own):
            if need not in used:
                found |= with_needed({need: own.shared_with(command_of(need).settings)})
        found[name] = own
    return found


def run_experiments(material: Any, used: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """Run experiments on the data `material` of a film. Return results by name. Skip experiments with settings None."""
    results: dict[str, Any] = {}
    for name, own in used.items():
        if own is not None:
            results[name] = experiment_of(name).run(material, own, run, results)
    return results


@contextmanager
def folder(path: Path) -> Iterator[Path]:
    """Context that creates the output folder, so that an unusable path is found before the work begins.

    If the work fails, folders that are still empty are removed.
    """
    if path.exists() and not path.is_dir():
        raise PSMTError(f"--out {path} is a file; give a folder")
    if path.is_symlink() and not path.exists():
        raise PSMTError(f"--out {path} is a link to a folder that is not there; make it, or give another one")
    made = [parent for parent in (path, *path.parents) if not parent.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK | os.X_OK):
            raise PSMTError(f"--out {path} may not be written to; give another folder, or check its permissions")
        yield path
    except BaseException:
        for parent in (path / "tasks", *made):
            if parent.is_dir() and not any(parent.iterdir()):
                parent.rmdir()
        raise
