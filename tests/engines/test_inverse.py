"""Inverse operators against dense inverses, on every engine: low-rank changes and new matrices."""

import copy
import pickle

import numpy as np
import pytest

from psmt.engines.numba.inverse import FEW, few_rows_times

N = 40


def symmetric(rng, shift):
    """A symmetric matrix (N, N): a Gram matrix minus a real or complex shift of another."""
    curvature, covariance = (root.T @ root / N for root in rng.standard_normal((2, 2 * N, N)))
    return curvature - shift * covariance


def own(engine, values):
    return engine.array(values.real) + 1j * engine.array(values.imag)


@pytest.mark.parametrize("copied", [lambda one: one, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_an_operator_follows_low_rank_changes(engine, copied, shift=0.1 + 0.2j):
    rng = np.random.default_rng(0)
    matrix = symmetric(rng, shift)
    inverse = engine.inverse(own(engine, matrix))
    for _ in range(20):
        vectors = rng.standard_normal((N, 4))
        images = np.linalg.inv(matrix) @ vectors
        np.testing.assert_allclose(engine.numpy(inverse.times(engine.array(vectors))), images, atol=1e-9)
        core = np.linalg.inv(10.0 * np.eye(4) + vectors.T @ images)
        inverse.subtract(own(engine, images), own(engine, images @ core))
        matrix = matrix + vectors @ vectors.T / 10.0
        inverse = copied(inverse)
    np.testing.assert_allclose(engine.numpy(inverse.times(engine.array(np.eye(N)))), np.linalg.inv(matrix), atol=1e-9)
    matrix = symmetric(rng, shift)
    inverse.refactorise(own(engine, matrix))
    np.testing.assert_allclose(engine.numpy(inverse.times(engine.array(np.eye(N)))), np.linalg.inv(matrix), atol=1e-9)


@pytest.mark.parametrize("k", range(FEW + 1))
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 4), (17, 9), (64, 31)])
def test_few_rows_times_a_matrix_are_those_of_numpy(k, shape):
    rng = np.random.default_rng(0)
    vectors, matrix = rng.standard_normal((shape[0], k)).T, rng.standard_normal(shape)
    np.testing.assert_allclose(few_rows_times(vectors, matrix), vectors @ matrix, rtol=1e-12, atol=1e-12)


def test_few_rows_that_are_not_finite_stay_so():
    images = few_rows_times(np.array([[1.0, np.nan, 0.0], [1.0, 2.0, np.inf]]), np.ones((3, 2)))
    assert np.isnan(images[0]).all()
    assert np.isinf(images[1]).all()


def test_features_without_entries_beside_the_diagonal_may_get_some(engine, shift=0.1 + 0.2j):
    """One at a time, until more have entries than there were spare rows."""
    rng = np.random.default_rng(0)
    matrix = symmetric(rng, shift)
    matrix[10:], matrix[:, 10:] = 0.0, 0.0
    matrix[range(10, N), range(10, N)] = 0.5 - shift
    inverse = engine.inverse(own(engine, matrix))
    for k in range(10, N - 5):
        vectors = np.zeros((N, 2))
        vectors[rng.permutation(10), 0] = rng.standard_normal(10)
        vectors[k] = 1.0
        images = np.linalg.inv(matrix) @ vectors
        np.testing.assert_allclose(engine.numpy(inverse.times(engine.array(vectors))), images, atol=1e-9)
        core = np.linalg.inv(np.eye(2) + vectors.T @ images)
        inverse.subtract(own(engine, images), own(engine, images @ core))
        matrix = matrix + vectors @ vectors.T
    np.testing.assert_allclose(engine.numpy(inverse.times(engine.array(np.eye(N)))), np.linalg.inv(matrix), atol=1e-9)
