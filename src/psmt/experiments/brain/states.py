"""States of a trajectory: attractors that a Markov chain switches between.

A state is a place of the embedding that trajectories return to. From volume to volume a trajectory keeps a share of its
position (the blood response is slow) and moves the rest of the way towards the place of the present state,

    y_t = memory * y_(t-1) + (1 - memory) * place_(s_t) + noise,

with the same noise covariance in all states. This is a hidden Markov model with autoregressive emissions. It is fitted
by expectation-maximisation (Baum-Welch, with conditional steps for the memory). Each person is a chain of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.signal import lfilter
from sklearn.cluster import KMeans

from psmt.experiments.brain.group import split
from psmt.types import Array, Ints, Result
from psmt.utils.jit import njit

MAX_STEPS = 60
"""Most steps of expectation-maximisation from each start."""

STAY = 10.0
"""Prior of the transitions: volumes that each state is counted as having stayed, beside one jump to each state."""

MEMORIES = (0.9, 0.5)
"""Upper bounds on the memory. Trajectories also wander without a state. With as much memory as the likelihood prefers,
places may lie far outside of the trajectories, and states only describe a few jumps. Then the second bound is used."""

REACHED = 0.025
"""A place is reached if this share of the volumes goes as far or further in its direction."""


@dataclass(frozen=True)
class StateModel:
    """Places of the states, the Markov chain between them, and how trajectories move."""

    places: Array
    """(n_states, n_components)"""
    covariance: Array
    """(n_components, n_components) of the noise."""
    memory: float
    """Share of its position that a trajectory keeps from volume to volume."""
    transitions: Array
    """(n_states, n_states): probability of the state of the next volume, given that of this one."""
    start: Array
    """(n_states,): probability of the first state."""
    log_likelihood: float
    """Per volume of the people that it was fitted to."""

    @property
    def n_states(self) -> int:
        """K."""
        return len(self.places)

    def posterior(self, points: Array) -> tuple[Array, float]:
        """Probability (time, n_states) of each state in a trajectory (time, n_components), and its log-likelihood."""
        targets = (1.0 - self.memory) * self.places
        densities = _log_densities(points - self.memory * _before(points), targets, self.covariance)
        probabilities, _, likelihood = _smooth(densities, self.transitions, self.start)
        return probabilities, float(likelihood)

    def shown(self, points: Array) -> Ints:
        """The state (time,) that contributes most to each position of a trajectory (time, n_components).

        A position is a sum of the places of all states so far, whose shares fade by the memory.
        """
        shares = lfilter([1.0 - self.memory], [1.0, -self.memory], self.posterior(points)[0], axis=0)
        return np.asarray(np.argmax(shares, axis=1), dtype=np.int64)

    def score(self, points: Array) -> float:
        """Log-likelihood of a trajectory (time, n_components)."""
        return self.posterior(points)[1]


def fit_states(
    people: Sequence[Array], n_states: int, *, seed: int = 0, n_starts: int = 4, memories: Sequence[float] = MEMORIES
) -> StateModel:
    """The likeliest of `n_starts` models of some people's trajectories (time, n_components).

    Starts are k-means clusters. States are ordered by their share of the time, largest first. Of the upper bounds
    `memories` the first one is used with which all places are reached, or else the last.
    """
    joined = np.concatenate(people)
    starts = [KMeans(n_states, n_init=1, random_state=seed + k).fit_predict(joined) for k in range(n_starts)]
    for bound in memories:
        models = [_climb(people, np.eye(n_states)[labels], bound) for labels in starts]
        best = max(models, key=lambda model: model.log_likelihood)
        distance = np.linalg.norm(best.places, axis=1)
        along = joined @ (best.places / np.maximum(distance, 1e-300)[:, None]).T
        if best.memory < memories[-1] or np.all((along >= distance).mean(axis=0) >= REACHED):
            break
    n_volumes = np.sum([np.bincount(best.shown(points), minlength=n_states) for points in people], axis=0)
    order = np.argsort(-n_volumes, kind="stable")
    transitions = best.transitions[np.ix_(order, order)]
    return replace(best, places=best.places[order], transitions=transitions, start=best.start[order])


def learn_states(*, series: Array, lengths: Sequence[int], n_states: int, seed: int) -> Result:
    """Fields of the `StateModel` of trajectories (all volumes, n_components). One task."""
    model = fit_states(split(series, lengths), n_states, seed=seed)
    return {name: np.asarray(value) for name, value in vars(model).items()}


def _climb(people: Sequence[Array], posterior: Array, max_memory: float) -> StateModel:
    """Expectation-maximisation from probabilities (all volumes, n_states)."""
    now, before = np.concatenate(people), np.concatenate([_before(points) for points in people])
    n_states, ends = posterior.shape[1], np.cumsum([len(points) for points in people])
    ridge = 1e-3 * float(now.var(axis=0).mean()) * np.eye(now.shape[1])
    products = [a.T @ b for a, b in ((now, now), (now, before), (before, before))]
    pairs, first = STAY * np.eye(n_states) + 1.0, np.ones(n_states)
    memory, highest, total = 0.0, -np.inf, -np.inf
    covariance = np.eye(now.shape[1])
    for _ in range(MAX_STEPS):
        weights = np.maximum(posterior.sum(axis=0), 1e-9)[:, None]
        centre, past = (posterior.T @ now) / weights, (posterior.T @ before) / weights
        # Within = total - between: no array of volumes by states by components is needed.
        yy, yx, xx = (
            product - (weights * a).T @ b
            for product, (a, b) in zip(products, ((centre, centre), (centre, past), (past, past)), strict=True)
        )
        if np.isfinite(highest):
            traces = [float(np.trace(np.linalg.solve(covariance, part))) for part in (yx, xx)]
            memory = float(np.clip(traces[0] / traces[1], 0.0, max_memory))
        covariance = (yy - memory * (yx + yx.T) + memory**2 * xx) / len(now) + ridge
        targets = centre - memory * past
        transitions, start = pairs / pairs.sum(axis=1, keepdims=True), first / first.sum()
        pairs, first = STAY * np.eye(n_states) + 1.0, np.ones(n_states)
        total = 0.0
        densities = _log_densities(now - memory * before, targets, covariance)
        for own, stop in zip(people, ends, strict=True):
            part = slice(stop - len(own), stop)
            posterior[part], steps, likelihood = _smooth(densities[part], transitions, start)
            pairs += steps
            first += posterior[part][0]
            total += likelihood / len(now)
        if total - highest < 1e-5:
            break
        highest = total
    return StateModel(targets / (1.0 - memory), covariance, memory, transitions, start, total)


def score_states(*, series: Array, lengths: Sequence[int], n_states: int, seed: int) -> Result:
    """``scores`` (n_people,): log-likelihood per volume of each person by states of the other half. One task.

    `series` are trajectories (all volumes, n_components). A single person is halved in time.
    """
    parts = split(series, lengths) if len(lengths) > 1 else np.array_split(series, 2)
    # The same bound for all numbers of states: more memory alone raises the likelihood.
    how: dict[str, Any] = {"seed": seed, "n_starts": 2, "memories": MEMORIES[-1:]}
    models = [fit_states(parts[half::2], n_states, **how) for half in (1, 0)]
    return {"scores": np.array([models[k % 2].score(own) / len(own) for k, own in enumerate(parts)])}


def choose_number(scores: dict[int, Array]) -> int:
    """The fewest states that reach 80% of the largest gain in predicting other people, over the fewest candidate.

    States too many still gain a little, as they correct errors of the model; 80% finds the true number on simulated
    scans. If the largest gain is within a standard error of zero, the fewest candidate is chosen.

    >>> choose_number({2: np.array([-3.0, -3.2]), 3: np.array([-2.0, -2.1]), 4: np.array([-1.99, -2.1])})
    3
    """
    numbers = sorted(scores)
    best = max(numbers, key=lambda n: float(scores[n].mean()))
    gain = scores[best] - scores[numbers[0]]
    if gain.mean() <= gain.std(ddof=1) / np.sqrt(len(gain)):
        return numbers[0]
    least = scores[numbers[0]].mean() + 0.8 * gain.mean()
    return next(n for n in numbers if n == best or scores[n].mean() >= least)


def _before(points: Array) -> Array:
    """Position at the previous volume (time, n_components); that of the first volume is its own."""
    return np.concatenate([points[:1], points[:-1]])


def _log_densities(points: Array, means: Array, covariance: Array) -> Array:
    """Log-density (time, n_states) of points (time, n_components) in each state."""
    factor = np.linalg.cholesky(covariance)
    white, centres = (solve_triangular(factor, part.T, lower=True).T for part in (points, means))
    squared = (white**2).sum(axis=1)[:, None] - 2.0 * white @ centres.T + (centres**2).sum(axis=1)
    constant = points.shape[1] * np.log(2 * np.pi) + 2.0 * np.log(np.diag(factor)).sum()
    return np.ascontiguousarray(-0.5 * (squared + constant))


@njit(cache=True)
def _smooth(densities: Array, transitions: Array, start: Array) -> tuple[Array, Array, float]:
    """Forward-backward: posterior (time, n_states), expected steps (n_states, n_states), log-likelihood."""
    n, k = densities.shape
    likelihood = 0.0
    given = np.empty((n, k))
    forward = np.empty((n, k))
    scale = np.empty(n)
    for t in range(n):
        top = densities[t].max()
        total = 0.0
        for j in range(k):
            given[t, j] = np.exp(densities[t, j] - top)
            reached = start[j]
            if t > 0:
                reached = 0.0
                for i in range(k):
                    reached += forward[t - 1, i] * transitions[i, j]
            forward[t, j] = reached * given[t, j]
            total += forward[t, j]
        scale[t] = max(total, 1e-300)
        for j in range(k):
            forward[t, j] /= scale[t]
        likelihood += np.log(scale[t]) + top
    posterior = np.empty((n, k))
    posterior[n - 1] = forward[n - 1]
    steps = np.zeros((k, k))
    backward = np.ones(k)
    weighted = np.empty(k)
    for t in range(n - 2, -1, -1):
        for j in range(k):
            weighted[j] = given[t + 1, j] * backward[j] / scale[t + 1]
        for i in range(k):
            total = 0.0
            for j in range(k):
                step = transitions[i, j] * weighted[j]
                steps[i, j] += forward[t, i] * step
                total += step
            backward[i] = total
        for i in range(k):
            posterior[t, i] = forward[t, i] * backward[i]
    return posterior, steps, likelihood
