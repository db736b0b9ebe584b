"""Linear dynamics of frames and points together, learned from the window.

The model is a vector autoregression. A row ``y_t`` (n,) is a frame together with its point in the embedding. The state
``s_t = (y_t, y_(t-1), m_t)`` consists of this row, the row before it, and an exponentially weighted mean of all rows so
far, ``m_t = m_(t-1) + (y_t - m_(t-1)) / MEMORY``. The next row is ``y_(t+1) = s_t W``. The matrix W (3 n, n) is learned
by ridge regression. For each coordinate, the three weights of its own past are penalised far less than the weights of
the other coordinates (the Minnesota prior of econometrics). Predictions beyond one step apply the matrix repeatedly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from psmt.extrapolation.contract import Extrapolation, Fold, Window
from psmt.numerics.arrays import inverse_positive
from psmt.persistence.schema import Field, State
from psmt.types import Array, Ints, Mask
from psmt.utils.validation import LARGEST

MEMORY = 6.0  # number of rows after which the weight of a row in the exponential mean has fallen to 1/e
PARTS = 3  # parts of a state: the latest row, the row before it, the exponential mean
OWN = 0.02  # penalty on the weights of a coordinate's own past, relative to the penalty on the others
WEIGHTS = (1.0, 2.0, 3.0)  # relative penalties on the parts of the state, larger for the more distant past

PENALTIES = (1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1e3, 1e4)
"""Values of the ridge penalty to choose from, relative to the mean square of a state's coordinates."""

HORIZON = 5
"""Number of steps ahead whose errors decide the choice. Several, because predictions apply the matrix repeatedly."""

MOST_AXES = 128
"""Largest number of principal axes of frames that are part of a row. The rest of a frame decays by a common factor."""

ANCHORS = ("mean", "last", "others")
"""Targets of shrinkage of the matrix: rows return to their mean, stay as they are, or move as in other series."""

CAUTION = {"mean": 0.0, "last": 0.02, "others": 0.0}
"""Fraction by which the error with an anchor must be below that with another anchor. It is positive for 'last':
with this anchor rows never return to their mean, and a short past does not show whether they would."""

FEWEST = 32
"""Number of frames that a series needs before a matrix is learned from it alone."""

EVERY = 16
"""Number of frames after which the matrix is learned again, which takes as long as several frames."""


class Dynamics(Extrapolation):
    """Predicts points of the embedding together with their frames, by a learned transition matrix.

    `Gain` learns one number per direction; this rule learns a matrix. It also predicts the part of a frame that its
    code does not explain. Predictions of unpredictable coordinates shrink to the mean of the window.

    `choose` sets three parameters: the ridge penalty, the number of directions of the embedding, and the anchor. The
    matrix is shrunk towards the anchor, which is one of three: a return to the mean, no change, or the matrix of the
    other series in the window. The chosen values have the least walk-forward error over one to five steps, on held-out
    frames to which neither dictionary nor embedding was fitted. `receive` updates the state with each frame, and learns
    the matrix again every few frames. If the window holds several series, the matrix is that of the latest series.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.arange(400.0)
    >>> circle = np.column_stack([np.cos(t / 3), np.sin(t / 3)])
    >>> rule = Dynamics().fit(circle, circle)
    >>> bool(np.abs(rule.advance(circle[-2], circle[-1]) - [np.cos(400 / 3), np.sin(400 / 3)]).max() < 0.05)
    True
    """

    name = "dynamics"
    keeps_residual = True
    n_folds = 2
    state_figures = ("penalty", "n_points", "_anchor", "_point_scale", "_rest_share", "_since")
    state_arrays = ("embedding", "_axes", "_frame_mean", "_point_mean", "_rest", "_weights", "_row_states")

    def __init__(self) -> None:
        self.penalty = 1.0
        self.embedding: Array = np.zeros((0, 0))
        self._anchor = 0
        self._axes = np.zeros((0, 0))
        self._frame_mean = self._point_mean = np.zeros(0)
        self._point_scale = 1.0
        self._rest_share = 0.0
        self._rest = np.zeros(0)
        self._weights = np.zeros((0, 0))
        self._row_states = np.zeros(0)
        # Frames of the window, a mask of those that follow a seam or a cut, and the number of frames since the last
        # learning.
        self._frames = np.zeros((0, 0))
        self._begins = np.zeros(0, dtype=bool)
        self._since = 0

    # Learning

    def choose(self, frames: Array, begins: Mask, folds: Sequence[Fold], sizes: Sequence[int]) -> None:
        """Set the penalty, the number of directions and the anchor to those with the least error on the `folds`."""
        errors: dict[tuple[int, str, float], Array] = {}
        for fold in folds:
            for size in sizes:
                trial = Dynamics()
                rows = trial._rows(frames[: fold.stop], fold.points[: fold.stop, :size], learned=fold.start)
                n = rows.shape[1] - size
                states = states_of(rows, begins[: fold.stop])
                own, others = _moments(states, rows, begins, fold.start)
                at = _scored_times(begins, fold.start, fold.stop)
                if not len(at):
                    continue
                truth = np.stack([rows[at + h, :n] for h in range(1, HORIZON + 1)])
                for anchor, penalty in product(ANCHORS if others else ANCHORS[:2], PENALTIES):
                    weights = _solve(own, others, anchor, penalty)
                    wrong = np.mean((rollout(states[at], weights, HORIZON)[..., :n] - truth) ** 2, axis=(1, 2))
                    key = size, anchor, penalty
                    errors[key] = errors.get(key, np.zeros(HORIZON)) + wrong
        if errors:
            # The geometric mean gives all horizons the same influence, although errors grow with the horizon.
            means = {
                key: float(np.log(wrong + np.finfo(float).tiny).mean()) + CAUTION[key[1]]
                for key, wrong in errors.items()
            }
            self.n_points, anchor, self.penalty = min(means, key=lambda key: means[key])
            self._anchor = ANCHORS.index(anchor)

    def learn_window(self, frames: Array, codes: Array, embedding: Array, begins: Mask) -> None:
        """Learn the matrix from codes (time, n_atoms) and the last of frames (n, n_features), and set the state."""
        self._frames, self._begins, self._since = frames[-len(codes) :], begins[-len(codes) :], 0
        self.embedding = embedding[: self.n_points]
        self._learn(self._frames, codes @ self.embedding.T, self._begins)

    def continue_series(self, frames: Array, codes: Array, embedding: Array) -> None:
        """Learn again after a new series of frames (n, n_features) has entered the window of codes (time, n_atoms)."""
        begins = np.concatenate([self._begins, np.arange(len(frames)) == 0])
        known = np.concatenate([self._frames, frames])
        self.learn_window(known, codes, embedding, begins)

    def rewind(self, n: int, codes: Array, embedding: Array) -> None:
        """Remove the last `n` frames of the window, and learn the matrix again."""
        self.learn_window(self._frames[:-n], codes, embedding, self._begins[:-n])

    def receive(self, frame: Array, code: Callable[[], Array], window: Window | None, *, begins: bool) -> None:
        """Update the state with the next frame (n_features,). If `window` is given, learn again every few frames."""
        gone = int(window is None)  # else `learn_window` drops the frames that have left the window
        self._frames = np.concatenate([self._frames[gone:], frame[None]])
        self._begins = np.append(self._begins[gone:], begins)
        self._since += 1
        if window is not None and self._since >= EVERY:
            self.learn_window(self._frames, *window(), self._begins)
            return
        deviation = frame - self._frame_mean
        seen = self._seen(deviation)
        if len(self._axes):
            self._rest = deviation - seen @ self._axes
        row = np.concatenate([seen, self._point_scale * (self.embedding @ code() - self._point_mean)])
        # The past does not explain the first frame of a new series or scene.
        self._row_states = states_of(row[None], np.array([True]))[0] if begins else next_state(self._row_states, row)

    def _learn(self, frames: Array, points: Array, begins: Mask) -> None:
        rows = self._rows(frames, points)
        states = states_of(rows, begins)
        own, others = _moments(states, rows, begins, len(rows))
        self._weights, self._row_states = _solve(own, others, ANCHORS[self._anchor], self.penalty), states[-1]

    def _rows(self, frames: Array, points: Array, learned: int | None = None) -> Array:
        """Return rows (time, n) of frames and points, centred and scaled by the first `learned` rows (None: all)."""
        known = slice(learned)
        self._frame_mean, self._point_mean = frames[known].mean(axis=0), points[known].mean(axis=0)
        deviations = frames - self._frame_mean
        size = np.sqrt(np.mean(deviations[known] ** 2))
        spread = np.sqrt(np.mean((points[known] - self._point_mean) ** 2)) if points.shape[1] else 0.0
        # Points have unit variance and frames have any. A common scale makes the penalty independent of units.
        self._point_scale = float(size / spread) if spread > 0 else 0.0
        self._axes, self._rest_share = np.zeros((0, frames.shape[1])), 0.0
        self._rest = np.zeros(frames.shape[1])
        if frames.shape[1] > MOST_AXES:
            _, vectors = np.linalg.eigh(deviations[known].T @ deviations[known])
            self._axes = np.ascontiguousarray(vectors[:, ::-1][:, :MOST_AXES].T)
            rest = deviations - (deviations @ self._axes.T) @ self._axes
            energy = float(np.sum(rest[known][:-1] ** 2))
            self._rest_share = 1.0  # a part of the frame that never occurred in the window is predicted to stay
            if energy > 1e-6 * float(np.sum(deviations[known] ** 2)):
                self._rest_share = float(np.clip(np.sum(rest[known][1:] * rest[known][:-1]) / energy, 0.0, 1.0))
            self._rest = rest[-1]
        return np.hstack([self._seen(deviations), self._point_scale * (points - self._point_mean)])

    def _seen(self, deviations: Array) -> Array:
        return deviations @ self._axes.T if len(self._axes) else deviations

    # Predicting

    def predict_frames(self, horizon: int) -> Array:
        """Return the next frames (horizon, n_features)."""
        rows = rollout(self._row_states, self._weights, horizon)
        frames = rows[:, : rows.shape[1] - len(self._point_mean)]
        if len(self._axes):
            shares = self._rest_share ** np.arange(1, horizon + 1)
            frames = frames @ self._axes + shares[:, None] * self._rest
        return frames + self._frame_mean

    def predict_points(self, horizon: int) -> Array:
        """Return the next points (horizon, n_points)."""
        rows = rollout(self._row_states, self._weights, horizon)
        points = rows[:, rows.shape[1] - len(self._point_mean) :]
        scaled = points / self._point_scale if self._point_scale > 0 else np.zeros_like(points)
        return scaled + self._point_mean

    def fit(self, trajectory: Array, _pictures: Array) -> Self:
        """Learn from a sequence of points (time, n_components). Its decoded frames are not used."""
        begins = np.zeros(len(trajectory), dtype=bool)
        nothing = np.zeros((len(trajectory), 0))
        eighth = max(len(trajectory) // 8, 1)
        stretches = [(len(trajectory) - k * eighth, len(trajectory) - (k - 1) * eighth) for k in (2, 1)]
        self.choose(trajectory, begins, [Fold(*stretch, nothing) for stretch in stretches], [0])
        self._learn(trajectory, nothing, begins)
        return self

    def advance(self, previous: Array, current: Array, /) -> Array:
        """Return the point (n_components,) predicted after the last two points, by the matrix that `fit` learned."""
        n = len(current)
        now, before = current - self._frame_mean, previous - self._frame_mean
        state = np.concatenate([now, before, self._row_states[2 * n :]])
        return np.asarray(rollout(state, self._weights, 1)[0] + self._frame_mean)

    # State

    def get_state(self) -> State:
        """Return copies of all learned arrays, the frames of the window, and the present state of the dynamics."""
        return super().get_state() | {"frames": self._frames.copy(), "begins": self._begins.astype(np.int8)}

    def set_state(self, state: Mapping[str, NDArray[Any]], /) -> None:
        """Restore a state that `get_state` returned."""
        super().set_state(state)
        self._frames, self._begins = np.array(state["frames"]), state["begins"].astype(bool)
        n = (len(self._axes) or len(self._frame_mean)) + len(self._point_mean)
        if self._weights.shape != (PARTS * n, n) or self._row_states.shape != (PARTS * n,):
            raise ValueError(f"the state has rows of {n} numbers, but a matrix of shape {self._weights.shape}")
        if len(self._begins) and self._frames.shape != (len(self._begins), len(self._frame_mean)):
            raise ValueError(f"the state has frames of shape {self._frames.shape}, but a window of {len(self._begins)}")

    @classmethod
    def schema(cls) -> dict[str, Field]:
        """Return the shapes and bounds that the saved arrays must have, by name."""
        most = float(len(ANCHORS) - 1)
        vector = Field(("n_features",))
        return {
            "figures": Field((6,), low=0.0, high=(1e6, 1e6, most, LARGEST, 1.0, 1e15)),
            "frames": Field(("n_frames", "n_features")),
            "begins": Field(("n_frames",), "int8", 0, 1),
            "embedding": Field(("n_points", "n_atoms"), may_be_empty=True),
            "axes": Field(("n_axes", "n_features"), may_be_empty=True),
            "frame_mean": vector,
            "point_mean": Field(("n_points",), may_be_empty=True),
            "rest": vector,
            "weights": Field(("n_inputs", "n_rows")),
            "row_states": Field(("n_inputs",)),
        }


def _moments(states: Array, rows: Array, begins: Mask, stop: int) -> tuple[Moments, Moments | None]:
    """Return the `Moments` of the latest series in the rows before `stop`, and those of all earlier series together.

    If one of these two parts is too short, return the moments of all series, and None.
    """
    starts = np.flatnonzero(begins[:stop])
    first = int(starts[-1]) if len(starts) else 0
    if first < FEWEST or stop - first < FEWEST:
        return Moments.of(states, rows, pairs_within(begins, 0, stop)), None
    others = Moments.of(states, rows, pairs_within(begins, 0, first))
    return Moments.of(states, rows, pairs_within(begins, first, stop)), others


def _solve(own: Moments, others: Moments | None, anchor: str, penalty: float) -> Array:
    """Return the transition matrix W (3 n, n) that fits the moments `own` of a series and is shrunk towards an anchor.

    `anchor` is one of the `ANCHORS`, and `penalty` the ridge penalty. The anchor 'others' is the matrix that fits the
    moments `others` of earlier series.
    """
    if anchor == "last":
        return own.solve(penalty, np.eye(*own.outputs.shape))
    return own.solve(penalty, others.solve(penalty) if anchor == "others" and others is not None else None)


def _scored_times(begins: Mask, start: int, stop: int) -> Ints:
    """Return the times t (n,) for which the rows t + 1 to t + HORIZON lie in [start, stop) and in one series."""
    times = np.arange(max(start - 1, 0), max(stop - HORIZON, 0))
    return np.asarray(times[~begins[times[:, None] + np.arange(1, HORIZON + 1)].any(axis=1)])


def states_of(rows: Array, begins: Mask) -> Array:
    """Return the states (time, 3 n) of rows (time, n). Rows are deviations from their mean.

    For the first row of a series, the row before it is taken to be the same, and the exponential mean starts at zero.

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
    """Return the state (..., 3 n) that follows the given state when the row (..., n) arrives."""
    n = row.shape[-1]
    mean = state[..., 2 * n :]
    return np.concatenate([row, state[..., :n], mean + (row - mean) / MEMORY], axis=-1)


@dataclass(frozen=True)
class Moments:
    """Sums over time for the regression of a row y on the state s before it."""

    inputs: Array  # sum of s s' (3 n, 3 n)
    outputs: Array  # sum of s y' (3 n, n)

    @classmethod
    def of(cls, states: Array, rows: Array, before: Ints) -> Self:
        """Return the sums over all t in `before`. The state at time t is paired with the row at time t + 1."""
        inputs = states[before]
        return cls(inputs.T @ inputs, inputs.T @ rows[before + 1])

    def solve(self, penalty: float, prior: Array | None = None) -> Array:
        """Return the transition matrix W (3 n, n) by ridge regression. It is shrunk towards `prior` (None: zero).

        The penalty is relative to the mean square of the inputs. Each coordinate has smaller penalties on its own past.
        The matrix with the larger penalties is inverted once. Woodbury's formula adapts the inverse to each coordinate.
        """
        n_inputs, n = self.outputs.shape
        scale = float(np.trace(self.inputs)) / n_inputs or 1.0  # any penalty will do for rows that never move
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
    """Return the times t in [first, stop - 1) for which the rows t and t + 1 belong to one series."""
    times = np.arange(first, max(stop - 1, first))
    return times[~begins[times + 1]]


def rollout(states: Array, weights: Array, horizon: int) -> Array:
    """Return the next rows (horizon, ..., n) after states (..., 3 n). Each step continues from the step before."""
    rows = []
    for _ in range(horizon):
        rows.append(states @ weights)
        states = next_state(states, rows[-1])
    return np.stack(rows)
