"""The web server of `psmt live`: opens the source and the model, serves the page, and exchanges messages with it."""

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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from psmt.data import Spec, open_frames
from psmt.errors import PSMTError
from psmt.live.feed import N_PIXELS, BrowserCamera, Feed, SourceFeed
from psmt.live.guard import Guard, is_loopback
from psmt.live.limits import READ_TIMEOUT, LimitedHTTP, LimitedSocket, close_overdue
from psmt.live.messages import Mailbox, RateLimit, RefusedMessage, pack, parse_control
from psmt.live.session import Session
from psmt.video import FramePredictor

MAX_VIEWERS = 24  # pages that may be open at the same time
MAX_SOURCES = 8  # sources that are shown at the same time
SWITCH_INTERVAL = 0.0005  # seconds that a thread may keep the interpreter while another waits; Python's own is 0.005
GRACE = 0.1  # seconds before a page is sent anything; a page that floods the server is gone by then
STALLED, SILENT = 1.0, 5.0  # seconds without reading, and without a message, after which a page makes room for others


def open_session(
    source: Spec,
    *others: Spec,
    size: int | None = None,
    horizon: int = 1,
    device: str = "cpu",
    model: FramePredictor | None = None,
    save_to: Path | None = None,
    loop: bool = True,
    n_pixels: int = N_PIXELS,
) -> Session:
    """Return a session, not yet started. `source` is as for `psmt.open_frames`, or "camera" for the browser's camera.

    Pages can switch to one of the `others`, to the browser's camera and to the built-in film. The session learns with a
    copy of `model`. `size` is the height of the frames. It defaults to that of the model, or to the height at which
    frames have at most `n_pixels`. `loop` repeats films. Pages can save the model to the file `save_to`.
    """
    if model is not None and size is None:
        size = model.shape_[0]
    if save_to is not None and not save_to.absolute().parent.is_dir():
        raise PSMTError(f"--save {save_to}: there is no folder {save_to.absolute().parent}; make it first")

    def opener(spec: Spec) -> Callable[[], Feed]:
        if isinstance(spec, str) and spec == "camera":
            return lambda: BrowserCamera(size, n_pixels=n_pixels)
        return lambda: SourceFeed(open_frames(spec), size=size, n_pixels=n_pixels, loop=loop)

    feed = opener(source)()
    if model is not None and model.shape_[:2] != feed.shape:
        (height, width), (own_height, own_width) = feed.shape, model.shape_[:2]
        raise PSMTError(
            f"the model has frames of {own_height} x {own_width} pixels, and {feed.name} has {height} x {width}; use "
            f"--size {own_height} and a film of the same shape"
        )
    choices: dict[str, Callable[[], Feed]] = {}
    for spec in (source, *others, "camera", "builtin:glide"):
        is_path = isinstance(spec, str | Path) and spec != "camera"
        name = Path(str(spec)).name if is_path else "camera of the browser" if isinstance(spec, str) else feed.name
        # Two films may have the same name in different folders.
        choices.setdefault(str(spec) if is_path and name in choices else name, opener(spec))
    return Session(feed, horizon=horizon, device=device, model=copy.deepcopy(model), save_to=save_to, choices=choices)


def open_sessions(*sources: Spec, **options: Any) -> list[Session]:
    """Return a session for each source, with the options of `open_session`. The sessions share `N_PIXELS`."""
    if len(sources) > MAX_SOURCES:
        raise PSMTError(f"{len(sources)} sources are too many to show at the same time; use at most {MAX_SOURCES}")
    if len(sources) > 1 and options.get("save_to") is not None:
        raise PSMTError(f"--save stores one model, and there are {len(sources)} sources; give one source")
    share = N_PIXELS // len(sources)
    others = [[*sources[:k], *sources[k + 1 :]] for k in range(len(sources))]
    return [open_session(one, *rest, n_pixels=share, **options) for one, rest in zip(sources, others, strict=True)]


class LiveServer:
    """Serves sessions at `address`. Port 0 takes a free port. A token is required unless the host is loopback.

    One page shows all sessions. The URL paths of the first session begin with ``/``, and those of the others with
    ``/1/``, ``/2/``, ...
    """

    def __init__(self, *sessions: Session, host: str = "127.0.0.1", port: int = 0) -> None:
        self.sessions = sessions
        token = None if is_loopback(host) else secrets.token_urlsafe(32)
        self._listener = _listen(host, port)
        shown = socket.gethostname() if host in ("0.0.0.0", "::") else host
        place = f"[{shown}]" if ":" in shown else shown
        query = "" if token is None else f"?token={token}"
        self.address = f"http://{place}:{self._listener.getsockname()[1]}/{query}"
        # The files of the page are listed here, once; no address is ever used as a path.
        routes: list[BaseRoute] = [*map(_static_route, files("psmt.live").joinpath("static").iterdir())]
        for number, session in enumerate(sessions):
            endpoints, prefix = _Endpoints(session, len(sessions)), f"/{number}" if number else ""
            routes += [
                Route(f"{prefix}/{{name}}.csv", endpoints.table),
                WebSocketRoute(f"{prefix}/ws", endpoints.socket),
            ]
        app = Starlette(
            routes=routes,
            exception_handlers={404: lambda *_: PlainTextResponse("Not found; the page is at /.\n", 404)},
        )
        config = uvicorn.Config(
            Guard(app, host=host, token=token),
            http=LimitedHTTP,
            ws=LimitedSocket,
            # The largest message of a page is a frame of its camera, or a control.
            ws_max_size=3 * max(N_PIXELS, *(one.feed.shape[0] * max(one.feed.shape) * 2 for one in sessions)),
            ws_per_message_deflate=False,
            log_level="critical",
            access_log=False,
            server_header=False,
            ws_ping_interval=10,
            ws_ping_timeout=10,
            timeout_graceful_shutdown=1,
            lifespan="off",
        )
        self._server = _Server(config)
        self._thread = threading.Thread(target=self._serve, name="psmt-live-server", daemon=True)

    def run(self, *, browser: bool = False) -> None:
        """Serve the page until Ctrl-C or SIGTERM."""

        def end(_number: int, _frame: object) -> None:
            self._server.force_exit = self._server.should_exit
            self._server.should_exit = True

        previous = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            for session in self.sessions:
                session.start()
            if browser and _has_screen():
                # The listener is open, so the browser can connect before the server answers. A thread, because some
                # browsers return only when they are closed.
                threading.Thread(target=webbrowser.open, args=(self.address,), daemon=True).start()
            self._serve()
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
            for session in self.sessions:
                session.stop()

    def start(self) -> None:
        """Serve the page in a thread, until `stop` is called."""
        for session in self.sessions:
            session.start()
        self._thread.start()

    def stop(self) -> None:
        """Stop the server that `start` started."""
        self._server.should_exit = True
        self._thread.join(timeout=10.0)
        for session in self.sessions:
            session.stop()

    def _serve(self) -> None:
        # After each call of the system, the server waits until the model's thread gives up the interpreter.
        interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL)
        try:
            self._server.run(sockets=[self._listener])
        finally:
            sys.setswitchinterval(interval)


def _has_screen() -> bool:
    """Return whether a browser can open a window. If not, a text browser would take over the terminal."""
    if sys.platform in ("win32", "darwin"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


class _Server(uvicorn.Server):
    async def on_tick(self, counter: int) -> bool:
        """Close overdue connections. uvicorn calls this ten times per second."""
        close_overdue(self.server_state.connections)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the connections to all pages. Wait at most 0.3 seconds for pages that do not read."""
        asyncio.get_running_loop().call_later(0.3, setattr, self, "force_exit", True)
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Keep uvicorn from handling signals, because it raises them again and Ctrl-C would look like a failure."""
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


class _TableResponse(StreamingResponse):
    """Response that sends a table piece by piece, to save memory. `done` is called at the end or after an error."""

    def __init__(self, text: str, name: str, done: Callable[[], None]) -> None:
        content = text.encode()
        pieces = (content[start : start + (1 << 18)] for start in range(0, len(content), 1 << 18))
        headers = {"content-disposition": f'attachment; filename="psmt-live-{name}.csv"'}
        super().__init__(pieces, headers=headers | {"content-length": str(len(content))}, media_type="text/csv")
        self._done = done

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._done()


class _Viewer:
    """One open page: its mailbox, and a flag that says whether there is something new to send."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.mailbox = Mailbox()
        self.news = asyncio.Event()
        self.dismissed: asyncio.Future[None] = loop.create_future()
        self.sending_since: float | None = None
        self.heard = 0.0  # time of the last message; our page sends its first one at once
        self._loop = loop
        self.news.set()

    def wake(self) -> None:
        """Set the flag. This may be called from the thread of the session."""
        # The event loop may have just ended.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.news.set)


class _Endpoints:
    """URL handlers of one session, for its tables and its web socket. Pages receive the number of sessions."""

    def __init__(self, session: Session, n_sessions: int) -> None:
        self._session = session
        self._n_sessions = n_sessions
        self._viewers: dict[_Viewer, None] = {}  # a set with order
        self._camera: _Viewer | None = None
        self._tabulating = asyncio.Lock()

    async def table(self, request: Request) -> Response:
        """Answer with the scores or the events as a CSV table. Only one table is made and sent at a time."""
        name = request.path_params["name"]
        if name not in ("scores", "events"):
            return PlainTextResponse("Not found; the tables are scores.csv and events.csv.\n", 404)
        if self._tabulating.locked():
            return PlainTextResponse("A table is being sent to another page; try again in a moment.\n", 503)
        await self._tabulating.acquire()
        try:
            text = await run_in_threadpool(self._session.scores.table, name)
        except BaseException:
            self._tabulating.release()
            raise
        return _TableResponse(text, name, self._tabulating.release)

    async def socket(self, socket: WebSocket) -> None:
        """Exchange messages with one page, until it leaves, sends a message that is refused, or stops reading."""
        await socket.accept()
        if len(self._viewers) >= MAX_VIEWERS and not self._make_room():
            await socket.close(1013, f"{MAX_VIEWERS} pages are already open")
            return
        viewer = _Viewer(asyncio.get_running_loop())
        self._viewers[viewer] = None
        self._session.listeners.add(viewer.wake)
        tasks = [asyncio.create_task(self._send(socket, viewer)), asyncio.create_task(self._receive(socket, viewer))]
        try:
            await asyncio.wait([*tasks, viewer.dismissed], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._session.listeners.discard(viewer.wake)
            self._viewers.pop(viewer, None)
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

    def _make_room(self) -> bool:
        """Disconnect one page that does not read or no longer sends pings. Return whether there was such a page."""
        before = asyncio.get_running_loop().time() - STALLED
        stalled = [viewer for viewer in self._viewers if (viewer.sending_since or before) < before]
        silent = [viewer for viewer in self._viewers if viewer.heard < before - SILENT]
        leaving = min(stalled or silent, key=lambda viewer: viewer.heard, default=None)
        if leaving is None:
            return False
        del self._viewers[leaving]
        if not leaving.dismissed.done():
            leaving.dismissed.set_result(None)
        return True

    async def _send(self, socket: WebSocket, viewer: _Viewer) -> None:
        await asyncio.sleep(GRACE)
        while True:
            await viewer.news.wait()
            viewer.news.clear()
            snapshot = self._session.snapshot
            if not snapshot.number:
                continue
            camera = None
            if isinstance(self._session.feed, BrowserCamera):
                camera = "free" if self._camera is None else "yours" if self._camera is viewer else "taken"
            extra = {"viewers": len(self._viewers), "camera": camera, "sessions": self._n_sessions}
            for message in viewer.mailbox.mail(snapshot, extra):
                viewer.sending_since = asyncio.get_running_loop().time()
                try:
                    # In Python 3.11, `wait_for` may swallow the cancellation of the task.
                    async with asyncio.timeout(READ_TIMEOUT):
                        await socket.send_bytes(message)
                except TimeoutError:
                    raise RefusedMessage(f"nothing was read for {READ_TIMEOUT:g} seconds") from None
                viewer.sending_since = None

    async def _receive(self, socket: WebSocket, viewer: _Viewer) -> None:
        limit = RateLimit()
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            limit.count_message()
            viewer.heard = asyncio.get_running_loop().time()
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
        if len(pixels) != feed.n_bytes:
            raise RefusedMessage(f"a frame has {feed.n_bytes} bytes")
        if self._camera is None:
            self._camera = viewer
        # The first camera counts; frames of another page are ignored.
        if self._camera is viewer:
            feed.offer(pixels)
