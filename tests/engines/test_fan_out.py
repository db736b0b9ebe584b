"""Work that is shared out to threads, and work inside of it."""

import threading
import time

import pytest

from psmt.engines.numba import fan_out
from psmt.engines.numba.fan_out import in_threads, together


@pytest.fixture
def three_threads(monkeypatch):
    monkeypatch.setattr(fan_out, "get_num_threads", lambda: 3)


def test_all_is_done_once_and_results_are_in_order(three_threads):
    done = []
    in_threads(done.append, 10, 4)
    assert sorted((part.start, part.stop) for part in done) == [(0, 4), (4, 8), (8, 10)]
    assert together(lambda: "one", lambda: "two") == ["one", "two"]
    assert together() == []


def test_independent_work_is_done_side_by_side(three_threads):
    met = threading.Barrier(3, timeout=10)  # which breaks unless all three wait at once
    assert sorted(together(*[met.wait] * 3)) == [0, 1, 2]


@pytest.mark.parametrize("depth", [1, 2])
def test_work_inside_of_work_takes_no_more_threads_than_there_are(three_threads, depth):
    busy, most, lock = [0], [0], threading.Lock()

    def work():
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        time.sleep(0.01)
        with lock:
            busy[0] -= 1

    def nested(level):
        return work if level == 0 else lambda: together(*[nested(level - 1)] * 4)

    nested(1 + depth)()
    assert 1 < most[0] <= 3


def test_whoever_has_finished_helps_the_others(three_threads):
    met = threading.Barrier(3, timeout=10)

    def long():
        time.sleep(0.1)  # by then the other two are idle
        return together(*[met.wait] * 3)

    assert sorted(together(long, int, int)[0]) == [0, 1, 2]


def test_whoever_has_finished_joins_what_is_under_way(monkeypatch):
    monkeypatch.setattr(fan_out, "get_num_threads", lambda: 2)
    begun, who = threading.Event(), []

    def chunk(part):
        begun.set()
        time.sleep(0.02)
        who.append(threading.get_ident())

    def busy():
        begun.wait(10)  # the other one is in the middle of its work by then

    together(lambda: in_threads(chunk, 10, 1), busy)
    assert len(who) == 10
    assert len(set(who)) == 2


def test_an_error_comes_out_after_all_have_ended_and_leaves_all_threads_free(three_threads):
    ended = []

    def fails():
        raise MemoryError("no room")

    def slow():
        time.sleep(0.1)
        ended.append(True)

    with pytest.raises(MemoryError, match="no room"):
        together(slow, fails, slow)
    assert len(ended) >= 1
    n = len(ended)
    time.sleep(0.15)
    assert len(ended) == n
    met = threading.Barrier(3, timeout=10)
    assert sorted(together(*[met.wait] * 3)) == [0, 1, 2]


def test_one_thread_does_all_by_itself(monkeypatch):
    monkeypatch.setattr(fan_out, "get_num_threads", lambda: 1)
    names = together(*[lambda: threading.current_thread()] * 3)
    assert set(names) == {threading.current_thread()}
