"""One task per speed and noise, in which every start has its own film."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from psmt.data import GlideFilm
from psmt.data.patches import read_patches
from psmt.data.speed_and_noise import measure_regime
from psmt.evaluation import teacher_forced
from psmt.experiments.expectation import METHODS, RegimeMap
from psmt.extrapolation import EXTRAPOLATIONS
from psmt.model import PSMT
from psmt.model.baselines import Baseline1, Baseline2, CopyCode, CopyLast, LinearTrend, MeanFrame, RidgeAutoregression
from psmt.pipeline.run import Run
from psmt.pipeline.tasks import Task, on_device
from psmt.types import Array, Predictor, Result
from studies.regimes.map import measured_map
from studies.regimes.settings import RegimesSettings


class RegimeRow(NamedTuple):
    """One line of regimes.csv: means over the frames that a method predicts after one start."""

    speed: float
    noise: float
    film_seed: int
    method: str
    mse_vs_code: float
    mse_vs_frame: float
    measured_speed: float
    measured_noise: float


@dataclass(frozen=True, kw_only=True)
class RegimesResult:
    """Errors of all methods on all films."""

    settings: RegimesSettings
    film_seeds: Sequence[int]
    errors: Mapping[tuple[float, float], Array]
    """MSE (n_starts, n_methods, 2), vs code and vs frame, by (speed, noise)."""
    measured: Mapping[tuple[float, float], Array]
    """Speed and noise (n_starts, 2) as measured from the films, by the true (speed, noise)."""

    def rows(self) -> Iterator[RegimeRow]:
        """Lines of regimes.csv."""
        for (speed, noise), errors in self.errors.items():
            for k, seed in enumerate(self.film_seeds):
                like_speed, like_noise = self.measured[speed, noise][k].tolist()
                for method, (code, frame) in zip(METHODS, errors[k].tolist(), strict=True):
                    yield RegimeRow(speed, noise, seed, method, code, frame, like_speed, like_noise)

    def map(self) -> RegimeMap:
        """Errors of each method relative to copying."""
        return measured_map(self.errors)

    def summary(self) -> list[dict[str, Any]]:
        """Numbers for programs: each method relative to copying, at each speed and noise."""
        return [
            {"against": against, "method": method, "speed": speed, "noise": noise, **found._asdict()}
            | {"outcome": found.verdict}
            for against, methods in self.map().ratios.items()
            for method, cells in methods.items()
            for (speed, noise), found in cells.items()
        ]


def regimes(film: GlideFilm, settings: RegimesSettings, run: Run) -> RegimesResult:
    """Errors of all methods at all speeds and noises. The seeds of the films count up from that of `film`."""
    run = replace(run, name="regimes")
    cells = [(speed, noise) for speed in settings.speeds for noise in settings.noises]
    seeds = list(range(film.seed, film.seed + settings.n_starts))
    results = run.tasks([_task(speed, noise, seeds, settings, run.device) for speed, noise in cells], "films")
    by_cell = dict(zip(cells, results, strict=True))
    return RegimesResult(
        settings=settings,
        film_seeds=seeds,
        errors={cell: result["errors"] for cell, result in by_cell.items()},
        measured={cell: result["measured"] for cell, result in by_cell.items()},
    )


def _task(speed: float, noise: float, seeds: list[int], settings: RegimesSettings, device: str) -> Task:
    axes = "speeds", "noises", "n_starts"
    given = {name: value for name, value in vars(settings).items() if name not in axes}
    given |= {"departures": settings.departures.parameters}
    inputs = {"speed": float(speed), "noise": float(noise), "film_seeds": seeds, **given, **on_device(device)}
    return Task(f"regimes-v{speed:.3f}-n{noise:.3f}", compare_methods, inputs)


def compare_methods(
    *, speed: float, noise: float, film_seeds: list[int], past: int, horizon: int, patch_size: int, **given: Any
) -> Result:
    """``errors`` (n_starts, n_methods, 2) vs code and vs frame, and ``measured`` speed and noise (n_starts, 2)."""
    errors, measured = [], []
    for seed in film_seeds:
        film = GlideFilm(n_frames=past + horizon + 1, seed=seed, speed=speed, size=patch_size)
        patches = noisy_patches(film, noise)
        errors.append(_errors(patches[:past], patches[past:], **given))
        regime = measure_regime(patches, n_samples=40)
        measured.append([np.nan, np.nan] if regime is None else [regime.speed, regime.noise])
    return {"errors": np.array(errors), "measured": np.array(measured)}


def noisy_patches(film: GlideFilm, noise: float) -> Array:
    """Standardised patches (time, size * size) of a film of one patch, with noise relative to that patch's contrast.

    In a slow film the patch shows a single place, whose contrast may differ from that of the film.
    """
    clean = read_patches(film, frame_size=film.size, patch_size=film.size)
    share = float(np.median(clean.contrast)) / film.contrast
    if noise == 0:
        return clean.values
    return read_patches(replace(film, noise=noise * share), frame_size=film.size, patch_size=film.size).values


def _errors(
    past: Array,
    delayed: Array,
    *,
    seed: int,
    device: str = "cpu",
    departures: Mapping[str, Any] = MappingProxyType({}),
    **given: Any,
) -> Array:
    """Mean MSE (n_methods, 2) vs code and vs frame, over all delayed frames but the first."""
    psmt = PSMT(**given, **departures, random_state=seed, device=device).fit(past)
    shared: dict[str, Any] = {
        "window": psmt.window,
        "n_components": psmt.n_components_,
        "lam": psmt.lam_,
        "coder": psmt.coder_,
        "device": device,
        **departures,
    }
    methods: dict[str, Predictor] = {
        **{name: PSMT(**shared, extrapolation=name).fit(past) for name in EXTRAPOLATIONS if name in METHODS},
        "baseline1": Baseline1(**shared).fit(past),
        "baseline2": Baseline2(**shared).fit(past),
        "copy_code": CopyCode(**shared).fit(past),
        "copy": CopyLast().fit(past),
        "mean": MeanFrame(window=psmt.window_).fit(past),
        "ridge": RidgeAutoregression().fit(past),
        "trend": LinearTrend().fit(past),
    }
    estimates = psmt.coder_.inverse_transform(psmt.coder_.transform(delayed))
    scores = [teacher_forced(deepcopy(methods[name]), delayed, estimates) for name in METHODS]
    return np.array([[score.vs_code.mean(), score.vs_frame.mean()] for score in scores])
