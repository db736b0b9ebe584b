"""The kernels of dictionary learning against their blackboard version."""

import numpy as np
import pytest

from oracles.dictionary import statistics, sweep
from psmt.coding.dictionary import DictionaryStatistics, first_atoms


def batches(n_batches, size, n_atoms=30, n_features=12, seed=0):
    """Sparse codes and any samples."""
    rng = np.random.default_rng(seed)
    codes = rng.exponential(size=(n_batches, size, n_atoms)) * (rng.random((n_batches, size, n_atoms)) < 0.1)
    codes[:, :, -1] = 0.0  # an atom that no code uses
    return list(zip(codes, rng.standard_normal((n_batches, size, n_features)), strict=True))


@pytest.mark.parametrize("size", [1, 40, 1000])
def test_statistics_and_sweep(engine, size):
    given = batches(5, size)
    atoms = first_atoms(np.vstack([samples for _, samples in given]), 30, np.random.RandomState(0))
    learning = DictionaryStatistics(30, 12, engine)
    for codes, samples in given:
        learning.update(engine.array(codes), engine.array(samples))

    full = max(2 * 8 * 30 / size, 1.0)  # eight samples per atom are remembered
    code_code, code_sample = statistics(given, [(1 - 1 / min(batch, full)) ** 2 for batch in range(1, 6)])
    assert np.allclose(engine.numpy(learning.code_code), code_code, atol=1e-12)
    assert np.allclose(engine.numpy(learning.code_sample), code_sample, atol=1e-12)

    used = np.flatnonzero(given[-1][0].any(axis=0))
    expected = sweep(code_code, code_sample, atoms, used)
    own = engine.array(atoms)
    learning.improve(own)
    assert np.allclose(engine.numpy(own), expected, atol=1e-9)
