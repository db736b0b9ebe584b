"""A linear dynamics of frames and points together, learned from the window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np

from psmt.extrapolation.contract import Extrapolation
from psmt.numerics.transition import PARTS, Moments, next_state, pairs_within, rollout, states_of
from psmt.persistence.schema import Field
from psmt.types import Array, Ints, Mask
from psmt.utils.validation import LARGEST

PENALTIES = (1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1e3, 1e4)
"""Candidates for the ridge penalty, relative to the mean square of a state's coordinates."""

HORIZON = 5
"""Steps ahead that count in the choice: a matrix is iterated, and must not be right for one step alone."""

MOST_AXES = 128
"""Frames of more features are continued along this many principal axes; what is left of them has one number in all."""

ANCHORS = ("mean", "last", "others")
"""What the matrix is drawn to: rows return to their mean, stay as they are, or go on as those of other series."""

CAUTION = {"mean": 0.0, "last": 0.02, "others": 0.0}
"""By how much, relatively, an anchor must do better than another: rows that are said to stay never return to their
mean, which a short past does not show."""

FEWEST = 32
"""Frames of its own that a series needs before a matrix is learned from it alone."""

EVERY = 16
"""Frames after which the matrix is learned afresh: that costs as much as some frames do, and changes little."""


@dataclass(frozen=True)
class Fold:
    """A stretch of the past to be foretold, [start, stop), and the points (time, n) of an embedding without it."""

    start: int
    stop: int
    points: Array


class Dynamics(Extrapolation):
    """A transition matrix for the points of the embedding and the frames that they stand for.

    It generalises `Gain` from one number per direction to a matrix. A row is a frame beside its point in the embedding,
    so that what the code does not hold of the frame is part of what is continued. The next row is a linear function of
    this row, the one before and a fading mean of all: see `psmt.numerics.transition`. Beyond one step the matrix is
    iterated, and as far as nothing can be foretold its rows shrink to the mean of the window.

    How strongly the matrix is held back, and how many points it sees, is chosen by walk-forward error inside the past,
    over one to five steps, with dictionaries and embeddings that did not know what was foretold (`choose`); so is what
    it is held back to, the mean, the last row, or the matrix of the other series of the window. The matrix
    is learned afresh from the window every few frames, and in between its state follows (`receive`). Where the
    window holds several series, it is that of the latest.

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
    keeps_residual = continues_frames = True

    def __init__(self) -> None:
        self.penalty = 1.0
        self.n_points = 0
        self.anchor = "mean"
        self.embedding = np.zeros((0, 0))
        self._axes: Array | None = None
        self._frame_mean = self._point_mean = np.zeros(0)
        self._point_scale = 1.0
        self._rest_share = 0.0
        self._rest = np.zeros(0)
        self._weights = np.zeros((0, 0))
        self._state = np.zeros(0)
        # Frames of the window, which of them have a seam or a cut before them, and how many came since it was learned.
        self._frames = np.zeros((0, 0))
        self._begins = np.zeros(0, dtype=bool)
        self._since = 0

    # Learning

    def choose(self, frames: Array, begins: Mask, folds: Sequence[Fold], sizes: Sequence[int]) -> None:
        """Set penalty, number of points and anchor to those of least error on the folds of the past frames (time, n).

        `sizes` are the numbers of points to try; `begins` (time,) marks the first frames of series.
        """
        errors: dict[tuple[int, str, float], Array] = {}
        for fold in folds:
            for size in sizes:
                trial = Dynamics()
                rows = trial._rows(frames[: fold.stop], fold.points[: fold.stop, :size], learned=fold.start)
                n = rows.shape[1] - size
                states = states_of(rows, begins[: fold.stop])
                own, others = _moments(states, rows, begins, fold.start)
                at = _foretold(begins, fold.start, fold.stop)
                if not len(at):
                    continue
                truth = np.stack([rows[at + h, :n] for h in range(1, HORIZON + 1)])
                for anchor, penalty in product(ANCHORS if others else ANCHORS[:2], PENALTIES):
                    weights = _drawn(own, others, anchor, penalty)
                    wrong = np.mean((rollout(states[at], weights, HORIZON)[..., :n] - truth) ** 2, axis=(1, 2))
                    key = size, anchor, penalty
                    errors[key] = errors.get(key, np.zeros(HORIZON)) + wrong
        if errors:
            # By the geometric mean over horizons: what is far ahead has larger errors, but does not count for more.
            means = {
                key: float(np.log(wrong + np.finfo(float).tiny).mean()) + CAUTION[key[1]]
                for key, wrong in errors.items()
            }
            self.n_points, self.anchor, self.penalty = min(means, key=lambda key: means[key])

    def learn(self, frames: Array, codes: Array, embedding: Array, begins: Mask) -> None:
        """Learn the matrix from a window of frames (time, n) and codes (time, n_atoms), and stand at its end."""
        self._frames, self._begins, self._since = frames, begins, 0
        self.embedding = embedding[: self.n_points]
        self._learn(frames, codes @ self.embedding.T, begins)

    def go_on(self, frames: Array, codes: Array, embedding: Array) -> None:
        """Learn from the window of codes (time, n_atoms) after another series has come, of frames (n, n_features)."""
        begins = np.concatenate([self._begins, np.arange(len(frames)) == 0])
        known = np.concatenate([self._frames, frames])
        self.learn(known[-len(codes) :], codes, embedding, begins[-len(codes) :])

    def receive(
        self, frame: Array, code: Array, window: Callable[[], tuple[Array, Array]] | None, *, begins: bool = False
    ) -> None:
        """Take in the frame (n_features,) and code (n_atoms,) that came, and learn the matrix afresh now and then.

        `window` gives its codes (time, n_atoms) and embedding then; without, the matrix stays. A frame that `begins`
        something new is not explained by those before it.
        """
        self._frames = np.concatenate([self._frames[1:], frame[None]])
        self._begins = np.append(self._begins[1:], begins)
        self._since += 1
        if window is not None and self._since >= EVERY:
            self.learn(self._frames, *window(), self._begins)
        else:
            self._follow(frame, self.embedding @ code, begins=begins)

    def _learn(self, frames: Array, points: Array, begins: Mask) -> None:
        rows = self._rows(frames, points)
        states = states_of(rows, begins)
        own, others = _moments(states, rows, begins, len(rows))
        self._weights, self._state = _drawn(own, others, self.anchor, self.penalty), states[-1]

    def _rows(self, frames: Array, points: Array, learned: int | None = None) -> Array:
        """Rows (time, n) of frames and points, by what is learned from the first of them: means, axes and scales."""
        known = slice(learned)
        self._frame_mean, self._point_mean = frames[known].mean(axis=0), points[known].mean(axis=0)
        deviations = frames - self._frame_mean
        size = np.sqrt(np.mean(deviations[known] ** 2))
        spread = np.sqrt(np.mean((points[known] - self._point_mean) ** 2)) if points.shape[1] else 0.0
        # Points have a variance of 1 whatever the frames have: a common scale makes the penalty free of units.
        self._point_scale = float(size / spread) if spread > 0 else 0.0
        self._axes, self._rest_share = None, 0.0
        self._rest = np.zeros(frames.shape[1])
        if frames.shape[1] > MOST_AXES:
            _, vectors = np.linalg.eigh(deviations[known].T @ deviations[known])
            self._axes = np.ascontiguousarray(vectors[:, ::-1][:, :MOST_AXES].T)
            rest = deviations - (deviations @ self._axes.T) @ self._axes
            energy = float(np.sum(rest[known][:-1] ** 2))
            self._rest_share = 1.0  # what the window has never shown stays until more is known of it
            if energy > 1e-6 * float(np.sum(deviations[known] ** 2)):
                self._rest_share = float(np.clip(np.sum(rest[known][1:] * rest[known][:-1]) / energy, 0.0, 1.0))
            self._rest = rest[-1]
        return np.hstack([self._seen(deviations), self._point_scale * (points - self._point_mean)])

    def _seen(self, deviations: Array) -> Array:
        return deviations if self._axes is None else deviations @ self._axes.T

    def _follow(self, frame: Array, point: Array, *, begins: bool) -> None:
        deviation = frame - self._frame_mean
        seen = self._seen(deviation)
        if self._axes is not None:
            self._rest = deviation - seen @ self._axes
        row = np.concatenate([seen, self._point_scale * (point - self._point_mean)])
        self._state = states_of(row[None], np.array([True]))[0] if begins else next_state(self._state, row)

    # Predicting

    def foretell(self, horizon: int) -> tuple[Array, Array]:
        """The next frames (horizon, n_features) and points (horizon, n_points)."""
        rows = rollout(self._state, self._weights, horizon)
        n = rows.shape[1] - len(self._point_mean)
        seen = rows[:, :n]
        shares = self._rest_share ** np.arange(1, horizon + 1)
        frames = seen if self._axes is None else seen @ self._axes + shares[:, None] * self._rest
        points = rows[:, n:] / self._point_scale if self._point_scale > 0 else np.zeros_like(rows[:, n:])
        return frames + self._frame_mean, points + self._point_mean

    def fit(self, trajectory: Array, _pictures: Array) -> Self:
        """Learn from an embedded sequence (time, n_components) alone, whatever its pictures are."""
        begins = np.zeros(len(trajectory), dtype=bool)
        nothing = np.zeros((len(trajectory), 0))
        eighth = max(len(trajectory) // 8, 1)
        stretches = [(len(trajectory) - k * eighth, len(trajectory) - (k - 1) * eighth) for k in (2, 1)]
        self.choose(trajectory, begins, [Fold(*stretch, nothing) for stretch in stretches], [0])
        self._learn(trajectory, nothing, begins)
        return self

    def advance(self, previous: Array, current: Array, /) -> Array:
        """The next point (n_components,) after the last two, as `fit` to a trajectory has learned it."""
        n = len(current)
        now, before = current - self._frame_mean, previous - self._frame_mean
        state = np.concatenate([now, before, self._state[2 * n :]])
        following: Array = rollout(state, self._weights, 1)[0] + self._frame_mean
        return following

    # Keeping it

    @property
    def state(self) -> dict[str, Array]:
        """The matrix, what rows are made by, and where the series stands."""
        return {
            "figures": np.array(
                [
                    self.penalty,
                    self.n_points,
                    ANCHORS.index(self.anchor),
                    self._point_scale,
                    self._rest_share,
                    self._since,
                ]
            ),
            "frames": self._frames,
            "begins": self._begins.astype(np.int8),
            "embedding": self.embedding,
            "axes": np.zeros((0, len(self._frame_mean))) if self._axes is None else self._axes,
            "frame_mean": self._frame_mean,
            "point_mean": self._point_mean,
            "rest": self._rest,
            "weights": self._weights,
            "row_states": self._state,
        }

    @state.setter
    def state(self, state: dict[str, Array]) -> None:
        self.penalty, n_points, anchor, self._point_scale, self._rest_share, since = state["figures"].tolist()
        self.n_points, self.anchor, self._since = int(n_points), ANCHORS[int(anchor)], int(since)
        self._frames, self._begins = state["frames"], state["begins"].astype(bool)
        self.embedding = state["embedding"]
        self._axes = state["axes"] if len(state["axes"]) else None
        self._frame_mean, self._point_mean, self._rest = state["frame_mean"], state["point_mean"], state["rest"]
        self._weights, self._state = state["weights"], state["row_states"]
        n = (len(self._frame_mean) if self._axes is None else len(self._axes)) + len(self._point_mean)
        if self._weights.shape != (PARTS * n, n) or self._state.shape != (PARTS * n,):
            raise ValueError(f"rows of {n} numbers, but a matrix of shape {self._weights.shape}")
        if len(self._begins) and self._frames.shape != (len(self._begins), len(self._frame_mean)):
            raise ValueError(f"frames of shape {self._frames.shape} in a window of {len(self._begins)}")

    @classmethod
    def schema(cls) -> dict[str, Field]:
        """What `state` holds."""
        most = float(len(ANCHORS) - 1)
        vector, frames = Field(("n_features",)), Field(("n_frames", "n_features"))
        return {
            "figures": Field((6,), low=0.0, high=(1e6, 1e6, most, LARGEST, 1.0, 1e15)),
            "frames": frames,
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
    """Moments of the latest series up to `stop`, and of those before it, if there are any and it is long enough."""
    starts = np.flatnonzero(begins[:stop])
    first = int(starts[-1]) if len(starts) else 0
    if first < FEWEST or stop - first < FEWEST:
        return Moments.of(states, rows, pairs_within(begins, 0, stop)), None
    others = Moments.of(states, rows, pairs_within(begins, 0, first))
    return Moments.of(states, rows, pairs_within(begins, first, stop)), others


def _drawn(own: Moments, others: Moments | None, anchor: str, penalty: float) -> Array:
    """W (3 n, n) of a series, drawn to its anchor by a penalty; the others' own is drawn to the mean."""
    if anchor == "last":
        return own.solve(penalty, np.eye(*own.outputs.shape))
    return own.solve(penalty, others.solve(penalty) if anchor == "others" and others is not None else None)


def _foretold(begins: Mask, start: int, stop: int) -> Ints:
    """Times (n,) to foretell from: the next `HORIZON` rows lie in [start, stop) and within one series."""
    times = np.arange(max(start - 1, 0), max(stop - HORIZON, 0))
    within: Ints = times[~begins[times[:, None] + np.arange(1, HORIZON + 1)].any(axis=1)]
    return within
