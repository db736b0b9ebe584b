"""The sweep itself: a dictionary and codes for each M, and a task per window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from psmt.evaluation import mse, trimmed
from psmt.experiments.coding_tasks import Coded, code_film, slice_codes, unpack_codes
from psmt.experiments.embedding_tasks import window_task
from psmt.experiments.sweep.nulls import sweep_nulls
from psmt.experiments.sweep.result import SweepResult
from psmt.experiments.sweep.settings import SweepSettings
from psmt.pipeline.run import Run
from psmt.pipeline.tasks import Task
from psmt.types import Array
from psmt.utils.disk_series import blocks
from psmt.utils.validation import check_film


def sweep(values: ArrayLike, settings: SweepSettings, run: Run) -> SweepResult:
    """Reconstruction errors of a film's patches, or of a series, (time, n_features) for all λ, M and H.

    One dictionary per M is learned from the whole film; windows differ in P only, which all λ share.

    Raises
    ------
    NotEnoughFramesError
        When the film is too short for every combination. Where it is too short for some, the table says so.
    """
    film = check_film(values)
    settings.check(len(film))
    run = replace(run, name="sweep")
    sizes = [size for size in settings.n_atoms if min(settings.windows(size)) <= len(film)]
    # The largest first: nobody then waits for a long task that was begun last.
    sizes.sort(reverse=True)
    coded = code_film(film, sizes, settings, run)
    tasks = [task for one in coded for task in window_tasks(film, one, settings, run.device)]
    results = run.tasks([task for _, task in tasks], "windows")
    grouped: dict[tuple[int, int], list[Array]] = {}
    for (combination, _), result in zip(tasks, results, strict=True):
        grouped.setdefault(combination, []).append(result["mse"])
    nulls = sweep_nulls(film, coded, settings, run)
    alone = {len(one.dictionary): _coding_errors(one, film) for one in coded}
    order = [
        (size, window) for size in settings.n_atoms for window in settings.windows(size) if (size, window) in grouped
    ]
    return SweepResult(
        settings=settings,
        n_frames=len(film),
        errors=_by_price({key: np.array(grouped[key]) for key in order}, settings),
        null_errors={null: _by_price(errors, settings) for null, errors in nulls.items()},
        coding_errors={
            (size, window): np.array([alone[size][start:stop] for start, stop in settings.segments(window, len(film))])
            for size, window in order
        },
        empty_error=float(trimmed(np.concatenate([np.mean(block**2, axis=1) for block in blocks(film)])).mean()),
    )


def _by_price(errors: dict[tuple[int, int], Array], settings: SweepSettings) -> dict[tuple[float, int, int], Array]:
    """MSE (n_segments, H) by (λ, M, H) of those (n_segments, n_lam, H) by (M, H)."""
    return {(lam, *key): own[:, i] for i, lam in enumerate(settings.lam) for key, own in errors.items()}


def _coding_errors(coded: Coded, film: Array) -> Array:
    """MSE (time,) of layer 1 alone on the film (time, n_features)."""
    codes, errors, first = unpack_codes(**coded.codes, n_atoms=len(coded.dictionary)), [], 0
    for block in blocks(film):
        errors.append(mse(codes[first : first + len(block)] @ coded.dictionary, block))
        first += len(block)
    return np.concatenate(errors)


def window_tasks(
    patches: Array, coded: Coded, settings: SweepSettings, device: str = "cpu"
) -> Iterator[tuple[tuple[int, int], Task]]:
    """Tasks of all windows that fit into the patches (time, n_features) with packed codes, each with its (M, H)."""
    n_atoms = len(coded.dictionary)
    for window in sorted(settings.windows(n_atoms), reverse=True):
        for segment, (start, stop) in enumerate(settings.segments(window, len(patches))):
            yield (
                (n_atoms, window),
                window_task(
                    f"sweep-M{n_atoms:04d}-H{window:05d}-w{segment:03d}",
                    patches[start:stop],
                    coded.dictionary,
                    slice_codes(coded.codes, start, stop),
                    n_components=settings.components(n_atoms),
                    lam=settings.lam,
                    departures=settings.departures,
                    solver=settings.solver,
                    device=device,
                ),
            )
