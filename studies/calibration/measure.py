"""Coverage and power of intervals: on made-up values, on null films, and on splits of made-up people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy import stats

from psmt.data import GlideFilm
from psmt.data.patches import read_patches
from psmt.evaluation import Interval, mean_interval, ratio_interval, swap_interval, teacher_forced
from psmt.evaluation.null_models import draw_noise, shuffle_frames
from psmt.experiments.brain.reproducibility import halvings, match
from psmt.model.baselines import CopyLast, MeanFrame
from psmt.types import Array

COVERED = 0.93, 0.97
"""Coverage that nominal 95% should have; numbers outside are bold in the tables."""

EFFECT = 1.0
"""Mean, in standard deviations, that the power for means is given for."""

HALF = float(np.log(2))
"""Logarithm of the ratio that the power for ratios is given for: half the error."""

MARGINS: dict[str, Callable[[Array], Array]] = {
    "normal": lambda z: z,
    "heavy tails (t, 4 degrees of freedom)": lambda z: stats.t.ppf(stats.norm.cdf(z), 4) / np.sqrt(2),
    "skewed (exponential)": lambda z: -stats.norm.logsf(z) - 1,
}
"""Distributions with mean 0 and standard deviation 1, as functions of normal values."""

N_STARTS, WINDOW, STEPS = 32, 20, 5
"""Starts in a null film, frames of the mean, and frames that are predicted at each start."""


class Measured(NamedTuple):
    """Share of intervals that cover the truth, and that exclude 0 if there is an effect."""

    coverage: float
    power: float

    def __str__(self) -> str:
        text = f"{100 * self.coverage:.1f}"
        return (
            f"{text if COVERED[0] <= round(self.coverage, 3) <= COVERED[1] else f'**{text}**'} / {100 * self.power:.0f}"
        )


def measure(intervals: Sequence[Interval], effect: float, truth: float = 0.0) -> Measured:
    """Coverage of the truth, and power: the intervals are moved by the effect and should then exclude the truth."""
    _, low, high = np.array(intervals).T - truth
    return Measured(float(np.mean((low <= 0) & (high >= 0))), float(np.mean((low + effect > 0) | (high + effect < 0))))


def autocorrelated(rng: np.random.Generator, shape: tuple[int, ...], rho: float) -> Array:
    """Normal values (.., time) with standard deviation 1, each correlated with the one before it by `rho`."""
    values = rng.standard_normal(shape)
    for t in range(1, shape[-1]):
        values[..., t] = rho * values[..., t - 1] + np.sqrt(1 - rho**2) * values[..., t]
    return values


def mean_coverage(
    n: int,
    rho: float,
    draws: int,
    *,
    margin: str = "normal",
    repeat: int = 1,
    block: int = 1,
    independent: bool = False,
) -> Measured:
    """Intervals of the mean of n values, each of which is repeated `repeat` times."""
    drawn = MARGINS[margin](autocorrelated(np.random.default_rng(n), (draws, n // repeat), rho))
    values = np.repeat(drawn, repeat, axis=1)
    return measure([mean_interval(own, block=block, independent=independent) for own in values], EFFECT)


def error_pairs(n: int, rho: float, draws: int, spreads: tuple[float, float]) -> Iterator[tuple[Array, Array]]:
    """Pairs of errors (n,) of two methods, log-normal and with means of 1; their logarithms correlate by 0.8."""
    shared, one, other = autocorrelated(np.random.default_rng(n), (3, draws, n), rho)
    logs = [np.sqrt(0.8) * shared + np.sqrt(0.2) * own for own in (one, other)]
    return zip(*(np.exp(s * own - s**2 / 2) for s, own in zip(spreads, logs, strict=True)), strict=True)


def ratio_coverage(
    n: int, rho: float, draws: int, *, spreads: tuple[float, float], independent: bool = False
) -> Measured:
    """Intervals of the ratio of mean errors by `ratio_interval`."""
    pairs = error_pairs(n, rho, draws, spreads)
    return measure([ratio_interval(*pair, independent=independent) for pair in pairs], HALF)


def swap_coverage(n: int, rho: float, draws: int, *, spreads: tuple[float, float]) -> Measured:
    """Intervals of the same ratio by `swap_interval`."""
    return measure([swap_interval(*pair) for pair in error_pairs(n, rho, draws, spreads)], HALF)


@cache
def built_in_film(n_frames: int) -> Array:
    """Patches (n_frames, 64) of the built-in film."""
    return read_patches(GlideFilm(n_frames=n_frames, size=8), frame_size=8, patch_size=8).values


def null_film_errors(kind: str, seed: int) -> Array:
    """Errors (2, N_STARTS) of copying and of the mean of `WINDOW` frames on a null model of the built-in film."""
    n_frames = WINDOW + N_STARTS * (STEPS + 1)
    film = built_in_film(n_frames)
    drawn = (shuffle_frames if kind == "shuffled" else draw_noise)(film, np.random.default_rng(seed))
    errors = []
    for start in range(WINDOW, n_frames, STEPS + 1):
        past, delayed = drawn[start - WINDOW : start], drawn[start : start + STEPS + 1]
        methods = CopyLast().fit(past), MeanFrame(window=WINDOW).fit(past)
        errors.append([teacher_forced(method, delayed, delayed).vs_frame.mean() for method in methods])
    return np.array(errors).T


def film_coverage(films: Sequence[Array], n: int, *, independent: bool = False) -> Measured:
    """Intervals of the error of copying relative to that of the mean, at the first n starts of each null film.

    Frames are in random order, so the expected ratio is known: copying has twice the variance, the mean 1 + 1 / WINDOW.
    """
    truth = float(np.log(2 * WINDOW / (WINDOW + 1)))
    return measure([ratio_interval(*errors[:, :n], independent=independent) for errors in films], -HALF, truth)


def split_scores(n_people: int, draws: int) -> list[Array]:
    """Scores (n_splits,) of six splits of people who share a pattern: correlations of the halves' mean patterns."""
    rng, pattern = np.random.default_rng(n_people), np.random.default_rng(0).standard_normal(20)
    scores = []
    for seed in range(draws):
        people = pattern + 2 * rng.standard_normal((n_people, 20))
        halves = [np.isin(np.arange(n_people), first) for first in halvings(n_people, 6, seed)]
        scores.append(np.array([match(people[own].mean(0)[None], people[~own].mean(0)[None]) for own in halves]))
    return scores


def split_coverage(scores: Sequence[Array], interval: Callable[[Array], Interval]) -> str:
    """Coverage of the mean score in percent, without the power."""
    return str(measure([*map(interval, scores)], 0.0, float(np.mean(scores)))).split(" ")[0]
