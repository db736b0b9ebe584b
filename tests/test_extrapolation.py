"""Step 6: the straight line, standing still, and the gain that is learned from what came."""

from itertools import pairwise

import numpy as np
import pytest

from psmt import PSMT
from psmt.extrapolation import EXTRAPOLATIONS, Gain, Hold, Linear, Phase, make_extrapolation


def autoregressive_steps(gain, n=2000, n_directions=3, seed=0):
    """A trajectory (n, n_directions) whose steps follow ``s_t = gain * s_(t-1) + noise``."""
    rng = np.random.default_rng(seed)
    steps = np.zeros((n, n_directions))
    for t in range(1, n):
        steps[t] = gain * steps[t - 1] + rng.standard_normal(n_directions)
    return np.cumsum(steps, axis=0)


def test_linear_repeats_the_step():
    assert np.array_equal(Linear().advance(np.array([1.0, 2.0]), np.array([3.0, 1.0])), [5.0, 0.0])


def test_hold_stays():
    assert np.array_equal(Hold().advance(np.array([1.0, 2.0]), np.array([3.0, 1.0])), [3.0, 1.0])


@pytest.mark.parametrize("truth", [0.8, 0.4, -0.6])
def test_gain_learns_the_gain_of_autoregressive_steps(truth):
    path = autoregressive_steps(truth)
    gains = Gain().fit(path, path).gains(3)
    # Shrunk by its uncertainty, and remembered for 500 steps: close, and never beyond by much.
    assert np.all(np.sign(gains) == np.sign(truth))
    assert np.allclose(gains, truth, atol=0.15)
    assert np.abs(gains).max() < abs(truth) + 0.05


def test_gain_tells_directions_apart():
    glide, flicker = autoregressive_steps(0.9, n_directions=1), autoregressive_steps(-0.8, n_directions=1, seed=1)
    path = np.hstack([glide / glide.std(), flicker / flicker.std()])
    first, second = Gain().fit(path, path).gains(2)
    assert first > 0.7
    assert second < -0.5


def test_gain_shrinks_to_zero_on_white_steps():
    """Short films without any regularity correlate by chance: by 0.13 on average here."""
    gains = [Gain().fit(path, path).gains(3) for path in (autoregressive_steps(0.0, n=40, seed=s) for s in range(30))]
    assert np.mean(np.abs(gains)) < 0.04
    assert np.mean(np.array(gains) == 0.0) > 0.5


def test_gain_advances_by_its_fraction_of_the_step():
    path = autoregressive_steps(0.7)
    rule = Gain().fit(path, path)
    before, now = np.array([1.0, 0.0, 2.0]), np.array([2.0, 1.0, 2.0])
    assert np.allclose(rule.advance(before, now), now + rule.gains(3) * (now - before))
    assert rule.advance(before, now)[2] == 2.0


def test_gain_without_experience_holds_still():
    assert np.array_equal(Gain().gains(4), np.zeros(4))
    assert np.array_equal(Gain().advance(np.zeros(2), np.ones(2)), np.ones(2))


def test_gain_of_a_still_scene_is_zero():
    still = np.ones((50, 3))
    assert np.array_equal(Gain().fit(still, still).gains(3), np.zeros(3))


@pytest.mark.parametrize("seed", range(5))
def test_gains_are_correlations(seed):
    rng = np.random.default_rng(seed)
    path = np.cumsum(rng.standard_cauchy((30, 4)), axis=0)
    assert np.abs(Gain().fit(path, path[:, :2]).gains(4)).max() <= 1.0
    for line in (np.arange(3.0)[:, None], np.array([[0.0], [1.0], [0.0]])):
        many = np.tile(line, (100, 1))[: 3 + seed]
        assert np.abs(Gain().fit(many, many).gains(1)).max() <= 1.0


def test_gain_follows_the_number_of_directions():
    path = autoregressive_steps(0.8, n=600)
    rule = Gain().fit(path[:300, :2], path[:300])
    rule.fit(path[300:], path[300:])
    assert rule.gains(3).shape == (3,)
    assert rule.gains(5).shape == (5,)
    assert np.array_equal(rule.gains(5)[:2], rule.gains(2))


def test_gain_forgets():
    rule = Gain()
    path = autoregressive_steps(0.8)
    assert rule.fit(path, path).gains(3).min() > 0.5
    path = autoregressive_steps(-0.8)
    assert rule.fit(path, path).gains(3).max() < -0.5


def turning(speeds, n=600, seed=0, noise=0.0):
    """A trajectory (n, 2 * len(speeds)) that turns at these speeds in planes at random angles to the axes."""
    rng = np.random.default_rng(seed)
    angles = np.arange(n)[:, None] * np.array(speeds) + rng.uniform(0, 6, len(speeds))
    circles = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    mixing, _ = np.linalg.qr(rng.standard_normal((circles.shape[1],) * 2))
    return circles @ mixing + noise * rng.standard_normal(circles.shape)


@pytest.mark.parametrize("speeds", [[0.3], [0.2, 0.9], [0.1, -0.4, 1.1]])
def test_phase_finds_the_planes_and_turns_them_on(speeds):
    path = turning(speeds)
    rule = Phase().fit(path[:-1], path[:-1])
    error = np.linalg.norm(rule.advance(path[-3], path[-2]) - path[-1])
    # Gains are correlations less their uncertainty, so a little of the step is held back.
    assert error < 0.25 * np.linalg.norm(path[-1] - path[-2])


def test_phase_beats_the_line_on_fast_turns():
    path = turning([0.8, 1.3], noise=0.02)
    errors = {}
    for rule in (Phase().fit(path[:500], path[:500]), Linear(), Hold()):
        steps = [rule.advance(path[t - 1], path[t]) - path[t + 1] for t in range(500, 599)]
        errors[rule.name] = np.mean(np.square(steps))
    assert errors["phase"] < 0.1 * min(errors["linear"], errors["hold"])


def test_phase_planes_are_orthogonal():
    path = turning([0.2, 0.5, 0.7])
    planes = Phase().fit(path, path).planes(6)
    assert np.allclose(planes @ planes.conj().T, 2 * np.eye(3), atol=1e-9)
    assert np.allclose(np.real(planes.conj().T @ (planes @ path[7])), path[7])


def test_phase_holds_still_where_nothing_turns():
    still = np.ones((50, 4))
    assert np.array_equal(Phase().fit(still, still).advance(still[0], still[1]), still[1])
    assert np.array_equal(Phase().advance(np.zeros(3), np.ones(3)), np.ones(3))
    paths = [autoregressive_steps(0.0, n=40, seed=s) for s in range(30)]
    assert np.mean([Phase().fit(path, path).shares(3) for path in paths]) < 0.1


def test_phase_never_runs_away():
    rng = np.random.default_rng(0)
    path = rng.standard_normal((200, 5))
    path[:, :2] += 3 * turning([0.4], n=200)
    rule = Phase().fit(path, path)
    before, now = path[-2:]
    for _ in range(500):
        before, now = now, rule.advance(before, now)
    assert np.linalg.norm(now) < 2 * np.linalg.norm(path, axis=1).max()


def test_phase_follows_the_number_of_directions():
    path = turning([0.3, 0.5], n=400)
    rule, line = (rule.fit(path[:200, :2], path[:200]).fit(path[200:], path[200:]) for rule in (Phase(), Gain()))
    assert rule.advance(path[0], path[1]).shape == (4,)
    assert rule.advance(path[0, :3], path[1, :3]).shape == (3,)
    wide = np.hstack([np.ones((2, 300)), path[:2]])
    assert np.array_equal(rule.advance(*wide)[128:], line.advance(*wide)[128:])


def test_phase_in_the_model_adds_a_change_to_the_last_frame(tmp_path):
    """Layer 1 at a high price holds little of a frame; what it leaves is carried along, not lost."""
    path = turning([0.15], n=400) @ np.random.default_rng(1).standard_normal((2, 12))
    model = PSMT(n_atoms=16, window=150, n_components=6, alpha=1.0, lam=0.01, extrapolation="phase", random_state=0)
    model.fit(path[:300])
    errors, copied = [], []
    for now, following in pairwise(path[300:]):
        errors.append(np.mean((model.update(now).predict() - following) ** 2))
        copied.append(np.mean((now - following) ** 2))
    assert np.mean((model.coder_.inverse_transform(model.codes_[-1:]) - path[-2]) ** 2) > np.mean(copied)
    assert np.mean(errors) < 0.8 * np.mean(copied)
    model.save(tmp_path / "film.psmt")
    assert PSMT.load(tmp_path / "film.psmt").predict(horizon=3).tobytes() == model.predict(horizon=3).tobytes()


@pytest.mark.parametrize("name", EXTRAPOLATIONS)
def test_the_state_is_all_there_is(name):
    path = autoregressive_steps(0.7, n=300)
    rule, copy = make_extrapolation(name).fit(path[:200], path[:200]), make_extrapolation(name)
    copy.set_state(rule.get_state())
    rule.fit(path[198:], path[198:])
    copy.fit(path[198:], path[198:])
    assert rule.advance(path[0], path[1]).tobytes() == copy.advance(path[0], path[1]).tobytes()


RULE = """
from psmt.extrapolation.contract import Extrapolation


class Overshoot(Extrapolation):
    name = "overshoot"

    def advance(self, previous, current, /):
        return current + 2.0 * (current - previous)
"""


def test_a_rule_reaches_the_model_and_its_files(tmp_path):
    X = np.cos(np.arange(90)[:, None] / 5 + np.arange(6))
    exec(RULE, {"__name__": "a_rule"})
    try:
        model = PSMT(extrapolation="overshoot", n_atoms=8, window=40, n_components=3, lam=0.1, random_state=0).fit(X)
        model.save(tmp_path / "m")
        assert PSMT.load(tmp_path / "m").predict(2).tobytes() == model.predict(2).tobytes()
    finally:
        del EXTRAPOLATIONS["overshoot"]
    with pytest.raises(ValueError, match="extrapolation='overshoot' is unknown"):
        model.fit(X)
