"""The plain side of what captured work masks, on the arrays of every engine: one that captures nothing would use it."""

import numpy as np
import pytest
import scipy.linalg

from psmt.numerics.arrays import eigh_generalised, first_indices, first_of_group, lowest_eigenpairs
from psmt.recovery import pose_columns, pose_columns_masked


def test_generalised_eigenproblems_are_those_of_lapack(engine):
    rng = np.random.default_rng(0)
    matrix, root = rng.standard_normal((2, 12, 12))
    matrix, metric = matrix + matrix.T, root @ root.T + np.eye(12)
    values, vectors = map(engine.numpy, eigh_generalised(engine.array(matrix), engine.array(metric)))
    np.testing.assert_allclose(values, scipy.linalg.eigh(matrix, metric, eigvals_only=True), atol=1e-9)
    np.testing.assert_allclose(vectors.T @ metric @ vectors, np.eye(12), atol=1e-9)


@pytest.mark.parametrize("spectrum", ["apart", "graded", "close", "equal", "in two parts"])
def test_the_lowest_eigenpairs_are_those_of_lapack(spectrum):
    rng = np.random.default_rng(0)
    values = {
        "apart": np.arange(1.0, 61.0),
        "graded": np.logspace(-10, 4, 60),
        "close": 1.0 + 1e-9 * np.arange(60.0),
        "equal": np.repeat([1.0, 2.0, 5.0], 20),
        "in two parts": np.tile(np.arange(30.0), 2),
    }[spectrum]
    turned = np.linalg.qr(rng.standard_normal((60, 60)))[0]
    if spectrum == "in two parts":
        turned = scipy.linalg.block_diag(turned[:30, :30], turned[:30, :30])
        turned = np.linalg.qr(turned)[0]
    root = np.tril(rng.standard_normal((60, 60))) / 20 + np.eye(60)
    matrix, metric = root @ (turned * values) @ turned.T @ root.T, root @ root.T
    found, vectors = lowest_eigenpairs((matrix + matrix.T) / 2, metric.copy(), 25)
    np.testing.assert_allclose(found, np.sort(values)[:25], rtol=0, atol=1e-13 * values.max())
    np.testing.assert_allclose(vectors.T @ metric @ vectors, np.eye(25), rtol=0, atol=1e-12)
    np.testing.assert_allclose(matrix @ vectors, metric @ vectors * found, rtol=0, atol=1e-12 * values.max())


def test_the_first_of_each_group(engine):
    numbers = engine.array([2, 0, 2, 1, 0, 3])
    group = numbers.astype(np.int64) if isinstance(numbers, np.ndarray) else numbers.long()
    assert engine.numpy(first_of_group(group)).tolist() == [0, 1, 0, 3, 1, 5]
    assert engine.numpy(first_indices(group)).tolist() == [1, 3, 0, 5]


def test_masked_columns_are_the_plain_ones(engine):
    """Some are parallel, some are zero."""
    rng = np.random.default_rng(0)
    embedding = rng.standard_normal((5, 12))
    embedding[:, 7], embedding[:, 9], embedding[:, [2, 11]] = 2.0 * embedding[:, 3], 0.5 * embedding[:, 1], 0.0
    plain, masked = (pose(engine.array(embedding)) for pose in (pose_columns, pose_columns_masked))
    assert len(plain.columns) == 8
    for atom in np.flatnonzero(embedding.any(axis=0)):
        own, other = (engine.numpy(posed.columns)[int(posed.group[atom])] for posed in (plain, masked))
        np.testing.assert_allclose(own, other)
    np.testing.assert_allclose(engine.numpy(plain.share), engine.numpy(masked.share))
    np.testing.assert_allclose(np.sort(engine.numpy(plain.total)), np.sort(engine.numpy(masked.total))[-8:])
