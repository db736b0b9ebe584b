"""The reconstruction figure marks the phases where they are."""

import numpy as np
import pytest

from drawn_texts import assert_texts_apart
from psmt.experiments.reconstruction.report import ReconstructionResult, reconstruction_figure
from psmt.experiments.reconstruction.settings import ReconstructionSettings

ERRORS = np.abs(np.sin(np.arange(1_000) / 50)) + 0.1


def test_errors_and_phases_are_drawn():
    result = ReconstructionResult(settings=ReconstructionSettings(n_atoms=64, window=200), errors=ERRORS)
    figure = reconstruction_figure(result)
    (axes,) = figure.axes
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), ERRORS)
    running = dict(zip(axes.lines[1].get_xdata(), axes.lines[1].get_ydata(), strict=True))
    assert running[315.0] == pytest.approx(ERRORS[300:331].mean())
    spans = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in axes.patches]
    segment, phases = result.segment, [(own.start, own.start + 31) for own in result.phases]
    assert spans == [(0, 200), (segment.start, segment.stop), *phases] and len(phases) == 2
    assert_texts_apart(figure)
