"""A peak that one absurd value cannot set, on every engine."""

import numpy as np
import pytest

from psmt.numerics.arrays import drawn_back, robust_peak


@pytest.fixture
def peak(engine):
    return lambda values: float(engine.numpy(robust_peak(engine.array(np.asarray(values, dtype=float)))))


@pytest.mark.parametrize("n", [1, 2, 3, 50, 1536])
def test_of_usual_values_it_is_the_largest_to_the_bit(peak, n):
    rng = np.random.default_rng(n)
    for values in (10 + rng.standard_normal(n), rng.random(n), np.full(n, 3.0)):
        assert peak(values) == values.max()


@pytest.mark.parametrize("share", [0.005, 0.09])
def test_absurd_values_do_not_set_it(peak, share):
    values = 10 + np.random.default_rng(0).standard_normal(400)
    usual = values.max()
    values[: int(400 * share)] = 1e6
    assert peak(values) < 3 * usual


def test_the_latest_two_count_as_they_are(peak):
    values = np.ones(100)
    for place in (-1, -2):
        assert peak(np.where(np.arange(100) == 100 + place, 50.0, values)) == 50.0
    assert peak(np.where(np.arange(100) == 97, 50.0, values)) == 1.0


def test_it_is_continuous(peak):
    values = 10 + np.random.default_rng(0).standard_normal(60)
    sizes = np.linspace(5, 40, 800)
    peaks = np.array([peak([size, *values]) for size in sizes])
    assert np.abs(np.diff(peaks)).max() <= np.diff(sizes).max() * (1 + 1e-9)


def test_of_nothing_it_is_zero(peak):
    assert peak([]) == 0.0


def test_what_is_within_reach_stays_to_the_bit():
    wanted, start = np.random.default_rng(0).random((2, 5))
    assert drawn_back(wanted, start, np.float64(2.0), 2.0).tobytes() == wanted.tobytes()
    assert drawn_back(wanted, start, np.float64(2.0), np.inf).tobytes() == wanted.tobytes()
    np.testing.assert_allclose(drawn_back(wanted, start, np.float64(8.0), 2.0), start + 0.25 * (wanted - start))
