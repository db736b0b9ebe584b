"""The block bootstrap: it covers the true mean as often as it says, also where neighbours depend on each other."""

import numpy as np
import pytest

from psmt.evaluation import intervals, mean_interval
from psmt.report import INCONCLUSIVE, Evidence, all_hold


def coverage(draw, *, block, n=400):
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(n):
        _, low, high = mean_interval(draw(rng), block=block, n_resamples=400)
        hits += low <= 0.0 <= high
    return hits / n


def test_covers_the_mean_of_independent_values():
    assert 0.90 <= coverage(lambda rng: rng.standard_normal(40), block=1) <= 0.98


def test_blocks_cover_the_mean_where_neighbours_depend_on_each_other_and_single_values_do_not():
    def moving_sum(rng):
        return np.convolve(rng.standard_normal(210), np.ones(11), "valid")

    assert coverage(moving_sum, block=20) >= 0.85
    assert coverage(moving_sum, block=1) <= 0.6


def test_few_values_tell_nothing():
    assert mean_interval([1.0, 2.0]) == (1.5, -np.inf, np.inf)
    assert mean_interval(np.ones(8), block=4)[1:] == (-np.inf, np.inf)
    assert not mean_interval([]).is_finite


def test_missing_values_are_left_out():
    assert mean_interval([1.0, np.nan, 1.0, 1.0]) == (1.0, 1.0, 1.0)


def test_bad_block_is_named():
    with pytest.raises(ValueError, match="block=0"):
        mean_interval([1.0], block=0)


@pytest.mark.parametrize(
    ("values", "outcome"),
    [([-2.0, -1.0, -1.5] * 9, "holds"), ([1.0, 2.0] * 9, "does not hold"), ([-1.0, 1.0] * 9, INCONCLUSIVE)],
)
def test_a_verdict_needs_an_interval_beyond_the_margin(values, outcome):
    for factor, expected in ((1.0, outcome), (0.01, INCONCLUSIVE)):
        interval = mean_interval(np.multiply(values, factor))
        assert Evidence(name="", statistic=interval, margin=0.1, lower_is_better=True).verdict == expected


def test_all_must_hold():
    assert all_hold(["holds", "holds"]) == "holds"
    assert all_hold(["holds", INCONCLUSIVE]) == INCONCLUSIVE
    assert all_hold([INCONCLUSIVE, "does not hold"]) == "does not hold"
    assert all_hold([]) == INCONCLUSIVE


@pytest.mark.parametrize("held", [1, 50, 777])
def test_intervals_drawn_in_parts_are_those_drawn_at_once(monkeypatch, held):
    """So that memory does not grow by 2,000 numbers for each block of a long film."""
    values = np.random.default_rng(0).normal(size=300)
    whole = mean_interval(values, block=7, n_resamples=200)
    monkeypatch.setattr(intervals, "_DRAWN", held)
    assert mean_interval(values, block=7, n_resamples=200) == whole
