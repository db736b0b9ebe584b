"""The sweep figure: every combination has its place, those that are missing by name, and no label hides another."""

import numpy as np
import pytest

from drawn_texts import assert_texts_apart
from psmt.experiments.sweep.figure import sweep_figure
from psmt.experiments.sweep.run import SweepResult
from psmt.experiments.sweep.settings import SweepSettings


def make(n_atoms, n_frames, *, spread=1.0, seed=0, lams=(0.1,)):
    settings = SweepSettings(n_atoms=n_atoms, lam=lams)
    rng = np.random.default_rng(seed)
    errors = {
        (lam, size, window): np.exp(spread * rng.standard_normal((len(settings.segments(window, n_frames)), window)))
        / 9
        for lam in lams
        for size in n_atoms
        for window in settings.windows(size)
        if window <= n_frames
    }
    return SweepResult(settings=settings, n_frames=n_frames, errors=errors)


def test_panels_show_median_and_quartiles():
    result = make((8, 16), 200)
    figure = sweep_figure(result, (0.1,))
    panels = figure.axes
    assert len(panels) == 6
    errors = result.errors[0.1, 16, 40]
    line = panels[4].lines[0]
    np.testing.assert_allclose(line.get_ydata(), np.median(errors, axis=1))
    np.testing.assert_array_equal(line.get_xdata(), [start + 20 for start, _ in result.settings.segments(40, 200)])
    band = panels[4].collections[0].get_paths()[0].vertices[:, 1]
    assert band.min() == pytest.approx(np.quantile(errors, 0.25, axis=1).min())
    assert band.max() == pytest.approx(np.quantile(errors, 0.75, axis=1).max())
    assert {axes.get_ylim() for axes in panels} == {panels[0].get_ylim()}
    assert "frame" in panels[-1].get_xlabel()


@pytest.mark.slow
def test_every_price_has_a_block_of_its_own():
    result = make((8, 16), 200, lams=(0.1, 30.0))
    figure = sweep_figure(result, (0.1, 30.0))
    assert len(figure.axes) == 12
    panels = {axes.get_label(): axes for axes in figure.axes}
    above, below = panels["0.1 1 1"], panels["30.0 1 1"]
    for axes, lam in ((above, 0.1), (below, 30.0)):
        np.testing.assert_allclose(axes.lines[0].get_ydata(), np.median(result.errors[lam, 16, 40], axis=1))
        assert panels[f"{lam} 0 1"].texts[0].get_text().endswith(f"λ = {lam:g}")
    assert above.get_position().y0 > below.get_position().y1


def test_what_the_film_is_too_short_for_is_named():
    figure = sweep_figure(make((8, 16, 32), 36), (0.1,))
    words = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert "needs 40 frames" in words
    assert "needs 48 frames" in words
    assert any("Not in 36 frames: M = 32 (from 64)." in text.get_text() for text in figure.texts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_atoms", "n_frames", "spread", "lams"),
    [
        ((512, 1024, 2048), 10_000, 1.5, (0.1,)),
        ((8,), 24, 0.1, (0.1,)),
        ((64, 128, 256, 512, 1024, 2048), 977, 1.0, (0.1,)),
        ((8, 16), 100, 0.5, (0.1, 3.0, 30.0)),
    ],
)
def test_labels_are_inside_and_never_touch(n_atoms, n_frames, spread, lams):
    assert_texts_apart(sweep_figure(make(n_atoms, n_frames, spread=spread, lams=lams), lams))
