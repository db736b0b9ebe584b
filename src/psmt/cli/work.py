"""What commands do: open films and the folder, run experiments, write files, and print results."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from psmt.cli.terminal import Bars, show
from psmt.errors import NotEnoughFramesError, PSMTError
from psmt.experiments import command_of, experiment_of

if TYPE_CHECKING:
    from psmt.cli.commands import Job
    from psmt.experiments.contract import Shown
    from psmt.experiments.film_report import FilmResults
    from psmt.experiments.options.declaration import Settings
    from psmt.pipeline.run import Run, StageClock
    from psmt.report import Claim, Picture
    from psmt.types import Array

REPORT, SUMMARY = "report.html", "summary.json"
"""Files of all commands."""


def carry_out(job: Job, sources: Sequence[Any]) -> None:
    """Do what was asked on each film, with one executor, and print the results; several films get a sub-folder each."""
    from psmt.pipeline.run import Run
    from psmt.utils.files import clear_stale

    options = job.options
    # Films are opened first: a wrong name is answered before the libraries are imported that settings need.
    options.check(())
    films = [options.open(source) for source in sources]
    settings = job.settings()
    options.check(settings.values())
    names = sub_folders(film.name for film in films)
    with folder(options.out) as out, options.executor(max(own.largest for own in settings.values())) as executor:
        clear_stale(out, "*")
        for film, name in zip(films, names, strict=True):
            with folder(out / name if len(films) > 1 else out) as target:
                clear_stale(target, "*")
                if options.force:
                    start_over(target)
                with Bars() as progress:
                    run = Run(folder=target, executor=executor, progress=progress, device=options.engine)
                    shown, summary = _work(job, film, run)
            if options.json:
                # One line per film: programs read lines.
                print(json.dumps(json.loads(summary), ensure_ascii=False))
            else:
                show(shown)


def _work(job: Job, source: Any, run: Run) -> tuple[list[Shown], bytes]:
    """Run the experiments on a film and write all files; return what is printed, and the content of summary.json."""
    # Imported when the film is open: a wrong name is answered before the libraries that draw figures are imported.
    from psmt.experiments.expectation import expectation
    from psmt.experiments.film_report import FilmResults
    from psmt.pipeline.run import StageClock
    from psmt.utils.threads import one_blas_thread

    options, paper = job.options, job.command.paper
    asked = job.settings(source)
    # One experiment is refused if the film is too short for sizes that were given, or for any size.
    fit = {} if paper else {"fixed": bool({"n_atoms", "window"} & job.given.keys()), "required": True}
    if source.n_frames is not None and not paper:
        fit_settings(asked, source.n_frames, **fit)
    began = perf_counter()
    material = options.read(source, run.progress)
    clock = None
    if paper:
        clock = StageClock(run.folder / "timings.json", run_key(material, asked), run.progress)
        clock.add("read frames", perf_counter() - began)
        run = replace(run, progress=clock)
    film = options.record(source, material, motion=job.command.motion)
    used, notes = (dict(asked), {}) if film.n_frames is None else fit_settings(asked, film.n_frames, **fit)
    for note in () if paper else notes.values():
        print(f"psmt: {note}", file=sys.stderr, flush=True)
    used, run = with_needed(used), replace(run, picture_shape=film.picture_shape)
    # What is computed between tasks must not depend on the number of cores of this machine.
    with one_blas_thread() if paper else nullcontext():
        results = run_experiments(material, used, run)
    name = job.command.name
    done = FilmResults(command=name, film=film, asked=asked, used=used, notes=notes, results=results, paper=paper)
    claims, summary = _write(done, options.still(source, film), run, clock)
    shown: list[Shown] = list(getattr(material, "remarks", ()))
    if paper:
        shown += [f"{film.name}, {film.n_frames:,} frames"]
        shown += [thing for name, result in results.items() for thing in experiment_of(name).overview(result)]
        shown += claims
    else:
        shown += [expectation(film.regime)] if film.regime else []
        shown += experiment_of(done.experiment).shown(results[done.experiment])
    return [*shown, str(run.folder / REPORT)], summary


def _write(
    done: FilmResults, still: Picture | None, run: Run, clock: StageClock | None
) -> tuple[Sequence[Claim], bytes]:
    """Write all files into the folder of the run; return the claims and the content of summary.json."""
    from psmt.experiments.film_report import durations_fact, make_page, make_summary
    from psmt.report import render
    from psmt.utils.files import write_files

    run.progress("draw figures", 0, 1)
    files: dict[str, Any] = {}
    for name, result in done.results.items():
        files |= experiment_of(name).written(result)
    page = make_page(done, files, still)
    run.progress("draw figures", 1, 1)
    if clock is not None:
        clock.save()
        page = replace(page, facts=[*page.facts, durations_fact(clock.seconds)])
    summary = make_summary(done, page.claims)
    files |= {REPORT: render(page), SUMMARY: summary}
    meanwhile = experiment_of(done.experiment).meanwhile
    with nullcontext() if done.paper else meanwhile(done.results[done.experiment], run.folder):
        write_files(run.folder, files)
    # Files of an earlier run with other settings would be mistaken for results of this one.
    for experiment in map(experiment_of, done.asked):
        for file in experiment.files.keys() - files.keys():
            (run.folder / file).unlink(missing_ok=True)
    return page.claims, summary


# Settings and results


def fit_settings(
    asked: Mapping[str, Settings], n_frames: int, *, fixed: bool = False, required: bool = False
) -> tuple[dict[str, Any], dict[str, str]]:
    """What of the settings fits into a film of `n_frames`, None if nothing does; and why it is not as asked.

    `fixed` sizes are not changed. Raises `NotEnoughFramesError` if they do not fit, or if no size of a `required`
    experiment fits.
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
    """The settings, each after those of the experiments whose results it needs and that are not there."""
    found: dict[str, Settings] = {}
    for name, own in used.items():
        for need in () if own is None else experiment_of(name).needs(own):
            if need not in used:
                found |= with_needed({need: own.shared_with(command_of(need).settings)})
        found[name] = own
    return found


def run_experiments(material: Any, used: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """Results by experiment, without those whose settings are None: they do not fit."""
    results: dict[str, Any] = {}
    for name, own in used.items():
        if own is not None:
            results[name] = experiment_of(name).run(material, own, run, results)
    return results


def run_key(values: Array, settings: Mapping[str, Settings]) -> str:
    """Short hash of the values and the settings."""
    from psmt.pipeline.cache import hash_values

    described = repr({name: asdict(own) for name, own in settings.items()})
    return hash_values({"values": values, "settings": described}, where="the run")[:16]


# The folder of results


@contextmanager
def folder(path: Path) -> Iterator[Path]:
    """Make the folder before any work, so that a bad one is found early; if the work fails, remove empty ones."""
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


def sub_folders(names: Iterable[str]) -> list[str]:
    """A different folder name for each film.

    >>> sub_folders(["a.mp4", "b c", "a.npy"])
    ['a', 'b-c', 'a-2']
    """
    taken: list[str] = []
    for name in names:
        clean = "".join(c if c.isalnum() or c in "._-" else "-" for c in Path(name).stem).strip(".-") or "film"
        number = 1
        while (chosen := clean if number == 1 else f"{clean}-{number}") in taken:
            number += 1
        taken.append(chosen)
    return taken


def start_over(target: Path) -> None:
    """Remove the results of tasks, from which a run would continue."""
    for path in [*(target / "tasks").glob("*.*"), target / "timings.json"]:
        path.unlink(missing_ok=True)
