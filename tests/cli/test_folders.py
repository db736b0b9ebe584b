"""Folders of results: one writer at a time, and folders and installations that may not be written to."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from cli.test_process import CALL, FILM, PRELUDE, SMALL
from psmt.utils.files import locked

pytestmark = pytest.mark.slow

SLOW = PRELUDE.format(act="import time; time.sleep(3)")
"""The command line, which stops for three seconds in its eighth step."""


def begin(*arguments, code=CALL, **how):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)


def ended(process):
    stdout, stderr = process.communicate(timeout=240)
    return process.returncode, stdout, stderr


def wait_for(path):
    for _ in range(600):
        if path.exists():
            return
        time.sleep(0.1)
    raise AssertionError(f"{path} never appeared")


@pytest.mark.slow
def test_two_commands_in_one_folder_come_one_after_the_other(tmp_path):
    out = tmp_path / "out"
    first = begin("predict-video", FILM, *SMALL, "--out", out, code=SLOW)
    wait_for(out / ".psmt-lock")
    second = begin("predict-video", FILM, *SMALL, "--out", out)
    for process in (first, second):
        code, _, stderr = ended(process)
        assert code == 0, stderr
    assert f"is in use by process {first.pid} (-c predict-video {FILM}" in stderr
    assert not [path.name for path in out.rglob(".*")]
    alone = tmp_path / "alone"
    assert ended(begin("predict-video", FILM, *SMALL, "--out", alone))[0] == 0
    assert sorted(path.name for path in out.rglob("*")) == sorted(path.name for path in alone.rglob("*"))
    for name in ("scores.csv", "predicted.mp4"):
        assert (out / name).read_bytes() == (alone / name).read_bytes()


def test_the_lock_dies_with_its_process(tmp_path):
    out = tmp_path / "out"
    killed = begin("predict-video", FILM, *SMALL, "--out", out, code=SLOW)
    wait_for(out / ".psmt-lock")
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert (out / ".psmt-lock").exists()
    said = []
    with locked(out, said.append):
        pass
    assert not said
    assert not (out / ".psmt-lock").exists()


def test_a_lock_whose_file_was_removed_meanwhile_is_taken_again(tmp_path):
    """A process that opened the file of its predecessor, which then removed it, must not believe that it holds it."""
    lock = tmp_path / ".psmt-lock"
    code = (
        "import sys, pathlib; from psmt.utils.files import locked\n"
        "with locked(pathlib.Path(sys.argv[1]), lambda said: print('waits', flush=True)): print('in', flush=True)"
    )
    with locked(tmp_path, print):
        waiting = begin(tmp_path, code=code)
        assert waiting.stdout.readline() == "waits\n"
        lock.unlink()
        lock.write_text("a newer file")
        assert waiting.stdout.readline() == "in\n"
    assert ended(waiting)[0] == 0


@pytest.mark.parametrize("make", ["symlink_to", "hardlink_to", "folder", "pipe"])
def test_a_lock_that_is_another_file_is_refused_and_the_file_stays(tmp_path, make):
    out, other = tmp_path / "out", tmp_path / "other"
    out.mkdir()
    other.write_text("precious")
    lock = out / ".psmt-lock"
    makers = {"folder": lock.mkdir, "pipe": lambda: os.mkfifo(lock)}
    makers.get(make, lambda: getattr(lock, make)(other))()
    with pytest.raises(OSError, match=r"\.psmt-lock"), locked(out, print):
        pass
    assert other.read_text() == "precious"


# A user who may not write

needs_root = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("setpriv"),
    reason="another user can be tried by root on Linux, with setpriv",
)


def as_nobody(*arguments, home="/nonexistent"):
    """Run a command as a user who owns nothing, in an installation that belongs to root."""
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c", CALL, *arguments]
    paths = os.pathsep.join(path for path in sys.path if path)
    unset = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "MPLCONFIGDIR")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    environment = kept | {"HOME": home, "PYTHONPATH": paths, "TMPDIR": "/tmp"}
    readable = subprocess.run(
        [*command[:4], sys.executable, "-c", "import numpy, psmt"], env=environment, capture_output=True, check=False
    )
    if readable.returncode or readable.stderr:  # such as by a package whose .pth file looks into the home of root
        pytest.skip("another user may not read this installation")
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500, check=False, cwd="/")


@pytest.fixture
def public():
    """A folder that everybody may enter and read: those of pytest are private."""
    with TemporaryDirectory(prefix="psmt-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@needs_root
def test_a_folder_of_somebody_else_is_refused_in_a_line(public):
    done = as_nobody("predict-video", FILM, *SMALL, "--out", str(public))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith(f"psmt: error: --out {public} may not be written to")
    assert all(line.startswith("psmt: ") for line in done.stderr.splitlines())
    assert not list(public.iterdir())


@needs_root
def test_a_film_of_somebody_else_is_refused_in_a_line(public):
    film = public / "film.npy"
    film.write_bytes(b"private")
    film.chmod(0o600)
    done = as_nobody("predict-video", str(film), "--out", "/tmp/psmt-nobody")
    assert (done.returncode, done.stdout) == (2, "")
    line = done.stderr.splitlines()[-1]
    assert line.startswith(f"psmt: error: {film}") and "check its permissions" in line


@needs_root
@pytest.mark.slow
def test_an_installation_of_somebody_else_works_without_a_home(public):
    out = public / "out"
    out.mkdir()
    os.chown(out, 65534, 65534)
    small = ("--size", "24", "--atoms", "6", "--window", "9", "--workers", "1")
    done = as_nobody("reconstruct", FILM, *small, "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert (out / "report.html").exists()
    assert all(line.startswith("psmt: ") for line in done.stderr.splitlines())
