"""The non-negative lasso: exact, against other people's solvers, and vouched for by its gap."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.solvers import descent_codes, lars_codes, nonnegative_least_squares
from psmt.engines.numba.lasso import gram_matrix, solve_many, solve_one
from psmt.numerics.arrays import unit_rows


def problem(n_columns, n_features, n_targets, seed=0):
    """Unit columns and targets; targets resemble their neighbours, as frames do."""
    rng = np.random.default_rng(seed)
    columns, _ = unit_rows(rng.standard_normal((n_columns, n_features)))
    targets = np.cumsum(rng.standard_normal((n_targets, n_features)), axis=0)
    return columns, targets


def objective(columns, x, a, penalty):
    return 0.5 * np.sum((x - a @ columns) ** 2) + np.sum(penalty * a)


def exact_gap(columns, x, a, penalty):
    """Duality gap from its definition: the dual point is the residual, shrunk until it is feasible."""
    residual = x - a @ columns
    correlation = columns @ residual
    over = correlation > penalty
    scale = min(1.0, np.min(np.broadcast_to(penalty, over.shape)[over] / correlation[over], initial=1.0))
    dual = 0.5 * x @ x - 0.5 * np.sum((x - scale * residual) ** 2)
    return objective(columns, x, a, penalty) - dual


def assert_optimal(columns, x, a, penalty, atol=1e-7):
    """The optimality conditions, which need no other solver."""
    slope = columns @ (x - a @ columns) - penalty
    scale = max(np.abs(x).max(), 1.0)
    assert (a >= 0).all()
    assert slope.max() <= atol * scale
    assert np.abs(slope[a > 0]).max(initial=0.0) <= atol * scale


@pytest.mark.parametrize(
    ("oracle", "n_columns", "n_features", "alpha"),
    [
        (lars_codes, 40, 20, 0.3),
        (lars_codes, 40, 20, 2.0),
        (lars_codes, 60, 4, 0.01),
        (lars_codes, 60, 4, 0.3),
        (descent_codes, 10, 30, 0.01),
        (descent_codes, 10, 30, 2.0),
        (descent_codes, 40, 20, 0.01),
    ],
)
def test_agrees_with_scikit_learn(oracle, n_columns, n_features, alpha):
    columns, targets = problem(n_columns, n_features, 30)
    assert np.allclose(solve_many(columns, targets, alpha).coef, oracle(targets, columns, alpha), atol=1e-9)


@pytest.mark.parametrize(("n_columns", "n_features"), [(10, 30), (40, 20)])
def test_one_penalty_per_column_agrees_with_clarabel(n_columns, n_features):
    columns, targets = problem(n_columns, n_features, 6)
    penalty = np.random.default_rng(1).random(n_columns)
    expected = [nonnegative_least_squares(columns.T, x, 2 * penalty) for x in targets]
    assert np.allclose(solve_many(columns, targets, penalty).coef, expected, atol=1e-6)
    assert np.allclose([solve_one(columns, x, penalty).coef for x in targets], expected, atol=1e-6)


@pytest.mark.parametrize("tol", [1e-12, 1e-2])
def test_the_gap_is_true_and_within_tolerance(tol):
    columns, targets = problem(40, 20, 80)
    best = solve_many(columns, targets, 0.2, tol=1e-15).coef
    result = solve_many(columns, targets, 0.2, tol=tol)
    for x, a, gap, b in zip(targets, result.coef, result.gap, best, strict=True):
        scale = 0.5 * x @ x
        assert gap == pytest.approx(exact_gap(columns, x, a, 0.2), abs=1e-12 * scale)
        excess = objective(columns, x, a, 0.2) - objective(columns, x, b, 0.2)
        assert excess <= gap + 1e-12 * scale
        assert gap <= tol * scale


def test_a_loose_tolerance_stops_early():
    columns, targets = problem(40, 20, 80)
    assert solve_many(columns, targets, 0.2, tol=1e-2).gap.max() > 1e-6


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("penalty", [0.0, 1e-9, 1e-4, 0.1])
def test_more_active_columns_than_rows(seed, penalty):
    columns, targets = problem(60, 4, 20, seed)
    for x, a in zip(targets, solve_many(columns, targets, penalty).coef, strict=True):
        assert_optimal(columns, x, a, penalty)
        assert np.count_nonzero(a) <= 4


def test_the_exchange_reaches_the_optimum_of_clarabel():
    columns, targets = problem(60, 4, 20)
    for x, a in zip(targets, solve_many(columns, targets, 1e-4).coef, strict=True):
        expected = nonnegative_least_squares(columns.T, x, np.full(60, 2e-4))
        assert objective(columns, x, a, 1e-4) == pytest.approx(objective(columns, x, expected, 1e-4), rel=1e-8)


def test_many_penalties_drive_exchanges():
    """Cheap columns join late and push out dear ones that span the same space."""
    columns, targets = problem(60, 4, 20)
    penalty = np.linspace(0.5, 0.001, 60) ** 2
    for x in targets:
        assert_optimal(columns, x, solve_one(columns, x, penalty, start=np.ones(60)).coef, penalty)


@pytest.mark.parametrize("penalty", [0.0, 0.1])
def test_duplicate_columns_share_one_solution(penalty):
    columns, targets = problem(12, 8, 40)
    doubled = solve_many(np.vstack([columns, columns]), targets, penalty).coef
    assert np.isfinite(doubled).all()
    single = solve_many(columns, targets, penalty).coef
    assert np.allclose(doubled[:, :12] + doubled[:, 12:], single, atol=1e-7)


def test_almost_parallel_columns():
    columns, targets = problem(12, 8, 20)
    for nudge in 10.0 ** -np.arange(3, 13):
        near, _ = unit_rows(columns + nudge * np.random.default_rng(0).standard_normal(columns.shape))
        both = np.vstack([columns, near])
        for x, a in zip(targets, solve_many(both, targets, 0.05).coef, strict=True):
            assert_optimal(both, x, a, 0.05, atol=1e-5)


def test_zero_targets_and_dear_penalties_give_zero():
    columns, targets = problem(12, 8, 5)
    assert not solve_many(columns, np.zeros((5, 8)), 0.1).coef.any()
    assert not solve_many(columns, np.zeros((5, 8)), 0.0).coef.any()
    assert not solve_many(columns, targets, 1.01 * (targets @ columns.T).max()).coef.any()
    assert not solve_one(columns, np.zeros(8), 0.1).coef.any()


def test_targets_opposite_to_all_columns_give_zero():
    columns = np.abs(problem(12, 8, 5)[0])
    assert not solve_many(columns, -np.ones((1, 8)), 0.0).coef.any()


@pytest.mark.parametrize("start", ["none", "solution", "everything", "wrong"])
def test_the_start_does_not_change_the_solution(start):
    columns, targets = problem(40, 20, 2)
    expected = solve_one(columns, targets[0], 0.1).coef
    starts = {"none": np.zeros(40), "solution": expected, "everything": np.ones(40), "wrong": 1.0 * (expected == 0)}
    assert np.allclose(solve_one(columns, targets[0], 0.1, start=starts[start]).coef, expected, atol=1e-9)


def test_thread_count_leaves_every_bit():
    columns, targets = problem(40, 20, 300)
    before = numba.get_num_threads()
    results = []
    try:
        for count in (1, before):
            numba.set_num_threads(count)
            results.append(solve_many(columns, targets, 0.1).coef.tobytes())
    finally:
        numba.set_num_threads(before)
    assert results[0] == results[1]


@pytest.mark.parametrize(("n_columns", "n_features"), [(1, 1), (3, 5), (64, 7), (67, 30), (130, 4)])
def test_gram_matrix(n_columns, n_features):
    columns = np.random.default_rng(0).standard_normal((n_columns, n_features))
    gram = gram_matrix(columns)
    assert np.allclose(gram, columns @ columns.T, atol=1e-13)
    assert np.array_equal(gram, gram.T)


def test_a_ready_gram_matrix_changes_nothing():
    columns, targets = problem(40, 20, 70)
    expected = solve_many(columns, targets, 0.1).coef
    assert np.array_equal(solve_many(columns, targets, 0.1, gram=gram_matrix(columns)).coef, expected)
    for x, a in zip(targets[:5], expected, strict=False):
        assert np.allclose(solve_one(columns, x, 0.1, gram=gram_matrix(columns)).coef, a, atol=1e-9)


def test_norms_give_the_coefficients_of_the_columns_as_they_were():
    _, targets = problem(1, 8, 6)
    columns = np.random.default_rng(0).standard_normal((12, 8)) * np.logspace(-1, 1, 12)[:, None]
    unit, norms = unit_rows(columns)
    for x, a in zip(targets, solve_many(unit, targets, 0.3 / norms, norms=norms).coef, strict=True):
        assert_optimal(columns, x, a, 0.3)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_rows_are_solved_alike_in_any_order_and_alone(seed):
    columns, targets = problem(30, 12, 70, seed)
    coef = solve_many(columns, targets, 0.1).coef
    order = np.random.default_rng(seed).permutation(70)
    assert np.allclose(solve_many(columns, targets[order], 0.1).coef, coef[order], atol=1e-9)
    assert np.allclose(solve_one(columns, targets[7], 0.1).coef, coef[7], atol=1e-9)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3))
def test_scaling_targets_and_penalty_scales_the_code(seed, scale):
    columns, targets = problem(30, 12, 5, seed)
    coef = solve_many(columns, targets, 0.1).coef
    assert np.allclose(solve_many(columns, scale * targets, 0.1 * scale).coef, scale * coef, atol=1e-9 * scale)


def test_unit_columns_keep_zeros():
    unit, norms = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    assert np.allclose(unit, [[0.6, 0.8], [0, 0]])
    assert np.allclose(norms, [5, 0])
