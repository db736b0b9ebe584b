"""What is believed of a predicted change."""

import numpy as np

from psmt.video.gating import restrained
from psmt.video.grid import Grid

GRID = Grid((64, 64))


def test_a_change_as_lively_as_the_last_one_is_believed_as_it_is():
    predicted, last = np.random.default_rng(0).standard_normal((2, 64, 64)).astype(np.float32)
    assert np.array_equal(restrained(GRID, predicted, last), predicted)


def test_a_change_is_weakened_where_the_last_one_was_calm():
    predicted, last = np.random.default_rng(0).standard_normal((2, 64, 64)).astype(np.float32)
    last[:, 32:] *= 0.1
    believed = restrained(GRID, predicted, last)
    assert np.array_equal(believed[:, :20], predicted[:, :20])
    # A hundred times the energy, where twice is allowed: a fiftieth of the change is left, give or take the noise.
    assert np.allclose(believed[:, 48:], 0.02 * predicted[:, 48:], atol=0.01 * np.abs(predicted).max())


def test_nothing_is_believed_where_nothing_has_changed():
    predicted = np.ones((64, 64), np.float32)
    assert not restrained(GRID, predicted, np.zeros_like(predicted)).any()
