"""Run the study, with one task per speed and noise. Every start has its own film."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from psmt.data import GlideFilm
from psmt.data.patches import read_patches
from psmt.evaluation import teacher_forced
from psmt.experiments.prediction.phase import methods_of
from psmt.model import PSMT
from psmt.pipeline.run import Run
from psmt.pipeline.tasks import Task, on_device
from psmt.types import Array, Result
from studies.regimes.map import METHODS, PSMT_RULES, MeasuredMap
from studies.regimes.settings import RegimesSettings
from studies.regimes.speed_and_noise import measure_regime


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
        """Yield the lines of regimes.csv."""
        for (speed, noise), errors in self.errors.items():
            for k, seed in enumerate(self.film_seeds):
                like_speed, like_noise = self.measured[speed, noise][k].tolist()
                for method, (code, frame) in zip(METHODS, errors[k].tolist(), strict=True):
                    yield RegimeRow(speed, noise, seed, method, code, frame, like_speed, like_noise)

    def map(self) -> MeasuredMap:
        """Return the map of the errors of each method relative to copying."""
        return MeasuredMap.of(self.errors)

    def summary(self) -> list[dict[str, Any]]:
        """Numbers for programs at each speed and noise: methods relative to copying, PSMT to the best simple method."""
        known = self.map()
        return [
            {"against": against, "method": method, "relative_to": other, "speed": speed, "noise": noise}
            | {"mean": found.mean, "low": found.low, "high": found.high, "outcome": found.verdict}
            for ratios, other in ((known.ratios, "copying"), (known.to_simple, "best simple method"))
            for against, methods in ratios.items()
            for method, cells in methods.items()
            for (speed, noise), found in cells.items()
        ]


def regimes(film: GlideFilm, settings: RegimesSettings, run: Run) -> RegimesResult:
    """Compute the errors of all methods at all speeds and noises. Seeds of the films count up from that of `film`."""
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
    """Predict films of one speed and noise by all methods.

    Return ``errors`` (n_starts, n_methods, 2) vs code and vs frame, and ``measured`` speed and noise (n_starts, 2).
    """
    errors, measured = [], []
    for seed in film_seeds:
        film = GlideFilm(n_frames=past + horizon + 1, seed=seed, speed=speed, size=patch_size)
        patches = noisy_patches(film, noise)
        errors.append(_errors(patches[:past], patches[past:], picture_shape=(patch_size, patch_size), **given))
        regime = measure_regime(patches, n_samples=40)
        measured.append([np.nan, np.nan] if regime is None else [regime.speed, regime.noise])
    return {"errors": np.array(errors), "measured": np.array(measured)}


def noisy_patches(film: GlideFilm, noise: float) -> Array:
    """Return standardised patches (time, size * size) of a film whose frames are one patch, with added noise.

    The noise is relative to the contrast of the patch. In a slow film the patch shows a single place, whose contrast
    may differ from that of the film.
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
    picture_shape: tuple[int, int],
    device: str = "cpu",
    departures: Mapping[str, Any] = MappingProxyType({}),
    **given: Any,
) -> Array:
    """Return the mean MSE (n_methods, 2) vs code and vs frame, over all delayed frames but the first."""
    psmt = PSMT(**given, **departures, random_state=seed, device=device).fit(past)
    shared = {name: getattr(psmt, name) for name in ("window", "device", *departures)}
    shared |= {"n_components": psmt.n_components_, "lam": psmt.lam_, "coder": psmt.coder_}
    rules = {name: PSMT(**shared, extrapolation=rule) for name, rule in PSMT_RULES.items()}
    methods = methods_of(psmt, rules["psmt_gain"], picture_shape) | rules
    estimates = psmt.coder_.inverse_transform(psmt.coder_.transform(delayed))
    scores = [teacher_forced(methods[name].fit(past), delayed, estimates) for name in METHODS]
    return np.array([[score.vs_code.mean(), score.vs_frame.mean()] for score in scores])
