"""The stochastic solver: it reaches the closed form or says that it does not, and continues from its last state."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning
from studies.locality.stochastic import StochasticEmbedding, StochasticPSMT

from psmt import PSMT
from psmt.embedding import embed_window
from psmt.embedding.moments import WindowMoments
from psmt.numerics.rank import RANK_TOL, noise_variance


def sparse_codes(n=400, n_atoms=160, seed=0):
    """Codes as of a film: a bump that moves over a ring of atoms at a changing pace, and some noise; few are active."""
    rng = np.random.default_rng(seed)
    place = np.cumsum(0.1 + 0.05 * rng.standard_normal(n))
    around = 2 * np.pi * np.arange(n_atoms) / n_atoms
    codes = np.exp(8 * (np.cos(around - place[:, None]) - 1)) + 0.03 * rng.standard_normal((n, n_atoms))
    return np.maximum(codes - 0.05, 0.0)


def roughness_over_least(found, moments, n_components, **ways):
    return found.eigenvalues.sum() / embed_window(moments, n_components, **ways).eigenvalues.sum() - 1


@pytest.mark.parametrize(
    ("centred", "half_stencils"), list(itertools.product([True, False], repeat=2)), ids=lambda value: str(value)
)
@pytest.mark.parametrize("tol", [1e-2, 1e-5])
def test_it_reaches_the_closed_form_to_its_tolerance(centred, half_stencils, tol):
    codes = sparse_codes()
    moments, ways = WindowMoments.of(codes), {"centred": centred, "half_stencils": half_stencils}
    solver = StochasticEmbedding(5, tol=tol, **ways)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        found = solver.update(moments)
    assert solver.error_ <= tol
    assert -1e-9 <= roughness_over_least(found, moments, 5, **ways) <= tol
    V, S = moments.covariance(centred=centred), moments.second_differences(half_stencils=half_stencils)
    noise = float(noise_variance(np.diag(V), RANK_TOL)) * np.eye(len(V))
    V, S = V + noise, S + 1.5 * (len(codes) - 2) * noise
    assert np.allclose(found.matrix @ V @ found.matrix.T, np.eye(5), atol=1e-6)
    # Turned into eigenvectors, straightest first.
    assert np.allclose(found.matrix @ S @ found.matrix.T, np.diag(found.eigenvalues), atol=1e-6 * S.max())
    assert (np.diff(found.eigenvalues) >= 0).all()
    closed = embed_window(moments, 5, **ways).matrix
    if tol == 1e-5:
        assert scipy.linalg.subspace_angles(found.matrix.T, closed.T).max() < 0.01


@pytest.mark.parametrize("seed", range(4))
def test_the_estimate_does_not_promise_too_much(seed):
    """A window that is neither determined nor calm: most atoms hardly move, and are regularised."""
    codes = sparse_codes(seed=seed) * np.logspace(0, -4, 160)
    moments = WindowMoments.of(codes)
    for max_epochs in (1, 2, 4, 8):
        solver = StochasticEmbedding(4, tol=1e-9, max_epochs=max_epochs, seed=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = solver.update(moments)
        least = embed_window(moments, 4).eigenvalues.sum()
        assert found.eigenvalues.sum() - least <= solver.error_ * found.eigenvalues.sum() + 1e-6 * least


def test_it_warns_with_value_bound_and_way_out_when_it_does_not_get_there():
    moments = WindowMoments.of(sparse_codes())
    message = r"by an estimated \d.* after max_epochs=1, above tol=1e-08; use more max_epochs"
    with pytest.warns(ConvergenceWarning, match=message):
        StochasticEmbedding(5, max_epochs=1, tol=1e-8).update(moments)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        StochasticEmbedding(5, max_epochs=200, tol=1e-8).update(moments)
        StochasticEmbedding(5, max_epochs=1, tol=None).update(moments)  # early on purpose


@pytest.mark.slow
def test_a_warm_start_takes_fewer_passes_and_follows_the_window():
    codes = sparse_codes(n=410)
    moments, warm = WindowMoments.of(codes[:400]), StochasticEmbedding(5, tol=1e-3)
    warm.update(moments)
    passes = {"warm": 0, "cold": 0}
    for code in codes[400:]:
        moments.slide(code)
        cold = StochasticEmbedding(5, tol=1e-3)
        cold.update(moments)
        found = warm.update(moments)
        passes["warm"] += warm.n_epochs_
        passes["cold"] += cold.n_epochs_
        assert roughness_over_least(found, moments, 5) <= 1e-3
    assert passes["warm"] < 0.75 * passes["cold"]


def test_what_did_not_move_before_is_found_when_it_moves_straight():
    """A warm start knows nothing of new atoms, and its gradient does not lead to them: probes do."""
    rng = np.random.default_rng(0)
    codes = np.zeros((400, 30))
    codes[:, :20] = 3 + rng.standard_normal((400, 20))
    codes[200:, 20:] = 3 + 0.05 * np.cumsum(rng.standard_normal((200, 10)), axis=0)
    moments, solver = WindowMoments.of(codes[:200]), StochasticEmbedding(4, tol=1e-3)
    solver.update(moments)
    later = WindowMoments.of(codes[200:])
    assert roughness_over_least(solver.update(later), later, 4) <= 1e-3


def test_early_stopping_comes_closer_with_every_pass_and_keeps_its_constraint():
    codes = sparse_codes()
    moments, V = WindowMoments.of(codes), np.cov(codes.T)
    V = V + float(noise_variance(np.diag(V), RANK_TOL)) * np.eye(len(V))
    roughness = []
    for max_epochs in (1, 3, 10):
        found = StochasticEmbedding(4, max_epochs=max_epochs, tol=None).update(moments)
        assert np.allclose(found.matrix @ V @ found.matrix.T, np.eye(4), atol=1e-6)
        roughness.append(found.eigenvalues.sum())
    assert roughness[0] > roughness[1] > roughness[2] > embed_window(moments, 4).eigenvalues.sum()


def test_a_penalty_on_weights_lets_rows_use_fewer_atoms():
    """Two groups of atoms that move apart: eigenvectors mix them, rows with a penalty do not."""
    codes = np.hstack([sparse_codes(n_atoms=20, seed=seed) for seed in (0, 1)])
    moments, group = WindowMoments.of(codes), np.arange(40) // 20
    V = moments.covariance()

    def purity(found):
        assert np.allclose(found.matrix @ V @ found.matrix.T, np.eye(6), atol=1e-6)
        mass = (found.matrix * np.sqrt(np.diagonal(V))) ** 2
        inside = np.stack([mass[:, group == k].sum(axis=1) for k in range(2)])
        return (inside.max(axis=0) / mass.sum(axis=1)).mean()

    penalised = StochasticEmbedding(6, sparsity=0.05, tol=None, max_epochs=60).update(moments)
    assert purity(penalised) > 0.5 + 1.5 * (purity(embed_window(moments, 6)) - 0.5)


def test_same_seed_same_bytes_other_seed_other_batches():
    moments = WindowMoments.of(sparse_codes())
    first, again, other = (
        StochasticEmbedding(3, max_epochs=2, tol=None, seed=seed).update(moments).matrix for seed in (1, 1, 2)
    )
    assert first.tobytes() == again.tobytes()
    assert not np.allclose(np.abs(first), np.abs(other))


# In the model

T = np.arange(420)
SERIES = np.cos(T[:, None] / 15 + np.arange(8)) + 0.3 * np.sin(T[:, None] / 9 + np.arange(8) ** 2)
ASKED = {"n_atoms": 40, "window": 240, "n_components": 6, "alpha": 0.05, "lam": 0.01, "random_state": 0}


def test_psmt_predicts_what_the_closed_form_predicts():
    closed, sgd = PSMT(**ASKED).fit(SERIES[:300]), StochasticPSMT(**ASKED)
    sgd.descent = {"tol": 1e-10}
    sgd.fit(SERIES[:300])
    for x in SERIES[300:315]:
        assert np.allclose(sgd.update(x).predict(), closed.update(x).predict(), atol=1e-3)
    assert sgd.followed_.n_windows_ == 16
