"""Prediction intervals: coverage while the series changes, agreement of quantiles, state, and bad calls."""

from copy import copy

import numpy as np
import pytest

from psmt import PSMT
from psmt.errors import NotEnoughFramesError
from psmt.extrapolation.dynamics import EVERY
from psmt.model.intervals import FEWEST, KEPT, ForecastErrors, _quantile


def noisy_circle(n, scale, seed=0):
    """A vector autoregression (n, 4) whose noise has the standard deviation scale(t)."""
    rng = np.random.default_rng(seed)
    turn = 0.97 * np.kron(np.eye(2), [[np.cos(0.2), -np.sin(0.2)], [np.sin(0.2), np.cos(0.2)]])
    rows = [np.zeros(4)]
    for t in range(n - 1):
        rows.append(turn @ rows[-1] + scale(t) * rng.standard_normal(4))
    return np.array(rows)


@pytest.fixture(scope="module")
def model():
    X = noisy_circle(900, lambda t: 1.0 if t < 600 else 3.0)
    return PSMT.for_series(n_atoms=24, random_state=0).fit(X[:400]), X


def test_errors_are_measured_with_a_window_that_grows_back_to_its_length(model):
    # A copy whose window stayed short predicted worse than the model, so that intervals were too wide.
    fitted, again = model[0], copy(model[0])
    again._receive_again(3 * EVERY, 1)  # the matrix is learned every so many frames, and so at the end
    assert np.array_equal(again.codes_, fitted.codes_)
    assert np.allclose(again._ahead(5), fitted._ahead(5), atol=1e-6)
    measured = np.sqrt(np.mean(again._intervals._errors**2))
    following = fitted._scaling.standardise(fitted.predict(model[1][400:499]) - model[1][401:500] + model[1].mean(0))
    spread = np.std(following, axis=0).mean()
    assert 0.7 < measured / spread < 1.4


def covered(interval, truth):
    return ((interval.lower <= truth) & (truth <= interval.upper)).mean(axis=0)


@pytest.mark.slow
def test_coverage_is_kept_when_the_noise_triples(model):
    fitted, X = model
    found = fitted.predict(X[400:-1], interval=0.9)
    truth = X[401:]
    assert 0.87 <= covered(found, truth).mean() <= 0.93
    assert covered(found, truth).min() > 0.85
    late = slice(250, None)  # rows after the noise has tripled and the levels had 50 rows to adapt
    assert 0.86 <= ((found.lower <= truth) & (truth <= found.upper))[late].mean() <= 0.95
    width = (found.upper - found.lower).mean(axis=1)
    assert width[350:].mean() > 2 * width[:200].mean()
    np.testing.assert_array_equal(found.predicted, fitted.predict(X[400:-1]))


@pytest.mark.slow
def test_without_adaptation_coverage_is_lost(model):
    """Quantiles of the errors before the change cover far less after it, so the test above can fail."""
    fitted, X = model
    found = fitted.predict(X[400:-1], interval=0.9)
    fixed = (found.upper - found.lower)[:100].mean(axis=0) / 2
    assert (np.abs(found.predicted - X[401:]) <= fixed)[250:].mean() < 0.7


def test_quantiles_are_ordered_and_agree_with_the_interval(model):
    fitted, _ = model
    interval = fitted.predict(6, interval=0.9)
    quantiles = fitted.predict_quantiles((0.95, 0.05, 0.5), 6)
    assert list(quantiles) == [0.95, 0.05, 0.5]
    np.testing.assert_array_equal(quantiles[0.05], interval.lower)
    np.testing.assert_array_equal(quantiles[0.95], interval.upper)
    assert (quantiles[0.05] < quantiles[0.5]).all() and (quantiles[0.5] < quantiles[0.95]).all()
    width = (interval.upper - interval.lower).mean(axis=1)
    assert width[-1] > 1.5 * width[0], "a forecast further ahead is less certain"


def test_several_steps_ahead_are_covered(model):
    _, X = model
    walker, hits = PSMT.for_series(n_atoms=24, random_state=0).fit(X[:400]), []
    for t in range(400, 560):
        found = walker.update(X[t]).predict(3, interval=0.8)
        hits.append((found.lower <= X[t + 1 : t + 4]) & (X[t + 1 : t + 4] <= found.upper))
    assert (np.abs(np.mean(hits, axis=(0, 2)) - 0.8) < 0.07).all()


def test_a_saved_model_continues_with_the_same_intervals(model, tmp_path):
    _, X = model
    kept = PSMT.for_series(n_atoms=24, random_state=0).fit(X[:400])
    kept.predict(2, interval=0.9)
    kept.update(X[400]).save(tmp_path / "model.psmt")
    loaded = PSMT.load(tmp_path / "model.psmt")
    for x in X[401:404]:
        expected, found = (one.update(x).predict(2, interval=0.9) for one in (kept, loaded))
        np.testing.assert_array_equal(found, expected)


def test_predictions_do_not_depend_on_intervals(model):
    _, X = model
    plain, asked = (PSMT.for_series(n_atoms=24, random_state=0).fit(X[:400]) for _ in range(2))
    asked.predict(4, interval=0.9)
    for x in X[400:420]:
        np.testing.assert_array_equal(plain.update(x).predict(2), asked.update(x).predict(2))


def test_a_series_that_stands_still_keeps_its_levels():
    errors = ForecastErrors(1, 1)
    for _ in range(3 * KEPT):
        errors.observe(np.zeros((1, 1)), np.zeros(1))
    errors.bounds((0.05, 0.95), 1)
    for _ in range(1000):
        errors.observe(np.zeros((1, 1)), np.zeros(1))
    lower, upper = errors._levels[:, 0, 0]
    assert lower == pytest.approx(0.15) and upper == pytest.approx(0.85)


def test_a_quantile_beyond_the_errors_grows_with_its_level():
    ordered = np.arange(50.0)[:, None]
    inside, edge, beyond = (_quantile(ordered, np.array([level]))[0] for level in (0.9, 50 / 51, 1.2))
    assert inside < edge == 49.0 < beyond < 200


@pytest.mark.parametrize("interval", [90, 0.0, 1.0, "0.9", True])
def test_a_coverage_is_a_fraction(model, interval):
    with pytest.raises(ValueError, match=r"interval=.* use a number between 0 and 1, such as 0\.9"):
        model[0].predict(interval=interval)
    with pytest.raises(ValueError, match=r"quantiles=1\.5 is out of range"):
        model[0].predict_quantiles([1.5])


def test_too_few_frames_for_an_interval(model):
    _, X = model
    short = PSMT.for_series(n_atoms=16, random_state=0).fit(X[:18])
    with pytest.raises(NotEnoughFramesError, match=rf"at least {2 * FEWEST} frames.* but window is 18"):
        short.predict(interval=0.9)
