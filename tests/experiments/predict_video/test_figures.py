"""Figures of predicted frames, and the pictures of the film: what they show is what came out."""

import numpy as np
import pytest

from made_up_video import make_video, new_log
from psmt.evaluation import FrameRow, RolloutRow
from psmt.experiments.predict_video.figures import (
    FRAME_STYLES,
    running_ratio,
    running_span,
    scores_figure,
)
from psmt.experiments.predict_video.film_painter import BETTER, WIDEST, WORSE, FilmPainter, error_colours, error_gain
from psmt.experiments.predict_video.result import FilmScores
from psmt.figures import png


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[k : k + 2], 16) for k in (1, 3, 5))


def curve(axes, method):
    (line,) = [
        line for line in axes.lines if line.get_color() == FRAME_STYLES[method]["color"] and len(line.get_xdata()) > 2
    ]
    return np.asarray(line.get_xdata()), np.asarray(line.get_ydata())


def test_curves_are_the_errors_divided_by_those_of_copying():
    ratios = np.linspace(0.3, 1.4, 30)
    axes = scores_figure(make_video({"frame_predictor": ratios})).axes[0]
    frames, values = curve(axes, "frame_predictor")
    np.testing.assert_array_equal(frames, np.arange(401, 431))
    np.testing.assert_allclose(values, ratios)
    np.testing.assert_allclose(curve(axes, "copy")[1], 1.0)
    assert axes.get_ylim()[0] < 0.3


def test_cuts_are_marked_and_surprise_has_a_panel_of_its_own():
    figure = scores_figure(make_video(cuts=(405,)))
    assert "cut" in [text.get_text() for text in figure.axes[0].texts]
    assert len(figure.axes) == 2
    plain = scores_figure(make_video(surprise=False))
    assert len(plain.axes) == 1
    assert "cut" not in [text.get_text() for text in plain.axes[0].texts]


def test_long_films_are_averaged_by_sums_and_not_by_ratios():
    assert (running_span(60), running_span(500)) == (1, 5)
    rows = new_log(FrameRow)
    rows.add(
        FrameRow(k, "frame_predictor", mse, 0, 0, copied, 0, 0, 0)
        for k, (mse, copied) in enumerate([(1, 1), (1, 9), (1, 2)])
    )
    bins = FilmScores.of(rows, new_log(RolloutRow)).bins
    assert running_ratio(bins, "frame_predictor", 3)[1] == pytest.approx(3 / 12)


def test_a_film_that_stands_still_can_be_drawn():
    still = make_video(copy_mse=0.0)
    assert png(scores_figure(still)).startswith(b"\x89PNG")


# The film


def test_errors_are_orange_where_too_bright_blue_where_too_dark():
    colours = error_colours(np.array([[1.0, 0.0, 0.5]]), np.array([[0.5, 0.5, 0.5]]), 2)
    np.testing.assert_allclose(255 * colours[0], [rgb(WORSE), rgb(BETTER), (0, 0, 0)])


def test_errors_are_enlarged_more_where_less_happens():
    rng = np.random.default_rng(0)
    calm, lively = (scale * rng.standard_normal((5, 8, 8)) for scale in (0.01, 0.1))
    assert error_gain(calm) > error_gain(lively)
    assert error_gain(np.zeros((5, 8, 8))) == 20


def paint(painter, shape, ratio=0.5, frame=7):
    row = FrameRow(frame, "frame_predictor", 1e-3 * ratio, 30.0, 0.9, 1e-3, ratio, np.nan, 0)
    film, predicted = (
        np.full((*shape, 3), [1.0, 0, 0]),
        np.full((*shape, 3), [0, 1.0, 0]),
    )  # the luma of green is higher
    return painter.paint(row, 28.0, film, predicted)


@pytest.mark.parametrize("shape", [(64, 96), (200, 200), (90, 1500)])
def test_film_prediction_and_error_stand_side_by_side(shape):
    picture = paint(FilmPainter(shape, horizon=5, gain=4), shape)
    assert picture.dtype == np.uint8
    assert picture.shape[1] <= WIDEST
    colours = ((255, 0, 0), (0, 255, 0), rgb(WORSE))
    found = [np.flatnonzero((picture == colour).all(axis=2).any(axis=0)) for colour in colours]
    assert found[0].max() < found[1].min() and found[1].max() < found[2].min()
    assert len(found[0]) == len(found[1]) == len(found[2])
    # The controls of a player cover the bottom, which is empty.
    assert (picture[-picture.shape[1] // 20 :] == picture[-1, -1]).all()


def test_each_frame_adds_a_bar_below_or_above_the_line():
    shape, n = (40, 60), 6
    painter = FilmPainter(shape, horizon=n, gain=4)
    pictures = [paint(painter, shape, ratio) for ratio in (0.5, 0.5, 2.0, 0.25, np.nan, 0.5)]
    _, top, _, bottom = map(int, painter._chart)
    strips = [picture[top : bottom + 1] for picture in pictures]
    blue = [(strip == rgb(BETTER)).all(axis=2).sum() for strip in strips]
    orange = [(strip == rgb(WORSE)).all(axis=2).sum() for strip in strips]
    assert blue[0] > 0 and blue[1] == 2 * blue[0] and blue[2] == blue[1]
    assert blue[3] > 1.8 * blue[0] + blue[2] and blue[4] == blue[3]
    assert orange[1] == 0 and orange[2] > 0 and orange[-1] == orange[2]


def test_without_an_end_the_chart_starts_over():
    shape = (20, 30)
    first = paint(FilmPainter(shape, horizon=None, gain=4), shape)
    row = FrameRow(7, "frame_predictor", 5e-4, 30.0, 0.9, 1e-3, 0.5, np.nan, 0)
    painter = FilmPainter(shape, horizon=None, gain=4, painted=[row] * 499)
    pictures = [paint(painter, shape) for _ in range(2)]
    assert np.array_equal(pictures[1], first) and not np.array_equal(pictures[0], first)
