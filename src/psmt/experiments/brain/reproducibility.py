"""Reproducibility of states and networks: the agreement of two halves of the data, for PSMT, rivals and surrogates."""

import logging
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from psmt.brain import fit_group
from psmt.brain.courses import FEWEST_VOLUMES
from psmt.brain.layers import join, split
from psmt.brain.states import StateModel, fit_states
from psmt.evaluation.intervals import FEWEST_VALUES, Interval, mean_interval
from psmt.types import Array, Ints, Levels, Result

STATE_METHODS = {
    "psmt": "PSMT",
    "pca": "principal components + the same AR-HMM",
    "swc": "sliding windows + k-means",
    "hmm": "Gaussian HMM",
}
"""Methods that find states, with their names in reports. Sliding windows have a number of states of their own."""

MEASURES = ("activity", "connectivity")
"""Two patterns of a state, by which states are compared: the mean activity of regions in the volumes of the state, and
the correlations of regions in these volumes minus the correlations in all volumes."""

GROUP_MEASURES = ("networks", "likelihood_gain")
"""Other scores that `compare_halves` returns. Only PSMT has them."""

NULL_SPLITS = 3
"""Largest number of splits of the people for each surrogate. Scans and surrogates are compared on the same splits."""

MAX_WINDOW_STATES, MAX_WINDOWS = 8, 2_000
"""Largest number of states of sliding windows, and of windows from which their number is chosen."""


def surrogate(series: Array, rng: np.random.Generator) -> Array:
    """Return a surrogate (time, n_regions) of a series (time, n_regions), by randomising its Fourier phases.

    Each frequency is shifted by the same random phase in all regions. This keeps the spectra and correlations, and
    makes the series a stationary linear process, without states.

    >>> x = np.random.default_rng(0).standard_normal((100, 3))
    >>> y = surrogate(x, np.random.default_rng(1))
    >>> bool(np.allclose(np.cov(x.T), np.cov(y.T)))
    True
    """
    spectrum = np.fft.rfft(series, axis=0)
    turn = np.exp(2j * np.pi * rng.random(len(spectrum)))
    turn[0] = 1.0
    if len(series) % 2 == 0:
        turn[-1] = 1.0  # the Nyquist frequency has no phase
    return np.fft.irfft(spectrum * turn[:, None], n=len(series), axis=0)


def halvings(n_people: int, max_splits: int, seed: int) -> list[tuple[int, ...]]:
    """Return at most `max_splits` splits of the people into halves, each given by the indices of its first half.

    >>> halvings(4, 6, 0)
    [(0, 1), (0, 2), (0, 3)]
    """
    half = n_people // 2
    if n_people < 2:
        return []
    rng = np.random.default_rng(seed)
    if n_people > 8:
        return [tuple(sorted(rng.permutation(n_people)[:half].tolist())) for _ in range(max_splits)]
    # With an even number of people each split appears twice, once by each of its halves.
    splits = [own for own in combinations(range(n_people), half) if n_people % 2 or 0 in own]
    if len(splits) <= max_splits:
        return splits
    return [splits[k] for k in sorted(rng.choice(len(splits), max_splits, replace=False))]


def split_interval(scores: Array, n_people: int) -> Interval:
    """Return the mean of scores (n_splits,) and its 95% interval. Each score is from a split of the people into halves.

    The scores are not independent, because all splits use the same people. So the variance of the mean is taken as
    s^2 / n_splits + s^2, where s^2 is the variance over splits (Nadeau and Bengio 2003, for halves of equal size). With
    fewer than `FEWEST_VALUES` people or splits, the interval is infinite.
    """
    interval = mean_interval(scores, independent=True)
    if n_people < FEWEST_VALUES or not interval.is_finite:
        return Interval(interval.mean, -np.inf, np.inf)
    half = float(np.sqrt(1 + len(scores)) * (interval.high - interval.mean))
    return Interval(interval.mean, interval.mean - half, interval.mean + half)


def compare_halves(
    *,
    series: Array,
    lengths: list[int],
    first: list[int],
    draw: int | None,
    methods: list[str],
    layers: dict[str, Any],
    states: dict[str, Any],
) -> Result:
    """Fit models to two halves of the people, and return scores of how well they agree.

    `series` has the preprocessed series of all people, one after the other, with `lengths` volumes each. `first` lists
    the people of the first half. If `draw` is a number, it is the seed of a `surrogate` that replaces each series. If
    it is None, the scans themselves are used. `layers` are keyword arguments of `fit_group`, and `states` are keyword
    arguments of `rival_states`.

    The result has ``states`` (n_methods, n_measures), the mean correlation of matched states; ``networks``, the mean
    correlation of matched atoms; and ``likelihood_gain``, the mean of `likelihood_gains` on the left-out halves.
    """
    people, n_states, seed = split(series, lengths), states["n_states"], states["seed"]
    numbers = {"swc": states["n_window_states"]}
    if draw is not None:
        people = [surrogate(own, np.random.default_rng([seed, draw, k])) for k, own in enumerate(people)]
    halves = [[own for k, own in enumerate(people) if (k in first) == inside] for inside in (True, False)]
    patterns: list[list[Array]] = [[], []]
    dictionaries, gains = [], []
    for own, half, others in zip(patterns, halves, halves[::-1], strict=True):
        model = fit_group(half, n_states=n_states, random_state=seed, preprocess=False, **layers)
        dictionaries.append(model.networks_)
        points = [course.embedding for course in model.courses_]
        other_points = [course.embedding for course in model.transform(others, preprocess=False)]
        gains += likelihood_gains(model.chain_, points, other_points, seed=seed)
        shown, joined = np.concatenate([course.states for course in model.courses_]), join(half)
        for method in methods:
            found = shown if method == "psmt" else rival_states(**joined, method=method, **states)["states"]
            own += state_patterns(joined["series"], found, numbers.get(method, n_states))
    matched = [match(*pair) for pair in zip(*patterns, strict=True)]
    return {
        "states": np.reshape(matched, (len(methods), len(MEASURES))),
        "networks": np.array(match(*dictionaries)),
        "likelihood_gain": np.array(np.mean(gains)),
    }


def likelihood_gains(model: StateModel, points: Sequence[Array], others: Sequence[Array], *, seed: int) -> list[float]:
    """Return log-likelihood(`model`) - log-likelihood(model with one state) for each of `others`, in nats per volume.

    `points` and `others` are trajectories (time, n_components). Both models are fitted to `points` and have the same
    autoregressive coefficient (`memory`), so the gain in log-likelihood is due to switching alone.
    """
    single = fit_states(points, 1, seed=seed, n_starts=1, memories=(model.memory,))
    return [(model.score(own) - single.score(own)) / len(own) for own in others]


def state_patterns(joined: Array, states: Ints, n_states: int) -> list[Array]:
    """Return the activity and the connectivity (see `MEASURES`), one row per state. Rows of rare states are 0."""
    pairs = np.triu_indices(joined.shape[1], 1)
    overall = correlation(joined)[pairs]
    activity, connectivity = np.zeros((n_states, joined.shape[1])), np.zeros((n_states, len(overall)))
    for k in range(n_states):
        volumes = joined[states == k]
        if len(volumes) >= FEWEST_VOLUMES:
            activity[k] = volumes.mean(axis=0)
            connectivity[k] = correlation(volumes)[pairs] - overall
    return [activity, connectivity]


def match(one: Array, other: Array) -> float:
    """Match two sets of patterns (n, n_features) one to one, and return the largest possible mean correlation."""
    correlations = _unit_rows(one) @ _unit_rows(other).T
    return float(correlations[linear_sum_assignment(-correlations)].mean())


def correlation(series: Array) -> Array:
    """Return the correlations (n_regions, n_regions) of a series (time, n_regions). Those of constant regions are 0."""
    unit = _unit_rows(series.T)
    return np.asarray(unit @ unit.T)


def _unit_rows(values: Array) -> Array:
    """Return the rows, shifted to mean 0 and scaled to norm 1. Constant rows become 0."""
    centred = values - values.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(centred, axis=1, keepdims=True)
    return np.asarray(np.divide(centred, norms, out=np.zeros_like(centred), where=norms > 1e-12))


def state_methods() -> list[str]:
    """Return the keys of those `STATE_METHODS` that can run here. The Gaussian HMM needs hmmlearn."""
    return [name for name in STATE_METHODS if name != "hmm" or find_spec("hmmlearn") is not None]


def rival_states(
    *,
    series: Array,
    lengths: list[int],
    method: str,
    n_states: int,
    n_window_states: int,
    n_components: int,
    window: int,
    seed: int,
) -> Result:
    """Return two labels of each volume, ``hidden`` and ``states`` (all volumes,), by a method other than PSMT.

    `series` has the series of all people, one after the other, with `lengths` volumes each. ``hidden`` is the state of
    the hidden Markov chain. ``states`` is the state that contributes most to the measured signal. It lags behind the
    chain, because the blood response is slow. For methods without an autoregressive model, the two labels are equal.
    """
    people = split(series, lengths)
    if method == "swc":
        states = hidden = window_states(people, n_window_states, length=window, seed=seed)
    elif method == "hmm":
        states = hidden = hmm_states(series, lengths, n_states, n_components=n_components, seed=seed)
    else:
        axes = principal_axes(series)[:, :n_components]
        points = [own @ axes for own in people]
        model = fit_states(points, n_states, seed=seed)
        states = np.concatenate([model.shown(own) for own in points])
        hidden = np.concatenate([model.posterior(own)[0].argmax(axis=1) for own in points])
    return {"states": states, "hidden": hidden}


def principal_axes(series: Array) -> Array:
    """Return the principal axes (n_regions, n_regions) of centred series as columns, by decreasing variance."""
    return np.asarray(np.linalg.eigh(series.T @ series)[1][:, ::-1])


def window_number(*, series: Array, lengths: list[int], window: int, seed: int) -> Result:
    """Return the best ``number`` of clusters of sliding-window correlations: that of the largest mean silhouette."""
    windows = np.concatenate([_windows(own, min(window, len(own)))[0] for own in split(series, lengths)])
    windows = windows[:: -(-len(windows) // MAX_WINDOWS)]
    scores = {2: 0.0}
    for n in range(2, min(MAX_WINDOW_STATES, len(windows) - 1) + 1):
        labels = KMeans(n, n_init=4, random_state=seed).fit_predict(windows)
        scores[n] = silhouette_score(windows, labels) if len(set(labels.tolist())) > 1 else -1.0
    return {"number": np.array(max(scores, key=scores.__getitem__))}


def window_states(people: Sequence[Array], n_states: int, *, length: int, seed: int = 0) -> Ints:
    """Return the state of each volume (all volumes,), by k-means of the correlations in sliding windows.

    `people` has the series (time, n_regions) of each person. A window has `length` volumes. A volume has the state of
    the window with the nearest centre. If there are fewer windows than `n_states`, there are as many states as windows.
    """
    correlations, centres = zip(*(_windows(series, min(length, len(series))) for series in people), strict=True)
    joined = np.concatenate(correlations)
    labels = KMeans(min(n_states, len(joined)), n_init=4, random_state=seed).fit_predict(joined)
    states = []
    for series, own, label in zip(people, centres, split(labels, [len(own) for own in centres]), strict=True):
        # Boundaries lie midway between centres. The memory for all distances would grow with the square of the length.
        states.append(label[np.searchsorted(0.5 * (own[:-1] + own[1:]), np.arange(len(series)))])
    return np.concatenate(states).astype(np.int64)


def _windows(series: Array, length: int) -> tuple[Levels, Array]:
    """Return the correlations in sliding windows, (n_windows, n_pairs), and the centres of the windows (n_windows,)."""
    starts = np.arange(0, len(series) - length + 1, max(1, length // 4))
    pairs = np.triu_indices(series.shape[1], 1)
    found = [correlation(series[start : start + length])[pairs].astype(np.float32) for start in starts]
    return np.array(found, dtype=np.float32), (starts + (length - 1) / 2).astype(np.float64)


def hmm_states(joined: Array, lengths: list[int], n_states: int, *, n_components: int, seed: int = 0) -> Ints:
    """Return the state of each volume (all volumes,), by a Gaussian HMM of the principal components of joined series.

    `joined` (all volumes, n_regions) has the series of all people, with `lengths` volumes each. Models with full
    covariances use `n_components` components, and models with diagonal covariances twice as many. Each model is fitted
    from two initial values. The fit with the largest (log-likelihood - that of one Gaussian) / components is used.
    """
    from hmmlearn.hmm import GaussianHMM

    logging.getLogger("hmmlearn").setLevel(logging.ERROR)  # it does not matter if one of several fits does not converge
    found: list[tuple[float, Ints]] = []
    for kind, width in (("full", n_components), ("diag", 2 * n_components)):
        points = joined @ principal_axes(joined)[:, :width]
        for start in range(2):
            model = GaussianHMM(n_states, covariance_type=kind, n_iter=50, random_state=seed + start)
            with warnings.catch_warnings(action="ignore"):
                model.fit(points, lengths)
                # Relative to a single Gaussian of the same kind, likelihoods of both kinds can be compared.
                single = GaussianHMM(1, covariance_type=kind, n_iter=1, random_state=0).fit(points)
                score = float(model.score(points, lengths) - single.score(points)) / width
                found.append((score, np.asarray(model.predict(points, lengths), dtype=np.int64)))
    return max(found, key=lambda scored: scored[0])[1]
