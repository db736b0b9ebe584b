"""What is believed of a predicted change."""

import numpy as np

from psmt.data import GlideFilm
from psmt.engines.numba.flow import flow_between, moved
from psmt.video.cells import CellGain, Grid
from psmt.video.learner import unexplained_error

GRID = Grid((64, 64))


def test_trust_is_earned_and_lost():
    rng = np.random.default_rng(0)
    trust = CellGain(Grid((16, 32)))
    assert np.array_equal(trust.gains(), np.zeros((2, 4, 1)))
    for n in range(10):
        predicted = rng.standard_normal((16, 32)).astype(np.float32)
        change = np.where(np.arange(32) < 16, 0.6 * predicted, -predicted).astype(np.float32)
        trust.learn(predicted, change)
        assert trust.gains().max() <= min((n + 1) / 5, 1)
    assert np.all(trust.gains()[:, :2] > 0.2)
    assert np.array_equal(trust.gains()[:, 2:], np.zeros((2, 2, 1)))
    trust.clear()
    assert np.array_equal(trust.gains(), np.zeros((2, 4, 1)))


def test_a_change_as_lively_as_the_last_one_is_believed_as_it_is():
    predicted, last = np.random.default_rng(0).standard_normal((2, 64, 64)).astype(np.float32)
    assert np.array_equal(GRID.with_limited_energy(predicted, last), predicted)


def test_a_change_is_weakened_where_the_last_one_was_calm():
    predicted, last = np.random.default_rng(0).standard_normal((2, 64, 64)).astype(np.float32)
    last[:, 32:] *= 0.1
    believed = GRID.with_limited_energy(predicted, last)
    assert np.array_equal(believed[:, :20], predicted[:, :20])
    # A hundred times the energy, where twice is allowed: a fiftieth of the change is left, give or take the noise.
    assert np.allclose(believed[:, 48:], 0.02 * predicted[:, 48:], atol=0.01 * np.abs(predicted).max())


def test_nothing_is_believed_where_nothing_has_changed():
    predicted = np.ones((64, 64), np.float32)
    assert not GRID.with_limited_energy(predicted, np.zeros_like(predicted)).any()


def test_motion_explains_a_pan_and_not_a_cut():
    """Shares of the difference that are left; a cut begins at 0.25 (`CutDetector`)."""
    one, other = (GlideFilm(seed=seed, size=100, speed=12.0, noise=0.1, n_frames=30) for seed in (1, 2))
    pairs = [(one.frame(t), one.frame(t + 1)) for t in range(0, 20, 5)]
    cuts = [(one.frame(t), other.frame(t)) for t in range(0, 20, 5)]
    pans, cuts = (
        [unexplained_error(a, b, moved(a, flow_between(a, b))) / np.mean((a - b) ** 2) for a, b in kind]
        for kind in (pairs, cuts)
    )
    assert max(pans) < 0.15
    assert min(cuts) > 0.3


def test_with_a_head_start_belief_is_lost_not_earned():
    rng = np.random.default_rng(0)
    trust = CellGain(Grid((16, 32)), head_start=1.0)
    assert np.array_equal(trust.gains(), np.ones((2, 4, 1)))
    for _ in range(3):
        predicted = rng.standard_normal((16, 32)).astype(np.float32)
        trust.learn(predicted, -predicted)
    assert trust.gains().max() == 0
