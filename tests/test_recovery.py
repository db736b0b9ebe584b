"""Step 7: codes from points, against solvers that other people wrote, and never absurd."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Lasso

from oracles.solvers import recover_change, recover_code
from psmt.embedding import TemporalEmbedding
from psmt.extrapolation import Gain, Hold, Linear


@pytest.fixture(scope="session")
def recovery(operations):
    """`psmt.recovery.Recovery` or what stands for it, on each engine."""
    return operations.recovery


def random_embedding(f=8, M=24, seed=0, spread=1.0):
    """P (f, M) whose columns differ in norm by 10^spread, and a point that a sparse code gives, with noise."""
    rng = np.random.default_rng(seed)
    P = rng.standard_normal((f, M)) * 10.0 ** rng.uniform(-spread, 0, M)
    code = rng.exponential(size=M) * (rng.random(M) < 0.3)
    return P, P @ code + 0.1 * rng.standard_normal(f)


def scaled_lasso(P, b, lam, *, positive):
    """Step 7 in the variables z_j a_j, where it is a plain lasso of scikit-learn."""
    z = np.linalg.norm(P, axis=0)
    descent = Lasso(alpha=lam / 2 / len(b), positive=positive, fit_intercept=False, tol=1e-14, max_iter=100_000)
    return descent.fit(P / z, b).coef_ / z


@pytest.mark.parametrize("lam", [0.01, 0.1, 0.5])
@pytest.mark.parametrize(("f", "M"), [(4, 12), (8, 24), (24, 24)])
def test_agrees_with_scikit_learn_and_clarabel(recovery, f, M, lam):
    P, b = random_embedding(f, M, seed=1)
    code = recovery(P, lam)(b)
    assert code.any()
    assert np.allclose(code, scaled_lasso(P, b, lam, positive=True), atol=1e-6)
    assert np.allclose(code, recover_code(P, b, lam), atol=1e-6)


@pytest.mark.parametrize("lam", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("share", [0.9, 0.5, 0.01])
@pytest.mark.parametrize("seed", range(3))
def test_the_bounded_problem_agrees_with_clarabel(recovery, seed, share, lam):
    P, b = random_embedding(seed=seed)
    bound = share * recovery(P, lam)(b).sum()
    code = recovery(P, lam, activity=bound)(b)
    expected = recover_code(P, b, lam, bound=bound)
    assert code.sum() == pytest.approx(bound, rel=1e-9)
    assert np.allclose(P @ code, P @ expected, atol=1e-5)
    if lam > 0:  # without a price the code is open where the bound leaves room
        assert np.allclose(code, expected, atol=1e-4)


def test_a_bound_that_is_not_reached_changes_nothing(recovery):
    P, b = random_embedding()
    free = recovery(P, 0.1)(b)
    assert np.array_equal(recovery(P, 0.1, activity=1.01 * free.sum())(b), free)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(2, 30), st.floats(0.001, 10))
def test_the_bound_always_holds(recovery, seed, f, M, activity):
    """Columns whose norms differ by a million make the sum leap as its price changes."""
    P, b = random_embedding(f, M, seed, spread=6)
    code = recovery(P, 0.01, activity=activity)(b)
    assert (code >= 0).all()
    assert code.sum() <= activity * (1 + 1e-9)
    change = recovery(P, 0.01, activity=activity).change(b)
    assert np.abs(change).sum() <= activity * (1 + 1e-9)


def test_an_atom_that_is_hardly_shown_cannot_explain_everything(recovery):
    """Only the last atom points the way that the point lies, but P shows a millionth of it."""
    P = np.array([[1.0, 0.5, -1e-6], [0.2, 1.0, 0.0]])
    b = np.array([-1.0, 0.5])
    assert recovery(P, 0.01)(b).sum() > 1e5
    assert recovery(P, 0.01, activity=4.0)(b).sum() <= 4.0 + 1e-9


def test_the_bound_is_on_the_whole_code(recovery):
    """What the embedding does not show keeps its activity, and that counts."""
    P, b = random_embedding(M=10)
    P[:, 3] = 0.0
    current = np.zeros(10)
    current[3] = 2.0
    free = recovery(P, 0.01)(b, current)
    assert free[3] == 2.0
    code = recovery(P, 0.01, activity=3.0)(b, current)
    assert free.sum() > 3.0
    assert code[3] == 2.0
    assert code.sum() == pytest.approx(3.0)


@pytest.mark.parametrize("lam", [0.01, 0.3])
def test_changes_agree_with_a_signed_lasso(recovery, lam):
    P, shift = random_embedding(seed=3)
    change = recovery(P, lam).change(shift)
    assert (change < 0).any()
    assert (change > 0).any()
    assert np.allclose(change, scaled_lasso(P, shift, lam, positive=False), atol=1e-6)
    assert np.allclose(change, recover_change(P, shift, lam), atol=1e-6)


def test_changes_are_bounded_together_with_the_code(recovery):
    P, shift = random_embedding(seed=3, spread=5)
    current = np.full(24, 0.1)
    assert np.abs(recovery(P, 0.01).change(shift, current)).sum() > 10.0
    change = recovery(P, 0.01, activity=5.0).change(shift, current)
    assert np.abs(change).sum() == pytest.approx(5.0 - 2.4)


def test_atoms_that_are_not_shown_keep_their_activity(recovery):
    P, b = random_embedding()
    P[:, [2, 5]] = 0.0
    current = np.arange(24.0)
    code = recovery(P, 0.1)(b, current)
    assert np.array_equal(code[[2, 5]], [2.0, 5.0])
    assert not recovery(P, 0.1)(b)[[2, 5]].any()
    assert not recovery(P, 0.1).change(b)[[2, 5]].any()
    shown = np.delete(np.arange(24), [2, 5])
    assert np.allclose(code[shown], recover_code(P[:, shown], b, 0.1), atol=1e-6)


def test_an_empty_embedding_keeps_the_code(operations, recovery):
    current = np.arange(4.0)
    recover = recovery(np.zeros((0, 4)), 0.1)
    for rule in (Linear(), Hold(), Gain()):
        assert np.array_equal(operations.recover_next(recover, rule, np.zeros(4), current), current)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_at_full_rank_recovery_undoes_the_embedding(engine, seed):
    rng = np.random.default_rng(seed)
    codes = rng.exponential(size=(60, 6)) * (rng.random((60, 6)) < 0.5)
    layer = TemporalEmbedding(device=engine.device).fit(codes)
    assert layer.rank_ == 6
    assert np.allclose(layer.inverse_transform(layer.transform(codes)), codes, atol=1e-6)


def test_steps_6_and_7_by_hand(operations, recovery):
    P, _ = random_embedding()
    rng = np.random.default_rng(1)
    before, now = rng.exponential(size=(2, 24))
    recover = recovery(P, 0.1)
    for rule, code in ((Linear(), 2 * now - before), (Hold(), now)):
        assert np.allclose(operations.recover_next(recover, rule, before, now), recover(P @ code), atol=1e-7)
    gain = Gain().fit(np.cumsum(np.ones((50, 8)), axis=0), np.cumsum(np.ones((50, 8)), axis=0))
    shift = gain.gains(8) * (P @ (now - before))
    assert np.abs(shift).max() > 0.1
    assert np.allclose(operations.recover_next(recover, gain, before, now), now + recover.change(shift), atol=1e-7)


@pytest.mark.parametrize("lam", [-0.1, np.nan, np.inf, "much", True])
def test_lam_must_be_a_price(recovery, lam):
    with pytest.raises((ValueError, TypeError), match=f"lam={lam!r}"):
        recovery(np.eye(2), lam)


def test_atoms_that_the_embedding_cannot_tell_apart_are_recovered_together(recovery):
    """Parallel columns leave the split open; it is that of least norm, whatever the rounding."""
    rng = np.random.default_rng(0)
    P = rng.standard_normal((6, 10))
    P[:, 7] = 2.0 * P[:, 3]
    P[:, 9] = 0.5 * P[:, 3]
    point = 3.0 * P[:, 3] + P[:, 1]
    codes = [recovery(P * (1 + 1e-7 * rng.standard_normal(P.shape)), 0.1)(point) for _ in range(5)]
    assert np.ptp(codes, axis=0).max() < 1e-4
    assert np.allclose(codes[0][[7, 9]], codes[0][3] * np.array([2.0, 0.5]), rtol=1e-4)
    alone = np.delete(P, [7, 9], axis=1)
    expected = recovery(alone, 0.1)(point)
    assert np.allclose(P @ codes[0], alone @ expected, atol=1e-6)
    assert np.isclose(np.linalg.norm(P, axis=0) @ codes[0], np.linalg.norm(alone, axis=0) @ expected, rtol=1e-6)


@pytest.mark.parametrize("activity", [np.inf, 1.0])
def test_several_prices_give_the_codes_of_each(operations, recovery, activity):
    P, b = random_embedding(seed=2)
    P[:, 5] = 0.0
    lams, current = (0.5, 0.01, 0.003, 0.1), np.eye(24)[5] + 0.1 * np.eye(24)[2]
    before, now = current, np.roll(current, 3)
    several = recovery(P, lams, activity=activity)
    alone = [recovery(P, lam, activity=activity) for lam in lams]
    assert np.allclose(several(b, current), [one(b, current) for one in alone], atol=1e-9)
    assert np.allclose(several.change(b, current), [one.change(b, current) for one in alone], atol=1e-9)
    for rule in (Linear(), Gain()):
        found = operations.recover_next(several, rule, before, now)
        assert found.shape == (4, 24)
        assert np.allclose(found, [operations.recover_next(one, rule, before, now) for one in alone], atol=1e-9)


@pytest.mark.parametrize("activity", [np.inf, 1.5, 0.5])
def test_many_points_give_the_codes_of_each(recovery, activity):
    """Some meet the bound and some do not."""
    P, _ = random_embedding(seed=2)
    P[:, 5] = 0.0
    rng = np.random.default_rng(0)
    points, currents = rng.standard_normal((6, 8)) * np.logspace(-1, 1, 6)[:, None], np.eye(24)[[5, 2, 3, 5, 5, 1]]
    recover = recovery(P, 0.1, activity=activity)
    one_by_one = [recover(point, current) for point, current in zip(points, currents, strict=True)]
    assert np.allclose(recover.many(points, currents), one_by_one, atol=1e-9)
