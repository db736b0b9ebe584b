"""Cells of the frame: moments, shrunk least squares, interpolated weights, and the trust that is built on them."""

import numpy as np
import pytest

from psmt.video.blending import PlaceBlend, shrunk_weights
from psmt.video.gating import LocalGain
from psmt.video.grid import Grid


@pytest.mark.parametrize("shape", [(24, 40), (17, 9), (3, 5)])
def test_moments_add_up_to_those_of_the_whole_frame(shape):
    rng = np.random.default_rng(0)
    candidates, change = rng.standard_normal((4, *shape)).astype(np.float32), rng.standard_normal(shape)
    gram, match = Grid(shape).moments(candidates, change.astype(np.float32))
    flat = candidates.reshape(4, -1)
    assert np.allclose(gram.sum(axis=(0, 1)), flat @ flat.T, atol=1e-3)
    assert np.allclose(match.sum(axis=(0, 1)), flat @ change.ravel(), atol=1e-3)


def test_weights_hold_at_centres_and_are_straight_between_them():
    grid = Grid((24, 24))
    rows, columns = np.mgrid[:3, :3].astype(np.float32)
    field = grid.weighted(np.ones((1, 24, 24), np.float32), (10 * rows + columns)[..., None])
    down, right = (np.clip((np.arange(24) + 0.5) / 8 - 0.5, 0, 2) for _ in range(2))
    assert np.allclose(field, np.add.outer(10 * down, right), atol=1e-5)


def test_equal_weights_are_a_plain_sum():
    rng = np.random.default_rng(0)
    candidates = rng.standard_normal((3, 13, 30)).astype(np.float32)
    grid = Grid((13, 30))
    weights = np.broadcast_to(np.array([1.0, -2.0, 0.5], np.float32), (*grid.layout, 3))
    assert np.allclose(
        grid.weighted(candidates, weights), candidates[0] - 2 * candidates[1] + 0.5 * candidates[2], atol=1e-5
    )


def test_much_evidence_gives_least_squares_and_none_gives_the_common_weights():
    rng = np.random.default_rng(0)
    seen = rng.standard_normal((3, 500, 4))
    truth = np.array([[1.0, 0.0, 0.5, -1.0], [0.0, 2.0, 0.5, 0.0]])
    gram = np.einsum("gtk,gtl->gkl", seen, seen).astype(np.float32)
    match = np.zeros((3, 4), np.float32)
    match[:2] = np.einsum("gkl,gl->gk", gram[:2], truth)
    gram[2] = 0
    weights, common = shrunk_weights(gram, match, 1e-6)
    assert np.allclose(weights[:2], truth, atol=1e-2)
    assert np.allclose(weights[2], common, atol=1e-3)
    assert np.array_equal(shrunk_weights(np.zeros_like(gram), np.zeros_like(match), 0.01)[0], np.zeros((3, 4)))


def test_places_learn_what_is_true_where():
    """Left the first candidate is right, to the right the second."""
    rng = np.random.default_rng(0)
    places = PlaceBlend(Grid((32, 64)), 2)
    left = np.arange(64) < 32
    for _ in range(40):
        candidates = rng.standard_normal((2, 32, 64)).astype(np.float32)
        places.learn(candidates, np.where(left, candidates[0], candidates[1]))
    weights = places.weights()
    assert np.allclose(weights[:, 0], [1, 0], atol=0.05)
    assert np.allclose(weights[:, -1], [0, 1], atol=0.05)


def test_trust_is_earned_and_lost():
    rng = np.random.default_rng(0)
    trust = LocalGain(Grid((16, 32)))
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
