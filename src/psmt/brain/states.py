"""States of a trajectory: attractors between which a Markov chain switches.

Each state has a place in the embedding. From volume to volume, a trajectory keeps a fraction of its position (the
memory, as the blood response is slow) and moves towards the place of the present state:

    y_t = memory * y_(t-1) + (1 - memory) * place_(s_t) + noise.

Each state has its own noise covariance. So two states may have the same place and different covariances. This is a
hidden Markov model with autoregressive emissions. It is fitted by expectation-maximisation (Baum-Welch, with
conditional steps for the memory). Each person is one chain.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.ndimage import uniform_filter1d
from scipy.signal import lfilter
from scipy.stats import multivariate_normal
from sklearn.cluster import KMeans

from psmt.brain.layers import split
from psmt.types import Array, Ints, Result
from psmt.utils.jit import njit

MAX_STEPS = 60
"""Largest number of steps of expectation-maximisation from each initial clustering."""

STAY = 10.0
"""Prior of the transitions: pseudo-count of volumes that stay in a state. The pseudo-count of each jump is 1."""

SHARED = 10.0
"""Prior of the covariances: each state gets this many extra volumes, with the covariance of all states."""

WIDTHS = (8, 32)
"""Numbers of volumes in which local covariances are computed, for initial clusterings of states."""

MEMORIES = (0.9, 0.5)
"""Upper bounds on the memory. With too much memory, the places may lie far outside of the trajectories, so that states
describe only a few jumps. The second bound is used in this case."""

REACHED = 0.025
"""A state's place is reached if at least this share of the volumes lies at least as far
from the mean, in the direction of this place."""


@dataclass(frozen=True)
class StateModel:
    """Fitted states of a trajectory: their places and covariances, and the Markov chain that switches between them."""

    places: Array
    """Place (n_states, n_components) of each state."""
    covariances: Array
    """Covariance (n_states, n_components, n_components) of the noise in each state."""
    memory: float
    """Share of its position that a trajectory keeps from volume to volume."""
    transitions: Array
    """(n_states, n_states): probability of each next state, given the present state."""
    start: Array
    """(n_states,): probability of the first state."""
    log_likelihood: float
    """Log-likelihood per volume of the people that the model was fitted to."""

    @property
    def n_states(self) -> int:
        """The number of states."""
        return len(self.places)

    def posterior(self, points: Array) -> tuple[Array, float]:
        """Return the probabilities (time, n_states) of states in a trajectory (time, n), and its log-likelihood."""
        moved, targets = points - self.memory * _before(points), (1.0 - self.memory) * self.places
        densities = np.column_stack(list(map(partial(multivariate_normal.logpdf, moved), targets, self.covariances)))
        probabilities, _, likelihood = _smooth(densities, self.transitions, self.start)
        return probabilities, float(likelihood)

    def shown(self, points: Array) -> Ints:
        """Return, for each position of a trajectory (time, n_components), the state (time,) with the largest weight.

        By the model, a position is a weighted sum of the places of the states so far. The weight of a past state is
        multiplied by the memory at each volume.
        """
        shares = lfilter([1.0 - self.memory], [1.0, -self.memory], self.posterior(points)[0], axis=0)
        return np.asarray(np.argmax(shares, axis=1), dtype=np.int64)

    def score(self, points: Array) -> float:
        """Return the log-likelihood of a trajectory (time, n_components)."""
        return self.posterior(points)[1]


def fit_states(
    people: Sequence[Array], n_states: int, *, seed: int = 0, n_starts: int = 4, memories: Sequence[float] = MEMORIES
) -> StateModel:
    """Fit a `StateModel` to trajectories (time, n_components) from each of `n_starts` starts. Return the likeliest.

    The starts are k-means clusterings, alternately of positions and of local covariances (see `WIDTHS`). States are
    ordered by their share of the time, largest first. `memories` are upper bounds on the memory, tried in turn. The
    search ends when trajectories reach all places (see `REACHED`), or when the memory is below the last bound.
    """
    joined = np.concatenate(people)
    inputs = [joined] * n_starts
    for k in range(1, n_starts, 2):
        inputs[k] = np.concatenate([_local_covariances(own, WIDTHS[k // 2 % len(WIDTHS)]) for own in people])
    starts = [KMeans(n_states, n_init=1, random_state=seed + k).fit_predict(own) for k, own in enumerate(inputs)]
    for bound in memories:
        models = [_climb(people, np.eye(n_states)[labels], bound) for labels in starts]
        best = max(models, key=lambda model: model.log_likelihood)
        distance = np.linalg.norm(best.places, axis=1)
        along = joined @ (best.places / np.maximum(distance, 1e-300)[:, None]).T
        if best.memory < memories[-1] or np.all((along >= distance).mean(axis=0) >= REACHED):
            break
    n_volumes = np.sum([np.bincount(best.shown(points), minlength=n_states) for points in people], axis=0)
    order = np.argsort(-n_volumes, kind="stable")
    ordered = {name: getattr(best, name)[order] for name in ("places", "covariances", "start")}
    return replace(best, **ordered, transitions=best.transitions[np.ix_(order, order)])


def _local_covariances(points: Array, width: int) -> Array:
    """Return local means (time, n) of the products of all pairs of coordinates, each over `width` volumes."""
    one, other = np.triu_indices(points.shape[1])
    return np.asarray(uniform_filter1d(points[:, one] * points[:, other], min(width, len(points)), axis=0))


def learn_states(*, series: Array, lengths: Sequence[int], n_states: int, seed: int) -> Result:
    """Return the fields of a `StateModel` fitted to the trajectories of all people, as arrays by name.

    `series` (all volumes, n_components) has all trajectories, one after the other. `lengths` are their lengths.
    """
    model = fit_states(split(series, lengths), n_states, seed=seed)
    return {name: np.asarray(value) for name, value in vars(model).items()}


def _climb(people: Sequence[Array], posterior: Array, max_memory: float) -> StateModel:
    """Fit a model by expectation-maximisation, starting from state probabilities (all volumes, n_states)."""
    now, before = np.concatenate(people), np.concatenate([_before(points) for points in people])
    n, (n_volumes, n_states) = now.shape[1], posterior.shape
    ends = np.cumsum([len(points) for points in people])
    # The log-density of a volume is linear in its products, so that each step needs two matrix products.
    both = np.hstack([now, before])
    one, other = np.triu_indices(2 * n)
    products = np.hstack([np.ones((n_volumes, 1)), both, both[:, one] * both[:, other]])
    twice = np.where(one == other, 1.0, 2.0)
    ridge = 1e-3 * float(now.var(axis=0).mean()) * np.eye(n)
    pairs, first = STAY * np.eye(n_states) + 1.0, np.ones(n_states)
    memory, highest, total = 0.0, -np.inf, -np.inf
    inverse: Array = np.zeros((n_states, n, n))
    for _ in range(MAX_STEPS):
        sums = posterior.T @ products
        weights = np.maximum(sums[:, :1], 1e-9)
        means = sums[:, 1 : 2 * n + 1] / weights
        scatter = np.zeros((n_states, 2 * n, 2 * n))
        scatter[:, one, other] = scatter[:, other, one] = sums[:, 2 * n + 1 :]
        scatter -= weights[..., None] * means[:, :, None] * means[:, None]
        yy, yx, xx = scatter[:, :n, :n], scatter[:, :n, n:], scatter[:, n:, n:]
        if np.isfinite(highest):
            traces = [float(np.einsum("kij,kji", inverse, part)) for part in (yx, xx)]
            memory = float(np.clip(traces[0] / traces[1], 0.0, max_memory))
        within = yy - memory * (yx + yx.transpose(0, 2, 1)) + memory**2 * xx
        pooled = within.sum(axis=0) / n_volumes + ridge
        covariances = (within + SHARED * pooled) / (weights[..., None] + SHARED)
        targets = means[:, :n] - memory * means[:, n:]
        inverse = np.linalg.inv(covariances)
        linear = np.einsum("kij,kj->ki", inverse, targets)
        constant = np.linalg.slogdet(covariances)[1] + n * np.log(2 * np.pi) + (linear * targets).sum(axis=1)
        step = np.array([1.0, -memory])
        quadratic = np.kron(np.outer(step, step), inverse)[:, one, other] * twice
        densities = products @ np.hstack([-0.5 * constant[:, None], np.kron(step, linear), -0.5 * quadratic]).T
        transitions, start = pairs / pairs.sum(axis=1, keepdims=True), first / first.sum()
        pairs, first = STAY * np.eye(n_states) + 1.0, np.ones(n_states)
        total = 0.0
        for stop, own in zip(ends, people, strict=True):
            part = slice(stop - len(own), stop)
            posterior[part], steps, likelihood = _smooth(densities[part], transitions, start)
            pairs += steps
            first += posterior[part][0]
            total += likelihood / n_volumes
        if total - highest < 1e-5:
            break
        highest = total
    return StateModel(targets / (1.0 - memory), covariances, memory, transitions, start, total)


def score_states(*, series: Array, lengths: Sequence[int], n_states: int, seed: int) -> Result:
    """Return ``scores`` (n_people,): the cross-validated log-likelihood per volume of each person.

    States are fitted to each half of the people and scored on the other half. If there is only one person, the two
    halves in time count as two people. `series` and `lengths` are as in `learn_states`.
    """
    parts = split(series, lengths) if len(lengths) > 1 else np.array_split(series, 2)
    # All numbers of states get the same bound, because more memory raises the likelihood.
    how: dict[str, Any] = {"seed": seed, "n_starts": 2, "memories": MEMORIES[-1:]}
    models = [fit_states(parts[half::2], n_states, **how) for half in (1, 0)]
    return {"scores": np.array([models[k % 2].score(own) / len(own) for k, own in enumerate(parts)])}


def choose_number(scores: dict[int, Array]) -> int:
    """Return the best number of states. `scores` maps each number to log-likelihoods (n_people,) of left-out people.

    The gain of a number of states is its mean log-likelihood minus that of the smallest number. The result is the
    smallest number with at least 80% of the largest gain; on simulated scans, this is the true number. If the largest
    gain is within a standard error of zero, the result is the smallest number tried.

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
    """Return the position (time, n_components) one volume earlier. The first row repeats the first position."""
    return np.concatenate([points[:1], points[:-1]])


@njit(cache=True)
def _smooth(densities: Array, transitions: Array, start: Array) -> tuple[Array, Array, float]:
    """Run the forward-backward algorithm. Return posterior (time, n_states), transition counts, log-likelihood."""
    n, k = densities.shape
    likelihood = 0.0
    given, forward, scale = np.empty((n, k)), np.empty((n, k)), np.empty(n)
    for t in range(n):
        top, total = densities[t].max(), 0.0
        for j in range(k):  # loops take a quarter of the time of functions on such short rows
            given[t, j] = np.exp(densities[t, j] - top)
            reached = 0.0 if t > 0 else start[j]
            for i in range(k if t > 0 else 0):
                reached += forward[t - 1, i] * transitions[i, j]
            forward[t, j] = reached * given[t, j]
            total += forward[t, j]
        scale[t] = max(total, 1e-300)
        for j in range(k):
            forward[t, j] /= scale[t]
        likelihood += np.log(scale[t]) + top
    posterior, steps = forward.copy(), np.zeros((k, k))
    backward, weighted = np.ones(k), np.empty(k)
    for t in range(n - 2, -1, -1):
        for j in range(k):
            weighted[j] = given[t + 1, j] * backward[j] / scale[t + 1]
        backward[:] = 0.0
        for i in range(k):
            for j in range(k):
                step = transitions[i, j] * weighted[j]
                steps[i, j] += forward[t, i] * step
                backward[i] += step
        for i in range(k):
            posterior[t, i] *= backward[i]
    return posterior, steps, likelihood
