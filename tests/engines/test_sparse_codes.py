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


@pytest.mark.parametrize("half_stencils", [False, True])
def test_products(codes, half_stencils):
    rng = np.random.default_rng(1)
    queue = SparseCodes(codes)
    queue.popleft()
    queue.append(codes[3])
    held = np.vstack([codes[1:], codes[3]])
    vectors, bends = rng.standard_normal((12, 5)), rng.random(58) < 0.8
    D = np.eye(60) - 0.5 * (np.eye(60, k=1) + np.eye(60, k=-1))
    D[1:-1][~bends] = 0.0
    D[[0, -1]] *= half_stencils
    differences = D @ held
    images, rough = queue.times(vectors, bends, half_stencils=half_stencils)
    np.testing.assert_allclose(images, held.T @ (held @ vectors), atol=1e-12)
    np.testing.assert_allclose(rough, differences.T @ (differences @ vectors), atol=1e-12)
    np.testing.assert_array_equal(queue.times(vectors)[0], images)
