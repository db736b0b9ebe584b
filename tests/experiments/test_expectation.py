"""The map of regimes in the package: what it says of a film, and where the film lies on it."""

from importlib.resources import files

import numpy as np
import pytest

from psmt.data.speed_and_noise import Regime
from psmt.experiments.expectation import FILE, Ratio, RegimeMap, expectation, place_figure, scale, shipped_map
from psmt.figures import png


def test_the_map_that_ships_says_where_the_line_wins():
    line = shipped_map().ratios["code"]["linear"]
    assert line[0.05, 0.0].verdict == "holds"
    assert line[4.0, 0.3].verdict != "holds"


def test_a_map_of_another_format_is_refused():
    text = files("psmt.experiments").joinpath(FILE).read_text()
    with pytest.raises(ValueError, match="format=0 is not 1; make the map again: python -m"):
        RegimeMap.from_json(text.replace('"format": 1', '"format": 0'))


def test_a_film_is_expected_to_do_as_the_nearest_on_the_map():
    known = shipped_map()
    regime = Regime(speed=0.047, noise=0.004, slow=0.04, fast=0.06)
    assert known.nearest(regime) == (0.05, 0.0)
    assert known.nearest(Regime(speed=3.1, noise=0.19, slow=1, fast=4)) == (4.0, 0.3)
    assert known.nearest(Regime(speed=1e-9, noise=9.0, slow=0, fast=0)) == (0.05, 0.3)
    text = expectation(regime)
    assert text.startswith("The patch moves by 0.047 pixels per frame, with noise of 0.4% of its contrast.")
    assert "at 0.05 pixels per frame and noise of 0%" in text
    assert "of copying the code (it wins)" in text


def test_places_between_marks():
    assert scale(0.05, (0.05, 4.0)) == 0
    assert scale(9.0, (0.05, 4.0)) == 1
    assert scale(np.sqrt(0.05 * 4), (0.05, 4.0)) == pytest.approx(0.5)
    assert scale(0.0, (0.0, 0.1, 1.0)) == 0


def test_verdicts_have_a_margin():
    assert Ratio(0.5, 0.4, 0.6).verdict == "holds"
    assert Ratio(0.97, 0.96, 0.98).verdict == "inconclusive"
    assert Ratio(2.0, 0.5, 8.0).verdict == "inconclusive"
    assert Ratio(2.0, 1.5, 3.0).verdict == "does not hold"


def test_the_figure_shows_the_film():
    regime = Regime(speed=0.3, noise=0.02, slow=0.1, fast=0.9)
    assert png(place_figure(shipped_map(), regime)) != png(place_figure(shipped_map()))
