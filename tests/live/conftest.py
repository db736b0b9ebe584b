"""Servers for the tests: with a real session on a small film, or with a stand-in that has no model."""

import time
from contextlib import contextmanager
from threading import Event, Thread
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("uvicorn")

from psmt.data import open_frames
from psmt.live.feed import BrowserCamera
from psmt.live.messages import unpack
from psmt.live.predictions import Scores
from psmt.live.serving import LiveServer, open_session
from psmt.live.session import LiveSnapshot

SIDE = 48


def glide(n_frames, seed=0, size=SIDE):
    return np.stack(list(open_frames(f"builtin:glide?frames={n_frames}&seed={seed}&size={size}&speed=0.5")))


@pytest.fixture(scope="session")
def film():
    """Grey levels (160, 48, 48) of the built-in film, with a cut at frame 80."""
    return np.concatenate([glide(80), glide(80, seed=3)])


class StandIn:
    """Stands in for a session: publishes made-up snapshots quickly, for tests of the server."""

    def __init__(self, n_bytes=2_000):
        self.feed = BrowserCamera(SIDE)
        self.snapshot = LiveSnapshot()
        self.listeners = set()
        self.scores = Scores()
        self.controls = []
        self._strip = bytes(n_bytes)
        self._stopped = Event()
        self._thread = Thread(target=self._publish, daemon=True)

    def start(self):
        self._thread.start()

    def stop(self):
        self._stopped.set()
        self._thread.join()

    def submit(self, control):
        self.controls.append(control)

    def _publish(self):
        while not self._stopped.wait(0.005):
            number = self.snapshot.number + 1
            self.snapshot = LiveSnapshot(number, {"epoch": 0, "published": number}, self._strip)
            for listener in tuple(self.listeners):
                listener()


@contextmanager
def servers():
    """Yield a function that starts a server, and stop all of them at the end."""
    running = []

    def start(*sessions, **options):
        server = LiveServer(*(sessions or [StandIn()]), **options)
        server.start()
        running.append(server)
        return server

    try:
        yield start
    finally:
        for server in running:
            server.stop()


@pytest.fixture
def serve():
    """Start servers, and stop them at the end."""
    with servers() as start:
        yield start


@pytest.fixture(scope="module")
def where():
    """The address of a server without a model, for all tests of a file that leave it as it was."""
    with servers() as start:
        yield address_of(start())


@pytest.fixture
def serve_film(serve):
    """Start a server of a film, an array or a source."""
    return lambda source, **options: serve(open_session(source, **options))


def address_of(server):
    """Return host, port and address of the socket of a server."""
    port = int(server.address.split("/")[2].rpartition(":")[2])
    return SimpleNamespace(port=port, place=f"127.0.0.1:{port}", socket=f"ws://127.0.0.1:{port}/ws")


def wait_for(condition, seconds=30.0, pause=time.sleep):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        pause(0.01)


def frame_headers(socket):
    """Yield the headers of the frames that come over a socket."""
    while True:
        header, _ = unpack(socket.recv(timeout=20))
        if header["kind"] == "frame":
            yield header


def until(socket, condition, n_most=4_000):
    """Return the first header of a frame for which the condition holds."""
    for _, header in zip(range(n_most), frame_headers(socket), strict=False):
        if condition(header):
            return header
    raise AssertionError("no header met the condition")
