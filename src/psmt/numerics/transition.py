"""Vector autoregression by ridge regression: a linear system learned from rows in the order of time.

The state of a row ``y_t`` (n,) is the row, the one before it, and a fading mean of all up to it:
``s_t = (y_t, y_(t-1), m_t)`` with ``m_t = m_(t-1) + (y_t - m_(t-1)) / MEMORY``. The transition ``y_(t+1) = s_t W`` is a
matrix (3 n, n). The three weights of a coordinate's own past are hardly penalised, the weights of the others are: the
Minnesota prior of econometrics. Beyond one step the matrix is iterated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from psmt.numerics.linalg import inverse_positive
from psmt.types import Array, Ints, Mask

MEMORY = 6.0  # rows after which the weight of a row in the fading mean is 1/e
PARTS = 3  # rows in a state: the latest, the one before, the fading mean
OWN = 0.02  # penalty on the weights of a coordinate's own past, as a fraction of that on the others
WEIGHTS = (1.0, 2.0, 3.0)  # relative penalties on the parts of the state: larger for the more distant past


def states_of(rows: Array, begins: Mask) -> Array:
    """States (time, 3 n) of rows (time, n), deviations from their mean; a row that begins a series has no past.

    >>> states_of(np.array([[6.0], [12.0]]), np.array([True, False])).tolist()
    [[6.0, 6.0, 1.0], [12.0, 6.0, 2.833333333333333]]
    """
    before = np.concatenate([rows[:1], rows[:-1]])
    before[begins] = rows[begins]
    fading = np.empty_like(rows)
    mean = np.zeros(rows.shape[1])
    for t, row in enumerate(rows):
        mean = (0.0 if begins[t] else 1.0) * mean
        mean = mean + (row - mean) / MEMORY
        fading[t] = mean
    return np.hstack([rows, before, fading])


def next_state(state: Array, row: Array) -> Array:
    """The state (.., 3 n) that follows `state` after the row (.., n)."""
    n = row.shape[-1]
    mean = state[..., 2 * n :]
    return np.concatenate([row, state[..., :n], mean + (row - mean) / MEMORY], axis=-1)


@dataclass(frozen=True)
class Moments:
    """Sums over pairs of a state and the row that followed it."""

    inputs: Array  # sum of s s' (3 n, 3 n)
    outputs: Array  # sum of s y' (3 n, n)

    @classmethod
    def of(cls, states: Array, rows: Array, before: Ints) -> Self:
        """Sums over the pairs whose states are at the times `before`."""
        inputs = states[before]
        return cls(inputs.T @ inputs, inputs.T @ rows[before + 1])

    def solve(self, penalty: float, prior: Array | None = None) -> Array:
        """W (3 n, n) by ridge regression towards a prior, or zero; the penalty is relative to the inputs' mean square.

        Each coordinate has smaller penalties on itself than on others. All share one inverse with the larger penalties;
        a downdate of rank 3 (Woodbury) then subtracts the excess for each.
        """
        n_inputs, n = self.outputs.shape
        scale = float(np.trace(self.inputs)) / n_inputs or 1.0  # for rows that never move, any penalty will do
        penalties = penalty * scale * np.repeat(WEIGHTS, n)
        inverse = inverse_positive(self.inputs + np.diag(penalties))
        outputs = self.outputs if prior is None else self.outputs + penalties[:, None] * prior
        own = np.arange(n)[:, None] + n * np.arange(PARTS)  # (n, 3)
        spared = (1.0 - OWN) * penalties[own]
        columns = np.swapaxes(inverse[:, own], 0, 1)  # (n, 3 n, 3)
        weights = (inverse @ outputs).T
        if prior is not None:
            weights = weights - np.einsum("kip,kp->ki", columns, spared * prior[own, np.arange(n)[:, None]])
        capacity = np.eye(PARTS) / spared[:, None] - inverse[own[:, :, None], own[:, None, :]]
        mended = np.linalg.solve(capacity, np.take_along_axis(weights, own, axis=1)[..., None])
        return (weights + (columns @ mended)[..., 0]).T


def pairs_within(begins: Mask, first: int, stop: int) -> Ints:
    """Times t in [first, stop - 1) whose row t + 1 belongs to the same series."""
    times = np.arange(first, max(stop - 1, first))
    return times[~begins[times + 1]]


def rollout(states: Array, weights: Array, horizon: int) -> Array:
    """The next rows (horizon, .., n) after states (.., 3 n), each predicted from the one before."""
    rows = []
    for _ in range(horizon):
        rows.append(states @ weights)
        states = next_state(states, rows[-1])
    return np.stack(rows)
