"""Whether states and networks are found again in other people, or at another time of the same person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from psmt.experiments.brain.field import correlation, has_hmm, hmm_states, window_states
from psmt.experiments.brain.group import learn_layers, split
from psmt.experiments.brain.states import StateModel, fit_states
from psmt.experiments.brain.surrogates import surrogate
from psmt.types import Array, Ints, Result

METHODS = {"psmt": "PSMT, attractor states", "swc": "sliding windows + k-means", "hmm": "Gaussian HMM"}
"""What finds states, by name."""

MEASURES = ("activity", "connectivity", "whole_connectivity")
"""What is compared of a state: the mean of its volumes; their correlations less those of all volumes; and as they are,
most of which all states share."""

NULL_SPLITS = 3
"""Ways to halve the people that each draw of a surrogate goes by, at the most: the first so many. Scans are held
against them by the same ways, so that both have the same spread."""

LEAST_VOLUMES = 10
"""Of a state, for correlations."""


def halvings(n_people: int, most: int, seed: int) -> list[tuple[int, ...]]:
    """First halves of some ways to halve the people, all of them where they are few.

    >>> halvings(4, 6, 0)
    [(0, 1), (0, 2), (0, 3)]
    """
    half = n_people // 2
    if n_people < 2:
        return []
    if n_people <= 8:
        # With an even number each way is there twice, by either of its halves.
        ways = [own for own in combinations(range(n_people), half) if n_people % 2 or 0 in own]
        if len(ways) <= most:
            return ways
        chosen = np.random.default_rng(seed).choice(len(ways), most, replace=False)
        return [ways[k] for k in sorted(chosen)]
    rng = np.random.default_rng(seed)
    return [tuple(sorted(rng.permutation(n_people)[:half].tolist())) for _ in range(most)]


def compare_halves(
    *,
    series: Array,
    lengths: list[int],
    first: list[int],
    kind: str,
    draw: int,
    n_states: int,
    n_atoms: int,
    alpha: float,
    n_components: int,
    window: int,
    seed: int,
    methods: list[str],
) -> Result:
    """Mean matched correlation of what two halves of the people give, by method and measure. One task.

    The cleaned series of all people stand one after another; `first` names those of the first half. With one person,
    or an empty `first`, each person is halved in time instead, and values are means over people. `kind` is 'scan', or
    a surrogate that is made first.

    Returns
    -------
    dict
        ``states`` (n_methods, n_measures); ``networks`` (): of the dictionaries' atoms; ``foretold`` (): how much
        likelier a volume of the other half is by our states than by a single one, in nats.
    """
    people = split(series, lengths)
    if kind != "scan":
        people = [surrogate(own, kind, np.random.default_rng([seed, draw, k])) for k, own in enumerate(people)]
    sides = [[own for k, own in enumerate(people) if (k in first) == inside] for inside in (True, False)]
    found: list[list[Array]] = []
    dictionaries, foretold = [], []
    for side, others in zip(sides, sides[::-1], strict=True):
        layers, points = learn_layers(side, n_atoms=n_atoms, alpha=alpha, n_components=n_components, seed=seed)
        dictionaries.append(layers.dictionary)
        model = fit_states(points, n_states, seed=seed)
        foretold += gains(model, points, [layers.points(own) for own in others], seed=seed)
        states: dict[str, Callable[[], list[Ints]]] = {
            "psmt": lambda points=points, model=model: [model.shown(own) for own in points],  # type: ignore[misc]
            "swc": lambda side=side: window_states(side, n_states, length=window, seed=seed),  # type: ignore[misc]
            "hmm": lambda side=side: hmm_states(side, n_states, n_components=n_components, seed=seed),  # type: ignore[misc]
        }
        joined = np.concatenate(side)
        found.append(
            [
                patterns
                for name in methods
                for patterns in state_patterns(joined, np.concatenate(states[name]()), n_states)
            ]
        )
    matched = [match(one, other) for one, other in zip(*found, strict=True)]
    return {
        "states": np.reshape(matched, (len(methods), len(MEASURES))),
        "networks": np.array(match(*dictionaries)),
        "foretold": np.array(np.mean(foretold)),
    }


def gains(model: StateModel, points: Sequence[Array], others: Sequence[Array], *, seed: int) -> list[float]:
    """How much likelier a volume of each of the others is by the states than by a single one, in nats.

    Both are learned from the trajectories `points` (time, n_components) of the same people, and remember as much: what
    is gained is by states alone. Covariance and spectra give none of it.
    """
    alone = fit_states(points, 1, seed=seed, n_starts=1, memories=(model.memory,))
    return [(model.score(own) - alone.score(own)) / len(own) for own in others]


def state_patterns(joined: Array, states: Ints, n_states: int) -> list[Array]:
    """What each state (time,) looks like in the series (time, n_regions), by each of `MEASURES`: (n_states, n)."""
    pairs = np.triu_indices(joined.shape[1], 1)
    overall = correlation(joined)[pairs]
    activity, whole = np.zeros((n_states, joined.shape[1])), np.zeros((n_states, len(overall)))
    own = np.zeros_like(whole)
    for k in range(n_states):
        volumes = joined[states == k]
        if len(volumes) >= LEAST_VOLUMES:
            activity[k] = volumes.mean(axis=0)
            whole[k] = correlation(volumes)[pairs]
            own[k] = whole[k] - overall
    return [activity, own, whole]


def match(one: Array, other: Array) -> float:
    """Mean correlation of the patterns (n, n_features) of both sides, matched one to one as well as they can be.

    A pattern that is missing on a side correlates with nothing.
    """
    unit = []
    for patterns in (one, other):
        centred = patterns - patterns.mean(axis=1, keepdims=True)
        norms = np.linalg.norm(centred, axis=1, keepdims=True)
        unit.append(np.divide(centred, norms, out=np.zeros_like(centred), where=norms > 1e-12))
    correlations = unit[0] @ unit[1].T
    rows, columns = linear_sum_assignment(-correlations)
    return float(correlations[rows, columns].mean())


def state_methods() -> list[str]:
    """Names of what can find states here."""
    return [name for name in METHODS if name != "hmm" or has_hmm()]


def halve_person(*, series: Array, **given: Any) -> Result:
    """As `compare_halves`, of the first and the second half of one person's series (time, n_regions). One task."""
    cut = len(series) // 2
    return compare_halves(series=series, lengths=[cut, len(series) - cut], first=[0], **given)
