"""The sliding window: however it came to its codes, its moments are those of its codes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from in_numpy import InNumpy
from oracles.literal import second_difference_operator
from psmt.embedding.moments import WindowMoments, variances_of


def sparse_codes(n, n_atoms=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.exponential(size=(n, n_atoms)) * (rng.random((n, n_atoms)) < 0.4)


def changing_scene(n, n_atoms, seed=0):
    """Codes (n, n_atoms) with lively (x 1e4), normal and still stretches, atoms that die and come back."""
    rng = np.random.default_rng(seed)
    codes = sparse_codes(n, n_atoms, seed)
    stretch = rng.integers(20, 400, size=n)
    start = 0
    while start < n:
        part = slice(start, start + stretch[start])
        kind = rng.choice(["normal", "lively", "still"])
        codes[part] *= {"normal": 1.0, "lively": 1e4, "still": 1.0}[kind]
        if kind == "still":
            codes[part] = codes[start]
        codes[part, rng.random(n_atoms) < 0.3] = 0.0
        start = part.stop
    return codes


def relative_error(found, expected):
    return np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-300)


def assert_moments_of(moments, codes, tol):
    """Moments against the plain definitions."""
    n = len(codes)
    bends = codes[1:-1] - 0.5 * (codes[:-2] + codes[2:])
    assert relative_error(moments.window.products, codes.T @ codes) < tol
    assert relative_error(moments.total, codes.sum(axis=0)) < tol
    assert relative_error(moments.covariance(centred=False), codes.T @ codes / n) < tol
    scale = np.abs(codes.T @ codes).max() / n + 1e-300
    assert np.abs(moments.covariance() - np.cov(codes.T)).max() < tol * scale
    assert relative_error(moments.window.curvature, bends.T @ bends) < tol
    assert np.array_equal(moments.window.uses, np.count_nonzero(codes, axis=0))
    dead = ~codes.any(axis=0)
    for matrix in (moments.window.products, moments.window.curvature, moments.covariance()):
        assert not matrix[dead].any()
        assert not matrix[:, dead].any()
    assert not moments.total[dead].any()


@pytest.mark.slow
def test_tens_of_thousands_of_slides_leave_no_trace(engine):
    """On the CPU; a torch device without a GPU is too slow for this many."""
    codes = changing_scene((30_000 if engine.device == "cpu" else 4_000) + 60, 6)
    own = engine.array(codes)
    moments = WindowMoments.of(own[:60], engine)
    for t in range(60, len(codes)):
        moments.update(own[t])
        moments.revert()
        if t % 293 == 0 or t == len(codes) - 1:
            assert_moments_of(InNumpy(engine, moments), codes[t - 59 : t + 1], 1e-8)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 20), st.integers(0, 40))
def test_sliding_is_refitting(operations, seed, window, slides):
    codes = sparse_codes(window + slides, seed=seed)
    moments = operations.moments(codes[:window])
    for code in codes[window:]:
        moments.update(code)
        moments.revert()
    fresh = operations.moments(codes[slides:])
    assert np.array_equal(moments.codes, fresh.codes)
    assert moments.peak_activity == fresh.peak_activity
    assert_moments_of(moments, codes[slides:], 1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.lists(st.booleans(), max_size=60))
def test_growing_and_shrinking_in_any_order(operations, seed, grows):
    codes = sparse_codes(100, seed=seed)
    moments, kept, codes = operations.moments(codes[:3]), list(codes[:3]), iter(codes[3:])
    for grow in grows:
        if grow or not kept:
            kept.append(next(codes))
            moments.update(kept[-1])
        else:
            kept.pop(0)
            moments.revert()
    assert len(moments) == len(kept)
    assert np.array_equal(moments.codes, np.array(kept).reshape(-1, 6))
    if len(kept) >= 3:
        assert_moments_of(moments, np.array(kept), 1e-12)


@pytest.mark.parametrize("half_stencils", [False, True])
def test_second_differences_are_those_of_the_papers_operator(operations, half_stencils):
    codes = sparse_codes(30)
    AD = codes.T @ second_difference_operator(30, full=half_stencils)
    assert np.allclose(operations.moments(codes).second_differences(half_stencils=half_stencils), AD @ AD.T)


def test_a_copy_from_the_state_goes_on_bit_for_bit(operations):
    codes = sparse_codes(60)
    moments = operations.moments(codes[:20])
    for code in codes[20:33]:
        moments.update(code)
        moments.revert()
    copy = operations.moments_from_state({name: value.copy() for name, value in moments.get_state().items()})
    for code in codes[33:]:
        for window in (moments, copy):
            window.update(code)
            window.revert()
        for name, value in moments.get_state().items():
            assert value.tobytes() == copy.get_state()[name].tobytes(), name


def test_a_state_that_does_not_fit_together_is_refused(operations):
    state = operations.moments(sparse_codes(20)).get_state()
    with pytest.raises(ValueError, match=r"moments\.products differs"):
        operations.moments_from_state(state | {"products": np.zeros((3, 3))})


def test_the_window_does_not_alias_its_input(operations):
    codes, code = np.ones((3, 3)), np.ones(3)
    moments = operations.moments(codes)
    moments.update(code)
    codes[:] = code[:] = 7
    assert np.array_equal(moments.codes, np.ones((4, 3)))


def test_latest_and_peak(operations):
    codes = sparse_codes(20)
    moments = operations.moments(codes)
    assert np.array_equal(moments.latest(2), codes[-2:])
    assert moments.peak_activity == pytest.approx(codes.sum(axis=1).max())


def test_an_empty_window():
    assert WindowMoments(3).peak_activity == 0
    with pytest.raises(ValueError, match="the window is empty"):
        WindowMoments(3).revert()


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("half_stencils", [True, False])
def test_changes_are_those_of_the_matrices(operations, centred, half_stencils):
    codes = np.abs(np.random.default_rng(0).standard_normal((60, 6)))
    moments = operations.moments(codes[:40])
    for code in codes[40:]:
        V, S = moments.covariance(centred=centred), moments.second_differences(half_stencils=half_stencils).copy()
        moments.slide(code)
        vectors, covariance, curvature = moments.last_change(
            moments.changes - 1, centred=centred, half_stencils=half_stencils
        )
        changed = V + (vectors.T * covariance) @ vectors
        assert np.allclose(changed, moments.covariance(centred=centred), atol=1e-12)
        changed = S + (vectors.T * curvature) @ vectors
        assert np.allclose(changed, moments.second_differences(half_stencils=half_stencils), atol=1e-12)


def test_only_a_single_slide_is_remembered(operations):
    codes = np.abs(np.random.default_rng(0).standard_normal((60, 6)))
    moments = operations.moments(codes[:40])
    assert moments.last_change(moments.changes) is None
    count = moments.changes
    moments.slide(codes[40])
    assert moments.last_change(count) is not None
    moments.slide(codes[41])
    assert moments.last_change(count) is None
    count = moments.changes
    moments.update(codes[42])
    assert moments.last_change(count) is None


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("half_stencils", [True, False])
@pytest.mark.parametrize("used", [0.05, 1.0])
def test_products_with_the_matrices(engine, operations, centred, half_stencils, used):
    """Of sparse codes they are made from the codes themselves."""
    rng = np.random.default_rng(0)
    codes = np.abs(rng.standard_normal((40, 60))) * (rng.random((40, 60)) < used)
    moments, vectors = operations.moments(codes), rng.standard_normal((60, 3))
    V, S = moments.covariance(centred=centred), moments.second_differences(half_stencils=half_stencils)
    sums = moments.window.sums(half_stencils=half_stencils)
    variances = InNumpy(engine, variances_of)
    images, rough = sums.times(vectors, centred=centred)
    assert np.allclose(images, V @ vectors)
    assert np.allclose(sums.covariance_times(vectors, centred=centred), V @ vectors)
    assert np.allclose(rough, S @ vectors)
    assert np.allclose(variances(np.diag(sums.products), sums.total, sums.n, centred=centred), np.diag(V))


def test_a_long_window_is_summed_in_parts_and_may_be_sparse(monkeypatch):
    from scipy.sparse import csr_array

    from psmt.engines.numba import code_window

    codes = np.random.default_rng(0).random((50, 6)) * (np.random.default_rng(1).random((50, 6)) < 0.4)
    whole = WindowMoments.of(codes)
    same = WindowMoments.of(csr_array(codes))
    for name in ("products", "curvature", "total", "uses", "codes", "activities"):
        np.testing.assert_array_equal(getattr(same.window, name), getattr(whole.window, name))
    for rows in (1, 2, 7, 49):
        monkeypatch.setattr(code_window, "_ROWS", rows)
        parts = WindowMoments.of(csr_array(codes))
        np.testing.assert_allclose(parts.window.products, whole.window.products, atol=1e-14)
        np.testing.assert_allclose(parts.window.curvature, whole.window.curvature, atol=1e-14)
