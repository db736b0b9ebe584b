"""States of a trajectory: attractors that a Markov chain switches between.

States are places of the embedding that people come back to. The trajectory of a person is drawn towards the place of
the present state: each volume it keeps a share of where it was (the blood answers slowly) and goes the rest of the way,

    y_t = memory * y_(t-1) + (1 - memory) * place_(s_t) + noise,

with one covariance of the noise for all states. This is a hidden Markov model with autoregressive emissions; with
``memory = 0`` it is k-means that remembers labels. Expectation-maximisation (Baum-Welch, with conditional steps
for the memory) finds it; each person is a chain of their own, and no step crosses from one person to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.signal import lfilter
from sklearn.cluster import KMeans

from psmt.types import Array, Ints
from psmt.utils.jit import njit

MAX_STEPS = 60
"""Of expectation-maximisation, from each start."""

TOL = 1e-5
"""It ends when the log-likelihood of a volume rises by less."""

STAY = 10.0
"""Volumes in which a state is taken to have stayed before any was seen: as a prior, it forbids no jump."""

MEMORIES = (0.9, 0.5)
"""Most memory of the trajectory per volume. Brains wander on their own: with all the memory that the likelihood asks
for, places may lie far outside of what is ever reached, and the states are those of a few jumps. Then it is half."""

REACHED = 0.025
"""Share of the volumes that go as far in the direction of each place as the place lies, at least, if it is reached."""

ENOUGH = 0.8
"""Share of the gain in foretelling other people that states must have; on simulated scans it finds their number."""

RIDGE = 1e-3
"""Of the variance of the trajectory, added to the covariance of the noise."""


@dataclass(frozen=True)
class StateModel:
    """Places of the states, the chain between them, and how a trajectory goes there."""

    places: Array
    """(n_states, n_components): where each state draws the trajectory to."""
    covariance: Array
    """(n_components, n_components) of the noise."""
    memory: float
    """Share of where it was that the trajectory keeps from volume to volume."""
    transitions: Array
    """(n_states, n_states): probability of the next volume's state, given this one's."""
    start: Array
    """(n_states,)"""
    log_likelihood: float
    """Of a volume, on the mean."""

    @property
    def n_states(self) -> int:
        """How many there are."""
        return len(self.places)

    def probabilities(self, points: Array) -> Array:
        """Probability (time, n_states) of each state of one person (time, n_components), given all that was seen."""
        return self._smoothed(points)[0]

    def shown(self, points: Array) -> Ints:
        """The state (time,) that the trajectory (time, n_components) shows: most of where it is comes from there.

        Where it is, is the sum of all places that drew it, each with a share that fades by the memory.
        """
        shares = lfilter([1.0 - self.memory], [1.0, -self.memory], self.probabilities(points), axis=0)
        return np.asarray(np.argmax(shares, axis=1), dtype=np.int64)

    def score(self, points: Array) -> float:
        """Log-likelihood of one person's trajectory (time, n_components)."""
        return self._smoothed(points)[2]

    def _smoothed(self, points: Array) -> tuple[Array, Array, float]:
        densities = _log_densities(points - self.memory * _before(points), self._drawn, self.covariance)
        posterior, steps, likelihood = _smooth(densities, self.transitions, self.start)
        return posterior, steps, float(likelihood)

    @property
    def _drawn(self) -> Array:
        return (1.0 - self.memory) * self.places


def fit_states(
    people: Sequence[Array],
    n_states: int,
    *,
    seed: int = 0,
    n_starts: int = 4,
    memories: Sequence[float] = MEMORIES,
) -> StateModel:
    """The likeliest of `n_starts` models of the trajectories (time, n_components) of some people.

    Starts are k-means clusters; states are ordered by how much of the time they take, most first. Of the bounds on
    memory the first is taken with which all places are reached, or the last.
    """
    joined = np.concatenate(people)
    starts = [KMeans(n_states, n_init=1, random_state=seed + k).fit_predict(joined) for k in range(n_starts)]
    for most in memories:
        models = [_climb(people, np.eye(n_states)[labels], most) for labels in starts]
        best = max(models, key=lambda model: model.log_likelihood)
        if best.memory < memories[-1] or _are_reached(best.places, joined):
            break
    occupied = np.sum([np.bincount(best.shown(points), minlength=n_states) for points in people], axis=0)
    order = np.argsort(-occupied, kind="stable")
    return replace(
        best,
        places=best.places[order],
        transitions=best.transitions[np.ix_(order, order)],
        start=best.start[order],
    )


def _climb(people: Sequence[Array], posterior: Array, most_memory: float) -> StateModel:
    """Expectation-maximisation from probabilities (all volumes, n_states)."""
    now, before = np.concatenate(people), np.concatenate([_before(points) for points in people])
    n_states, ends = posterior.shape[1], np.cumsum([len(points) for points in people])
    ridge = RIDGE * float(now.var(axis=0).mean()) * np.eye(now.shape[1])
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
            shares = [float(np.trace(np.linalg.solve(covariance, part))) for part in (yx, xx)]
            memory = float(np.clip(shares[0] / shares[1], 0.0, most_memory))
        covariance = (yy - memory * (yx + yx.T) + memory**2 * xx) / len(now) + ridge
        drawn = centre - memory * past
        transitions, start = pairs / pairs.sum(axis=1, keepdims=True), first / first.sum()
        pairs, first = STAY * np.eye(n_states) + 1.0, np.ones(n_states)
        total = 0.0
        densities = _log_densities(now - memory * before, drawn, covariance)
        for own, stop in zip(people, ends, strict=True):
            part = slice(stop - len(own), stop)
            posterior[part], steps, likelihood = _smooth(densities[part], transitions, start)
            pairs += steps
            first += posterior[part][0]
            total += likelihood / len(now)
        if total - highest < TOL:
            break
        highest = total
    return StateModel(drawn / (1.0 - memory), covariance, memory, transitions, start, total)


def choose_n_states(people: Sequence[Array], candidates: Sequence[int], *, seed: int = 0) -> dict[int, Array]:
    """Log-likelihood per volume of each person (n_people,) by the states of the other half, for each number of them.

    One person alone is halved in time.
    """
    parts = list(people) if len(people) > 1 else np.array_split(people[0], 2)
    scores = {}
    for n_states in candidates:
        # One bound for all numbers: memory raises the likelihood by itself.
        given: dict[str, Any] = {"seed": seed, "n_starts": 2, "memories": MEMORIES[-1:]}
        models = [fit_states(parts[half::2], n_states, **given) for half in (1, 0)]
        scores[n_states] = np.array([models[k % 2].score(own) / len(own) for k, own in enumerate(parts)])
    return scores


def fewest_as_good(scores: dict[int, Array]) -> int:
    """The fewest states that gain `ENOUGH` of what the best number gains over the fewest, in foretelling others.

    More states than there are still gain a little, as they mend what the model gets wrong. Where the gain is within a
    standard error of nothing, it is the fewest.

    >>> fewest_as_good({2: np.array([-3.0, -3.2]), 3: np.array([-2.0, -2.1]), 4: np.array([-1.99, -2.1])})
    3
    """
    numbers = sorted(scores)
    best = max(numbers, key=lambda n: float(scores[n].mean()))
    gain = scores[best] - scores[numbers[0]]
    if gain.mean() <= gain.std(ddof=1) / np.sqrt(len(gain)):
        return numbers[0]
    least = scores[numbers[0]].mean() + ENOUGH * gain.mean()
    return next(n for n in numbers if n == best or scores[n].mean() >= least)


def _are_reached(places: Array, joined: Array) -> bool:
    """Whether the trajectories (all volumes, n_components) go as far as each of the places (n_states, n_components)."""
    lengths = np.linalg.norm(places, axis=1)
    along = joined @ (places / np.maximum(lengths, 1e-300)[:, None]).T
    return bool(np.all((along >= lengths).mean(axis=0) >= REACHED))


def _before(points: Array) -> Array:
    """Where the trajectory was a volume before (time, n_components): before the first it stood where it is then."""
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
