"""The prediction figure shows every method, and nothing on top of anything else."""

from dataclasses import replace

import numpy as np
import pytest

from drawn_texts import assert_texts_apart, drawn_texts
from psmt.data import open_source
from psmt.evaluation import METHODS
from psmt.experiments.options.sources import PatchOptions
from psmt.experiments.prediction.figure import prediction_figure, shown_steps
from psmt.figures import png
from psmt.figures.style import METHOD_STYLES


def panels(figure):
    """Axes with curves, and axes with patches."""
    patches = [axes for axes in figure.axes if axes.get_label().startswith("patches")]
    return [axes for axes in figure.axes if axes not in patches], patches


def test_one_curve_per_method_with_its_errors(make_result):
    result = make_result()
    curves, _ = panels(prediction_figure([result]))
    drawn = {line.get_label(): line.get_ydata() for line in curves[0].lines}
    assert set(drawn) == set(METHODS.values())
    for method, name in METHODS.items():
        np.testing.assert_allclose(drawn[name], np.log(result.scores[method].vs_code))
    assert "natural log" in curves[0].get_ylabel()


def test_rows_of_patches_on_one_grey_scale(make_result):
    results = [make_result("calm"), make_result("lively", seed=1)]
    _, patches = panels(prediction_figure(results))
    steps = shown_steps(30)
    images = [axes.images[0] for axes in patches]
    assert len({image.get_clim() for image in images}) == 1
    shown = images[1].get_array()
    assert shown.shape == (7 * (len(METHODS) + 2) - 1, 7 * len(steps) - 1)
    for k, step in enumerate(steps):
        np.testing.assert_array_equal(shown[:6, 7 * k : 7 * k + 6], results[1].frames[step - 1].reshape(6, 6))
    labels = {label.get_text() for label in patches[0].get_yticklabels()}
    assert {"input", "estimate (layer 1)", *METHODS.values()} <= labels


@pytest.mark.parametrize("n_features", [31, 36])
def test_features_of_a_series_are_bars_also_where_they_would_fill_a_square(make_result, n_features):
    result = make_result(horizon=3)
    scores = {name: replace(one, predicted=one.predicted[:, :n_features]) for name, one in result.scores.items()}
    frames, estimates = result.frames[:, :n_features], result.estimates[:, :n_features]
    series = replace(result, picture_shape=None, scores=scores, frames=frames, estimates=estimates)
    figure = prediction_figure([series])
    _, (patches,) = panels(figure)
    assert patches.images[0].get_array().shape[1] == 3 * n_features + 2 * 4
    assert "Bars are features" in figure.texts[-1].get_text()


def test_what_is_a_picture_is_known_from_the_source():
    options = PatchOptions(patch_size=6)
    assert options.record(open_source(np.zeros((5, 36))), np.zeros((5, 36))).picture_shape is None
    assert options.record(open_source(np.zeros((5, 8, 8))), np.zeros((5, 36))).picture_shape == (6, 6)


@pytest.mark.slow
@pytest.mark.parametrize(("phases", "horizon"), [(1, 100), (2, 3)])
def test_no_text_lies_on_another_or_outside(make_result, phases, horizon):
    results = [make_result(f"start-{i}", seed=i, horizon=horizon) for i in range(phases)]
    figure = prediction_figure(results)
    assert_texts_apart(figure)
    texts = drawn_texts(figure)
    _, patches = panels(figure)
    for axes in patches:
        for text, box in texts:
            assert not box.overlaps(axes.bbox), text


@pytest.mark.parametrize("horizon", [1, 2, 5, 8, 10, 30, 32, 100])
def test_shown_steps_cover_the_horizon(horizon):
    steps = shown_steps(horizon)
    assert steps[0] == 1
    assert len(steps) == min(horizon, len(steps)) <= 11
    assert len(set(np.diff(steps))) <= 1
    assert steps[-1] > horizon - max(horizon // 5, 1)


def test_every_method_has_a_look_of_its_own():
    assert set(METHOD_STYLES) == set(METHODS)
    assert len({(style["color"], str(style["linestyle"])) for style in METHOD_STYLES.values()}) == len(METHODS)


def test_picture_is_a_png_and_the_same_each_time(make_result):
    first, second = (png(prediction_figure([make_result(horizon=3)])) for _ in range(2))
    assert first == second
    assert first.startswith(b"\x89PNG")


def test_without_results_there_is_no_figure():
    with pytest.raises(ValueError, match="at least one phase"):
        prediction_figure([])
