"""Least squares that say which candidate to believe, by place."""

import numpy as np

from psmt.video.blending import PlaceBlend, shrunk_weights
from psmt.video.grid import Grid


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


def test_a_prior_rules_until_places_have_learned():
    places = PlaceBlend(Grid((16, 16)), 2)
    prior = (64 * np.eye(2, dtype=np.float32), np.array([64.0, 0.0], np.float32))
    assert np.allclose(places.weights(prior), [1, 0], atol=0.01)
    rng = np.random.default_rng(0)
    for _ in range(60):
        candidates = rng.standard_normal((2, 16, 16)).astype(np.float32)
        places.learn(candidates, candidates[1])
    assert np.allclose(places.weights(prior), [0, 1], atol=0.1)
