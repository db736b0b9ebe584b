"""The server: one page, one socket, and the last minute as a film."""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket, WebSocketDisconnect

from psmt.errors import PSMTError
from psmt.live.feed import BrowserCamera
from psmt.live.guard import Guard
from psmt.live.messages import MAX_CONTROL, Allowance, Mailbox, RefusedMessage, pack, parse_control
from psmt.live.session import Session

MAX_VIEWERS = 24
"""Pages at once."""

PATIENCE = 10.0
"""Seconds that a page may take to read one message; then its socket is closed."""

_REFUSED, _TOO_MANY = 1008, 1013


def largest_message(session: Session) -> int:
    """Bytes of the largest message that a page may send: a frame of its camera, or a control."""
    return max(session.feed.size**2, 4 * MAX_CONTROL)


def make_app(session: Session, *, host: str, token: str | None = None, framed_by: Sequence[str] = ()) -> ASGIApp:
    """Return the ASGI application that shows a session; `host`, `token` and `framed_by` as in `Guard`."""
    hall = _Hall(session)
    pages = [Route(path, _asset(name)) for path, name in _asset_paths().items()]
    app = Starlette(
        routes=[*pages, Route("/record.mp4", hall.record), WebSocketRoute("/ws", hall.socket)],
        exception_handlers={404: _nothing_there},
    )
    return Guard(app, host=host, token=token, framed_by=framed_by)


def _asset_paths() -> dict[str, str]:
    """Addresses and names of the page's files. They are listed once, so that no address is ever a path."""
    names = [entry.name for entry in files("psmt.live").joinpath("static").iterdir() if entry.is_file()]
    return {"/" if name == "index.html" else f"/static/{name}": name for name in names}


def _asset(name: str) -> Any:
    content = files("psmt.live").joinpath("static", name).read_bytes()
    kind = "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0]

    async def answer(_request: Request) -> Response:
        return Response(content, media_type=kind)

    return answer


async def _nothing_there(_request: Request, _error: Exception) -> Response:
    return PlainTextResponse("There is nothing here; the page is at /.\n", 404)


class _Viewer:
    """One page: what it has had, and a flag that there is more."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.mailbox = Mailbox()
        self.news = asyncio.Event()
        self._loop = loop
        self.news.set()

    def wake(self) -> None:
        """Called from the worker."""
        # The loop may have ended a moment ago.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.news.set)


class _Hall:
    """All pages that look at one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._viewers: set[_Viewer] = set()
        self._camera: _Viewer | None = None
        self._filming = asyncio.Lock()

    async def record(self, _request: Request) -> Response:
        """The last minute; one film is made at a time."""
        if self._filming.locked():
            return PlainTextResponse("Another page is having its film made; try again in a moment.\n", 503)
        async with self._filming:
            try:
                film = await run_in_threadpool(self._session.recording.film)
            except PSMTError as error:
                return PlainTextResponse(f"{error}\n", 409)
        return Response(
            film, headers={"content-disposition": 'attachment; filename="psmt-live.mp4"'}, media_type="video/mp4"
        )

    async def socket(self, socket: WebSocket) -> None:
        """Serve one page until it goes, sends what none of ours would, or no longer reads."""
        await socket.accept()
        if len(self._viewers) >= MAX_VIEWERS:
            await socket.close(_TOO_MANY, f"{MAX_VIEWERS} pages are open already")
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
            # Whoever does not read does not hear the reason either.
            with suppress(TimeoutError, RuntimeError, WebSocketDisconnect):
                async with asyncio.timeout(1.0):
                    await socket.close(_REFUSED, reason)
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
            extra = {"viewers": len(self._viewers), "camera": self._camera_seat(viewer)}
            for message in viewer.mailbox.mail(snapshot, extra):
                try:
                    # Not `wait_for`, which may swallow that the task was cancelled (Python 3.11).
                    async with asyncio.timeout(PATIENCE):
                        await socket.send_bytes(message)
                except TimeoutError:
                    raise RefusedMessage(f"nothing was read for {PATIENCE:g} seconds") from None

    async def _receive(self, socket: WebSocket, viewer: _Viewer) -> None:
        allowance = Allowance()
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            allowance.spend()
            if message.get("text") is not None:
                control = parse_control(message["text"])
                if control.name == "ping":
                    viewer.mailbox.replies[:] = [pack({"kind": "pong", "value": control.value})]
                    viewer.news.set()
                else:
                    self._session.submit(control)
            else:
                self._take_camera_frame(message["bytes"], viewer)

    def _take_camera_frame(self, pixels: bytes, viewer: _Viewer) -> None:
        feed = self._session.feed
        if not isinstance(feed, BrowserCamera):
            raise RefusedMessage("this source takes no frames from pages")
        if len(pixels) != feed.size**2:
            raise RefusedMessage(f"a frame has {feed.size} x {feed.size} bytes")
        if self._camera is None:
            self._camera = viewer
        # One world at a time: frames of a second camera are left out.
        if self._camera is viewer:
            feed.offer(pixels)

    def _camera_seat(self, viewer: _Viewer) -> str | None:
        """Whether this page may send its camera: None where none is asked for."""
        if not isinstance(self._session.feed, BrowserCamera):
            return None
        return "free" if self._camera is None else "yours" if self._camera is viewer else "taken"
