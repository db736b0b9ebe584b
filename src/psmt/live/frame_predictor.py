"""Whole frames ahead: one model that learns from every frame, and rollouts that must not hold it up."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from psmt.evaluation import mse
from psmt.types import Levels
from psmt.utils.threads import one_thread
from psmt.video.model import FRAME_EXTRAPOLATIONS, FramePSMT

N_FIRST = 8
"""Frames that the model begins with: a third of a second."""

MAX_HORIZON = 10
"""Frames ahead at the most."""

EXTRAPOLATIONS = tuple(FRAME_EXTRAPOLATIONS)
"""What the page lets choose from."""


class Expectation(NamedTuple):
    """What a frame is expected to look like."""

    frame: Levels
    made_from: Levels
    """The newest frame that was known; copying would show it."""
    of_step: int


class Verdict(NamedTuple):
    """How an expectation turned out."""

    error: Levels
    """Absolute error (size, size)."""
    mse: float
    copy_mse: float
    across_cut: bool = False
    """Another scene has begun: nobody could know, and one such error is larger than all others together."""


class _Rollout(NamedTuple):
    made_from: Levels
    of_step: int
    future: Future[Levels]


class FramePredictor:
    """Predicts `horizon` frames ahead of a film that never waits.

    One frame ahead is a part of learning and costs nothing; rollouts go on record only if somebody looks further. There
    each frame costs as much as learning does: so the rollout works in a thread of its own, from the newest
    frame each time that it is free, and the model goes on learning from every frame.

    Parameters
    ----------
    horizon : int
        Frames ahead, 1 to 10.
    extrapolation : str
        As in `FramePSMT`; that of a given model counts.
    device : str
        Where the frames are predicted; that of a given model counts.
    model : FramePSMT, optional
        One that has learned already.
    """

    def __init__(
        self,
        *,
        horizon: int = 1,
        extrapolation: str = "phase",
        device: str = "cpu",
        model: FramePSMT | None = None,
    ) -> None:
        self.horizon = horizon
        self.device = device if model is None else model.device
        self.extrapolation = extrapolation if model is None else model.extrapolation
        self.model = model
        self._keep_record()
        self.step = 0
        """Frames that have come."""
        self.expectation: Expectation | None = None
        self._first: list[Levels] = []
        self._pending: dict[int, Expectation] = {}
        self._rollout: _Rollout | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="psmt-live-rollout")

    @property
    def n_awaited(self) -> int:
        """Frames that are still needed before anything is predicted."""
        return 0 if self.model is not None else N_FIRST - len(self._first)

    def forget(self) -> None:
        """Forget all that was learned; the next frames are the first."""
        self.model, self._first = None, []
        self._drop_expectations()

    def choose(self, extrapolation: str) -> None:
        """Learn anew by another rule."""
        self.extrapolation = extrapolation
        self.forget()

    def look(self, horizon: int) -> None:
        """Predict so many frames ahead from now on."""
        self.horizon = horizon
        self._keep_record()
        self._drop_expectations()
        if self.model is not None and self._first:
            self._expect(self._first[-1])

    def receive(self, frame: Levels) -> Verdict | None:
        """Return how the expectation of this frame turned out, if there was one; learn from it, and look ahead."""
        self.collect()
        self.step += 1
        outcome = self._judged(frame)
        if self.model is None:
            self._first.append(frame)
            if len(self._first) == N_FIRST:
                # A network would take what the second core has left, and a film does not wait; a GPU has the time.
                model = FramePSMT(extrapolation=self.extrapolation, correction=self.device != "cpu", device=self.device)
                self.model = model.fit(np.stack(self._first))
                self._keep_record()
        else:
            self.model.update(frame)
            self._first = [frame]
            if self.model.cut_:
                self._drop_expectations()
                outcome = None if outcome is None else outcome._replace(across_cut=True)
        if self.model is not None:
            self._expect(frame)
        return outcome

    def collect(self) -> bool:
        """Take what a rollout has come to; return whether there was something new."""
        if self._rollout is None or not self._rollout.future.done():
            return False
        made_from, of_step, future = self._rollout
        self._rollout = None
        self._promise(Expectation(future.result(), made_from, of_step))
        if of_step != self.step + self.horizon:
            # Frames have come meanwhile, and while the film is paused no other asks for the next rollout.
            self._expect(self._first[-1])
        return True

    def close(self) -> None:
        """End the thread of rollouts."""
        self._pool.shutdown(cancel_futures=True)

    def _judged(self, frame: Levels) -> Verdict | None:
        expected = self._pending.pop(self.step, None)
        if expected is None:
            return None
        own, copied = (float(mse(guess, frame, axes=2)) for guess in (expected.frame, expected.made_from))
        return Verdict(np.abs(frame - expected.frame), own, copied)

    def _expect(self, frame: Levels) -> None:
        assert self.model is not None
        if self.horizon == 1:
            self._promise(Expectation(self.model.predict(), frame, self.step + 1))
        elif self._rollout is None:
            later = self._pool.submit(_roll_out, self.model.predict_later(self.horizon))
            self._rollout = _Rollout(frame, self.step + self.horizon, later)

    def _promise(self, expected: Expectation) -> None:
        self.expectation = expected
        # What comes after its frame is shown, but no longer judged.
        if expected.of_step > self.step:
            self._pending[expected.of_step] = expected

    def _keep_record(self) -> None:
        if self.model is not None:
            self.model.rollouts = self.horizon > 1

    def _drop_expectations(self) -> None:
        self.expectation, self._rollout = None, None
        self._pending.clear()


def _roll_out(predict: Callable[[], Levels]) -> Levels:
    """The last of the frames (horizon, size, size) that are predicted."""
    # The other cores belong to the model that learns.
    with one_thread():
        last: Levels = predict()[-1]
    return last
