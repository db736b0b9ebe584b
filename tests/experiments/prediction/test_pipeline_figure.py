"""The picture of the pipeline: it shows one true step of PSMT, on films and on series."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from psmt.data import open_frames
from psmt.data.patches import PatchCutter, read_patches, read_surroundings
from psmt.experiments.phases import FilmPhase
from psmt.experiments.prediction.figure import pipeline_figure
from psmt.experiments.prediction.phase import predict_phase
from psmt.experiments.prediction.run import predict
from psmt.experiments.prediction.settings import PredictionSettings
from psmt.model import PSMT
from psmt.pipeline.run import Run

SIZES = {"n_atoms": 24, "window": 60, "n_components": 6, "lam": 0.01, "alpha": 0.1, "horizon": 2}


def settings(**more):
    return PredictionSettings(**SIZES, n_starts=1, n_null=0, **more)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    film, cutter = open_frames("builtin:glide?frames=74&size=48"), PatchCutter(frame_size=48, patch_size=8)
    around = partial(read_surroundings, film, cutter)
    run = Run(folder=tmp_path_factory.mktemp("run"), picture_shape=(8, 8), surroundings=around)
    return predict(read_patches(film, frame_size=48, patch_size=8).values, settings(starts=(64, 70)), run)


def texts(figure):
    return " ".join(
        text.get_text() for axes in figure.axes for text in (axes.title, axes._left_title, axes.xaxis.label)
    )


@pytest.mark.parametrize("extrapolation", ["linear", "gain", "dynamics"])
def test_the_step_is_that_of_the_model(film, extrapolation):
    found = predict_phase(film, FilmPhase("a", 200), **SIZES, seed=0, extrapolation=extrapolation, series=True)
    step = found.step
    np.testing.assert_allclose(step.activities[: len(step.atoms)] @ step.atoms, step.estimate, atol=1e-8)
    assert len(step.recent) == 60
    np.testing.assert_array_equal(step.recent[-1], step.frame)
    if extrapolation == "linear":
        np.testing.assert_allclose(step.expected, 2 * step.path[-1] - step.path[-2], atol=1e-10)
    else:
        assert not np.allclose(step.expected, 2 * step.path[-1] - step.path[-2])
    far, near = (np.linalg.norm(step.following - own) for own in (step.path[0], step.expected))
    assert near < far


def test_a_single_direction_has_zeros_beside_it(film):
    step = predict_phase(film, FilmPhase("a", 200), **SIZES | {"n_components": 1}, seed=0).step
    assert step.path[:, 0].any()
    assert not step.path[:, 1].any()


def test_the_last_phase_is_shown_with_its_frame(result):
    frame, (row, column) = result.frame
    assert frame.shape == (1, 48, 48)
    patch = frame[0, row : row + 8, column : column + 8].astype(float).ravel()
    given = result.phases[-1].step.frame
    np.testing.assert_allclose((patch - patch.mean()) / patch.std(), given, atol=1e-3)


def test_panels_follow_the_pipeline(result):
    figure = pipeline_figure(result)
    for part in ("1  Frame", "2  Patch", "3  Sparse code", "4  Embedding", "5  Next patch", "predicted", "true"):
        assert part in texts(figure)
    assert "2  Sparse code" in texts(pipeline_figure(replace(result, frame=None)))


def test_a_series_is_drawn_as_lines(film, tmp_path):
    figure = pipeline_figure(predict(film, settings(starts=(200,), series=True), Run(folder=tmp_path)))
    assert not any(axes.images for axes in figure.axes)
    assert "1  Series" in texts(figure)


def test_results_without_a_step_are_refused(result):
    with pytest.raises(ValueError, match="no step to draw"):
        pipeline_figure(replace(result, phases=[replace(result.phases[-1], step=None)]))


def test_describing_a_step_does_not_change_the_predictions(film):
    found = predict_phase(film, FilmPhase("a", 200), **SIZES, seed=0)
    model = PSMT(**{name: value for name, value in SIZES.items() if name != "horizon"}, random_state=0)
    np.testing.assert_allclose(model.fit(film[:200]).update(film[200]).predict(), found.scores["psmt"].predicted[0])
