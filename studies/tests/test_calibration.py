"""The calibration of intervals: the measures on samples with a known answer, and the page."""

import re

import numpy as np
import pytest
from studies.calibration import measure as module
from studies.calibration.measure import (
    MARGINS,
    Measured,
    autocorrelated,
    film_coverage,
    mean_coverage,
    measure,
    null_film_errors,
    ratio_coverage,
    split_coverage,
    split_scores,
    swap_coverage,
)
from studies.calibration.page import page

from psmt.evaluation import Interval, mean_interval
from psmt.experiments.brain.reproducibility import split_interval


def test_coverage_and_power_are_counted():
    intervals = [Interval(0.0, -1.0, 1.0), Interval(0.5, 0.2, 0.8), Interval(0.0, -np.inf, np.inf)]
    assert measure(intervals, 1.5) == Measured(pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert measure(intervals, 0.0, truth=0.5).coverage == 1.0
    assert (str(Measured(0.95, 0.2)), str(Measured(0.9, 0.2))) == ("95.0 / 20", "**90.0** / 20")


def test_values_are_as_asked():
    values = autocorrelated(np.random.default_rng(0), (4000, 10), 0.6)
    assert np.corrcoef(values[:, 3], values[:, 4])[0, 1] == pytest.approx(0.6, abs=0.04)
    for margin in MARGINS.values():
        drawn = margin(np.random.default_rng(0).standard_normal(200_000))
        assert (drawn.mean(), drawn.std()) == (pytest.approx(0, abs=0.02), pytest.approx(1, abs=0.05))


def test_intervals_cover_and_values_wrongly_called_independent_do_not():
    assert 0.91 <= mean_coverage(8, 0.3, 600).coverage <= 0.98
    assert mean_coverage(16, 0.6, 600, independent=True).coverage < 0.8
    assert 0.91 <= ratio_coverage(16, 0.0, 600, spreads=(1.5, 1.5)).coverage <= 0.99
    swapped = swap_coverage(8, 0.0, 600, spreads=(1.0, 1.0))
    assert 0.92 <= swapped.coverage <= 0.98
    assert swapped.power > 1.3 * ratio_coverage(8, 0.0, 600, spreads=(1.0, 1.0), independent=True).power
    assert swap_coverage(8, 0.0, 600, spreads=(1.5, 0.7)).coverage < 0.8
    alone = mean_coverage(8, 0.0, 600, independent=True)
    assert 0.92 <= alone.coverage <= 0.98
    assert alone.power > 2 * mean_coverage(8, 0.0, 600).power


def test_splits_of_people_are_covered_if_they_are_taken_for_dependent():
    scores = split_scores(6, 150)
    right, wrong = (
        float(split_coverage(scores, own).strip("*"))
        for own in (lambda own: split_interval(own, 6), lambda own: mean_interval(own, independent=True))
    )
    assert wrong < 80 < 87 < right


def test_null_films_have_the_ratio_that_is_known(monkeypatch):
    monkeypatch.setattr(module, "N_STARTS", 8)
    for kind in ("shuffled", "noise"):
        films = [null_film_errors(kind, seed) for seed in range(12)]
        copied, mean = np.mean(films, axis=(0, 2))
        assert copied / mean == pytest.approx(2 * 20 / 21, rel=0.05)
        assert film_coverage(films, 8).coverage >= 0.75


def test_the_page_has_a_table_of_each_kind(monkeypatch):
    monkeypatch.setattr("studies.calibration.page.KNOWN", (5, 8, 16))
    monkeypatch.setattr("studies.calibration.page.SWAPPED", (6,))
    text = page(draws=5, films=2)
    assert len(re.findall("^## ", text, re.M)) == 3 + 2 + 4 + 2 + 2
    assert "| 4 | too few | too few |" in text
