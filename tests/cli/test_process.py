"""The command line as a process: signals, streams that are closed or narrow, odd names, caches and full disks."""

import os
import re
import signal
import subprocess
import sys

import pytest

from cli.calls import run
from psmt.utils.files import clear_stale, temporary_name, writing

CALL = "import sys; from psmt.cli import main; sys.exit(main())"
FILM = "builtin:glide?frames=30&size=24"
SMALL = ["--size", "24", "--start", "12", "--horizon", "12"]
PRELUDE = """
import os, signal, sys
from psmt.experiments.predict_video import run
add, n = run.Recorder.add, 0
def watched(self, step):
    add(self, step)
    if self.n == 8:
        {act}
run.Recorder.add = watched
from psmt.cli import main
sys.exit(main())
"""


def call(*arguments, code=CALL, env=None, **streams):
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=os.environ | (env or {}), timeout=240, text=True, check=False, **streams)


def left_in(folder):
    return sorted(path.name for path in folder.rglob("*") if path.name.endswith(".tmp"))


# Streams


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_no_code(closed):
    command = f'exec "{sys.executable}" -c "{CALL}" sweep --no-such-option {closed}'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


def test_a_reader_that_is_gone_is_no_error():
    reading, writing_end = os.pipe()
    os.close(reading)
    done = call("--help", stdout=writing_end)
    os.close(writing_end)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
def test_output_that_cannot_be_written_is_an_error():
    with open("/dev/full", "w") as full:
        done = call("--help", stdout=full)
    assert (done.returncode, done.stderr) == (2, "psmt: error: No space left on device\n")


@pytest.mark.slow
def test_a_terminal_that_knows_ascii_alone():
    done = call("--help", env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert done.returncode == 0
    assert "frames ? patches" in done.stdout
    done = call("sweep", "caf\u00e9.mp4", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 2
    assert re.fullmatch(r"psmt: .* stage 1 of \d+\npsmt: error: .*caf\?\.mp4.*\n", done.stderr)


@pytest.mark.parametrize(("columns", "taken"), [("1", 20), ("99999999999", 1000)])
def test_help_on_a_screen_of_any_width_comes_to_an_end(columns, taken):
    done = call("predict", "--help", env={"COLUMNS": columns})
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) == taken


@pytest.mark.slow
def test_a_name_that_is_no_text_is_told_as_it_is():
    command = [sys.executable.encode(), b"-c", CALL.encode(), b"sweep", b"caf\xe9.mp4"]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert done.returncode == 2
    start, error = done.stderr.splitlines()
    assert b"caf\xe9.mp4" in start and b"stage 1 of" in start
    assert b"caf\xe9.mp4" in error


@pytest.mark.parametrize(
    "arguments",
    [["sweep", "{name}.mp4"], ["{name}"], ["sweep", "x", "--{name}"], ["learn", "{name}"], ["live", "{name}"]],
)
def test_names_neither_control_the_terminal_nor_fill_it(arguments):
    done = run(*(argument.format(name="\x1b[31m\x9b2Jred\u202e" + "x" * 5000) for argument in arguments))
    assert done.code == 2
    assert all(line.isprintable() for line in done.stderr.split("\n"))
    assert len(done.stderr) < 1100


# Signals


def test_ctrl_c_while_modules_are_imported():
    code = """
import sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "cyclopts":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from psmt.cli import main
sys.exit(main())
"""
    done = call("--help", code=code)
    assert (done.returncode, done.stderr) == (130, "psmt: interrupted\n")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("SIGTERM", ["sweep", "film.mp4"], "; the same command continues from here"),
        ("SIGXCPU", ["learn", "film.mp4"], ""),
    ],
)
def test_a_signal_while_modules_are_imported(name, arguments, told):
    code = f"""
import os, signal, sys
class Ending:
    def find_spec(self, name, path=None, target=None):
        if name == "cyclopts":
            os.kill(os.getpid(), signal.{name})
sys.meta_path.insert(0, Ending())
from psmt.cli import main
sys.exit(main())
"""
    done = call(*arguments, code=code)
    assert (done.returncode, done.stderr) == (128 + getattr(signal, name), f"psmt: ended by {name}{told}\n")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_that_comes_where_python_swallows_it_comes_again(name, code):
    act = f"""
import os, signal, sys, time
from psmt.cli import app, main
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in the background of a shell
class Ending:
    def __del__(self):
        os.kill(os.getpid(), signal.{name})
        for _ in range(1000):
            pass
def run(arguments):
    Ending()
    time.sleep(20)
app.run = run
sys.exit(main())
"""
    done = call("learn", code=act)
    assert done.returncode == code
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_ctrl_c_when_all_is_done_changes_nothing():
    code = """
import atexit, os, signal, sys
from psmt.cli import main
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
sys.exit(main())
"""
    done = call("--version", code=code)
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_is_imported_before_somebody_can_answer_ctrl_c():
    code = """
import sys
before = set(sys.modules)
from psmt.cli import main
print(sorted(set(sys.modules) - before))
"""
    assert call(code=code).stdout == "['psmt', 'psmt.cli']\n"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_sigterm_clears_away_and_the_next_run_clears_after_a_kill(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (out / f".predicted.mp4.{dead.pid}.tmp").write_bytes(b"as an earlier version left it")
    (out / f".patches-0.{temporary_name(out / 'x').name.split('.')[2]}.{dead.pid}.tmp").write_bytes(b"of a killed run")
    act = "os.kill(os.getpid(), signal.SIGTERM)"
    done = call("predict-video", FILM, *SMALL, "--out", str(out), code=PRELUDE.format(act=act))
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stderr.splitlines()[-1] == "psmt: ended by SIGTERM; the same command continues from here"
    assert left_in(tmp_path) == []


@pytest.mark.slow
def test_a_full_disk_is_told_in_a_line(tmp_path):
    act = """
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))"""
    done = call("predict-video", FILM, *SMALL, "--out", str(tmp_path / "out"), code=PRELUDE.format(act=act))
    assert done.returncode == 2
    told = done.stderr.splitlines()[-1]
    assert re.fullmatch(
        r"psmt: error: .*\.mp4: (File too large|the film cannot be written .*; is the disk full\?)", told
    )
    assert "Traceback" not in done.stderr
    assert left_in(tmp_path) == []


# Temporary files


def test_temporary_files_of_the_dead_are_cleared_and_no_others(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    machine = temporary_name(tmp_path / "x").name.split(".")[2]
    names = {
        "dead": f".a.mp4.{machine}.{dead.pid}.tmp",
        "earlier version": f".a.mp4.{dead.pid}.tmp",
        "alive": f".a.mp4.{machine}.{os.getppid()}.tmp",
        "elsewhere": f".a.mp4.on-ffffffff.{dead.pid}.tmp",
        "elsewhere, long ago": f".b.mp4.on-ffffffff.{dead.pid}.tmp",
        "not ours": ".a.mp4.part.tmp",
    }
    for name in names.values():
        (tmp_path / name).touch()
    os.utime(tmp_path / names["elsewhere, long ago"], (0, 0))
    clear_stale(tmp_path, "*")
    assert {key for key, name in names.items() if (tmp_path / name).exists()} == {"alive", "elsewhere", "not ours"}


def test_an_error_of_the_disk_names_the_file(tmp_path):
    with pytest.raises(OSError, match=r"model\.npz") as caught, writing(tmp_path / "model.npz"):
        raise OSError(28, "No space left on device")
    assert caught.value.filename == str(tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []
