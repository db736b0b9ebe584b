"""BLAS with one thread for a while."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import numba
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from psmt import SparseCoder
from psmt.engines.numba.lasso import _in_threads
from psmt.threads import one_blas_thread, one_thread


def blas_threads():
    return {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def three_threads():
    with threadpool_limits(3, user_api="blas"):
        yield


def test_inside_and_outside():
    with one_blas_thread():
        assert blas_threads() == {1}
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {3}


def test_several_threads_may_hold_it_and_it_nests():
    before = numba.get_num_threads()
    entered, leave = Barrier(3), Event()

    def hold():
        with one_thread(), one_thread():
            entered.wait(10)
            seen = blas_threads(), numba.get_num_threads()
            leave.wait(10)
            return seen

    with one_thread(), ThreadPoolExecutor(2) as pool:
        held = [pool.submit(hold) for _ in range(2)]
        entered.wait(10)
        leave.set()
        assert [future.result() for future in held] == [({1}, 1)] * 2
    assert blas_threads() == {3}
    assert numba.get_num_threads() == before


def test_an_error_lifts_the_limit():
    with pytest.raises(KeyError), one_blas_thread():
        raise KeyError
    assert blas_threads() == {3}


def test_the_threads_of_the_solver_have_one_each():
    seen = []
    _in_threads(lambda part: seen.append(blas_threads()), 1000)
    assert seen == [{1}] * len(seen) != []


def test_coding_leaves_the_threads_as_they_were():
    rng = np.random.default_rng(0)
    SparseCoder.from_dictionary(rng.standard_normal((12, 6))).transform(rng.standard_normal((300, 6)))
    assert blas_threads() == {3}
