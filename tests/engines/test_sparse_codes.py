"""The queue of sparse codes against one of dense ones."""

import numpy as np
import pytest

from psmt.engines.numba.code_window import SparseCodes


@pytest.fixture(params=[0.0, 0.1, 1.0], ids=["silent", "sparse", "dense"])
def codes(request):
    rng = np.random.default_rng(0)
    return rng.random((60, 12)) * (rng.random((60, 12)) < request.param)


def test_a_queue_that_slides_holds_the_codes_that_came_last(codes):
    """Also when there are no codes at all at first, and when all of them are gone."""
    queue = SparseCodes(np.empty((0, 12)))
    for t, code in enumerate(codes):
        queue.append(code)
        if t >= 7:
            queue.popleft()
        held = codes[max(t - 6, 0) : t + 1]
        assert len(queue) == len(held)
        assert queue.n_entries == np.count_nonzero(held)
        np.testing.assert_array_equal(queue.matrix.toarray(), held)
        np.testing.assert_array_equal(queue[0], held[0])
        np.testing.assert_array_equal(queue[-1], held[-1])
    for _ in range(7):
        queue.popleft()
    assert len(queue) == 0
    queue.append(codes[0])
    np.testing.assert_array_equal(queue.matrix.toarray(), codes[:1])


def test_products(codes):
    rng = np.random.default_rng(1)
    queue = SparseCodes(codes)
    queue.popleft()
    queue.append(codes[3])
    held = np.vstack([codes[1:], codes[3]])
    vectors, rows = rng.standard_normal((12, 5)), rng.standard_normal((60, 5))
    np.testing.assert_allclose(queue.times(vectors), held @ vectors, atol=1e-14)
    np.testing.assert_allclose(queue.transposed_times(rows), held.T @ rows, atol=1e-14)
