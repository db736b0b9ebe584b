"""Are states and networks reproducible? Comparison of two halves, with other methods and with surrogates."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans

from psmt.experiments.brain.group import join, learn_layers, split
from psmt.experiments.brain.states import StateModel, fit_states
from psmt.types import Array, Ints, Levels, Result

STATE_METHODS = {"psmt": "PSMT, attractor states", "swc": "sliding windows + k-means", "hmm": "Gaussian HMM"}

MEASURES = ("activity", "connectivity", "whole_connectivity")
"""What is compared between two states: the mean of their volumes; the correlations of regions less those of all
volumes; and the correlations of regions, of which all states share the largest part."""

COMPARED = MEASURES[:2]
"""Measures that claims are about. The third is mostly shared by all states."""

GROUP_MEASURES = ("networks", "foretold")
"""Other results of `compare_halves`, of our method only."""

NULL_SPLITS = 3
"""Most splits of the people for each surrogate. Scans and surrogates are compared by the same splits."""

SURROGATES = {"shuffled": "shuffled volumes", "phases": "random phases"}
"""Null models. Shuffled volumes keep the patterns of regions, but not their order in time. Random Fourier phases, the
same for all regions, keep correlations and spectra: a stationary linear process that never switches."""


def surrogate(series: Array, kind: str, rng: np.random.Generator) -> Array:
    """A draw (time, n_regions) from a null model of the series (time, n_regions), see `SURROGATES`.

    >>> x = np.random.default_rng(0).standard_normal((100, 3))
    >>> y = surrogate(x, "phases", np.random.default_rng(1))
    >>> bool(np.allclose(np.cov(x.T), np.cov(y.T)))
    True
    """
    if kind == "shuffled":
        return series[rng.permutation(len(series))]
    spectrum = np.fft.rfft(series, axis=0)
    turn = np.exp(2j * np.pi * rng.random(len(spectrum)))
    turn[0] = 1.0
    if len(series) % 2 == 0:
        turn[-1] = 1.0  # the Nyquist frequency has no phase
    return np.fft.irfft(spectrum * turn[:, None], n=len(series), axis=0)


# Halves


def halvings(n_people: int, max_splits: int, seed: int) -> list[tuple[int, ...]]:
    """First halves of at most `max_splits` ways to split the people into two halves.

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


def compare_halves(
    *,
    series: Array,
    lengths: list[int],
    first: list[int],
    kind: str,
    draw: int,
    methods: list[str],
    layers: dict[str, Any],
    states: dict[str, Any],
) -> Result:
    """Compare two halves of the people. One task.

    `series` are cleaned; `first` lists the people of the first half. `kind` is 'scan', or a surrogate that is drawn
    first. `layers` and `states` are the keyword arguments of `learn_layers` and `rival_states`. Returns ``states``
    (n_methods, n_measures), the mean correlation of matched states; ``networks`` (), the same for the atoms of the
    dictionaries; and ``foretold`` (), the mean of `likelihood_gains` in the other half.
    """
    people, n_states, seed = split(series, lengths), states["n_states"], states["seed"]
    if kind != "scan":
        people = [surrogate(own, kind, np.random.default_rng([seed, draw, k])) for k, own in enumerate(people)]
    halves = [[own for k, own in enumerate(people) if (k in first) == inside] for inside in (True, False)]
    patterns: list[list[Array]] = [[], []]
    dictionaries, gains = [], []
    for own, half, others in zip(patterns, halves, halves[::-1], strict=True):
        dictionary, points, other_points = learn_layers(half, others, **layers)
        dictionaries.append(dictionary)
        model = fit_states(points, n_states, seed=seed)
        gains += likelihood_gains(model, points, other_points, seed=seed)
        shown, joined = np.concatenate([model.shown(one) for one in points]), join(half)
        for method in methods:
            found = shown if method == "psmt" else rival_states(**joined, method=method, **states)["states"]
            own += state_patterns(joined["series"], found, n_states)
    matched = [match(*pair) for pair in zip(*patterns, strict=True)]
    return {
        "states": np.reshape(matched, (len(methods), len(MEASURES))),
        "networks": np.array(match(*dictionaries)),
        "foretold": np.array(np.mean(gains)),
    }


def likelihood_gains(model: StateModel, points: Sequence[Array], others: Sequence[Array], *, seed: int) -> list[float]:
    """Gain in log-likelihood per volume of each other person by the states, compared with a single state, in nats.

    Both models are fitted to the trajectories `points` (time, n_components) of the same people and have the same
    memory, so that the gain is due to switching alone. Covariance and spectra do not contribute.
    """
    single = fit_states(points, 1, seed=seed, n_starts=1, memories=(model.memory,))
    return [(model.score(own) - single.score(own)) / len(own) for own in others]


def state_patterns(joined: Array, states: Ints, n_states: int) -> list[Array]:
    """Pattern (n_states, n) of each state (time,) in the series (time, n_regions), by each of `MEASURES`.

    The pattern of a state with fewer than ten volumes is zero.
    """
    pairs = np.triu_indices(joined.shape[1], 1)
    overall = correlation(joined)[pairs]
    activity, whole = np.zeros((n_states, joined.shape[1])), np.zeros((n_states, len(overall)))
    specific = np.zeros_like(whole)
    for k in range(n_states):
        volumes = joined[states == k]
        if len(volumes) >= 10:
            activity[k] = volumes.mean(axis=0)
            whole[k] = correlation(volumes)[pairs]
            specific[k] = whole[k] - overall
    return [activity, specific, whole]


def match(one: Array, other: Array) -> float:
    """Mean correlation of two sets of patterns (n, n_features), matched one to one so that it is largest.

    A pattern of zeros, which stands for a missing one, has correlation 0 with all others.
    """
    correlations = _unit_rows(one) @ _unit_rows(other).T
    return float(correlations[linear_sum_assignment(-correlations)].mean())


def correlation(series: Array) -> Array:
    """Correlations (n_regions, n_regions); 0 for a constant region."""
    unit = _unit_rows(series.T)
    return np.asarray(unit @ unit.T)


def _unit_rows(values: Array) -> Array:
    """Rows with mean zero and length one; constant rows become zero."""
    centred = values - values.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(centred, axis=1, keepdims=True)
    return np.asarray(np.divide(centred, norms, out=np.zeros_like(centred), where=norms > 1e-12))


# Other methods


def state_methods() -> list[str]:
    """The methods that can run here: the HMM needs hmmlearn."""
    return [name for name in STATE_METHODS if name != "hmm" or find_spec("hmmlearn") is not None]


def rival_states(
    *, series: Array, lengths: list[int], method: str, n_states: int, n_components: int, window: int, seed: int
) -> Result:
    """``states`` (all volumes,) of the people by one of the other methods. One task."""
    if method == "hmm":
        return {"states": hmm_states(series, lengths, n_states, n_components=n_components, seed=seed)}
    return {"states": window_states(split(series, lengths), n_states, length=window, seed=seed)}


def window_states(people: Sequence[Array], n_states: int, *, length: int, seed: int = 0) -> Ints:
    """States (all volumes,) of the people (time, n_regions): k-means of the correlations in sliding windows.

    A volume has the state of the window whose centre is nearest. There are no more states than windows.
    """
    correlations, centres = zip(*(_windows(series, min(length, len(series))) for series in people), strict=True)
    joined = np.concatenate(correlations)
    labels = KMeans(min(n_states, len(joined)), n_init=4, random_state=seed).fit_predict(joined)
    states = []
    for series, own, label in zip(people, centres, split(labels, [len(own) for own in centres]), strict=True):
        # Boundaries lie midway between centres: all distances at once would take memory with the square of the length.
        states.append(label[np.searchsorted(0.5 * (own[:-1] + own[1:]), np.arange(len(series)))])
    return np.concatenate(states).astype(np.int64)


def _windows(series: Array, length: int) -> tuple[Levels, Array]:
    """Correlations (n_windows, n_pairs) in windows a quarter of their length apart, and the windows' centres."""
    starts = np.arange(0, len(series) - length + 1, max(1, length // 4))
    pairs = np.triu_indices(series.shape[1], 1)
    found = [correlation(series[start : start + length])[pairs].astype(np.float32) for start in starts]
    return np.array(found, dtype=np.float32), (starts + (length - 1) / 2).astype(np.float64)


def hmm_states(joined: Array, lengths: list[int], n_states: int, *, n_components: int, seed: int = 0) -> Ints:
    """States (all volumes,) of the joined series (all volumes, n_regions): a Gaussian HMM of principal components.

    Full covariances are used on as many components as our trajectory has, and diagonal ones on twice as many. Of two
    starts each, the model with the highest likelihood per component is taken.
    """
    from hmmlearn.hmm import GaussianHMM

    _, vectors = np.linalg.eigh(joined.T @ joined)
    found: list[tuple[float, Ints]] = []
    for kind, width in (("full", n_components), ("diag", 2 * n_components)):
        points = joined @ vectors[:, ::-1][:, :width]
        for start in range(2):
            model = GaussianHMM(n_states, covariance_type=kind, n_iter=50, random_state=seed + start)
            with _quiet():
                model.fit(points, lengths)
                # Relative to a single Gaussian of the same kind, so that models of different width can be compared.
                single = GaussianHMM(1, covariance_type=kind, n_iter=1, random_state=0).fit(points)
                score = float(model.score(points, lengths) - single.score(points)) / width
                found.append((score, np.asarray(model.predict(points, lengths), dtype=np.int64)))
    return max(found, key=lambda scored: scored[0])[1]


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence hmmlearn: that one of several starts does not converge does not matter."""
    logger = logging.getLogger("hmmlearn")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logger.setLevel(level)
