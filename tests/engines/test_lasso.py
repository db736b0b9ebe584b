"""The solver of the torch engine, on the host and by the kernel, against the CPU's and scikit-learn's."""

import numpy as np
import pytest
from sklearn.linear_model import LassoLars

from psmt.engines.numba.lasso import solve_many
from psmt.numerics.arrays import unit_rows
from psmt.recovery import Recovery

torch = pytest.importorskip("torch")

from psmt.engines import engine_for  # noqa: E402
from psmt.engines.contract import Bound, ResidentArrays  # noqa: E402
from psmt.engines.torch import lasso as torch_lasso  # noqa: E402
from psmt.engines.torch.cuda import Captured  # noqa: E402
from psmt.engines.torch.lasso import pose, solve  # noqa: E402


@pytest.fixture(scope="module", params=["cpu", "cuda"])
def device(request):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    torch.set_num_threads(1)
    return request.param


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def on(device):
    return lambda values, dtype=torch.float64: torch.as_tensor(np.asarray(values), dtype=dtype, device=device)


def objective(columns, targets, penalty, coef):
    return 0.5 * ((targets - coef @ columns) ** 2).sum(1) + (penalty * coef).sum(1)


def units(rng, n, n_features):
    return unit_rows(rng.standard_normal((n, n_features)))[0]


@pytest.mark.parametrize("n", [3, 400])
def test_solutions_are_those_of_scikit_learn(on, rng, n):
    columns, targets = units(rng, 40, 12), rng.standard_normal((n, 12))
    found = solve(pose(on(columns), on(targets), on(np.full(40, 0.3))), tol=1e-12)
    lasso = LassoLars(alpha=0.3 / 12, positive=True, fit_intercept=False)
    for target, coef in zip(targets[:20], found.coef.cpu().numpy(), strict=False):
        np.testing.assert_allclose(coef, lasso.fit(columns.T, target).coef_, atol=1e-7)
    assert float((found.gap / on((targets**2).sum(1))).max()) <= 0.5e-12


@pytest.mark.parametrize("many", [False, True])
def test_more_members_than_shared_memory_holds(device, on, rng, many):
    # The inverse of so large a support moves to device memory on the way.
    columns, targets = units(rng, 600, 300), rng.standard_normal((300 if many and device == "cuda" else 2, 300))
    penalty = rng.uniform(1e-4, 1e-2, 600)
    reference = solve_many(columns, targets[:2], penalty)
    assert (reference.coef > 0).sum(1).min() > 170
    found = solve(pose(on(columns), on(targets), on(penalty)), tol=1e-12).coef[:2].cpu().numpy()
    np.testing.assert_allclose(found, reference.coef, atol=1e-7)


@pytest.mark.parametrize("penalty", [0.3, 1e-3, 0.0])
def test_columns_that_depend_on_each_other(on, rng, penalty):
    columns = units(rng, 30, 6)
    columns[20:28] = columns[:8]  # twice the same
    columns[28] = unit_rows(columns[:1] + columns[1:2])[0]
    columns[29] = 0.0
    targets = rng.standard_normal((50, 6))
    reference = solve_many(columns, targets, penalty)
    found = solve(pose(on(columns), on(targets), on(np.full(30, penalty))), tol=1e-12)
    coef = found.coef.cpu().numpy()
    best = objective(columns, targets, penalty, reference.coef)
    np.testing.assert_allclose(objective(columns, targets, penalty, coef), best, atol=1e-11)
    assert (coef >= 0).all()
    assert (coef[:, 29] == 0).all()


@pytest.mark.parametrize("seed", [132, 245, 302])
def test_members_that_reach_zero_leave_for_good(on, seed):
    """Rounding left a little of a member that had reached zero, and no step went on from there."""
    rng = np.random.default_rng(seed)
    n_columns, n_features = rng.integers(4, 60), rng.integers(2, 20)
    columns = rng.standard_normal((n_columns, n_features)) + rng.choice([0, 1, 3]) * rng.standard_normal(n_features)
    columns = unit_rows(columns)[0]
    if seed % 3 == 0:
        columns[n_columns // 2 : n_columns // 2 + n_columns // 4] = columns[: n_columns // 4]
    targets, penalty = rng.standard_normal((40, n_features)), rng.choice([0.5, 0.1, 0.01])
    best = objective(columns, targets, penalty, solve_many(columns, targets, penalty).coef)
    found = solve(pose(on(columns), on(targets), on(np.full(n_columns, penalty))), tol=1e-12).coef.cpu().numpy()
    np.testing.assert_allclose(objective(columns, targets, penalty, found), best, rtol=1e-11)


def test_nothing_to_explain(on, rng):
    problems = pose(on(units(rng, 9, 4)), on(np.zeros((3, 4))), on(np.full(9, 0.1)))
    found = solve(problems, tol=1e-12, start=on(rng.random((3, 9))))
    assert not found.coef.any()
    none = solve(pose(on(units(rng, 9, 4)), on(np.zeros((0, 4))), on(np.full(9, 0.1))), tol=1e-12)
    assert none.coef.shape == (0, 9)


def test_any_start_leads_to_the_same_solution(on, rng):
    columns, targets = units(rng, 50, 20), rng.standard_normal((4, 20))
    problems = pose(on(columns), on(targets), on(np.full(50, 0.1)))
    cold = solve(problems, tol=1e-12).coef
    for start in (cold, cold.roll(1, 0), torch.ones_like(cold), torch.zeros_like(cold)):
        assert torch.allclose(solve(problems, tol=1e-12, start=start).coef, cold, atol=1e-9)


def test_problems_with_columns_and_penalties_of_their_own(on, rng):
    columns = np.stack([units(rng, 25, 8) for _ in range(7)])
    targets, penalties = rng.standard_normal((7, 8)), rng.uniform(0.05, 0.5, (7, 25))
    found = solve(pose(on(columns), on(targets), on(penalties)), tol=1e-12).coef.cpu().numpy()
    for own, target, penalty, coef in zip(columns, targets, penalties, found, strict=True):
        np.testing.assert_allclose(coef, solve_many(own, target[None], penalty).coef[0], atol=1e-8)


@pytest.mark.parametrize("activity", [0.0, 0.05, 0.5, 5.0, np.inf])
def test_a_bound_on_all_coefficients(on, rng, activity):
    embedding = rng.standard_normal((6, 30))
    points = rng.standard_normal((5, 6))
    reference = Recovery(embedding, 0.05, activity=max(activity, 1e-300))
    columns, norms = unit_rows(embedding.T)
    bound = Bound(on(1.0 / norms), on(np.full(5, activity)))
    problems = pose(on(columns), on(points), on(np.full(30, 0.025)))
    found = solve(problems, tol=1e-14, bound=bound).coef.cpu().numpy() / norms
    expected = np.stack([reference(point) for point in points])
    np.testing.assert_allclose(found, expected, atol=1e-7)
    assert (found.sum(1) <= activity * (1 + 1e-12)).all()


def test_single_precision(on, rng):
    columns, targets = units(rng, 100, 30), rng.standard_normal((40, 30))
    penalties = np.full(100, 0.1)
    reference = solve_many(columns, targets, penalties).coef
    single = [on(part, torch.float32) for part in (columns, targets, penalties)]
    found = solve(pose(*single), tol=1e-12).coef
    assert found.dtype == torch.float32
    best = objective(columns, targets, penalties, reference)
    np.testing.assert_allclose(objective(columns, targets, penalties, found.double().cpu().numpy()), best, rtol=1e-5)


def test_what_is_captured_gives_what_is_done(device, on, rng):
    state = on(np.zeros(5))

    def add(given, fixed, *, times):
        (total,) = fixed
        total += times * given
        return total.clone(), given.sum()

    captured = Captured(add)
    for i in range(1, 4):
        total, own = captured(on(np.full(5, i)), ResidentArrays((state,)), times=2.0)
        assert float(own) == 5 * i
        assert total.tolist() == [float(i * (i + 1))] * 5
    assert state.tolist() == [12.0] * 5


def test_what_cannot_be_captured_is_done(device, on):
    def look(given):
        return (given * float(given.sum()),)

    captured = Captured(look)
    for i in (1.0, 2.0):
        if device == "cuda" and i == 1.0:
            with pytest.warns(UserWarning, match="look cannot be captured"):
                found = captured(on([i, i]))[0]
        else:
            found = captured(on([i, i]))[0]
        assert found.tolist() == [2 * i * i] * 2


def test_recoveries_of_one_shape_do_not_disturb_each_other(device, on, rng):
    engine = engine_for("torch:cpu" if device == "cpu" else device)
    embeddings, points = on(rng.standard_normal((3, 4, 10))), on(rng.standard_normal((3, 4)))
    recoveries = [Recovery(embedding, 0.1, engine=engine) for embedding in embeddings]
    found = [recover(point) for recover, point in zip(recoveries, points, strict=True)]
    for embedding, point, code in zip(embeddings, points, found, strict=True):
        expected = Recovery(embedding.cpu().numpy(), 0.1)(point.cpu().numpy())
        np.testing.assert_allclose(code.cpu().numpy(), expected, atol=1e-9)


def test_large_batches_are_posed_in_parts(on, rng, monkeypatch):
    monkeypatch.setattr(torch_lasso, "_BATCH", 7)
    columns, targets = units(rng, 20, 6), rng.standard_normal((30, 6))
    found = torch_lasso.solve_many(on(columns), on(targets), on(np.full(20, 0.2)), tol=1e-12).coef.cpu().numpy()
    np.testing.assert_allclose(found, solve_many(columns, targets, 0.2).coef, atol=1e-8)
