"""Few vectors times a matrix."""

import numpy as np
import pytest

from psmt.engines.numba.shift_invert import FEW, few_rows_times


@pytest.mark.parametrize("k", range(FEW + 1))
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 4), (17, 9), (64, 31)])
def test_products_are_those_of_numpy(k, shape):
    rng = np.random.default_rng(0)
    vectors, matrix = rng.standard_normal((shape[0], k)).T, rng.standard_normal(shape)
    np.testing.assert_allclose(few_rows_times(vectors, matrix), vectors @ matrix, rtol=1e-12, atol=1e-12)


def test_what_is_not_finite_stays_so():
    images = few_rows_times(np.array([[1.0, np.nan, 0.0], [1.0, 2.0, np.inf]]), np.ones((3, 2)))
    assert np.isnan(images[0]).all()
    assert np.isinf(images[1]).all()
