"""`PSMT` and `FramePredictor` as estimators: scikit-learn's checks, scores, many frames at once, tables, cards."""

import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from psmt import PSMT, FramePredictor, SparseCoder
from psmt.errors import NotEnoughFramesError

QUICK = {"n_atoms": 6, "n_components": None, "alpha": 0.1, "lam": 0.01, "random_state": 0}

_IN_ORDER = "predict(X) walks through a series: what follows a frame depends on those before it"


@pytest.mark.slow
@parametrize_with_checks(
    [
        PSMT(window=8, standardise=True, **QUICK),
        PSMT.for_series(n_atoms=6, random_state=0),
    ],
    expected_failed_checks=lambda _: {
        "check_methods_sample_order_invariance": _IN_ORDER,
        "check_methods_subset_invariance": _IN_ORDER,
    },
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def small(**parameters):
    given = {"n_atoms": 12, "window": 60, "n_components": 5, "alpha": 0.1, "lam": 0.01, "random_state": 0}
    return PSMT(**given | parameters)


@pytest.fixture(scope="module")
def fitted(film):
    return small().fit(film[:150])


@pytest.fixture(scope="module")
def pictures():
    """A film (24, 17, 26) of a moving pattern."""
    y, x = np.mgrid[:17, :26]
    return np.array([0.5 + 0.3 * np.sin((x - t) / 3) * np.cos(y / 4) for t in range(24)], np.float32)


@pytest.fixture(scope="module")
def frames(pictures):
    return FramePredictor().fit(pictures[:16])


# Scores


def by_hand(model, X):
    """Errors of predicting each next frame of X, and of copying, by `update` and `predict`."""
    expected = np.array([model.update(x).predict() for x in X[:-1]])
    return np.sum((expected - X[1:]) ** 2), np.sum((X[:-1] - X[1:]) ** 2)


def test_the_score_is_the_error_relative_to_copying_walk_forward(film):
    missed, copied = by_hand(small().fit(film[:150]), film[150:180])
    assert small().fit(film[:150]).score(film[150:180]) == pytest.approx(-missed / copied, rel=1e-9)


def test_the_score_of_copying_is_minus_one(pictures):
    assert FramePredictor(extrapolation="hold").fit(pictures[:4]).score(pictures[4:]) == pytest.approx(-1.0)


def test_scoring_and_predicting_many_leave_the_model_as_it_was(fitted, film):
    before, embedding = fitted.predict(3), fitted.embedding_
    fitted.score(film[150:165])
    fitted.predict(film[150:165])
    assert np.array_equal(fitted.predict(3), before)
    assert np.array_equal(fitted.embedding_, embedding)


def test_frames_are_predicted_one_by_one(fitted, film):
    predicted = fitted.predict(film[150:156])
    model = small().fit(film[:150])
    assert np.allclose(predicted, [model.update(x).predict() for x in film[150:156]], atol=1e-9)


def test_what_cannot_be_scored(fitted, film):
    with pytest.raises(NotEnoughFramesError, match=r"X has 1 frames .*; a score needs 2"):
        fitted.score(film[:1])
    assert np.isnan(fitted.score(np.tile(film[149], (4, 1))))
    with pytest.raises(NotFittedError):
        small().score(film)


def test_a_grid_is_searched_over_the_splits_of_a_series(film):
    model, splits = small(n_components=None), TimeSeriesSplit(2, test_size=15)
    search = GridSearchCV(model, {"alpha": [0.02, 1.5]}, cv=splits).fit(film[:150])
    assert search.best_params_ == {"alpha": 0.02}
    train, test = next(search.cv.split(film[:150]))
    expected = small(n_components=None, alpha=0.02).fit(film[train]).score(film[test])
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(expected, rel=1e-9)


def test_frames_are_searched_too(pictures):
    search = GridSearchCV(FramePredictor(), {"extrapolation": ["hold", "linear"]}, cv=TimeSeriesSplit(2)).fit(pictures)
    assert search.best_params_ == {"extrapolation": "linear"}


# Many frames at once


def test_partial_fit_is_fit_and_then_update(film):
    parts = small().partial_fit(film[:150]).partial_fit(film[150:160])
    one_by_one = small().fit(film[:150])
    for x in film[150:160]:
        one_by_one.update(x)
    assert parts.predict().tobytes() == one_by_one.predict().tobytes()
    assert parts.surprise_ == one_by_one.surprise_


def test_of_many_frames_all_are_received_or_none(film, pictures):
    for model, X in (
        (small().fit(film[:150]), film[150:153].copy()),
        (FramePredictor(extrapolation="linear").fit(pictures[:6]), pictures[6:9].copy()),
    ):
        before = model.predict()
        X[-1, 0] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            model.partial_fit(X)
        assert np.array_equal(model.predict(), before)


def test_whole_frames_learn_on(pictures):
    parts = FramePredictor().partial_fit(pictures[:16]).partial_fit(pictures[16:20])
    calls = []
    one_by_one = FramePredictor().fit(pictures[:16], progress=lambda *call: calls.append(call))
    assert calls == [("frames", done, 16) for done in range(1, 17)]
    for frame in pictures[16:20]:
        one_by_one.update(frame)
    assert np.array_equal(parts.predict(), one_by_one.predict())


# Tables


ORDER = "Feature names must be in the same order as they were in fit"


def table(film):
    return pd.DataFrame(film, columns=[f"sensor {i}" for i in range(film.shape[1])])


def test_columns_have_names_which_must_not_change_places(film, tmp_path):
    X = table(film)
    model = small().fit(X[:150])
    assert list(model.feature_names_in_) == list(X.columns)
    model.save(tmp_path / "m")
    turned = X[X.columns[::-1]]
    for kept in (model, PSMT.load(tmp_path / "m")):
        for use in (kept.transform, kept.partial_fit, kept.predict, kept.score, kept.begin):
            with pytest.raises(ValueError, match=ORDER):
                use(turned[150:160])
        with pytest.raises(ValueError, match=ORDER):
            kept.update(turned.iloc[150])
        kept.update(X.iloc[150]).partial_fit(X[151:153])


@pytest.mark.parametrize("names", [["a"], [1] * 8, "abcdefgh", 3])
def test_names_in_a_file_are_held_against_the_features(fitted, names):
    header, arrays = fitted.get_header(), fitted.get_state()
    assert header["feature_names"] is None
    with pytest.raises((TypeError, ValueError), match="feature_names"):
        PSMT.stored_schema(header | {"feature_names": names}, arrays)
        PSMT.from_stored(header | {"feature_names": names}, arrays)
    del header["feature_names"]  # as in files of psmt 0.1.0
    assert PSMT.from_stored(header, arrays).predict().tobytes() == fitted.predict().tobytes()


def test_parameters_of_former_versions_are_read_from_files(fitted):
    header, arrays = fitted.get_header(), fitted.get_state()
    former = {"solver": "closed", "max_epochs": 200, "batch_size": 32, "tol": 0.01, "sparsity": 0.0}
    header["parameters"] |= former
    PSMT.stored_schema(header, arrays)
    assert PSMT.from_stored(header, arrays).predict().tobytes() == fitted.predict().tobytes()
    header["parameters"]["solver"] = "sgd"
    with pytest.raises(ValueError, match=r"solver=.sgd. was removed in psmt 0\.3; fit the model again"):
        PSMT.stored_schema(header, arrays)


def test_points_come_as_a_table_where_that_is_asked_for(film):
    X = table(film)
    model = small().set_output(transform="pandas")
    points = model.fit_transform(X[:150])
    assert list(points.columns) == list(model.get_feature_names_out()) == [f"psmt{i}" for i in range(5)]
    assert np.array_equal(points, small().fit(film[:150]).transform(film[:150]))


def test_a_whole_program_may_ask_for_tables(film):
    """The coder inside is asked for the same, and the model computes as before."""
    plain = small(alpha="auto").fit(film[:150])
    with config_context(transform_output="pandas"):
        model = small(alpha="auto").fit(film[:150])
        assert model.predict().to_numpy().tobytes() == plain.set_output(transform="default").predict().tobytes()
        assert isinstance(model.transform(film[:3]), pd.DataFrame)
        given = SparseCoder(n_atoms=12, alpha=0.1, random_state=0).set_output(transform="pandas").fit(film[:150])
        assert np.isfinite(small(coder=given).fit(film[:150]).begin(film[:70]).predict()).all()


def test_it_is_a_step_of_a_pipeline(film):
    points = make_pipeline(StandardScaler(), small()).fit_transform(film[:150])
    assert points.shape == (150, 5)


# Progress


@pytest.mark.parametrize(
    ("parameters", "stages"),
    [
        ({}, ["dictionary", "window"]),
        ({"lam": "auto"}, ["dictionary", "choice", "window"]),
        ({"extrapolation": "dynamics"}, ["dictionary", "choice", "dictionary", "window"]),
    ],
)
def test_fit_tells_how_far_it_is(film, parameters, stages):
    calls = []
    small(**parameters).fit(film[:150], progress=lambda *call: calls.append(call))
    told = [stage for i, (stage, *_) in enumerate(calls) if i == 0 or calls[i - 1][0] != stage]
    assert told == stages
    for (stage, done, total), (following, later, _) in pairwise([*calls, ("", 0, 0)]):
        assert 0 <= done <= total
        assert done == total if following != stage else later >= done


# Words


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lam": "Auto"}, "lam='Auto' is not a number; give a float >= 0.0 or 'auto'; did you mean 'auto'?"),
        ({"n_components": "Auto"}, "give an int >= 1 or 'auto'; did you mean 'auto'?"),
        ({"window": -1}, "window=-1 is too small; use window >= 3 or 'auto'"),
        ({"extrapolation": "Dynamic"}, "'phase', 'dynamics'; did you mean 'dynamics'?"),
        ({"on_cut": "Hold"}, "on_cut='Hold' is unknown; use one of 'hold', 'ignore'; did you mean 'hold'?"),
        ({"on_cut": "cubic"}, "on_cut='cubic' is unknown; use one of 'hold', 'ignore'$"),
    ],
)
def test_choices_that_were_nearly_right(film, parameters, message):
    pattern = message if message.endswith("$") else re.escape(message)
    with pytest.raises((TypeError, ValueError), match=pattern):
        small(**parameters).fit(film[:150])


def test_sparse_input_is_refused_with_words(fitted, frames, film):
    for use in (small().fit, fitted.transform, fitted.partial_fit, fitted.predict, fitted.score):
        with pytest.raises(TypeError, match=r"X is sparse, which is not supported: frames are dense; give X.toarray()"):
            use(csr_array(film[:100]))
    with pytest.raises(TypeError, match="frame is sparse, which is not supported"):
        frames.update(csr_array((17, 26)))


def test_a_table_of_mixed_columns_is_a_series_if_its_values_are_numbers(film):
    mixed = film[:150].astype(object)
    assert small().fit(mixed).predict().tobytes() == small().fit(film[:150]).predict().tobytes()
    mixed[3, 2] = "rain"
    with pytest.raises(ValueError, match=r"X has a value that is not a number: .*rain"):
        small().fit(mixed)


def test_frames_of_another_shape_are_refused_with_words(frames, pictures):
    with pytest.raises(ValueError, match=r"frames has shape \(3, 17, 20\); the model was fitted .* \(17, 26\)"):
        frames.score(pictures[:3, :, :20])
    with pytest.raises(ValueError, match=r"give grey levels \(time, height, width\)"):
        frames.partial_fit(pictures[0])
