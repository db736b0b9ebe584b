"""The history of benchmark figures: a slowdown beside the same peer is seen, a busy machine is not one."""

from dataclasses import replace

import pytest
from benchmarks import history
from benchmarks.history import Figure, changes

RUN = Figure("2026-01-01T00:00:00+00:00", "abc", "here", "code", "SPAMS", ours=1.0, theirs=4.0)


def after(*runs):
    """How the last run compares with those before it."""
    return changes(runs, "here")


def test_a_machine_that_slows_both_changes_nothing():
    (change,) = after(RUN, replace(RUN, ours=3.0, theirs=12.0))
    assert change.factor == pytest.approx(1)


def test_half_the_ratio_is_a_slowdown():
    (change,) = after(RUN, RUN, replace(RUN, ours=2.0))
    assert change.factor == pytest.approx(0.5)
    assert "slower" in " ".join(change.cells(0.2))
    assert "slower" not in " ".join(change.cells(0.6))


def test_one_bad_run_does_not_move_what_the_next_is_held_against():
    (change,) = after(RUN, replace(RUN, ours=40.0), RUN, RUN)
    assert change.factor == pytest.approx(1)


def test_other_machines_and_other_work_are_not_compared():
    assert after(replace(RUN, machine="there"), RUN) == []
    assert after(replace(RUN, work="learn"), RUN) == []


def test_what_is_appended_is_read_again(tmp_path):
    file = tmp_path / "history.csv"
    for ours in (0.1, 0.2):
        history.append([("code, M=512", "SPAMS", ours, 0.4)], file)
    figures = history.read(file)
    assert [figure.ratio for figure in figures] == [4.0, 2.0]
    (change,) = changes(figures, history.this_machine())
    assert (change.last.work, change.factor) == ("code, M=512", 0.5)
