"""The web server of `psmt live`: opens the source and the model, serves the page, and passes messages both ways."""

from __future__ import annotations

import asyncio
import copy
import errno
import mimetypes
import os
import secrets
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from psmt.data import Spec, open_frames
from psmt.errors import PSMTError
from psmt.live.feed import DEFAULT_SIZE, BrowserCamera, SourceFeed
from psmt.live.guard import Guard, is_loopback
from psmt.live.messages import MAX_CONTROL, Mailbox, RateLimit, RefusedMessage, pack, parse_control
from psmt.live.session import Session
from psmt.model import PSMT
from psmt.video import FramePSMT

MAX_VIEWERS = 24  # pages that may be open at the same time
READ_TIMEOUT = 10.0  # seconds after which a page that does not read is disconnected


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
    """Return a session, not yet started, of "camera" (the browser's) or of a source that `open_frames` takes.

    The model is copied; the given one does not change.
    """
    if isinstance(model, FramePSMT):
        height, width = model.shape_
        if height != width or size not in (None, height):
            wanted = "" if size is None else f", not of {size} x {size}"
            raise PSMTError(f"the model is of frames of {height} x {width} pixels{wanted}; live frames are squares")
        size = height
    if save_to is not None and not save_to.absolute().parent.is_dir():
        raise PSMTError(f"--save {save_to}: there is no folder {save_to.absolute().parent}; make it first")
    is_camera = isinstance(source, str) and source == "camera"
    feed = BrowserCamera(size or DEFAULT_SIZE) if is_camera else SourceFeed(open_frames(source), size=size, loop=loop)
    return Session(feed, horizon=horizon, device=device, model=copy.deepcopy(model), save_to=save_to)


class LiveServer:
    """Serves a session at `address`. Port 0 takes a free port; any host but loopback requires a token.

    `framed_by` are the origins whose pages may show ours in a frame.
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
        endpoints = _Endpoints(session)
        # The files of the page are listed here, once; no address is ever used as a path.
        app = Starlette(
            routes=[
                *map(_static_route, files("psmt.live").joinpath("static").iterdir()),
                Route("/record.mp4", endpoints.record),
                WebSocketRoute("/ws", endpoints.socket),
            ],
            exception_handlers={404: lambda *_: PlainTextResponse("Not found; the page is at /.\n", 404)},
        )
        config = uvicorn.Config(
            Guard(app, host=host, token=token, framed_by=framed_by),
            http="h11",
            ws="websockets-sansio",
            # The largest message of a page is a frame of its camera, or a control.
            ws_max_size=max(session.feed.size**2, 4 * MAX_CONTROL),
            ws_per_message_deflate=False,
            log_level="critical",
            access_log=False,
            server_header=False,
            limit_concurrency=128,
            timeout_keep_alive=10,
            timeout_graceful_shutdown=1,
            lifespan="off",
        )
        self._server = _Server(config)
        self._thread = threading.Thread(target=self._serve, name="psmt-live-server", daemon=True)

    def run(self, *, browser: bool = False) -> None:
        """Serve until Ctrl-C or SIGTERM."""

        def end(_number: int, _frame: object) -> None:
            self._server.force_exit = self._server.should_exit
            self._server.should_exit = True

        previous = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            self.session.start()
            if browser and _has_screen():
                # The listener is open, so the browser can connect before the server answers. A thread, because some
                # browsers return only when they are closed.
                threading.Thread(target=webbrowser.open, args=(self.address,), daemon=True).start()
            self._serve()
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
            self.session.stop()

    def start(self) -> None:
        """Serve in a thread."""
        self.session.start()
        self._thread.start()

    def stop(self) -> None:
        """Stop a server that `start` started."""
        self._server.should_exit = True
        self._thread.join(timeout=10.0)
        self.session.stop()

    def _serve(self) -> None:
        self._server.run(sockets=[self._listener])


def _has_screen() -> bool:
    """Return whether a browser can open a window; otherwise lynx or w3m would take over the terminal."""
    if sys.platform in ("win32", "darwin"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


class _Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Tell all pages that the server ends, but wait at most 0.3 seconds for those that do not read."""
        asyncio.get_running_loop().call_later(0.3, setattr, self, "force_exit", True)
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone: uvicorn would raise them again, and Ctrl-C would look like a failure."""
        yield


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise PSMTError(f"port={port} is out of range; use 1 to 65535, or 0 for a free port")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        of_port = error.errno in (errno.EADDRINUSE, errno.EACCES)
        way_out = "--port 0 takes a free port" if of_port else "--host must be an address of this machine"
        cause = str(error.strerror).partition(" (while")[0]
        raise PSMTError(f"cannot listen on {host}:{port} ({cause}); {way_out}") from error
    # A few frames: a larger buffer would only hold old frames for pages that read slowly.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 17)
    return listener


def _static_route(file: Traversable) -> Route:
    kind = "text/javascript" if file.name.endswith(".js") else mimetypes.guess_type(file.name)[0]
    path = "/" if file.name == "index.html" else f"/static/{file.name}"
    return Route(path, Response(file.read_bytes(), media_type=kind))


class _Viewer:
    """One open page: its mailbox, and a flag that there is something new."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.mailbox = Mailbox()
        self.news = asyncio.Event()
        self._loop = loop
        self.news.set()

    def wake(self) -> None:
        """Set the flag; called from the session's thread."""
        # The event loop may have just ended.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.news.set)


class _Endpoints:
    """The film and the socket of one session, for all its pages."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._viewers: set[_Viewer] = set()
        self._camera: _Viewer | None = None
        self._filming = asyncio.Lock()

    async def record(self, _request: Request) -> Response:
        """Answer with the last minute as a film. Only one film is made at a time."""
        if self._filming.locked():
            return PlainTextResponse("A film is being made for another page; try again in a moment.\n", 503)
        async with self._filming:
            try:
                film = await run_in_threadpool(self._session.recording.film)
            except PSMTError as error:
                return PlainTextResponse(f"{error}\n", 409)
        return Response(
            film, headers={"content-disposition": 'attachment; filename="psmt-live.mp4"'}, media_type="video/mp4"
        )

    async def socket(self, socket: WebSocket) -> None:
        """Serve one page until it leaves, sends a message that is refused, or stops reading."""
        await socket.accept()
        if len(self._viewers) >= MAX_VIEWERS:
            await socket.close(1013, f"{MAX_VIEWERS} pages are already open")
            return
        viewer = _Viewer(asyncio.get_running_loop())
        self._viewers.add(viewer)
        self._session.listeners.add(viewer.wake)
        tasks = [asyncio.create_task(self._send(socket, viewer)), asyncio.create_task(self._receive(socket, viewer))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._session.listeners.discard(viewer.wake)
            self._viewers.discard(viewer)
            if self._camera is viewer:
                self._camera = None
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        reason = next((str(end) for end in ends if isinstance(end, RefusedMessage)), None)
        if reason is not None:
            # A page that does not read does not receive the reason either.
            with suppress(TimeoutError, RuntimeError, WebSocketDisconnect):
                async with asyncio.timeout(1.0):
                    await socket.close(1008, reason)
        for end in ends:
            if isinstance(end, Exception) and not isinstance(end, RefusedMessage | WebSocketDisconnect | RuntimeError):
                raise end

    async def _send(self, socket: WebSocket, viewer: _Viewer) -> None:
        while True:
            await viewer.news.wait()
            viewer.news.clear()
            snapshot = self._session.snapshot
            if not snapshot.number:
                continue
            camera = None
            if isinstance(self._session.feed, BrowserCamera):
                camera = "free" if self._camera is None else "yours" if self._camera is viewer else "taken"
            for message in viewer.mailbox.mail(snapshot, {"viewers": len(self._viewers), "camera": camera}):
                try:
                    # In Python 3.11, `wait_for` may swallow the cancellation of the task.
                    async with asyncio.timeout(READ_TIMEOUT):
                        await socket.send_bytes(message)
                except TimeoutError:
                    raise RefusedMessage(f"nothing was read for {READ_TIMEOUT:g} seconds") from None

    async def _receive(self, socket: WebSocket, viewer: _Viewer) -> None:
        limit = RateLimit()
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            limit.count_message()
            if message.get("text") is None:
                self._take_camera_frame(message["bytes"], viewer)
                continue
            control = parse_control(message["text"])
            if control.name == "ping":
                viewer.mailbox.replies[:] = [pack({"kind": "pong", "value": control.value})]
                viewer.news.set()
            else:
                self._session.submit(control)

    def _take_camera_frame(self, pixels: bytes, viewer: _Viewer) -> None:
        feed = self._session.feed
        if not isinstance(feed, BrowserCamera):
            raise RefusedMessage("this source takes no frames from pages")
        if len(pixels) != feed.size**2:
            raise RefusedMessage(f"a frame has {feed.size} x {feed.size} bytes")
        if self._camera is None:
            self._camera = viewer
        # The first camera counts; frames of another page are ignored.
        if self._camera is viewer:
            feed.offer(pixels)
