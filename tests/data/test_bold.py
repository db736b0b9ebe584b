"""Simulated scans: the same for the same seed, and with the truth that they say."""

import numpy as np
import pytest

from psmt.data import BoldSimulation, open_series
from psmt.data.synthetic.brain import BOLD, haemodynamic_response
from psmt.errors import FrameSourceError


def test_the_same_for_the_same_seed_and_whoever_else_is_there():
    few, many = BoldSimulation(n_subjects=1, n_frames=80, seed=3), BoldSimulation(n_subjects=5, n_frames=80, seed=3)
    assert np.array_equal(few.subject(0).values, many.subject(0).values)
    assert np.array_equal(few.states(0), many.states(0))
    assert not np.array_equal(many.subject(0).values, many.subject(1).values)
    assert not np.array_equal(few.subject(0).values, BoldSimulation(n_frames=80, seed=4).subject(0).values)


def test_without_noise_the_true_state_tells_what_regions_do():
    scans = BoldSimulation(n_subjects=1, n_frames=600, noise=0.0, drift=0.0)
    values, states = scans.subject(0).values, scans.states(0)
    explained = sum(np.var(values[states == k], axis=0).mean() * np.mean(states == k) for k in range(scans.n_states))
    assert explained < 0.35 * np.var(values, axis=0).mean()
    shuffled = np.random.default_rng(0).permutation(states)
    chance = sum(np.var(values[shuffled == k], axis=0).mean() * np.mean(shuffled == k) for k in range(scans.n_states))
    assert chance > 0.9 * np.var(values, axis=0).mean()


def test_states_last_as_long_as_asked_and_differ():
    scans = BoldSimulation(n_subjects=1, n_frames=6000, dwell=30.0, tr=1.5)
    changes = np.count_nonzero(np.diff(scans._chain(0)))
    assert 6000 * 1.5 / changes == pytest.approx(30.0, rel=0.2)
    assert len(np.unique(scans.patterns, axis=0)) == scans.n_states
    assert np.allclose(scans.transitions.sum(axis=1), 1.0)


def test_noise_and_drift_are_of_the_size_asked_for():
    quiet = BoldSimulation(n_subjects=1, noise=0.0, drift=0.0).subject(0).values
    noisy = BoldSimulation(n_subjects=1, noise=2.0, drift=0.0).subject(0).values
    assert (noisy - quiet).std() / (quiet - quiet.mean(axis=0)).std() == pytest.approx(2.0, rel=0.05)
    drifting = BoldSimulation(n_subjects=1, noise=0.0, drift=1.0).subject(0).values - quiet
    assert np.diff(drifting, axis=0).std() < 0.05 * drifting.std()


def test_the_response_comes_seconds_late():
    assert haemodynamic_response(0.5).argmax() * 0.5 == pytest.approx(5.0, abs=0.5)
    assert haemodynamic_response(40.0).tolist() == [0.0, 1.0]


def test_a_series_for_commands_that_take_one():
    series = open_series("builtin:bold?frames=50&regions=12", stop=20)
    assert series.values.shape == (20, 12)
    assert 8_000 < series.values.mean() < 12_000


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("builtin:bold?subject=3", "unknown option 'subject'"),
        ("builtin:bold?noise=much", "'much' is not a number"),
        ("builtin:bold?states=99", "n_states=99 is too many"),
        ("builtin:bold?tr=0", "tr=0.0 is out of range"),
        ("builtin:bold?dwell=1", "dwell=1.0 is shorter than tr=2.0"),
    ],
)
def test_mistakes_are_named(spec, told):
    with pytest.raises(FrameSourceError, match=told):
        BOLD.parse(spec)


def test_worlds_differ_in_what_a_state_is():
    given = {"n_subjects": 1, "n_frames": 3_000, "n_regions": 12, "n_networks": 4, "n_states": 3, "noise": 0.0}
    scans = BoldSimulation(world="covariance", dwell=120.0, drift=0.0, **given)
    values, truth = scans.subject(0).values, scans.states(0, hidden=True)
    assert set(truth) == {0, 1, 2}
    steady = [np.flatnonzero(truth == k) for k in range(3)]
    spread = values.std(axis=0)
    means = np.array([values[own].mean(axis=0) for own in steady]) - values.mean(axis=0)
    assert np.abs(means / spread).max() < 0.4  # the same mean activity
    shapes = [np.corrcoef(values[own].T)[np.triu_indices(12, 1)] for own in steady]
    assert all(np.corrcoef(shapes)[i, j] < 0.7 for i, j in ((0, 1), (0, 2), (1, 2)))  # another connectivity
    nothing = BoldSimulation(world="none", **given)
    assert nothing.states(0) is None and np.isfinite(nothing.subject(0).values).all()
    with pytest.raises(ValueError, match="world='other' is not simulated; use one of amplitude"):
        BoldSimulation(world="other")


def test_the_signal_follows_the_hidden_chain():
    scans = BoldSimulation(n_subjects=1, n_frames=500)
    hidden, shown = scans.states(0, hidden=True), scans.states(0)
    lag = [np.mean(hidden[: 500 - k] == shown[k:]) for k in range(8)]
    assert 2 <= int(np.argmax(lag)) <= 4  # about five seconds at a TR of two seconds


def test_patients_are_more_often_in_the_first_state():
    scans = BoldSimulation(n_subjects=40, n_frames=300, effect=4.0)
    share = [np.mean(scans.states(k, hidden=True) == 0) for k in range(40)]
    assert np.mean(share[1::2]) > np.mean(share[::2]) + 0.1
    assert [scans.group(k) for k in range(2)] == ["control", "patient"]
