"""From what was asked for to a server that runs: in the foreground for the command, in a thread for a notebook."""

from __future__ import annotations

import asyncio
import copy
import errno
import os
import secrets
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from psmt.data import Spec, open_frames
from psmt.errors import PSMTError
from psmt.live.feed import DEFAULT_SIZE, BrowserCamera, Feed, SourceFeed
from psmt.live.guard import is_loopback
from psmt.live.server import largest_message, make_app
from psmt.live.session import Session
from psmt.model import PSMT
from psmt.video import FramePSMT

CAMERA = "camera"
"""The source that is the browser's own camera."""

_MOST_CONNECTIONS = 128
_SEND_BUFFER = 1 << 17
"""Bytes that the system holds for a page that reads slowly: a few frames. More would only be old ones."""


_GOODBYE = 0.3
"""Seconds that pages get to hear that the server ends."""


def open_feed(source: Spec, *, size: int | None = None, loop: bool = True) -> Feed:
    """Return the frames of a source as they come: `CAMERA`, or anything that `open_frames` takes."""
    if isinstance(source, str) and source == CAMERA:
        return BrowserCamera(size or DEFAULT_SIZE)
    return SourceFeed(open_frames(source), size=size, loop=loop)


def open_session(
    source: Spec,
    *,
    size: int | None = None,
    horizon: int = 1,
    device: str = "cpu",
    model: FramePSMT | PSMT | None = None,
    save_to: Path | None = None,
    loop: bool = True,
) -> Session:
    """Return a session that has not begun. The model is copied: whoever gave it keeps theirs as it is."""
    if isinstance(model, FramePSMT):
        height, width = model.shape_
        if height != width or size not in (None, height):
            wanted = "" if size is None else f", not of {size} x {size}"
            raise PSMTError(f"the model is of frames of {height} x {width} pixels{wanted}; live frames are squares")
        size = height
    if save_to is not None and not save_to.absolute().parent.is_dir():
        raise PSMTError(f"--save {save_to}: there is no folder {save_to.absolute().parent}; make it first")
    feed = open_feed(source, size=size, loop=loop)
    return Session(feed, horizon=horizon, device=device, model=copy.deepcopy(model), save_to=save_to)


class LiveServer:
    """A session behind an address.

    Parameters
    ----------
    session : Session
    host, port : str, int
        Where to listen; port 0 is any that is free. Anything but loopback gets a token.
    framed_by : sequence of str
        Origins whose pages may show ours in a frame.
    """

    def __init__(
        self, session: Session, *, host: str = "127.0.0.1", port: int = 0, framed_by: Sequence[str] = ()
    ) -> None:
        self.session = session
        token = None if is_loopback(host) else secrets.token_urlsafe(32)
        self._listener = _listen(host, port)
        shown = socket.gethostname() if host in ("0.0.0.0", "::") else host
        place = f"[{shown}]" if ":" in shown else shown
        query = "" if token is None else f"?token={token}"
        self.address = f"http://{place}:{self._listener.getsockname()[1]}/{query}"
        """What a browser opens, with the token where there is one."""
        config = uvicorn.Config(
            make_app(session, host=host, token=token, framed_by=framed_by),
            http="h11",
            ws="websockets-sansio",
            ws_max_size=largest_message(session),
            ws_per_message_deflate=False,
            log_level="critical",
            access_log=False,
            server_header=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=10,
            timeout_graceful_shutdown=1,
            lifespan="off",
        )
        self._server = _Server(config)
        self._thread = threading.Thread(target=self._serve, name="psmt-live-server", daemon=True)

    def run(self, *, browser: bool = False) -> None:
        """Serve until a signal asks to end."""
        self.session.start()
        if browser and _has_screen():
            # The listener is open: what the browser asks waits until the server answers. Some browsers return when
            # they are closed.
            threading.Thread(target=webbrowser.open, args=(self.address,), daemon=True).start()
        try:
            with _ending_on_signals(self._server):
                self._serve()
        finally:
            self.session.stop()

    def start(self) -> None:
        """Serve in a thread of its own."""
        self.session.start()
        self._thread.start()

    def stop(self) -> None:
        """End a server that `start` began."""
        self._server.should_exit = True
        self._thread.join(timeout=10.0)
        self.session.stop()

    def _serve(self) -> None:
        self._server.run(sockets=[self._listener])


def _has_screen() -> bool:
    """Whether a browser has somewhere to open; without, lynx or w3m would take over the terminal."""
    if sys.platform in ("win32", "darwin"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


class _Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Say goodbye to all pages, but wait for none that does not listen."""
        asyncio.get_running_loop().call_later(_GOODBYE, setattr, self, "force_exit", True)
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone: uvicorn would raise them again, and a wanted end would look like a failure."""
        yield


@contextmanager
def _ending_on_signals(server: uvicorn.Server) -> Iterator[None]:
    def end(_number: int, _frame: object) -> None:
        server.force_exit = server.should_exit
        server.should_exit = True

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise PSMTError(f"port={port} is out of range; use 1 to 65535, or 0 for any that is free")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        of_port = error.errno in (errno.EADDRINUSE, errno.EACCES)
        way_out = "--port 0 takes one that is free" if of_port else "--host must be an address of this machine"
        cause = str(error.strerror).partition(" (while")[0]
        raise PSMTError(f"{host}:{port} cannot be listened on ({cause}); {way_out}") from error
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
    return listener
