"""The prediction figure shows every method, and nothing on top of anything else."""

from dataclasses import replace

import numpy as np
import pytest

from drawn_texts import assert_texts_apart, drawn_texts
from psmt.data import open_source
from psmt.evaluation import METHODS
from psmt.experiments.options.sources import PatchOptions
from psmt.experiments.prediction.figure import effects_figure, prediction_figure, shown_steps
from psmt.figures import png
from psmt.figures.style import METHOD_STYLES


def panels(figure):
    """Axes with curves, and axes with patches."""
    patches = [axes for axes in figure.axes if axes.get_label() == "patches"]
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
    images = [axes.images for axes in patches]
    assert [len(row) for row in images] == [(len(METHODS) + 2) * len(steps)] * 2
    assert len({image.get_clim() for row in images for image in row}) == 1
    np.testing.assert_array_equal(images[1][0].get_array(), results[1].frames[0].reshape(6, 6))
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
    assert {image.get_array().shape for image in patches.images} == {(32, n_features)}
    assert "Bars are features" in figure.texts[-1].get_text()


def test_what_is_a_picture_is_known_from_the_source():
    options = PatchOptions(patch_size=6)
    assert options.record(open_source(np.zeros((5, 36))), np.zeros((5, 36))).picture_shape is None
    assert options.record(open_source(np.zeros((5, 8, 8))), np.zeros((5, 36))).picture_shape == (6, 6)


def test_patches_are_square_and_stand_under_their_steps(make_result):
    figure = prediction_figure([make_result()])
    figure.draw_without_rendering()
    (curves,), (patches,) = panels(figure)
    ticks = list(curves.get_xticks())
    for image in patches.images:
        left, right, bottom, top = image.get_extent()
        assert (left + right) / 2 == pytest.approx(min(ticks, key=lambda tick: abs(tick - (left + right) / 2)))
        (x0, y0), (x1, y1) = patches.transData.transform([(left, bottom), (right, top)])
        assert x1 - x0 == pytest.approx(y1 - y0, rel=1e-6)
    assert curves.get_xlim() == patches.get_xlim()
    assert curves.get_position().x0 == pytest.approx(patches.get_position().x0)


@pytest.mark.parametrize(("phases", "horizon"), [(1, 1), (2, 100), (3, 30)])
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
    assert len({(style.colour, str(style.dash)) for style in METHOD_STYLES.values()}) == len(METHODS)


def test_picture_is_a_png_and_the_same_each_time(make_result):
    first, second = (png(prediction_figure([make_result()])) for _ in range(2))
    assert first == second
    assert first.startswith(b"\x89PNG")


def test_without_results_there_is_no_figure():
    with pytest.raises(ValueError, match="at least one phase"):
        prediction_figure([])


# The figure of all starts


def test_effects_are_drawn_for_the_film_and_its_nulls(make_prediction):
    result = make_prediction(psmt=np.linspace(0.1, 0.3, 8), baseline2=0.8)
    figure = effects_figure(result)
    (axes,) = figure.axes
    parts = [part for group in result.evidence.values() for part in group]
    assert [label.get_text().replace("\n", " ") for label in axes.get_yticklabels()] == [part.name for part in parts]
    dots = [collection.get_offsets() for collection in axes.collections]
    assert sorted(len(points) for points in dots) == sorted(
        len(values) for part in parts for values in (part.values, *part.null_values.values())
    )
    means = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    assert parts[0].statistic.mean in means
    assert_texts_apart(figure)
    assert png(figure) == png(effects_figure(result))


def test_effects_without_intervals_or_nulls_can_be_drawn(make_prediction):
    assert png(effects_figure(make_prediction(n_starts=1, n_null=0)))
