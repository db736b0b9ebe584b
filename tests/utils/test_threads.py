"""BLAS with one thread for a while: from any thread, in any order, and never longer."""

import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import numba
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from psmt import PSMT, SparseCoder
from psmt.engines.numba.fan_out import in_threads
from psmt.utils import threads
from psmt.utils.threads import one_blas_thread, one_thread


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


def test_limits_may_be_left_in_the_order_in_which_they_were_entered():
    first = one_blas_thread()
    first.__enter__()
    second = one_blas_thread()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert blas_threads() == {3}
    with one_blas_thread():
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


def test_many_threads_in_any_order_leave_nothing_behind():
    def come_and_go(seed):
        draw = random.Random(seed)
        for _ in range(200):
            try:
                with one_blas_thread(), one_blas_thread():
                    if blas_threads_now() != [1] * len(libraries):
                        return False
                    time.sleep(draw.random() * 1e-4)
                    if draw.random() < 0.3:
                        raise KeyError
            except KeyError:
                pass
        return True

    libraries = threads._libraries()

    def blas_threads_now():
        return [library.get() for library in libraries]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(come_and_go, range(8)))
    assert blas_threads() == {3}


def test_models_in_four_threads_leave_the_threads_as_they_were():
    rng = np.random.default_rng(0)
    frames = rng.standard_normal((60, 6))

    def run(_):
        model = PSMT(n_atoms=8, window=40, n_components=2, lam=0.1, random_state=0).fit(frames[:50])
        for frame in frames[50:]:
            model.update(frame).predict()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4)))
    assert blas_threads() == {3}


def test_a_step_has_one_thread_from_beginning_to_end(monkeypatch):
    rng = np.random.default_rng(0)
    frames = rng.standard_normal((60, 6))
    model = PSMT(n_atoms=8, window=40, n_components=2, lam=0.1, random_state=0).fit(frames[:50])
    seen = []
    decode = SparseCoder.decode
    monkeypatch.setattr(SparseCoder, "decode", lambda self, codes: seen.append(blas_threads()) or decode(self, codes))
    model.update(frames[50]).predict()
    assert seen == [{1}] * len(seen) != []


def test_an_error_lifts_the_limit():
    with pytest.raises(KeyError), one_blas_thread():
        raise KeyError
    assert blas_threads() == {3}


def test_who_sets_another_number_meanwhile_keeps_it():
    with one_blas_thread():
        for library in threads._libraries():
            library.set(2)
    assert blas_threads() == {2}


def test_the_threads_of_the_solver_have_one_each():
    seen = []
    in_threads(lambda part: seen.append(blas_threads()), 1000, 100)
    assert seen == [{1}] * len(seen) != []
    assert blas_threads() == {3}


FORKS = """
import os, sys, threading
from psmt.utils.threads import one_blas_thread, _libraries

def now():
    return [library.get() for library in _libraries()]

for library in _libraries():
    library.set(3)
before, came, leave = now(), threading.Event(), threading.Event()

def hold():
    with one_blas_thread():
        came.set()
        leave.wait(10)

def child_says(work):
    pid = os.fork()
    if not pid:
        os._exit(work())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def goes_on():
    if now() != before:
        return 1
    with one_blas_thread():
        if any(number != 1 for number in now()):
            return 2
    return 0 if now() == before else 3

assert child_says(goes_on) == 0
other = threading.Thread(target=hold)
other.start()
came.wait(10)
assert now() == [1] * len(before)
assert child_says(goes_on) == 0, "the child holds what a thread of its parent held"
with one_blas_thread():
    assert child_says(lambda: 0 if now() == [1] * len(before) else 1) == 0
    if not (pid := os.fork()):
        break_out = True
    else:
        break_out = False
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
if break_out:
    os._exit(0 if now() == before else 4)
assert code == 0, code
leave.set()
other.join()
assert now() == before
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_holds_what_its_own_thread_held():
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def held_in_a_process():
    with one_blas_thread():
        inside = blas_threads()
    return inside, blas_threads()


@pytest.mark.slow
def test_a_spawned_process_begins_without_it():
    from multiprocessing import get_context

    with one_blas_thread(), get_context("spawn").Pool(1) as pool:
        inside, after = pool.apply(held_in_a_process)
    assert inside == {1}
    limits = map(os.environ.get, ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"))
    assert after != {1} or "1" in limits or os.cpu_count() == 1
