"""Variables and limits that libraries stumble over are named in a line, before these are imported."""

import os
import subprocess
import sys
import threading

import pytest

from psmt.cli import main
from psmt.cli.process import settle_environment
from psmt.errors import PSMTError


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NUMBA_NUM_THREADS", "0"),
        ("NUMBA_NUM_THREADS", "-1"),
        ("NUMBA_NUM_THREADS", "abc"),
        ("NUMBA_THREADING_LAYER", "nonsense"),
        ("SOURCE_DATE_EPOCH", "abc"),
        ("SOURCE_DATE_EPOCH", ""),
        ("SOURCE_DATE_EPOCH", "-1"),
        ("SOURCE_DATE_EPOCH", "9" * 20),
    ],
)
def test_a_variable_that_nothing_works_with_is_named(monkeypatch, capsys, name, value):
    monkeypatch.setenv(name, value)
    assert main(["sweep", "builtin:glide?frames=9"]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"psmt: error: the environment has {name}={value!r}")
    assert f"unset {name}" in told
    assert told.count("\n") == 1


def test_what_works_is_left_alone(monkeypatch):
    good = {"NUMBA_NUM_THREADS": "3", "NUMBA_THREADING_LAYER": "omp", "SOURCE_DATE_EPOCH": "1700000000"}
    for name, value in good.items():
        monkeypatch.setenv(name, value)
    settle_environment()
    assert {name: os.environ[name] for name in good} == good


def test_help_needs_no_environment(monkeypatch, capsys):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "0")
    assert main(["sweep", "--help"]) == 0


def test_the_backend_of_a_screen_need_not_be_right():
    """Matplotlib refuses to be imported with one that it does not know."""
    code = """
from psmt.cli.process import settle_environment
settle_environment()
import matplotlib
print(matplotlib.get_backend())
"""
    environment = os.environ | {"MPLBACKEND": "nonsense"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("agg\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count memory otherwise")
@pytest.mark.parametrize(("limit", "told"), [("RLIMIT_AS", "ulimit -v"), ("RLIMIT_NOFILE", "ulimit -n")])
def test_a_limit_that_nothing_works_with_is_named(monkeypatch, limit, told):
    import resource

    given = resource.getrlimit

    def limited(kind):
        return (16, 16) if kind == getattr(resource, limit) else given(kind)

    monkeypatch.setattr(resource, "getrlimit", limited)
    with pytest.raises(PSMTError, match=told):
        settle_environment()


@pytest.mark.skipif(sys.platform == "win32", reason="a folder that is in use stays there")
def test_a_folder_that_is_gone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    with pytest.raises(PSMTError, match="no longer exists"):
        settle_environment()


def test_a_link_to_nowhere_is_no_folder_for_results(tmp_path, capsys):
    (tmp_path / "out").symlink_to(tmp_path / "nowhere")
    assert main(["sweep", "builtin:glide?frames=40&size=16", "--out", str(tmp_path / "out")]) == 2
    assert "is a link to a folder that is not there" in capsys.readouterr().err


def test_threads_that_may_not_be_started_are_told_and_those_that_were_are_ended(monkeypatch):
    """OpenBLAS would interrupt the process instead, as if somebody had pressed Ctrl-C."""
    start, begun = threading.Thread.start, []

    def refused(thread):
        if len(begun) == 3:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(PSMTError, match=r"may need \d+ threads, and this process could start 3; .*ulimit -u"):
        settle_environment()
    assert not any(thread.is_alive() for thread in begun)
