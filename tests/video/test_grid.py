"""Cells of the frame: moments, and sums with interpolated weights."""

import numpy as np
import pytest

from psmt.video.cells import Grid


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
