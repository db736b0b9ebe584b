"""Sparse rows, batch after batch."""

import numpy as np
import pytest
from scipy.sparse import csr_array, vstack

from psmt.coding.atoms import SparseRows


@pytest.mark.parametrize("densities", [(0.1, 0.1, 0.1), (0.0, 0.5, 0.02, 0.9), (0.9, 0.0), (0.3,), (0.0,)])
def test_they_are_those_of_scipy_whatever_the_batches_hold(densities):
    rng = np.random.default_rng(0)
    batches = [rng.random((17 + k, 9)) * (rng.random((17 + k, 9)) < share) for k, share in enumerate(densities)]
    rows = SparseRows(sum(map(len, batches)), 9)
    for batch in batches:
        rows.add(csr_array(batch))
    found, wanted = rows.array(), vstack([csr_array(batch) for batch in batches], format="csr")
    assert found.has_canonical_format
    assert found.shape == wanted.shape
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(found, name), getattr(wanted, name))
        assert getattr(found, name).dtype == getattr(wanted, name).dtype
