"""Halves, surrogates, rivals and components: against what must come out."""

import tracemalloc

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from psmt.brain.layers import join
from psmt.evaluation import mean_interval
from psmt.experiments.brain import prediction
from psmt.experiments.brain.components import ComponentStep, follow_components
from psmt.experiments.brain.figures import component_raster
from psmt.experiments.brain.prediction import PREDICTORS, direct_ridge, dynamic_modes, linear_errors, predict_person
from psmt.experiments.brain.reproducibility import (
    _windows,
    compare_halves,
    halvings,
    hmm_states,
    match,
    rival_states,
    split_interval,
    state_patterns,
    surrogate,
    window_number,
    window_states,
)


def test_patterns_are_matched_whatever_their_order():
    patterns = np.random.default_rng(0).standard_normal((5, 30))
    assert match(patterns, 3.0 * patterns[[2, 0, 4, 1, 3]] + 1.0) == pytest.approx(1.0)
    assert match(patterns, np.random.default_rng(1).standard_normal((5, 30))) < 0.5
    assert match(patterns, np.zeros_like(patterns)) == 0.0


def test_people_are_halved_each_way_once():
    ways = halvings(4, 6, 0)
    assert ways == [(0, 1), (0, 2), (0, 3)]
    assert len(halvings(100, 6, 0)) == 6
    assert all(len(way) == 50 for way in halvings(100, 6, 0))
    assert halvings(1, 6, 0) == []
    assert halvings(3, 6, 0) == [(0,), (1,), (2,)]


def test_splits_of_the_same_people_are_dependent():
    """People share a pattern; the score of a split is the correlation of the mean patterns of its halves."""
    rng, shared = np.random.default_rng(0), np.random.default_rng(1).standard_normal(20)
    scores = []
    for seed in range(300):
        people = shared + 2 * rng.standard_normal((8, 20))
        firsts = [np.isin(np.arange(8), way) for way in halvings(8, 6, seed)]
        scores.append(np.array([match(people[own].mean(0)[None], people[~own].mean(0)[None]) for own in firsts]))
    truth = np.mean(scores)

    def covered(interval):
        return np.mean([own.low <= truth <= own.high for own in map(interval, scores)])

    assert 0.9 <= covered(lambda own: split_interval(own, 8)) <= 0.99
    assert covered(lambda own: mean_interval(own, independent=True)) <= 0.75
    assert split_interval(scores[0], 4)[1:] == (-np.inf, np.inf)
    assert split_interval(np.zeros(0), 1)[1:] == (-np.inf, np.inf)


def test_surrogates_keep_what_they_say():
    rng = np.random.default_rng(0)
    series = np.cumsum(rng.standard_normal((201, 4)), axis=0) @ rng.standard_normal((4, 4))
    phases = surrogate(series, np.random.default_rng(1))
    assert np.allclose(np.abs(np.fft.rfft(phases, axis=0)), np.abs(np.fft.rfft(series, axis=0)))
    assert np.allclose(np.cov(phases.T), np.cov(series.T))
    assert not np.allclose(phases, series)


def test_sliding_windows_find_correlations_that_switch():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 0, 1], 100)
    common = rng.standard_normal(400)
    series = 0.5 * rng.standard_normal((400, 6))
    series[:, :3] += np.where(truth == 0, common, 0.0)[:, None]
    series[:, 3:] += np.where(truth == 1, common, 0.0)[:, None]
    found = window_states([series], 2, length=40)
    agree = np.mean(found == truth)
    assert max(agree, 1 - agree) > 0.85


def test_a_volume_has_the_state_of_the_nearest_window():
    series = np.random.default_rng(0).standard_normal((203, 4))
    for length in (8, 9, 22, 150):
        _, middles = _windows(series, length)
        # As many states as windows: each window is one of its own.
        found = window_states([series], len(middles), length=length)
        nearest = np.abs(np.arange(203)[:, None] - middles).argmin(axis=1)
        assert len(set(zip(found.tolist(), nearest.tolist(), strict=True))) == len(middles)


def test_fewer_windows_than_states_give_fewer_states():
    found = window_states([np.random.default_rng(0).standard_normal((30, 4))], 5, length=60)
    assert found.tolist() == [0] * 30


def test_windows_take_no_memory_with_the_square_of_the_length():
    series = np.random.default_rng(0).standard_normal((10_000, 2))
    tracemalloc.start()
    window_states([series], 2, length=8)  # 5,000 windows: 0.4 GB of distances from all volumes
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 * series.nbytes


def test_state_patterns_leave_out_what_all_volumes_share():
    rng = np.random.default_rng(0)
    series = rng.standard_normal((400, 5)) + rng.standard_normal((400, 1))
    _, own = state_patterns(series, np.arange(400) % 2, 2)
    assert np.abs(own).max() < 0.15


@pytest.mark.slow
def test_halves_agree_where_people_do_and_not_where_nothing_is_shared():
    from psmt.brain.layers import clean
    from psmt.data import BoldSimulation

    scans = BoldSimulation(n_subjects=2, n_frames=250, n_regions=30, noise=0.5)
    series = np.concatenate([clean(scans.subject(k).values, 2.0, 0.0025) for k in range(2)])
    given = {"lengths": [250, 250], "first": [0], "draw": None, "methods": ["psmt", "swc"]}
    given["layers"] = {"n_atoms": 32, "alpha": 0.3, "n_components": 5}
    given["states"] = {"n_states": 5, "n_window_states": 5, "n_components": 5, "window": 30, "seed": 0}
    real = compare_halves(series=series, **given)
    assert real["states"].shape == (2, 2)
    assert real["states"][0, 0] > 0.7
    noise = np.random.default_rng(0).standard_normal(series.shape)
    assert compare_halves(series=noise, **given)["states"][0, 0] < 0.45


def test_dynamic_modes_continue_a_linear_system():
    turn = 0.99 * np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    states = [np.array([1.0, 0.0])]
    for _ in range(120):
        states.append(turn @ states[-1])
    series = np.array(states) @ np.random.default_rng(0).standard_normal((2, 7))
    ((one, _, three),) = dynamic_modes(series[:100], 3, [4])
    assert np.allclose(series[99:102] @ one, series[100:103], atol=1e-6)
    assert np.allclose(series[99] @ three, series[102], atol=1e-6)


def test_errors_are_in_units_of_each_regions_past_and_all_methods_are_there():
    rng = np.random.default_rng(0)
    # One region of much larger values would decide alone if errors were taken as they come.
    units = 35 * np.array([1.0, 1, 1, 1, 1, 1, 1, 100])
    series = 9_500 + units * np.cumsum(0.1 * rng.standard_normal((260, 8)), axis=0)
    errors = predict_person(series=series, horizon=3, seed=0)["errors"]
    assert errors.shape == (len(PREDICTORS), 3)
    copy, mean = (list(PREDICTORS).index(name) for name in ("copy", "mean"))
    past, future, scale = series[:195], series[195:], series[:195].std(axis=0)
    variance = (future / scale).var(axis=0).mean()
    assert errors[copy, 0] == pytest.approx(np.mean(((future - series[194:-1]) / scale) ** 2) / variance)
    assert errors[mean, 2] == pytest.approx(np.mean(((future[2:] - past.mean(axis=0)) / scale) ** 2) / variance)
    # A random walk is best copied.
    assert errors[copy, 0] < errors[mean, 0]


def test_ridge_finds_the_order_and_each_horizon_of_a_known_process():
    # What comes next depends on the row three before alone, so that one ahead order 1 knows nothing.
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((400, 3))
    for t in range(3, 400):
        rows[t] = 0.9 * rows[t - 3, [1, 2, 0]] + 0.3 * rng.standard_normal(3)
    weights, orders = direct_ridge(rows[:300], 3)
    assert orders[0] >= 3
    assert orders[2] == 1
    wrong, variance = linear_errors(rows, 300, weights), rows[300:].var()
    # The best that can be: noise of 0.3 in each of the three.
    assert np.all(wrong < 1.25 * 0.3**2)
    assert wrong.max() < 0.3 * variance


def test_hmm_finds_known_states_if_hmmlearn_is_installed():
    pytest.importorskip("hmmlearn")
    rng = np.random.default_rng(0)
    truth = np.repeat(rng.integers(2, size=20), 15)
    series = rng.standard_normal((300, 6)) + 3.0 * truth[:, None]
    found = hmm_states(series, [300], 2, n_components=2)
    agree = np.mean(found == truth)
    assert max(agree, 1 - agree) > 0.95


def test_components_are_born_merge_split_end_and_come_back():
    rows = [
        [0, 0, 1, 1, -1, -1],
        [0, 0, 0, 0, -1, -1],  # both become one
        [0, 0, 1, 1, 2, 2],  # and two again, and a new one
        [0, 0, -1, -1, -1, -1],
        [0, 0, -1, -1, 1, 1],  # what had ended comes back
    ]
    steps = follow_components(np.array(rows))
    events = [(step.window, step.event) for step in steps]
    assert events[:2] == [(0, "start"), (0, "start")]
    assert (1, "merge") in events
    assert events.count((2, "split")) == 2
    assert (2, "birth") in events
    assert (4, "return") in events
    born = next(step.component for step in steps if step.event == "birth")
    assert next(step.component for step in steps if step.event == "return") == born
    assert sum(step.ends for step in steps) == 2


def test_predictions_learn_from_the_last_volumes_of_a_long_past(monkeypatch):
    """What lies further back changes nothing, and takes no memory."""
    rng = np.random.default_rng(0)
    series = np.cumsum(rng.standard_normal((240, 6)), axis=0)
    monkeypatch.setattr(prediction, "MAX_VOLUMES", 120)
    other = series.copy()
    other[:60] = rng.standard_normal((60, 6))
    errors = [predict_person(series=own, horizon=2, seed=0)["errors"] for own in (series, other)]
    assert np.array_equal(*errors)


def test_the_longest_components_are_drawn_where_they_are():
    rows = [[0, 0, 1, 1, -1, -1], [0, 0, -1, -1, 2, 2], [0, 0, 0, -1, 2, 2], [-1, -1, -1, -1, 2, 2]]
    steps = follow_components(np.array(rows))
    found = component_raster(steps, 4)
    assert found.shape == (3, 4)
    assert np.isnan(found).tolist() == [[False] * 3 + [True], [False] + [True] * 3, [True] + [False] * 3]
    assert found[0, :3].tolist() == [2, 2, 3]
    many = [ComponentStep(window, n, 2, "goes on", False) for n in range(40) for window in range(n + 1)]
    assert np.isfinite(component_raster(many, 40)).sum() == sum(range(29, 41))


def test_lasso_and_reduced_rank_have_the_order_of_their_process():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((600, 8))
    for t in range(1, 600):
        rows[t] = 0.9 * rows[t - 1, 0] * np.eye(8)[1] + 0.5 * rng.standard_normal(8)  # one link of 64
    (weights,) = prediction._lasso_maps(rows, 1, [0.05])
    assert np.count_nonzero(weights[0]) < 20
    assert weights[0, 0, 1] == pytest.approx(0.75, abs=0.1)  # 0.9 less the shrinkage
    ridge, _ = direct_ridge(rows, 1)
    (cut,) = prediction._cut_ranks(rows, ridge, [1])
    assert np.linalg.matrix_rank(cut[0]) == 1
    assert cut[0, 0, 1] == pytest.approx(ridge[0, 0, 1], abs=0.02)


def test_sliding_windows_choose_their_own_number_of_states():
    rng, truth = np.random.default_rng(0), np.repeat(np.arange(12) % 3, 60)
    common = rng.standard_normal(len(truth))
    series = 0.4 * rng.standard_normal((len(truth), 9))
    for k in range(3):
        series[:, 3 * k : 3 * k + 3] += np.where(truth == k, common, 0.0)[:, None]
    assert int(window_number(**join([series]), window=30, seed=0)["number"]) == 3


def test_principal_components_with_the_same_states_are_a_rival():
    rng, truth = np.random.default_rng(0), np.repeat([0, 1, 0, 1], 60)
    series = rng.standard_normal((240, 6)) + 4.0 * np.where(truth == 0, 1.0, -1.0)[:, None]
    how = {"n_states": 2, "n_window_states": 2, "n_components": 2, "window": 20, "seed": 0}
    found = rival_states(**join([series]), method="pca", **how)
    assert adjusted_rand_score(truth, found["states"]) > 0.9
    assert adjusted_rand_score(truth, found["hidden"]) > 0.9
