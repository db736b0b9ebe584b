"""Progressive evaluation: predict, then receive, then learn, scored against code and frame."""

import numpy as np
import pytest

from psmt.errors import NotEnoughFramesError
from psmt.evaluation import free_running, log_mse, mse, teacher_forced
from psmt.model.baselines import CopyLast, LinearTrend


class Recorder:
    """A method that writes down what it is asked, and predicts the number of frames it has received."""

    def __init__(self):
        self.calls = []
        self.received = 0

    def update(self, x):
        self.calls.append(("update", float(x[0])))
        self.received += 1
        return self

    def predict(self, horizon=None):
        self.calls.append(("predict", horizon))
        return np.full(2, self.received) if horizon is None else np.full((horizon, 2), self.received)


@pytest.fixture
def delayed():
    return np.column_stack([np.arange(4.0), 10 + np.arange(4.0)])


def test_teacher_forcing_receives_each_frame_before_the_next_is_predicted(delayed):
    recorder = Recorder()
    score = teacher_forced(recorder, delayed, delayed)
    assert recorder.calls == [
        ("update", 0),
        ("predict", None),
        ("update", 1),
        ("predict", None),
        ("update", 2),
        ("predict", None),
    ]
    assert score.predicted.tolist() == [[1, 1], [2, 2], [3, 3]]


def test_free_running_receives_one_frame(delayed):
    recorder = Recorder()
    score = free_running(recorder, delayed, delayed)
    assert recorder.calls == [("update", 0), ("predict", 3)]
    assert score.predicted.shape == (3, 2)


@pytest.mark.parametrize("mode", [teacher_forced, free_running])
def test_scores_are_against_code_and_frame(film, mode):
    past, delayed = film[:100], film[100:110]
    estimates = delayed + np.random.default_rng(0).standard_normal(delayed.shape)
    score = mode(LinearTrend().fit(past), delayed, estimates)
    for i, t in enumerate(range(1, 10)):
        assert score.vs_frame[i] == pytest.approx(sum((score.predicted[i] - delayed[t]) ** 2) / 8)
        assert score.vs_code[i] == pytest.approx(sum((score.predicted[i] - estimates[t]) ** 2) / 8)
    assert not np.allclose(score.vs_code, score.vs_frame)


def test_copying_is_scored_by_the_step(film):
    score = teacher_forced(CopyLast().fit(film[:100]), film[100:110], film[100:110])
    assert np.allclose(score.vs_frame, np.mean(np.diff(film[100:110], axis=0) ** 2, axis=1))


@pytest.mark.parametrize("mode", [teacher_forced, free_running])
@pytest.mark.parametrize("count", [0, 1])
def test_too_few_frames(delayed, mode, count):
    recorder = Recorder()
    with pytest.raises(NotEnoughFramesError, match=f"{count} delayed frames; one to receive and one to predict"):
        mode(recorder, delayed[:count], delayed[:count])
    assert recorder.calls == []


def test_metrics():
    assert mse([[1.0, 2.0], [0.0, 0.0]], [[1.0, 4.0], [0.0, 0.0]]).tolist() == [2.0, 0.0]
    assert mse([1.0, 3.0], [1.0, 1.0]) == 2.0
    assert np.allclose(log_mse([np.e, 1.0]), [1.0, 0.0])
    assert log_mse(0.0) == log_mse(1e-13) == np.log(1e-12)
