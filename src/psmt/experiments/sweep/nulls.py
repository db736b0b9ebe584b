"""The sweep on the film's nulls: what more atoms and more frames are worth where nothing follows from anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from psmt.evaluation.null_models import draw_noise
from psmt.experiments.coding_tasks import Coded, code_film, pack_codes, unpack_codes
from psmt.experiments.embedding_tasks import window_task
from psmt.experiments.sweep.settings import SweepSettings
from psmt.pipeline.run import Run
from psmt.pipeline.tasks import Task
from psmt.types import Array, Ints

NullErrors = dict[str, dict[tuple[int, int], Array]]
"""MSE (n_segments, n_lam, H) by null and (M, H)."""


def sweep_nulls(film: Array, coded: Sequence[Coded], settings: SweepSettings, run: Run) -> NullErrors:
    """Errors of the sweep on each null of the film (time, n_features), whose dictionaries and codes come with it.

    Shuffled frames have the dictionary and the codes that they had in order. Noise has its own.
    """
    if not settings.null_windows:
        return {}
    run, rng = replace(run, name="sweep-null"), np.random.default_rng(settings.seed)
    order = rng.permutation(len(film))
    noise = draw_noise(film, rng)
    own = code_film(noise, [len(one.dictionary) for one in coded], settings, run)
    return {
        "shuffled": _errors(film, coded, settings, run, order),
        "noise": _errors(noise, own, settings, run, np.arange(len(film))),
    }


def _errors(
    film: Array, coded: Sequence[Coded], settings: SweepSettings, run: Run, order: Ints
) -> dict[tuple[int, int], Array]:
    places = [
        (one, window, rows)
        for one in coded
        for window in settings.windows(len(one.dictionary))
        if window <= len(film)
        for start, stop in settings.null_segments(window, len(film))
        for rows in [order[start:stop]]
    ]
    found = run.tasks([_task(film, one, rows, settings, run) for one, _, rows in places], "windows of nulls")
    errors: dict[tuple[int, int], list[Array]] = {}
    for (one, window, _), result in zip(places, found, strict=True):
        errors.setdefault((len(one.dictionary), window), []).append(result["mse"])
    return {key: np.array(values) for key, values in errors.items()}


def _task(film: Array, one: Coded, rows: Ints, settings: SweepSettings, run: Run) -> Task:
    n_atoms = len(one.dictionary)
    return window_task(
        f"sweep-null-M{n_atoms:04d}-H{len(rows):05d}",
        film[rows],
        one.dictionary,
        pack_codes(unpack_codes(**one.codes, n_atoms=n_atoms)[rows]),
        n_components=settings.components(n_atoms),
        lam=settings.lam,
        departures=settings.departures,
        solver=settings.solver,
        device=run.device,
    )
