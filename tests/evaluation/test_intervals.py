"""Intervals cover the true value as often as they say, also where neighbours depend on each other."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from psmt.evaluation import difference_interval, mean_interval, ratio_interval, swap_interval
from psmt.report import INCONCLUSIVE, Evidence, all_hold


def autocorrelated(rng, shape, rho):
    values = rng.standard_normal(shape)
    for t in range(1, shape[-1]):
        values[..., t] = rho * values[..., t - 1] + np.sqrt(1 - rho**2) * values[..., t]
    return values


def coverage(draw, interval, *, n=800):
    rng = np.random.default_rng(0)
    intervals = (interval(*draw(rng)) for _ in range(n))
    return sum(low <= 0.0 <= high for _, low, high in intervals) / n


@pytest.mark.parametrize("n", [5, 30, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("rho", [0.0, 0.6, pytest.param(0.3, marks=pytest.mark.slow)])
def test_covers_the_mean_of_dependent_values(n, rho):
    assert 0.92 <= coverage(lambda rng: [autocorrelated(rng, (n,), rho)], mean_interval) <= 0.97


@pytest.mark.parametrize("n", [5, 12])
def test_independent_values_have_the_t_interval(n):
    values = np.random.default_rng(n).normal(size=n)
    _, low, high = mean_interval(values, independent=True, level=0.9)
    assert (low, high) == pytest.approx(ttest_1samp(values, 0.0).confidence_interval(0.9))
    assert np.diff(mean_interval(values)[1:])[0] > high - low


def test_blocks_are_covered_and_values_that_are_wrongly_called_independent_are_not():
    def moving_sum(rng):
        return [np.convolve(rng.standard_normal(210), np.ones(11), "valid")]

    assert 0.9 <= coverage(moving_sum, lambda values: mean_interval(values, block=20), n=500) <= 0.97
    assert coverage(moving_sum, lambda values: mean_interval(values, independent=True), n=500) <= 0.6
    pairs = coverage(
        lambda rng: [np.repeat(rng.standard_normal(4), 2)],
        lambda values: mean_interval(values, block=2, independent=True),
    )
    assert 0.92 <= pairs <= 0.97


@pytest.mark.parametrize(
    ("spread", "n", "rho"),
    [
        (0.5, 5, 0.3),
        (1.0, 8, 0.6),
        pytest.param(1.5, 16, 0.0, marks=pytest.mark.slow),
        pytest.param(1.5, 40, 0.3, marks=pytest.mark.slow),
    ],
)
def test_covers_the_ratio_of_means_of_errors_with_heavy_tails(spread, n, rho):
    def errors(rng):
        shared, *own = autocorrelated(rng, (3, n), rho)
        return np.exp(spread * (0.8 * shared + 0.6 * np.array(own)))

    assert 0.93 <= coverage(errors, ratio_interval, n=2000) <= 0.98


def test_the_ratio_is_that_of_the_means_and_turns_its_sign():
    rng = np.random.default_rng(0)
    errors = rng.lognormal(size=30)
    other = errors * rng.lognormal(0.5, 0.3, size=30)
    found, turned = ratio_interval(errors, other), ratio_interval(other, errors)
    assert found.mean == pytest.approx(np.log(errors.mean() / other.mean()))
    assert found.low < found.mean < found.high < 0
    assert turned == pytest.approx((-found.mean, -found.high, -found.low))
    assert ratio_interval(7 * errors, errors) == pytest.approx([np.log(7)] * 3)
    assert ratio_interval([*errors, np.nan], [*other, 1.0]) == found
    for bound in found[1:]:
        edge = mean_interval(errors - np.exp(bound) * other)
        assert min(abs(edge.low), abs(edge.high)) == pytest.approx(0, abs=1e-9)


def test_a_ratio_that_errors_do_not_limit_has_infinite_bounds():
    one, level = np.r_[100.0, np.full(7, 0.01)], np.linspace(0.9, 1.1, 8)
    low, high = ratio_interval(one, level, independent=True)[1:]
    assert low == -np.inf
    assert np.log(10) < high < np.inf
    assert ratio_interval(one, one[::-1], independent=True)[1:] == (-np.inf, np.inf)
    assert ratio_interval(np.zeros(8), level)[1:] == (-np.inf, np.inf)
    assert not ratio_interval(np.zeros(8), np.zeros(8)).is_finite


def test_few_values_tell_nothing():
    assert mean_interval([1.0, 2.0, 3.0, 4.0], independent=True) == (2.5, -np.inf, np.inf)
    assert mean_interval(np.ones(8), block=4)[1:] == (-np.inf, np.inf)
    assert not mean_interval([]).is_finite
    assert ratio_interval(np.ones(4), np.ones(4)) == (0.0, -np.inf, np.inf)
    assert not ratio_interval([], []).is_finite


def test_missing_values_are_left_out():
    assert mean_interval([1.0, np.nan, 1.0, 1.0, 1.0, 1.0]) == (1.0, 1.0, 1.0)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="block=0"):
        mean_interval([1.0], block=0)
    with pytest.raises(ValueError, match="2 errors and 1 other_errors are not pairs"):
        ratio_interval([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="an error of -2 is below 0"):
        ratio_interval([1.0, -2.0], [1.0, 1.0])


def test_differences_of_independent_ratios_are_covered():
    def errors(rng):
        return np.exp(0.5 * rng.standard_normal((4, 12)))

    def difference(a, b, c, d):
        return difference_interval(*(ratio_interval(*pair, independent=True) for pair in ((a, b), (c, d))))

    assert 0.93 <= coverage(errors, difference) <= 0.98


@pytest.mark.parametrize(
    ("values", "outcome"),
    [([-2.0, -1.0, -1.5] * 9, "yes"), ([1.0, 2.0] * 9, "no"), ([-1.0, 1.0] * 9, INCONCLUSIVE)],
)
def test_a_verdict_needs_an_interval_beyond_the_margin(values, outcome):
    for factor, expected in ((1.0, outcome), (0.01, INCONCLUSIVE)):
        interval = mean_interval(np.multiply(values, factor))
        assert Evidence(name="", statistic=interval, margin=0.1, lower_is_better=True).as_measured.verdict == expected


def test_all_must_hold():
    assert all_hold(["yes", "yes"]) == "yes"
    assert all_hold(["yes", INCONCLUSIVE]) == INCONCLUSIVE
    assert all_hold([INCONCLUSIVE, "no"]) == "no"
    assert all_hold([]) == INCONCLUSIVE


# Swaps


@pytest.mark.parametrize(("n", "spread"), [(6, 0.3), (12, 1.0), (20, 0.3)])
def test_intervals_of_swaps_cover_the_ratio_where_few_starts_have_most_of_the_error(n, spread):
    rng, hits = np.random.default_rng(n), 0
    for _ in range(200):
        level = np.exp(1.5 * rng.standard_normal(n))
        own, other = level * np.exp(spread * rng.standard_normal((2, n)))
        interval = swap_interval(0.8 * own, other)
        hits += interval.low <= np.log(0.8) <= interval.high
    assert 0.9 * 200 <= hits <= 200


def test_swaps_find_a_gain_at_every_start_where_one_start_has_most_of_the_error():
    other = np.array([1e-3, 1e-3, 1e-3, 1e-3, 1e-2, 1e-2, 5.0])
    own = 0.1 * other * np.array([1.0, 1.1, 0.9, 1.0, 1.2, 0.8, 1.0])
    assert swap_interval(own, other).high < np.log(0.2)


def test_swaps_need_six_pairs_above_zero():
    assert not swap_interval(np.ones(5), np.full(5, 2.0)).is_finite
    assert swap_interval(np.ones(6), np.full(6, 2.0)) == pytest.approx([np.log(0.5)] * 3)
    with pytest.raises(ValueError, match="not above 0"):
        swap_interval(np.zeros(6), np.ones(6))
    with pytest.raises(ValueError, match="not pairs"):
        swap_interval(np.ones(6), np.ones(7))


@pytest.mark.parametrize("n", [6, 9])
def test_swaps_are_rare_exactly_outside_the_interval(n):
    own, other = np.random.default_rng(n).lognormal(sigma=1.5, size=(2, n))
    signs = np.array(list(product((1.0, -1.0), repeat=n)))

    def share(log_ratio):
        """Share of all swaps with at least the observed difference."""
        sums = np.abs(signs @ (own - np.exp(log_ratio) * other))
        return np.mean(sums >= sums[0] * (1 - 1e-12))

    _, low, high = swap_interval(own, other)
    assert min(share(low + 1e-6), share(high - 1e-6)) > 0.05
    assert max(share(low - 1e-6), share(high + 1e-6)) <= 0.05
