"""Run the study. In one task per place, all methods predict frame by frame around each kind of change."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psmt.coding import SparseCoder
from psmt.evaluation import mse
from psmt.experiments.prediction.phase import SharingPSMT
from psmt.model import PSMT
from psmt.model.baselines import Baseline1, Baseline2, CopyCode, CopyLast, RidgeAutoregression, SeriesBaseline
from psmt.pipeline.run import Run
from psmt.pipeline.tasks import Task, on_device
from psmt.series import Scaling
from psmt.types import Array, Predictor, Result
from psmt.utils.disk_series import blocks, mean_of
from psmt.utils.validation import check_film
from studies.changes.result import ChangesResult
from studies.changes.settings import KINDS, ChangesSettings


class PastMean(SeriesBaseline):
    """Predicts the mean of the past for every frame."""

    n_last = 1
    learned = ("mean_",)

    def learn(self, past: Array) -> None:
        """Learn the mean of the checked past frames."""
        self.mean_ = mean_of(past)

    def next_frame(self, _last: Array) -> Array:
        """Return the prediction of the next frame."""
        return np.array(self.mean_)


def changes(values: ArrayLike, settings: ChangesSettings, run: Run) -> ChangesResult:
    """Compute errors of all methods around each kind of change, in patches of a film or a series (time, n_features)."""
    film = check_film(values)
    settings.check(len(film))
    run = replace(run, name="changes")
    places = settings.chosen_places(len(film))
    given = {name: value for name, value in asdict(settings).items() if name not in ("at", "places", "departures")}
    given |= {"departures": settings.departures.parameters}
    tasks = [
        Task(
            f"changes-{place:06d}-M{settings.n_atoms:04d}-H{settings.window:05d}",
            predict_changes,
            {"patches": film, "place": place, **given, **on_device(run.device)},
        )
        for place in places
    ]
    results = run.tasks(tasks, "places")
    return ChangesResult(
        settings=settings,
        places=places,
        **{name: np.array([result[name] for result in results]) for name in ("errors", "surprise", "cut")},
    )


def predict_changes(
    *,
    patches: Array,
    place: int,
    before: int,
    horizon: int,
    flash: float,
    jump: int,
    seed: int,
    series: bool = False,
    **model: Any,
) -> Result:
    """Predict around all kinds of change at one place.

    Return ``errors`` (n_kinds, n_methods, before + horizon), and ``surprise`` and ``cut`` of PSMT by kind. All methods
    learn from the frames before the scored ones. They are updated with the frames before the change only once. Copies
    of them then receive each kind of change.
    """
    start = place - before
    if series:
        patches = Scaling.of(patches[:start]).standardise(patches)
    past, calm = patches[:start], np.asarray(patches[start:place])
    methods = fit_methods(past, seed=seed, **model)
    first = [_watch(method, calm) for method in methods.values()]
    errors, surprise, cut = [], [], []
    for kind in KINDS:
        after = changed(patches, place, kind, horizon=horizon, flash=flash, jump=jump, seed=seed)
        watched = [_watch(deepcopy(method), after) for method in methods.values()]
        both = [np.concatenate(pair, axis=1) for pair in zip(first, watched, strict=True)]
        errors.append([seen[0] for seen in both])
        surprise.append(both[0][1])
        cut.append(both[0][2])
    return {"errors": np.array(errors), "surprise": np.array(surprise), "cut": np.array(cut)}


def changed(patches: Array, place: int, kind: str, *, horizon: int, flash: float, jump: int, seed: int) -> Array:
    """Return the frames (horizon, n_features) from `place` on, with a change in the first of them.

    A cut leads to later frames of the film, which no method has learned from.
    """
    start = place
    if kind == "jump":
        start += jump
    elif kind == "cut":
        rng = np.random.default_rng([seed, place])
        start = int(rng.integers(place + horizon, len(patches) - horizon, endpoint=True))
    frames = np.array(patches[start : start + horizon])
    if kind == "flash":
        mean = mean_of(patches[:place]).mean()
        power = sum(np.square(block - mean).sum() for block in blocks(patches[:place]))
        frames[0] += flash * np.sqrt(power / patches[:place].size)
    return frames


def fit_methods(
    past: Array,
    *,
    n_atoms: int,
    window: int,
    seed: int,
    departures: Mapping[str, Any] = MappingProxyType({}),
    **given: Any,
) -> dict[str, Predictor]:
    """Fit all methods to the past (time, n_features). They share the dictionary, and f and λ of PSMT."""
    learned: dict[int, SparseCoder] = {}
    psmt = SharingPSMT(n_atoms=n_atoms, window=window, random_state=seed, **given, **departures)
    psmt.share(learned).fit(past)
    chosen: dict[str, Any] = {
        "window": window,
        "n_components": psmt.n_components_,
        "lam": psmt.lam_,
        "device": given.get("device", "cpu"),
        **departures,
    }
    shared = {**chosen, "coder": psmt.coder_}
    # Gains are learned from codes of frames that the dictionary has not seen, so the dictionary that chose f and λ
    # is used.
    gain = SharingPSMT(n_atoms=n_atoms, alpha=given["alpha"], random_state=seed, extrapolation="gain", **chosen)
    others: dict[str, Predictor] = {
        "psmt_ignore": PSMT(**shared | {"on_cut": "ignore"}),
        "psmt_gain": gain.share(learned),
        "psmt_hold": PSMT(extrapolation="hold", **shared),
        "baseline1": Baseline1(**shared),
        "baseline2": Baseline2(**shared),
        "copy": CopyLast(),
        "copy_code": CopyCode(**shared),
        "mean": PastMean(),
        "ridge": RidgeAutoregression(),
    }
    return {"psmt": psmt} | {name: method.fit(past) for name, method in others.items()}


def _watch(method: Predictor, frames: Array) -> Array:
    """Return the error, the surprise and whether the frame is a cut, (3, time). Only PSMT has the last two."""
    seen = []
    for frame in frames:
        error = float(mse(method.predict(), frame))
        method.update(frame)
        seen.append((error, getattr(method, "surprise_", np.nan), getattr(method, "cut_", np.nan)))
    return np.array(seen, dtype=np.float64).T
