"""Run the study, with one task per start and solution, on made-up series and on the film."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from psmt.coding import SparseCoder
from psmt.evaluation import mse
from psmt.experiments.film_tasks import dictionary_task
from psmt.model import PSMT
from psmt.pipeline.run import Run
from psmt.pipeline.tasks import Task
from psmt.series import Scaling
from psmt.types import Array, Ints, Result
from psmt.utils.validation import check_film
from studies.locality.made_up import KINDS, make_up
from studies.locality.measures import atoms_used, frames_used, group_share, rotated
from studies.locality.result import FILM, LocalityResult, Material
from studies.locality.settings import LocalitySettings
from studies.locality.stochastic import StochasticPSMT

MADE_UP = {"window": 288, "n_components": 16, "alpha": 0.1}
"""H, f and α for the made-up series. α is a tenth of the height of a bump."""


def locality(values: ArrayLike, settings: LocalitySettings, run: Run) -> LocalityResult:
    """Measure the locality and the predictions of each solution, on made-up series and on a film (time, n_features)."""
    film = check_film(values)
    settings.check(len(film))
    run = replace(run, name="locality")
    if settings.series:
        film = Scaling.of(film[: settings.first(len(film))]).standardise(film)
    learned = dictionary_task(
        film[: settings.first(len(film))],
        n_atoms=settings.n_atoms,
        alpha=settings.alpha,
        max_epochs=settings.max_epochs,
        seed=settings.seed,
    )
    (coded,) = run.tasks([learned], "dictionary")
    tasks = [*made_up_tasks(settings), *film_tasks(film, coded["dictionary"], settings)]
    results = run.tasks([task for *_, task in tasks], "solutions")
    materials: dict[str, Material] = {}
    for (material, start, name, _), result in zip(tasks, results, strict=True):
        materials.setdefault(material, Material(material)).add(start, name, result)
    return LocalityResult(settings=settings, n_frames=len(film), materials=tuple(materials.values()))


PlacedTask = tuple[str, int, str, Task]
"""A tuple of material, number of the start, solution, and task."""


def made_up_tasks(settings: LocalitySettings) -> Iterator[PlacedTask]:
    """Yield the tasks of the made-up series, with a different series at each start."""
    n_past = 2 * MADE_UP["window"]
    for kind in KINDS:
        for start in range(settings.n_starts):
            made = make_up(kind, int(n_past) + settings.horizon + 1, settings.seed + start)
            given = {"values": made.values, "dictionary": made.dictionary, "groups": made.groups, **MADE_UP}
            yield from _solutions(kind, start, given, settings)


def film_tasks(film: Array, dictionary: Array, settings: LocalitySettings) -> Iterator[PlacedTask]:
    """Yield the tasks of the film, in which the groups of atoms are not known."""
    for number, start in enumerate(settings.starts(len(film))):
        given = {
            "values": film[start - settings.window : start + settings.horizon + 1],
            "dictionary": dictionary,
            "groups": None,
            "window": settings.window,
            "n_components": settings.components,
            "alpha": settings.alpha,
        }
        yield from _solutions(FILM, number, given, settings)


def _solutions(material: str, start: int, given: dict[str, Any], settings: LocalitySettings) -> Iterator[PlacedTask]:
    for name, parameters in settings.solutions.items():
        inputs = given | {
            "horizon": settings.horizon,
            "lam": settings.lam,
            "seed": settings.seed + start,
            "descent": parameters,
            "departures": settings.departures.embedding | settings.departures.recovery,
        }
        yield material, start, name, Task(f"locality-{material}-{start:02d}-{name}", score_solution, inputs)


def score_solution(
    *,
    values: Array,
    dictionary: Array,
    groups: Ints | None,
    window: int,
    n_components: int,
    alpha: float,
    horizon: int,
    lam: Any,
    seed: int,
    descent: dict[str, Any] | None,
    departures: dict[str, Any],
) -> Result:
    """Measure the locality of one solution in each window, and the errors of its predictions.

    Returns
    -------
    dict
        Errors (horizon,) of one-step predictions: ``mse`` vs frame and ``mse_code`` vs code; and, vs frame, ``copy``,
        ``copy_code`` and ``mean`` (the mean of the window). Measures of P (horizon,): ``roughness``, ``atoms``,
        ``frames`` and, if the groups are known, ``group``. The prefix ``turned_`` stands for the rotated P. ``missed``
        (horizon,) is whether the solver stopped above its tolerance. ``weights`` and ``turned_weights`` (n_components,
        n_atoms) are P of the last window, multiplied by the standard deviations of the atoms.
    """
    past, delayed = values[: len(values) - horizon - 1], values[len(values) - horizon - 1 :]
    model = (PSMT if descent is None else StochasticPSMT)(
        window=window,
        n_components=n_components,
        lam=lam,
        coder=SparseCoder.from_dictionary(dictionary, alpha=alpha),
        random_state=seed,
        **departures,
    )
    if isinstance(model, StochasticPSMT):
        model.descent = {"seed": seed, **(descent or {})}
    rows: dict[str, list[Any]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # counted as missed
        model.fit(past)
        for now, ahead in pairwise(delayed):
            predicted = model.update(now).predict()
            codes, P = model.codes_, model.embedding_
            estimate = model.coder_.inverse_transform(model.coder_.transform(ahead[None]))[0]
            deviations = codes.std(axis=0, ddof=1)
            bends = np.diff(codes @ P.T, 2, axis=0) / 2
            found = {
                "mse": mse(predicted, ahead),
                "mse_code": mse(predicted, estimate),
                "copy": mse(now, ahead),
                "copy_code": mse(codes[-1] @ dictionary, ahead),
                "mean": mse(values[: len(past) + len(rows.get("mse", ())) + 1][-window:].mean(axis=0), ahead),
                "roughness": np.sum(bends**2),
                "missed": (tol := getattr(model.followed_, "tol", None)) is not None and model.followed_.error_ > tol,
                "weights": P * deviations,
                "turned_weights": (local := rotated(P, deviations)) * deviations,
            }
            for prefix, matrix in (("", P), ("turned_", local)):
                found[f"{prefix}atoms"] = atoms_used(matrix, deviations)
                found[f"{prefix}frames"] = frames_used(matrix, codes)
                if groups is not None:
                    found[f"{prefix}group"] = group_share(matrix, deviations, groups)
            for key, value in found.items():
                rows.setdefault(key, []).append(value)
    return {key: np.array(found[-1] if "weights" in key else found) for key, found in rows.items()}
