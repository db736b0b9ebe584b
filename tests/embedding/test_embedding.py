"""Layer 2: the straightest directions, and the rank and sign policy. The stochastic way there: test_stochastic.py."""

import itertools
from functools import partial

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from oracles import literal
from psmt import TemporalEmbedding
from psmt.embedding import solve_closed_form
from psmt.embedding.closed_form import solve_whitened
from psmt.embedding.moments import WindowMoments
from psmt.errors import NotEnoughFramesError
from psmt.numerics.rank import RANK_TOL, fix_signs, noise_variance, whiten


@parametrize_with_checks([TemporalEmbedding()])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def layer_of(engine):
    return partial(TemporalEmbedding, device=engine.device)


def smooth_codes(n=120, n_atoms=8, seed=0, paces=None):
    """Non-negative codes (n, n_atoms): mixtures of oscillations of very different pace."""
    rng = np.random.default_rng(seed)
    t = np.arange(n)[:, None]
    sources = np.cos(t * (np.geomspace(0.02, 2.0, n_atoms) if paces is None else paces) + np.arange(n_atoms))
    codes = sources @ rng.standard_normal((n_atoms, n_atoms)) + 0.01 * rng.standard_normal((n, n_atoms))
    return codes - codes.min(axis=0)


def angles(P, Q):
    return scipy.linalg.subspace_angles(P.T, Q.T)


both = pytest.mark.parametrize(
    ("centred", "half_stencils"), [(True, False), (True, True), (False, False), (False, True)]
)


def regularised(codes, *, centred, half_stencils):
    """S and V of the codes, as if white noise were added to them."""
    V = np.cov(codes.T) if centred else codes.T @ codes / len(codes)
    AD = codes.T @ literal.second_difference_operator(len(codes), full=half_stencils)
    noise = float(noise_variance(np.diag(V), RANK_TOL)) * np.eye(len(V))
    return AD @ AD.T + 1.5 * (len(codes) - 2) * noise, V + noise


@both
@pytest.mark.parametrize("f", [1, 3, 8])
def test_agrees_with_the_generalised_eigenproblem(layer_of, centred, half_stencils, f):
    codes = smooth_codes()
    values, vectors = scipy.linalg.eigh(*regularised(codes, centred=centred, half_stencils=half_stencils))
    layer = layer_of(n_components=f, centred=centred, half_stencils=half_stencils).fit(codes)
    assert np.allclose(layer.eigenvalues_, values[:f], rtol=1e-6)
    assert angles(layer.embedding_, vectors[:, :f].T).max() < 1e-6
    assert np.allclose(np.abs(layer.embedding_), np.abs(vectors[:, :f].T), atol=1e-6)


@both
@pytest.mark.parametrize(("rank_tol", "close"), [(0.0, 1e-7), (RANK_TOL, 2e-2)])
def test_agrees_with_the_papers_two_steps(layer_of, centred, half_stencils, rank_tol, close):
    codes = smooth_codes()
    P = literal.embedding(codes.T, 4, centred=centred, full=half_stencils)
    how = {"centred": centred, "half_stencils": half_stencils, "rank_tol": rank_tol}
    Q = layer_of(n_components=4, **how).fit(codes).embedding_
    assert np.allclose(Q.T @ Q, P.T @ P, atol=close)


@both
def test_the_constraint_and_the_objective_hold(layer_of, centred, half_stencils):
    codes = smooth_codes()
    layer = layer_of(centred=centred, half_stencils=half_stencils).fit(codes)
    S, V = regularised(codes, centred=centred, half_stencils=half_stencils)
    P = layer.embedding_
    assert np.allclose(P @ V @ P.T, np.eye(8), atol=1e-8)
    assert np.allclose(P @ S @ P.T, np.diag(layer.eigenvalues_), atol=1e-8 * layer.eigenvalues_[-1])
    assert np.all(np.diff(layer.eigenvalues_) >= 0)


# Rank


def test_dead_atoms_get_zero_columns(layer_of):
    codes = smooth_codes()
    codes[:, 2] = 0.0
    codes[:, 5] = 3.0
    layer = layer_of().fit(codes)
    assert layer.rank_ == layer.n_components_ == 6
    assert not layer.embedding_[:, [2, 5]].any()
    assert np.linalg.norm(layer.embedding_, axis=0)[[0, 1, 3, 4, 6, 7]].min() > 0


def test_duplicated_atoms_reduce_the_rank_and_share_their_place(layer_of):
    codes = smooth_codes()
    codes[:, 3] = codes[:, 1]
    layer = layer_of().fit(codes)
    assert layer.rank_ == 7
    assert np.allclose(layer.embedding_[:, 3], layer.embedding_[:, 1])
    assert np.allclose(layer.embedding_ @ np.cov(codes.T) @ layer.embedding_.T, np.eye(7), atol=1e-6)


@pytest.mark.parametrize(("rank_tol", "close"), [(0.0, 1e-6), (RANK_TOL, 1e-3)])
def test_the_null_space_supplies_no_fake_straight_directions(layer_of, rank_tol, close):
    """A mixture that never moves is perfectly straight, but it is not a direction of the window."""
    codes = smooth_codes(n_atoms=4)
    doubled = np.hstack([codes, codes @ np.random.default_rng(0).standard_normal((4, 4))])
    full, layer = (layer_of(rank_tol=rank_tol).fit(each) for each in (codes, doubled))
    assert layer.rank_ == 4
    assert np.allclose(layer.eigenvalues_, full.eigenvalues_, rtol=close)
    assert np.allclose(np.abs(layer.transform(doubled)), np.abs(full.transform(codes)), atol=close)


def test_atoms_below_the_tolerance_are_as_rough_as_noise(layer_of):
    codes = smooth_codes()
    codes[:, 4] *= 1e-5
    layer, sharp = (layer_of(n_components=7, rank_tol=tol).fit(codes) for tol in (1e-6, 0.0))
    assert layer.rank_ == sharp.rank_ == 8
    # Without the noise that atom would count as much as any other: its column is as many times larger.
    columns = np.linalg.norm(layer.embedding_, axis=0), np.linalg.norm(sharp.embedding_, axis=0)
    assert columns[0][4] < 0.01 * columns[1][4]


def sinusoids(n=400, n_atoms=8, weakest=1e-3):
    """Codes whose V has eigenvalues down to `weakest` of the largest."""
    t = np.arange(n)[:, None]
    return np.sin(t * (0.05 + 0.11 * np.arange(n_atoms))) * np.sqrt(np.geomspace(1.0, weakest, n_atoms))


def test_where_v_is_determined_it_is_the_papers(layer_of):
    codes = sinusoids()
    ours, paper = (layer_of(rank_tol=r).fit(codes) for r in (RANK_TOL, 0.0))
    # The noise is a fraction of at most 16 RANK_TOL of the larger variances, and the weakest is 1e-3 of them.
    closest = 16 * RANK_TOL / 1e-3 * np.abs(paper.embedding_).max()
    assert np.allclose(ours.embedding_, paper.embedding_, rtol=0, atol=closest)


def test_the_noise_is_what_its_formula_says():
    """By LAPACK on the regularised pair of matrices, and by the eigenvectors of V."""
    codes = smooth_codes(n=400)
    codes[:, 4] *= 1e-4
    moments = WindowMoments.of(codes)
    V, S = moments.covariance(), moments.second_differences()
    N = float(noise_variance(np.diag(V), 1e-7)) * np.eye(len(V))
    lifted = solve_closed_form(V, S, 8, n_codes=400, rank_tol=1e-7)
    assert np.allclose(lifted.eigenvalues, scipy.linalg.eigh(S + 1.5 * 398 * N, V + N, eigvals_only=True), rtol=1e-7)
    whitened = solve_whitened(whiten(V, rank_tol=1e-7), S, 8, n_codes=400)
    assert np.allclose(lifted.matrix, whitened.matrix, atol=1e-6 * np.abs(whitened.matrix).max())


@pytest.mark.slow
def test_nothing_switches():
    """An atom fades from lively to nothing, through all variances: the embedding never jumps."""
    codes = smooth_codes(n=300)

    def gram(scale):
        scaled = codes.copy()
        scaled[:, 2] *= scale
        moments = WindowMoments.of(scaled)
        P = solve_closed_form(moments.covariance(), moments.second_differences(), n_codes=300).matrix
        P = P * np.where(np.arange(8) == 2, scale, 1.0)
        return P.T @ P

    steps = []
    for number in (200, 400):  # half the step, half the change
        grams = [gram(scale) for scale in np.geomspace(1e-7, 1.0, number)]
        steps.append(max(np.linalg.norm(b - a) / np.linalg.norm(a) for a, b in itertools.pairwise(grams)))
    assert steps[0] < 0.2
    assert steps[1] < 0.6 * steps[0]


@pytest.mark.slow
def test_the_noise_goes_in_smooth_steps_and_knows_no_unit():
    variances = np.geomspace(1e-3, 1.0, 30)
    scales = np.concatenate([np.geomspace(1e-6, 1e6, 2001), np.geomspace(10.0, 1000.0, 40001)])
    scales.sort()
    noise = np.array([noise_variance(c * variances, 1e-8) for c in scales])
    assert np.all(np.diff(noise) >= 0)
    assert np.mean(np.diff(noise) == 0) > 0.9  # a slide does not change it
    fine = (scales[1:] > 10.0) & (scales[1:] < 1000.0)
    assert noise[scales < 1000.0][-1] > 100 * noise[scales > 10.0][0]
    assert np.max((noise[1:] / noise[:-1])[fine]) < 1.2  # nor does it jump
    relative = noise / (scales * np.sum(variances**2) / np.sum(variances))
    assert 1e-8 / 20 < relative.min() < relative.max() < 20 * 1e-8
    assert noise_variance(np.append(variances, np.zeros(100)), 1e-8) == noise_variance(variances, 1e-8)


def test_fewer_codes_than_atoms(layer_of):
    codes = smooth_codes(n=6, n_atoms=20)
    layer = layer_of().fit(codes)
    assert layer.rank_ <= 5
    assert np.allclose(layer.embedding_ @ np.cov(codes.T) @ layer.embedding_.T, np.eye(layer.rank_), atol=1e-6)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1e6])
def test_a_constant_sequence_has_no_directions(layer_of, value):
    layer = layer_of().fit(np.full((50, 4), value))
    assert layer.rank_ == layer.n_components_ == 0
    assert layer.transform(np.ones((3, 4))).shape == (3, 0)


def test_more_components_than_rank_names_both(layer_of):
    codes = smooth_codes()
    codes[:, 0] = 1.0
    message = "n_components=8 is more than the rank 7 of the window's codes; use n_components <= 7"
    with pytest.raises(ValueError, match=message):
        layer_of(n_components=8).fit(codes)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_whitening_whitens_the_range_alone(seed, rank):
    factor = np.random.default_rng(seed).standard_normal((6, rank))
    V = factor @ factor.T
    W = whiten(V, rank_tol=0.0).matrix
    assert np.allclose(W.T @ V @ W, np.eye(W.shape[1]), atol=1e-5)
    assert np.allclose(V @ W @ W.T @ V, V, atol=1e-5 * np.abs(V).max())


# Signs


def test_signs_are_fixed(layer_of):
    codes = smooth_codes()
    P = layer_of().fit(codes).embedding_
    assert (P[np.arange(8), np.abs(P).argmax(axis=1)] > 0).all()
    turned = P * np.array([1, -1, 1, -1, 1, -1, 1, -1])[:, None]
    assert np.array_equal(fix_signs(turned), P)
    assert fix_signs(np.zeros((2, 3))).tolist() == np.zeros((2, 3)).tolist()
    assert P.tobytes() == layer_of().fit(codes).embedding_.tobytes()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_atom_order_only_orders_the_columns(layer_of, seed):
    codes, order = smooth_codes(seed=seed), np.random.default_rng(seed).permutation(8)
    P, Q = (layer_of(n_components=3).fit(part).embedding_ for part in (codes, codes[:, order]))
    assert np.allclose((P.T @ P)[np.ix_(order, order)], Q.T @ Q, atol=1e-6 * np.abs(P.T @ P).max())


# Growing


def test_partial_fit_is_fit_on_everything(layer_of):
    codes = smooth_codes()
    whole = layer_of(n_components=3).fit(codes)
    parts = layer_of(n_components=3).partial_fit(codes[:50]).partial_fit(codes[50:51]).partial_fit(codes[51:])
    assert np.allclose(whole.embedding_, parts.embedding_, atol=1e-7)


def test_solving_from_sliding_moments_is_solving_afresh(layer_of):
    codes = smooth_codes(n=200)
    moments = WindowMoments.of(codes[:100])
    for code in codes[100:]:
        moments.slide(code)
    slid = solve_closed_form(moments.covariance(), moments.second_differences(), 4, n_codes=100)
    assert np.allclose(slid.matrix, layer_of(n_components=4).fit(codes[100:]).embedding_, atol=1e-7)


# Manners


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components=0 is too small; use n_components >= 1"),
        ({"n_components": 2.0}, "n_components=2.0 is not a whole number"),
        ({"n_components": True}, "n_components=True is not a whole number"),
        ({"lam": -1}, "lam=-1 is out of range; use a finite lam >= 0"),
        ({"rank_tol": -1.0}, "rank_tol=-1.0 is out of range"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        TemporalEmbedding(**parameters).fit(smooth_codes())


def test_two_codes_do_not_bend():
    with pytest.raises(NotEnoughFramesError, match=r"n_samples = 2 codes .* a second difference needs 3"):
        TemporalEmbedding().fit(np.ones((2, 3)))


def test_points_of_the_wrong_width_are_refused():
    layer = TemporalEmbedding(n_components=3).fit(smooth_codes())
    with pytest.raises(ValueError, match="points have 5 columns, but there are 3 components"):
        layer.inverse_transform(np.ones((2, 5)))
    with pytest.raises(NotFittedError):
        TemporalEmbedding().transform(np.ones((2, 5)))
