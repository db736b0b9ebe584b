"""What a scene turns into: experts on the change, the frame that they amount to, and the frames after it."""

from __future__ import annotations

from typing import NamedTuple

from psmt.numerics.namespace import array_namespace
from psmt.types import Levels
from psmt.video.candidates import Candidates, Scene
from psmt.video.gating import restrained
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
        self._errors, self._followed = grid.kernels.capture(self._score), grid.kernels.capture(self._follow)

    @property
    def n_experts(self) -> int:
        """How many experts an outlook has."""
        return 2 + self._candidates.rich + (self._prior is not None)

    def look_ahead(self, scene: Scene, weights: Levels) -> Outlook:
        """All that the scene may turn into, with the weights (rows, columns, n_candidates) of the blend."""
        return self.weigh(scene, *self._candidates.look_ahead(scene), weights)

    def weigh(self, scene: Scene, moving: Levels, candidates: Levels, weights: Levels) -> Outlook:
        """The same, where it is known already what `Candidates.look_ahead` gives."""
        experts = [self._grid.weighted(candidates, weights), 0 * scene.current]
        if self._candidates.rich:
            experts.append(moving[self._candidates.moving_names.index("flow")])
        if self._prior is not None:
            known = self._grid.kernels.levels(self._prior.weights_at(scene.age))
            experts.append((known @ candidates.reshape(len(candidates), -1)).reshape(scene.current.shape))
        return Outlook(moving, candidates, array_namespace(moving).stack(experts))

    def begin(self, scene: Scene, outlook: Outlook, course: Course) -> Rollout:
        """The frame after a scene."""
        frame = self._followed(scene.current, scene.previous, outlook.experts, course.gains, *course[2:])
        return Rollout(frame, scene, course.gains, course)

    def go_on(self, rollout: Rollout) -> Rollout:
        """One more frame."""
        course = rollout.course
        scene = self._candidates.update(rollout.scene, rollout.frame)
        # What follows from a prediction is believed as far as the prediction itself, and then by its own gain.
        believed = rollout.believed * course.gains
        outlook = self.look_ahead(scene, course.weights)
        return self.begin(scene, outlook, course._replace(gains=believed))._replace(course=course)

    def errors(self, outlook: Outlook, gains: Levels, change: Levels) -> Levels:
        """Mean squared errors (n_moving + n_experts,) of all that predicted the change (height, width) that came."""
        errors: Levels = self._errors(outlook.moving, outlook.experts, gains, change)
        return errors

    def _score(self, moving: Levels, experts: Levels, gains: Levels, change: Levels) -> Levels:
        own = self._grid.weighted(experts[:1], gains)
        tried = array_namespace(change).concat([moving, own[None], experts[1:]])
        return array_namespace(change).stack([mean_square(one) for one in tried - change])

    def _follow(
        self, current: Levels, previous: Levels, experts: Levels, gains: Levels, shares: Levels, limits: Levels
    ) -> Levels:
        advised = shares[0] * self._grid.weighted(experts[:1], gains)
        for share, expert in zip(shares[1:], experts[1:], strict=True):
            advised = advised + share * expert
        change = restrained(self._grid, advised, current - previous)
        return (current + change).clip(limits[0], limits[1])


def mean_square(values: Levels) -> Levels:
    """Mean () of the squares of a map, on its device."""
    mean: Levels = (values * values).mean()
    return mean
