"""Statistics by cell: moments and sums with interpolated weights, weights of candidates, gains of predictions."""

import numpy as np
import pytest

from psmt.data import GlideFilm
from psmt.engines.frame_kernels import common_weights
from psmt.engines.numba.flow import flow_between, moved
from psmt.video.cells import PULL, CellBlend, CellGain, Grid
from psmt.video.learner import unexplained_error


@pytest.mark.parametrize("shape", [(24, 40), (17, 9), (3, 5)])
def test_moments_add_up_to_those_of_the_whole_frame(shape):
    rng = np.random.default_rng(0)
    candidates, change = rng.standard_normal((4, *shape)).astype(np.float32), rng.standard_normal(shape)
    gram, match = Grid(shape).moments(candidates, change.astype(np.float32))
    flat = candidates.reshape(4, -1)
    assert np.allclose(gram.sum(axis=(0, 1)), flat @ flat.T, atol=1e-3)
    assert np.allclose(match.sum(axis=(0, 1)), flat @ change.ravel(), atol=1e-3)


def test_the_weights_of_a_whole_film_are_those_of_least_squares():
    seen, truth = np.random.default_rng(0).standard_normal((500, 4)), np.array([1.0, 0.0, 0.5, -1.0])
    gram = (seen.T @ seen).astype(np.float32)
    assert np.allclose(common_weights(gram, gram @ truth.astype(np.float32), PULL)[0], truth, atol=1e-2)
    assert not common_weights(0 * gram, np.zeros(4, np.float32), PULL)[0].any()


def test_places_learn_what_is_true_where():
    """Left the first candidate is right, to the right the second."""
    rng = np.random.default_rng(0)
    places = CellBlend(Grid((32, 64)), 2)
    left = np.arange(64) < 32
    for _ in range(40):
        candidates = rng.standard_normal((2, 32, 64)).astype(np.float32)
        places.learn(candidates, np.where(left, candidates[0], candidates[1]))
    weights = places.solved()
    assert np.allclose(weights[:, 0], [1, 0], atol=0.05)
    assert np.allclose(weights[:, -1], [0, 1], atol=0.05)


def test_weights_are_the_mean_of_a_fast_and_a_slow_memory():
    """The first candidate is right for 200 frames, the second for 20: the fast memory has changed its mind."""
    rng = np.random.default_rng(0)
    places = CellBlend(Grid((16, 16)), 2)
    for k in range(220):
        candidates = rng.standard_normal((2, 16, 16)).astype(np.float32)
        places.learn(candidates, candidates[int(k >= 200)])
    kept = [np.exp(-1 / memory) for memory in (20, 80)]
    early = [(one**20 - one**220) / (1 - one**220) for one in kept]
    assert early[1] > 2 * early[0]
    assert np.allclose(places.solved()[..., 0], np.mean(early), atol=0.02)


def test_a_prior_rules_until_places_have_learned():
    places = CellBlend(Grid((16, 16)), 2)
    prior = (64 * np.eye(2, dtype=np.float32), np.array([64.0, 0.0], np.float32))
    assert np.allclose(places.solved(prior), [1, 0], atol=0.01)
    rng = np.random.default_rng(0)
    for _ in range(60):
        candidates = rng.standard_normal((2, 16, 16)).astype(np.float32)
        places.learn(candidates, candidates[1])
    assert np.allclose(places.solved(prior), [0, 1], atol=0.1)


def test_halves_of_the_cells_take_turns_once_the_moments_have_settled():
    rng = np.random.default_rng(0)
    grid = Grid((32, 24))
    places = CellBlend(grid, 2)
    for _ in range(20):
        candidates = rng.standard_normal((2, 32, 24)).astype(np.float32)
        places.learn(candidates, candidates[0] + 0.1 * candidates[1])
        if places.frames[0] < 9:
            places.solve()
            assert np.array_equal(places.weights, places.solved())
    places.solve()
    current = places.solved()
    assert np.array_equal(places.weights[:2], current[:2])
    assert not np.array_equal(places.weights[2:], current[2:])
    places.solve()
    assert np.array_equal(places.weights, current)


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
    one, other = (GlideFilm(seed=seed, size=100, speed=12.0, noise=0.1, n_frames=30) for seed in (0, 3))
    pairs = [(one[t], one[t + 1]) for t in range(0, 20, 5)]
    cuts = [(one[t], other[t]) for t in range(0, 20, 5)]
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
