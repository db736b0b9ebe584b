"""The reconstruction figure marks the phases where they are."""

import numpy as np
import pytest

from drawn_texts import assert_texts_apart
from psmt.experiments.phases import FilmPhase
from psmt.experiments.reconstruction.report import reconstruction_figure

ERRORS = np.abs(np.sin(np.arange(1_000) / 50)) + 0.1


def test_errors_and_phases_are_drawn():
    figure = reconstruction_figure(ERRORS, [FilmPhase("calm", 300), FilmPhase("lively", 800)], window=200, horizon=30)
    (axes,) = figure.axes
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), ERRORS)
    running = dict(zip(axes.lines[1].get_xdata(), axes.lines[1].get_ydata(), strict=True))
    assert running[315.0] == pytest.approx(ERRORS[300:331].mean())
    spans = sorted((patch.get_x(), patch.get_x() + patch.get_width()) for patch in axes.patches)
    assert spans == [(0, 200), (300, 331), (800, 831)]
    assert axes.get_xlabel() == "frame"
    assert axes.get_ylabel() == "MSE"


@pytest.mark.parametrize("starts", [(300, 800), (300, 301), (200, 230), (968, 940), (969, 200)])
def test_labels_of_phases_never_touch(starts):
    phases = [FilmPhase("calm", starts[0]), FilmPhase("lively", starts[1])]
    figure = reconstruction_figure(ERRORS, phases, window=200, horizon=30)
    assert sum("from" in text.get_text() for text in figure.axes[0].texts) == 2
    assert_texts_apart(figure)
