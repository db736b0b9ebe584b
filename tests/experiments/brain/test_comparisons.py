"""Halves, surrogates, rivals and components: against what must come out."""

import tracemalloc

import numpy as np
import pytest
from matplotlib.figure import Figure

from psmt.experiments.brain import prediction
from psmt.experiments.brain.components import ComponentStep, count_events, follow_components
from psmt.experiments.brain.figures import draw_components
from psmt.experiments.brain.prediction import PREDICTORS, direct_ridge, dynamic_modes, last_rows, predict_person
from psmt.experiments.brain.reproducibility import (
    _windows,
    compare_halves,
    halvings,
    hmm_states,
    match,
    state_patterns,
    surrogate,
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


def test_surrogates_keep_what_they_say():
    rng = np.random.default_rng(0)
    series = np.cumsum(rng.standard_normal((201, 4)), axis=0) @ rng.standard_normal((4, 4))
    phases = surrogate(series, "phases", np.random.default_rng(1))
    assert np.allclose(np.abs(np.fft.rfft(phases, axis=0)), np.abs(np.fft.rfft(series, axis=0)))
    assert np.allclose(np.cov(phases.T), np.cov(series.T))
    assert not np.allclose(phases, series)
    shuffled = surrogate(series, "shuffled", np.random.default_rng(1))
    assert np.allclose(np.sort(shuffled, axis=0), np.sort(series, axis=0))
    assert np.diff(shuffled, axis=0).std() > 3 * np.diff(series, axis=0).std()


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
    _, own, whole = state_patterns(series, np.arange(400) % 2, 2)
    assert whole.mean() > 0.4
    assert np.abs(own).max() < 0.15


@pytest.mark.slow
def test_halves_agree_where_people_do_and_not_where_nothing_is_shared():
    from psmt.data import BoldSimulation
    from psmt.experiments.brain.group import clean

    scans = BoldSimulation(n_subjects=2, n_frames=250, n_regions=30, noise=0.5)
    series = np.concatenate([clean(scans.subject(k).values, 2.0, 0.0025) for k in range(2)])
    given = {"lengths": [250, 250], "first": [0], "draw": 0, "methods": ["psmt", "swc"]}
    given["layers"] = {"n_atoms": 32, "alpha": 0.3, "n_components": 5, "seed": 0}
    given["states"] = {"n_states": 5, "n_components": 5, "window": 30, "seed": 0}
    real = compare_halves(series=series, kind="scan", **given)
    assert real["states"].shape == (2, 3)
    assert real["states"][0, 0] > 0.7
    noise = np.random.default_rng(0).standard_normal(series.shape)
    assert compare_halves(series=noise, kind="scan", **given)["states"][0, 0] < 0.45


def test_dynamic_modes_continue_a_linear_system():
    turn = 0.99 * np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    states = [np.array([1.0, 0.0])]
    for _ in range(120):
        states.append(turn @ states[-1])
    series = np.array(states) @ np.random.default_rng(0).standard_normal((2, 7))
    step = dynamic_modes(series[:100])
    assert np.allclose(series[99:102] @ step, series[100:103], atol=1e-6)
    assert np.allclose(series[99] @ step @ step @ step, series[102], atol=1e-6)


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
    wrong, variance = np.zeros(3), rows[300:].var()
    for t in range(300, 397):
        wrong += ((last_rows(rows, t) @ weights - rows[t : t + 3]) ** 2).mean(axis=1) / 97
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
    counts = count_events(steps, 4)
    assert {name: counts[name] for name in ("births", "merges", "splits", "returns", "ends")} == {
        "births": 1,
        "merges": 1,
        "splits": 2,
        "returns": 1,
        "ends": 2,
    }
    assert counts["persistent"] == 1  # only the first is seen in windows 0 and 4
    assert counts["recurrent"] == 1


def test_predictions_learn_from_the_last_volumes_of_a_long_past(monkeypatch):
    """What lies further back changes nothing, and takes no memory."""
    rng = np.random.default_rng(0)
    series = np.cumsum(rng.standard_normal((240, 6)), axis=0)
    monkeypatch.setattr(prediction, "MAX_VOLUMES", 120)
    other = series.copy()
    other[:60] = rng.standard_normal((60, 6))
    errors = [predict_person(series=own, horizon=2, seed=0)["errors"] for own in (series, other)]
    assert np.array_equal(*errors)


def test_a_long_scan_is_drawn_by_few_artists():
    """A mark or a component that is an artist of its own takes ten kilobytes: two hours took gigabytes."""
    events = ("birth", "goes on", "split", "merge", "return")
    steps = [
        ComponentStep(w, n, 2 + n % 5, events[(w + n) % 5], w % 7 == 0) for w in range(400) for n in range(w % 9, 60, 9)
    ]
    axes = Figure().add_subplot()
    draw_components(axes, steps, np.arange(400.0))
    assert len(axes.lines) < 80
    drawn = sum(np.isfinite(line.get_xdata()).sum() for line in axes.lines if line.get_linestyle() == "-")
    assert drawn == len(steps)
    ends = [line for line in axes.lines if line.get_marker() == "x"]
    assert len(ends[0].get_xdata()) == sum(step.ends and step.event != "return" for step in steps)
