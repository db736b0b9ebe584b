"""The sweep: a dictionary and codes for each M, and a task per window, on the film and on its null models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from psmt.evaluation import mse, trimmed
from psmt.evaluation.null_models import draw_noise
from psmt.experiments.coding_tasks import Coded, code_film, pack_codes, slice_codes, unpack_codes
from psmt.experiments.embedding_tasks import window_task
from psmt.experiments.sweep.result import SweepResult
from psmt.experiments.sweep.settings import SweepSettings
from psmt.pipeline.run import Run
from psmt.types import Array, Ints
from psmt.utils.disk_series import blocks
from psmt.utils.validation import check_film

Errors = dict[tuple[float, int, int], Array]
"""MSE (n_windows, H) by (λ, M, H)."""


def sweep(values: ArrayLike, settings: SweepSettings, run: Run) -> SweepResult:
    """Reconstruction errors of patches of a film or a series (time, n_features) for all λ, M and H.

    One dictionary per M is learned from the whole film. Windows differ in the embedding only, which all λ share.

    Raises
    ------
    NotEnoughFramesError
        If the film is too short for every combination. If it is too short for some, the table says so.
    """
    film = check_film(values)
    settings.check(len(film))
    run = replace(run, name="sweep")
    sizes = [size for size in settings.n_atoms if min(settings.windows(size)) <= len(film)]
    # The largest first, so that no long task starts last.
    sizes.sort(reverse=True)
    coded = code_film(film, sizes, settings, run)
    errors = _errors(film, coded, settings, run, settings.segments, "windows")
    nulls = _null_errors(film, coded, settings, run) if settings.null_windows else {}
    coding = {len(one.dictionary): _coding_errors(one, film) for one in coded}
    return SweepResult(
        settings=settings,
        n_frames=len(film),
        errors=errors,
        null_errors=nulls,
        coding_errors={
            (size, window): np.array([coding[size][start:stop] for start, stop in settings.segments(window, len(film))])
            for _, size, window in errors
        },
        empty_error=float(trimmed(np.concatenate([np.mean(block**2, axis=1) for block in blocks(film)])).mean()),
    )


def _null_errors(film: Array, coded: Sequence[Coded], settings: SweepSettings, run: Run) -> dict[str, Errors]:
    """Errors on each null model. Shuffled frames keep their dictionary and codes; noise has its own."""
    run, rng = replace(run, name="sweep-null"), np.random.default_rng(settings.seed)
    order = rng.permutation(len(film))
    noise = draw_noise(film, rng)
    noise_coded = code_film(noise, [len(one.dictionary) for one in coded], settings, run)
    places, stage = settings.null_segments, "windows of null models"
    return {
        "shuffled": _errors(film, coded, settings, run, places, stage, order),
        "noise": _errors(noise, noise_coded, settings, run, places, stage),
    }


def _errors(
    film: Array,
    coded: Sequence[Coded],
    settings: SweepSettings,
    run: Run,
    places: Callable[[int, int], Sequence[tuple[int, int]]],
    stage: str,
    order: Ints | None = None,
) -> Errors:
    """Errors of the windows at the `places` of a film, whose frames may be taken in another `order`."""
    tasks, sizes = [], []
    for dictionary, codes in coded:
        n_atoms = len(dictionary)
        for window in sorted(settings.windows(n_atoms), reverse=True):
            for k, (start, stop) in enumerate(places(window, len(film)) if window <= len(film) else ()):
                if order is None:
                    patches, own = film[start:stop], slice_codes(codes, start, stop)
                else:
                    rows = order[start:stop]
                    patches, own = film[rows], pack_codes(unpack_codes(**codes, n_atoms=n_atoms)[rows])
                task = window_task(
                    f"{run.name}-M{n_atoms:04d}-H{window:05d}-w{k:03d}",
                    patches,
                    dictionary,
                    own,
                    n_components=settings.components(n_atoms),
                    lam=settings.lam,
                    departures=settings.departures,
                    solver=settings.solver,
                    device=run.device,
                )
                tasks.append(task)
                sizes.append((n_atoms, window))
    found: dict[tuple[int, int], list[Array]] = {}
    for size, result in zip(sizes, run.tasks(tasks, stage), strict=True):
        found.setdefault(size, []).append(result["mse"])
    return {
        (lam, size, window): np.array(found[size, window])[:, i]
        for i, lam in enumerate(settings.lam)
        for size in settings.n_atoms
        for window in settings.windows(size)
        if (size, window) in found
    }


def _coding_errors(coded: Coded, film: Array) -> Array:
    """MSE (time,) of layer 1 alone on the film (time, n_features)."""
    codes, errors, first = unpack_codes(**coded.codes, n_atoms=len(coded.dictionary)), [], 0
    for block in blocks(film):
        errors.append(mse(codes[first : first + len(block)] @ coded.dictionary, block))
        first += len(block)
    return np.concatenate(errors)
