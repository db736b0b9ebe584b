"""Prediction of a phase: every method, the same frames, nothing from the future."""

import numpy as np
import pytest

from psmt import PSMT, SparseCoder
from psmt.errors import NotEnoughFramesError
from psmt.evaluation import METHODS as ALL
from psmt.evaluation import log_mse
from psmt.experiments.phases import FilmPhase
from psmt.experiments.prediction.phase import predict_phase

METHODS = {name: label for name, label in ALL.items() if name != "whole_frame"}
SIZES = {
    "picture_shape": (6, 6),
    "horizon": 6,
    "n_atoms": 16,
    "window": 80,
    "n_components": 8,
    "alpha": 0.3,
    "lam": 0.05,
    "seed": 0,
}


@pytest.fixture(scope="module")
def result(engine, glide):
    return predict_phase(glide, FilmPhase("lively", 200), **SIZES, device=engine.device)


def test_every_method_predicts_every_frame(result, glide):
    assert set(result.scores) == set(result.rollouts) == set(METHODS)
    for score in (*result.scores.values(), *result.rollouts.values()):
        assert score.predicted.shape == (6, 36)
        assert np.isfinite(score.predicted).all()
    assert np.array_equal(result.frames, glide[201:207])
    assert (result.n_components, result.lam) == (8, 0.05)


def test_scores_are_those_of_the_model_by_hand(engine, result, glide):
    given = {"n_atoms": 16, "window": 80, "n_components": 8, "alpha": 0.3, "lam": 0.05, "random_state": 0}
    model = PSMT(**given, device=engine.device).fit(glide[:200])
    predicted = [model.update(x).predict() for x in glide[200:206]]
    assert np.allclose(result.scores["psmt"].predicted, predicted, atol=1e-9)
    shown = model.coder_.inverse_transform(model.coder_.transform(glide[201:207]))
    assert np.allclose(result.estimates, shown, atol=1e-9)
    assert np.allclose(result.scores["psmt"].vs_code, np.mean((predicted - shown) ** 2, axis=1))
    assert np.allclose(result.scores["psmt"].vs_frame, np.mean((predicted - glide[201:207]) ** 2, axis=1))
    fresh = PSMT(**given, device=engine.device).fit(glide[:200])
    assert np.allclose(result.rollouts["psmt"].predicted, fresh.update(glide[200]).predict(6), atol=1e-9)
    assert np.array_equal(result.scores["copy"].predicted, glide[200:206])
    assert np.allclose(result.scores["linear"].predicted, 2 * glide[200:206] - glide[199:205])


def test_both_modes_begin_alike_and_part_then(result):
    for name in METHODS:
        assert np.allclose(result.scores[name].predicted[0], result.rollouts[name].predicted[0], atol=1e-9), name
    assert not np.allclose(result.scores["copy"].predicted, result.rollouts["copy"].predicted)


@pytest.mark.parametrize("mode", ["scores", "rollouts"])
def test_baseline_1_knows_the_first_frame_that_all_receive(engine, result, glide, mode):
    """Its codes stay, and so does its one prediction, but they are those of the window that ends with that frame."""
    given = {"n_atoms": 16, "window": 80, "n_components": 8, "alpha": 0.3, "lam": 0.05, "random_state": 0}
    psmt = PSMT(**given, device=engine.device).fit(glide[:200]).update(glide[200])
    assert np.allclose(getattr(result, mode)["baseline1"].predicted, np.tile(psmt.predict(), (6, 1)), atol=1e-6)


def test_the_mean_is_among_the_methods(result, glide):
    assert np.allclose(result.scores["mean"].predicted[2], glide[123:203].mean(axis=0))
    assert np.allclose(np.ptp(result.rollouts["mean_code"].predicted, axis=0), 0)


def test_gains_are_learned_with_the_same_dictionaries(engine, result, glide):
    given = {"n_atoms": 16, "window": 80, "n_components": 8, "alpha": 0.3, "lam": 0.05, "random_state": 0}
    model = PSMT(**given, extrapolation="gain", device=engine.device).fit(glide[:200])
    predicted = [model.update(x).predict() for x in glide[200:206]]
    assert np.allclose(result.scores["psmt_gain"].predicted, predicted, atol=1e-9)


def test_a_phase_learns_one_dictionary_and_goes_on_with_it(glide, monkeypatch):
    """Without the frames that parameters are chosen by, and then with them, for all methods together."""
    lengths, learn, go_on = [], SparseCoder.fit, SparseCoder.fit_further
    monkeypatch.setattr(SparseCoder, "fit", lambda self, X, **how: lengths.append(len(X)) or learn(self, X, **how))
    monkeypatch.setattr(SparseCoder, "fit_further", lambda self, X: lengths.append(len(X)) or go_on(self, X))
    predict_phase(glide, FilmPhase("lively", 200), **SIZES | {"n_components": "auto"})
    assert lengths == [190, 10]


@pytest.mark.parametrize("given", [{}, pytest.param({"n_components": "auto", "lam": "auto"}, marks=pytest.mark.slow)])
def test_the_future_plays_no_part(glide, given):
    sizes = SIZES | given
    spoiled = glide.copy()
    spoiled[207:] = 100 * np.random.default_rng(0).standard_normal(spoiled[207:].shape)
    ours, theirs = (predict_phase(X, FilmPhase("p", 200), **sizes) for X in (glide, spoiled))
    assert list(ours.rows()) == list(theirs.rows())
    assert list(ours.rows("rollouts")) == list(theirs.rows("rollouts"))
    spoiled[203:] = 0.0  # what is received later does not change what was predicted before
    early = predict_phase(spoiled, FilmPhase("p", 200), **sizes)
    assert (early.n_components, early.lam) == (ours.n_components, ours.lam)
    for name in METHODS:
        assert np.array_equal(early.scores[name].predicted[:3], ours.scores[name].predicted[:3]), name
        assert np.array_equal(early.rollouts[name].predicted, ours.rollouts[name].predicted), name


@pytest.mark.parametrize("mode", ["scores", "rollouts"])
def test_rows_tell_the_scores(result, mode):
    rows = list(result.rows(mode))
    assert len(rows) == 6 * len(METHODS)
    for row in rows:
        score = getattr(result, mode)[row.method]
        assert row.phase == "lively"
        assert row.frame == 200 + row.step
        assert row.mse_vs_code == score.vs_code[row.step - 1]
        assert row.mse_vs_frame == score.vs_frame[row.step - 1]


def test_the_summary_averages_the_rows(result):
    lines = result.method_errors()
    summary = {line.method: line for line in lines}
    assert set(summary) == set(METHODS)
    assert [line.mse_vs_frame for line in lines] == sorted(line.mse_vs_frame for line in lines)
    for name, line in summary.items():
        score = result.scores[name]
        assert line.mse_vs_code == pytest.approx(score.vs_code.mean())
        assert line.mse_vs_frame == pytest.approx(score.vs_frame.mean())
        assert line.log_mse_vs_code == pytest.approx(np.log(score.vs_code).mean())
        assert line.vs_copy == pytest.approx(score.vs_frame.mean() / result.scores["copy"].vs_frame.mean())
        assert line.vs_copy_code == pytest.approx(score.vs_code.mean() / result.scores["copy_code"].vs_code.mean())
    assert summary["copy"].vs_copy == summary["copy_code"].vs_copy_code == 1


def test_a_still_film_has_nothing_to_compare_with(make_result, with_errors):
    for line in with_errors(make_result(), **dict.fromkeys(ALL, 0.0)).method_errors():
        assert np.isnan(line.vs_copy)
        assert line.log_mse_vs_code == log_mse(0.0)


@pytest.mark.parametrize("start", [79, 414, 1000])
def test_a_start_without_room_is_told_where_there_is_room(glide, start):
    with pytest.raises(NotEnoughFramesError, match=f"start={start} .* use a start from 80 to 413"):
        predict_phase(glide, FilmPhase("p", start), **SIZES)
