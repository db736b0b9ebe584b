"""The command `psmt live`: errors, address, end."""

import os
import re
import signal
import socket
import subprocess
import sys
from queue import Queue
from types import SimpleNamespace

import numpy as np
import pytest
from websockets.sync.client import connect

import psmt
from cli.calls import refused
from live.conftest import StandIn, until
from psmt.cli import main
from psmt.live.serving import LiveServer, open_session

RUN = "import sys; from psmt.cli import main; sys.exit(main())"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.mp4"], "does not exist"),
        (["--horizon", "11"], "1 to 10"),
        (["--size", "8"], "size=8"),
        (["--size", "500"], "size <= 200"),
        (["--port", "70000"], "65535"),
        (["--save", "/nowhere/at/all/model.npz"], "make it first"),
        (["--model", __file__], "not a saved model"),
        (["--device", "abacus"], "abacus"),
        (["builtin:glide"] * 9, "at most 8"),
        (["builtin:glide", "builtin:glide?seed=1", "--save", "model.npz"], "give one source"),
        (["--host", "192.0.2.1"], "--host must be an address of this machine"),
        (["camera:97"], "is it plugged in"),
        (["camera:first"], "not the number of a camera"),
        (["rtsp://127.0.0.1:9/none"], "is the stream running"),
    ],
)
def test_errors_are_one_line(capsys, arguments, message):
    assert main(["live", "--no-browser", *arguments]) == 2
    said = capsys.readouterr()
    assert message in refused(SimpleNamespace(code=2, stdout=said.out, stderr=said.err))


def test_several_sources_have_a_session_each(monkeypatch, capsys):
    opened = {}

    def stop(server, **_options):
        opened["sessions"] = server.sessions
        server._listener.close()

    monkeypatch.setattr(LiveServer, "run", stop)
    arguments = ["live", "builtin:glide?size=300&frames=50", "builtin:glide?size=48", "--no-browser", "--port", "0"]
    assert main(arguments) == 0
    first, second = opened["sessions"]
    assert (first.feed.name, second.feed.name) == ("glide", "glide")
    assert list(second._choices)[:2] == ["builtin:glide?size=48", "builtin:glide?size=300&frames=50"]
    # Both share the pixels of one, and the first line says what was done to the picture.
    assert first.feed.shape == (141, 141)
    assert "glide (the whole picture, 141 x 141 pixels, reduced from 300 x 300)" in capsys.readouterr().out


def test_a_port_that_is_taken(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["live", "builtin:glide?size=32", "--no-browser", "--port", str(port)]) == 2
    assert "--port 0" in capsys.readouterr().err


@pytest.mark.parametrize(("screens", "opened"), [({}, 0), ({"DISPLAY": ":0"}, 1)])
def test_a_browser_opens_if_there_is_a_screen(monkeypatch, screens, opened):
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in screens.items():
        monkeypatch.setenv(name, value)
    addresses = Queue()
    monkeypatch.setattr("webbrowser.open", addresses.put)
    server = LiveServer(StandIn())
    # A server that is stopped before it starts serves nobody.
    server._server.should_exit = True
    server.run(browser=True)
    assert [addresses.get(timeout=5) for _ in range(opened)] == [server.address] * opened
    assert addresses.empty()


def test_without_the_extra_the_message_names_it(capsys, monkeypatch):
    for name in [name for name in sys.modules if name == "uvicorn" or name.startswith("psmt.live.serving")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["live", "--no-browser"]) == 2
    assert "pip install 'psmt[live]'" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_address_and_ends_cleanly(number):
    command = [sys.executable, "-c", RUN, "live", "builtin:glide?size=48", "--no-browser", "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": "src"}
    )
    place = re.search(r"http://(127\.0\.0\.1:\d+)/", process.stdout.readline())[1]
    with connect(f"ws://{place}/ws", close_timeout=1) as line:
        until(line, lambda header: header["step"] > 3)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "psmt live: builtin:glide?size=48: load libraries\n")
    assert "ended" in out


def test_a_fitted_model_continues_on_a_copy(film):
    model = psmt.FramePredictor().fit(film[:10])
    before = model.get_state()
    server = LiveServer(open_session(film, model=model))
    server.start()
    with connect(f"ws://{server.address.split('/')[2]}/ws", close_timeout=1) as line:
        assert until(line, lambda header: header["step"] > 2)["awaits_frames"] == 0
    server.stop()
    for name, value in model.get_state().items():
        np.testing.assert_array_equal(value, before[name])
