"""A linear dynamics: systems whose matrix is known are found again, and real ones are not made up."""

from itertools import pairwise

import numpy as np
import pytest

from psmt import PSMT
from psmt.evaluation import teacher_forced
from psmt.extrapolation import Dynamics
from psmt.extrapolation.dynamics import MOST_AXES, OWN, WEIGHTS, Moments, next_state, pairs_within, rollout, states_of
from psmt.model.baselines import CopyLast, RidgeAutoregression


def linear_system(matrix, n=3000, noise=1.0, seed=0):
    """Rows (n, k) of ``y_(t+1) = y_t A + noise``."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((n, len(matrix)))
    for t in range(1, n):
        rows[t] = rows[t - 1] @ matrix + noise * rng.standard_normal(len(matrix))
    return rows


def rotation(n_planes=3, decay=0.97, speed=0.5):
    blocks = np.zeros((2 * n_planes, 2 * n_planes))
    for k in range(n_planes):
        angle = speed * (k + 1) / n_planes
        turn = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
        blocks[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = decay * np.array(turn)
    mixed = np.linalg.qr(np.random.default_rng(5).standard_normal(blocks.shape))[0]
    return mixed @ blocks @ mixed.T


def test_the_matrix_of_a_linear_system_is_recovered():
    truth = rotation()
    rows = linear_system(truth)
    begins = np.zeros(len(rows), dtype=bool)
    weights = Moments.of(states_of(rows, begins), rows, pairs_within(begins, 0, len(rows))).solve(1e-6)
    # The row before and the fading mean have nothing to add.
    assert np.abs(weights[:6] - truth).max() < 0.1
    assert np.abs(weights[6:]).max() < 0.1
    state = states_of(rows, begins)[-1]
    assert np.allclose(rollout(state, weights, 3)[2], rows[-1] @ np.linalg.matrix_power(truth, 3), atol=0.6)


def test_one_inverse_and_downdates_give_the_ridge_of_each_coordinate():
    """Against the normal equations of each coordinate with its own penalties, with a prior and without."""
    rows = linear_system(rotation(2), n=200)
    begins = np.zeros(len(rows), dtype=bool)
    moments = Moments.of(states_of(rows, begins), rows, pairs_within(begins, 0, len(rows)))
    n, scale = 4, np.trace(moments.inputs) / 12
    for prior in (np.zeros((12, n)), np.random.default_rng(0).standard_normal((12, n))):
        found = moments.solve(0.7, prior if prior.any() else None)
        for k in range(n):
            prices = 0.7 * scale * np.repeat(WEIGHTS, n)
            prices[k::n] *= OWN
            wanted = np.linalg.solve(
                moments.inputs + np.diag(prices),
                moments.outputs[:, k] + prices * prior[:, k],
            )
            assert np.allclose(found[:, k], wanted)


def test_states_do_not_know_what_lies_before_a_seam():
    rows = linear_system(rotation(1), n=60)
    begins = np.arange(60) == 30
    states = states_of(rows, begins)
    assert np.array_equal(states[30:], states_of(rows[30:], begins[30:]))
    assert np.allclose(next_state(states[40], rows[41]), states[41])
    assert 29 not in pairs_within(begins, 0, 60)
    assert len(pairs_within(begins, 0, 60)) == 58


def test_noise_is_predicted_by_its_mean():
    """There is nothing to foretell: the error is that of the mean, up to what choosing costs."""
    noise = np.random.default_rng(0).standard_normal((700, 8))
    rule = Dynamics().fit(noise[:500], noise[:500])
    foretold = np.array([rule.advance(a, b) for a, b in pairwise(noise[499:-1])])
    assert np.mean((foretold - noise[501:]) ** 2) < 1.03 * noise.var()


def error_of(method, X, start):
    return teacher_forced(method.fit(X[:start]), X[start:], X[start:]).vs_frame.mean()


@pytest.fixture(scope="module")
def rotating():
    """Twelve channels of a system that turns, noisy, in units of its own."""
    hidden = linear_system(rotation(), n=560, noise=0.3)
    mixing = np.random.default_rng(2).standard_normal((6, 12))
    return hidden @ mixing + 0.3 * np.random.default_rng(3).standard_normal((560, 12))


@pytest.mark.slow
def test_what_turns_is_foretold_better_than_by_gains_and_by_copying(rotating):
    quick = {"n_atoms": 40, "window": 400, "alpha": "auto", "lam": 0.01, "random_state": 0}
    own = error_of(PSMT(**quick, extrapolation="dynamics"), rotating, 460)
    assert own < 0.8 * error_of(PSMT(**quick, extrapolation="gain"), rotating, 460)
    assert own < 0.6 * error_of(CopyLast(), rotating, 460)
    # Ridge regression has the form of this system; what is more general than needed pays for it, but not much.
    assert own < 1.1 * error_of(RidgeAutoregression(), rotating, 460)


@pytest.fixture(scope="module")
def model(rotating):
    return PSMT.for_series(n_atoms=30, random_state=0).fit(rotating)


def test_far_ahead_it_shrinks_to_the_mean(rotating, model):
    far = model.predict(400)
    assert np.abs(far[-1] - rotating.mean(0)).max() < 0.3 * rotating.std()
    assert np.abs(far).max() < 3 * np.abs(rotating).max()


def test_codes_come_with_the_frames(model):
    codes = model._engine.numpy(model.predict_codes(2))
    assert codes.shape == (2, 30)
    assert (codes >= 0).all()
    assert codes.any()


def test_others_help_a_series_that_is_short(rotating):
    """Pooling is chosen where the past says so: a short series alone knows little of a matrix of 12 x 36."""
    past, rest = rotating[:420], rotating[420:]
    # `rest` is a series of its own, of which 70 frames are known.
    X, lengths = np.vstack([past, rest[:70]]), [420, 70]
    both = PSMT.for_series(n_atoms=30, random_state=0).fit(X, lengths=lengths)
    alone = PSMT.for_series(n_atoms=30, random_state=0).fit(rest[:70])
    errors = {"both": 0.0, "alone": 0.0}
    for x, y in pairwise(rest[70:]):
        errors["both"] += np.mean((both.update(x).predict() - y) ** 2)
        errors["alone"] += np.mean((alone.update(x).predict() - y) ** 2)
    assert errors["both"] < errors["alone"]


@pytest.mark.slow
def test_many_features_are_continued_along_their_axes():
    hidden = linear_system(rotation(), n=300, noise=0.3)
    X = hidden @ np.random.default_rng(2).standard_normal((6, MOST_AXES + 22))
    model = PSMT.for_series(n_atoms=20, random_state=0)
    assert error_of(model, X, 260) < 0.7 * error_of(CopyLast(), X, 260)


def test_a_cut_is_a_seam_to_the_dynamics(rotating):
    model = PSMT(n_atoms=20, window=300, alpha="auto", lam=0.01, extrapolation="dynamics", random_state=0).fit(
        rotating[:400]
    )
    model.update(rotating[400] + 300.0)
    assert model.cut_
    begins = model._extrapolation._begins
    assert np.array_equal(np.flatnonzero(begins), [len(begins) - 1])
