"""What a scene turns into: experts on the change, the frame that they amount to, and the frames after it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from psmt.numerics.namespace import array_namespace
from psmt.types import Levels
from psmt.video.candidates import Candidates, Scene
from psmt.video.expert_gating import restrained
from psmt.video.grid import Grid
from psmt.video.prior import Prior


class Outlook(NamedTuple):
    """What a scene may turn into."""

    moving: Levels
    """Changes (n_moving, height, width), each a prediction by itself."""
    candidates: Levels
    """All that is weighed by place (n_candidates, height, width)."""
    experts: Levels
    """Predictions of the change (n_experts, height, width) that advice chooses among: the blend, which a gain is
    applied to later, copying, optical flow and the prior's blend."""


class Course(NamedTuple):
    """All that was learned and predictions go by. The model may learn on meanwhile: nothing here changes in place."""

    weights: Levels
    """Of the candidates (rows, columns, n_candidates)."""
    gains: Levels
    """Of the blend (rows, columns, 1)."""
    shares: Levels
    """Of the experts (n_experts,)."""
    limits: Levels
    """Lowest and highest level (2,) that was seen."""


class Rollout(NamedTuple):
    """Frames that are predicted from predictions, one after the other."""

    frame: Levels
    """The latest one (height, width)."""
    scene: Scene
    """What it was predicted from."""
    believed: Levels
    """How far the blend is believed by now (rows, columns, 1)."""
    course: Course


class Foresight:
    """Predicts what comes after a scene.

    Parameters
    ----------
    grid : Grid
    candidates : Candidates
    prior : Prior, optional
        Whose blend is one of the experts.
    """

    def __init__(self, grid: Grid, candidates: Candidates, prior: Prior | None) -> None:
        self._grid, self._candidates, self._prior = grid, candidates, prior
        self._errors, self._advised = grid.kernels.capture(self._score), grid.kernels.capture(self._advise)

    @property
    def n_experts(self) -> int:
        """How many experts an outlook has."""
        return 2 + self._candidates.rich + (self._prior is not None)

    def begin(self, scene: Scene, moving: Levels, candidates: Levels, course: Course) -> tuple[Outlook, Rollout]:
        """What a scene may turn into, given what `Candidates.look_ahead` finds in it, and the frame after it."""
        known = () if self._prior is None else self._grid.kernels.levels(self._prior.weights_at(scene.age))
        experts, frame = self._advised(scene.current, scene.previous, moving, candidates, known, course)
        return Outlook(moving, candidates, experts), Rollout(frame, scene, course.gains, course)

    def go_on(self, rollout: Rollout) -> Rollout:
        """One more frame."""
        course = rollout.course
        # What follows from a prediction is believed as far as the prediction itself, and then by its own gain.
        believed = rollout.believed * course.gains
        seen = self._candidates.see(rollout.scene, rollout.frame)
        _, further = self.begin(*seen, course._replace(gains=believed))
        return further._replace(course=course)

    def errors(self, outlook: Outlook, gains: Levels, change: Levels) -> Levels:
        """Mean squared errors (n_moving + n_experts,) of all that predicted the change (height, width) that came."""
        errors: Levels = self._errors(outlook.moving, outlook.experts, gains, change)
        return errors

    def _score(self, moving: Levels, experts: Levels, gains: Levels, change: Levels) -> Levels:
        own = self._grid.weighted(experts[:1], gains)
        return array_namespace(change).stack([mean_square(one - change) for one in (*moving, own, *experts[1:])])

    def _advise(
        self,
        current: Levels,
        previous: Levels,
        moving: Levels,
        candidates: Levels,
        known: Levels | tuple[()],
        course: Course,
    ) -> tuple[Levels, Levels]:
        """Experts (n_experts, height, width), and the frame (height, width) that they amount to."""
        others = [0 * current]
        if self._candidates.rich:
            others.append(moving[self._candidates.moving_names.index("flow")])
        works: list[Callable[[], Levels]] = [partial(self._grid.weighted, candidates, course.weights)]
        if not isinstance(known, tuple):
            works.append(lambda: (known @ candidates.reshape(len(candidates), -1)).reshape(current.shape))
        blend, *by_prior = self._grid.kernels.together(*works)
        others += by_prior
        advised = course.shares[0] * self._grid.weighted(blend[None], course.gains)
        for share, expert in zip(course.shares[1:], others, strict=True):
            advised = advised + share * expert
        change = restrained(self._grid, advised, current - previous)
        return array_namespace(current).stack([blend, *others]), (current + change).clip(
            course.limits[0], course.limits[1]
        )


def mean_square(values: Levels) -> Levels:
    """Mean () of the squares of a map, on its device."""
    flat = values.reshape(-1)
    mean: Levels = flat @ flat * (1.0 / len(flat))
    return mean
