"""The reconstruction figure marks the phases where they are."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from psmt.experiments.phases import Phase
from psmt.experiments.reconstruction.figure import reconstruction_figure

ERRORS = np.abs(np.sin(np.arange(1_000) / 50)) + 0.1


def test_errors_and_phases_are_drawn():
    figure = reconstruction_figure(ERRORS, [Phase("calm", 300), Phase("lively", 800)], window=200, horizon=30)
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
    phases = [Phase("calm", starts[0]), Phase("lively", starts[1])]
    figure = reconstruction_figure(ERRORS, phases, window=200, horizon=30)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    labels = [text for text in figure.axes[0].texts if "from" in text.get_text()]
    boxes = [text.get_window_extent(renderer) for text in [*labels, *figure.texts]]
    assert len(labels) == 2
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1
