"""Least squares that say which candidate to believe, by place."""

import numpy as np

from psmt.engines.frame_kernels import common_weights
from psmt.video.cells import PULL, CellBlend, Grid


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
        if places.frames < 9:
            places.solve()
            assert np.array_equal(places.weights, places.solved())
    places.solve()
    current = places.solved()
    assert np.array_equal(places.weights[:2], current[:2])
    assert not np.array_equal(places.weights[2:], current[2:])
    places.solve()
    assert np.array_equal(places.weights, current)
