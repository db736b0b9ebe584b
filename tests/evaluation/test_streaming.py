"""Frames that come one by one: what is predicted when, and from what."""

import numpy as np
import pytest

from psmt.evaluation import score_stream
from psmt.video.baselines import CopyLastFrame, LinearPixels


class Diary(CopyLastFrame):
    """Copies, is surprised by the brightness, and writes down what it was asked."""

    def __init__(self):
        self.entries = []

    def update(self, frame):
        self.entries.append(("update", float(frame[0, 0])))
        self.surprise_ = float(frame[0, 0])
        self.cut_ = self.surprise_ > 4
        return super().update(frame)

    def predict(self, horizon=None):
        self.entries.append(("predict", horizon))
        return super().predict(horizon)


@pytest.fixture
def film():
    """Frames (9, 12, 12) as bright as their number."""
    return np.ones((9, 12, 12), dtype=np.float32) * np.arange(9, dtype=np.float32)[:, None, None]


def score_all(methods, film, *, start, **options):
    for method in methods.values():
        method.fit(film[:start])
    return list(score_stream(methods, film[start:], start=start, **options))


def test_each_frame_is_predicted_before_it_is_received(film):
    diary = Diary()
    steps = score_all({"psmt": diary}, film, start=4, rollout=0)
    assert [step.index for step in steps] == [5, 6, 7, 8]
    assert diary.entries == [entry for t in range(4, 9) for entry in (("update", float(t)), ("predict", None))]
    for step in steps:
        assert step.predicted["psmt"][0, 0] == step.last[0, 0] == step.index - 1
        assert step.frame[0, 0] == step.index
        assert step.rows["psmt"].mse == step.rows["psmt"].copy_mse == 1.0


def test_surprise_and_cut_are_those_of_the_frame_itself(film):
    steps = score_all({"psmt": Diary(), "copy": CopyLastFrame()}, film, start=3)
    assert [(step.rows["psmt"].surprise, step.rows["psmt"].cut) for step in steps] == [
        (4.0, 0),
        (5.0, 1),
        (6.0, 1),
        (7.0, 1),
        (8.0, 1),
    ]
    assert all(np.isnan(step.rows["copy"].surprise) and step.rows["copy"].cut == 0 for step in steps)


def test_rollouts_are_scored_when_their_frames_come(film):
    methods = {"copy": CopyLastFrame(), "linear": LinearPixels()}
    steps = score_all(methods, film, start=2, rollout=3, every=2)
    rows = [row for step in steps for row in step.rollouts]
    expected = {(start, step) for start in (2, 4, 6, 8) for step in (1, 2, 3) if start + step <= 8}
    assert {(row.start, row.step) for row in rows if row.method == "copy"} == expected
    for row in rows:
        assert row.frame == row.start + row.step
        assert row.copy_mse == row.step**2
        assert row.mse == pytest.approx(row.step**2 if row.method == "copy" else 0.0)
        assert row.ratio == pytest.approx(row.mse / row.copy_mse)


def test_where_nothing_moves_there_is_no_ratio():
    still = np.full((6, 12, 12), 0.5, dtype=np.float32)
    steps = score_all({"copy": CopyLastFrame()}, still, start=3)
    assert all(np.isnan(step.rows["copy"].ratio) for step in steps)


def test_a_stream_of_one_frame_gives_no_step(film):
    assert score_all({"copy": CopyLastFrame()}, film[:4], start=3) == []


def test_threads_change_nothing(film):
    methods = ({"copy": CopyLastFrame(), "linear": LinearPixels()} for _ in range(2))
    one, two = (score_all(own, film, start=3, every=2, workers=n) for own, n in zip(methods, (1, 2), strict=True))
    # Compared as text, since NaN is not equal to itself.
    assert [repr((step.rows, step.rollouts)) for step in one] == [repr((step.rows, step.rollouts)) for step in two]


@pytest.mark.parametrize("stop", [4, 5, 6])
def test_it_goes_on_after_any_step_as_if_nothing_had_come_between(film, stop):
    options = {"start": 3, "rollout": 3, "every": 2}
    whole = score_all({"copy": CopyLastFrame(), "linear": LinearPixels()}, film, **options)
    methods = {"copy": CopyLastFrame().fit(film[:3]), "linear": LinearPixels().fit(film[:3])}
    steps = []
    for step in score_stream(methods, film[3:], **options):
        steps.append(step)
        if step.index == stop:
            break
    resumed = {name: type(method)().set_state(method.get_state()) for name, method in methods.items()}
    steps += score_stream(resumed, film[stop:], **options, first=stop, under_way=step.under_way)
    assert [repr((step.rows, step.rollouts)) for step in steps] == [repr((step.rows, step.rollouts)) for step in whole]
