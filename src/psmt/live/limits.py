"""Limits on connections: time for a request, unread output, short web socket frames, and number of connections.

uvicorn limits the number of requests, but a client that sends no request, or reads no answer, can stay for ever. The
classes below add limits to uvicorn's protocols for HTTP and for web sockets. The server must call `close_overdue`
several times per second.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from abc import abstractmethod
from collections.abc import Iterable
from contextlib import suppress

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import ProtocolError
from websockets.frames import Frame, Opcode

from psmt.live.messages import BURST, RATE, RateLimit, RefusedMessage

MAX_CONNECTIONS = 128  # beyond them, the connection that has been idle for the longest time is closed
REQUEST_TIMEOUT = 5.0  # seconds for a complete request, since the connection or the last answer
READ_TIMEOUT = 10.0  # seconds after which a page that does not read is disconnected
MIN_PROGRESS = 1 << 16  # bytes that a client must read of a large answer within the timeout
CONTROL_RATE, CONTROL_BURST = 5.0, 10.0  # control frames and short fragments of one page, per second and at once
_SHORT = 1_000  # bytes; browsers never send shorter fragments
_MAX_MESSAGES = 4 * BURST  # short ones at once; fewer are refused with a reason, elsewhere


class _Limited(asyncio.Protocol):
    """Connection that is closed if its client is idle, that is, neither sends nor reads, for `timeout` seconds."""

    transport: asyncio.Transport
    timeout: float

    @property
    @abstractmethod
    def is_busy(self) -> bool:
        """Whether the server has to act next, so that the client is not idle."""

    def begin(self, others: Iterable[object]) -> None:
        """Start to measure idle time. If too many of `others` are open, drop the connection idle for longest."""
        self.since = asyncio.get_running_loop().time()
        self._unread = 0
        open_ones = [one for one in others if isinstance(one, _Limited) and not one.transport.is_closing()]
        if len(open_ones) > MAX_CONNECTIONS:
            min(open_ones, key=lambda one: (one.is_busy, one.since)).drop()

    def drop(self) -> None:
        """Close the connection immediately. Discard unsent data, even in the buffers of the operating system."""
        line = self.transport.get_extra_info("socket")
        with suppress(OSError):
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def close_if_overdue(self, now: float) -> None:
        """Drop the connection if its client has been idle for too long at the time `now`."""
        unread = self.transport.get_write_buffer_size()
        if (self.is_busy and not self.transport.is_closing()) or self._unread - unread >= MIN_PROGRESS:
            self.since, self._unread = now, unread
        self._unread = max(self._unread, unread)
        if now - self.since > self.timeout:
            self.drop()


class LimitedHTTP(H11Protocol, _Limited):
    """HTTP connection with limited time for each request to arrive, and for each answer to be read."""

    timeout = REQUEST_TIMEOUT

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to measure the time until the first request is complete."""
        super().connection_made(transport)
        self.begin(self.connections)

    def on_response_complete(self) -> None:
        """Start to measure the time of the next request. Drop the client if it did not wait for the answer."""
        self.since = self.loop.time()
        if b"\r\n\r\n" in self.conn.trailing_data[0]:  # no browser does so, and many requests would delay others
            self.drop()
        super().on_response_complete()

    def resume_writing(self) -> None:
        """Start to measure the time for the next piece of an answer, because the client has read the last piece."""
        self.since, self._unread = self.loop.time(), 0
        super().resume_writing()

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered and the client reads the answer."""
        return self.cycle is not None and not self.cycle.response_complete and not self.flow.write_paused


class LimitedSocket(WebSocketsSansIOProtocol, _Limited):
    """Web socket with a limited rate of short web socket frames, because it takes time to parse many of them."""

    timeout = READ_TIMEOUT

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to measure how long the client is idle, and to count its short frames."""
        super().connection_made(transport)
        self._control_frames = RateLimit(CONTROL_RATE, CONTROL_BURST)
        self._short_messages = RateLimit(RATE, _MAX_MESSAGES)
        self._receive, self.conn.recv_frame = self.conn.recv_frame, self._count  # type: ignore[method-assign]
        self.begin(self.connections)

    def data_received(self, data: bytes) -> None:
        """Parse data. Drop a client that floods, or that sends before the handshake ends, which no browser does."""
        if (self.handshake_initiated and not self.handshake_complete) or _is_flood(data):
            self.drop()
        else:
            super().data_received(data)

    @property
    def is_busy(self) -> bool:
        """Whether the page is connected and reads what is sent."""
        return self.handshake_complete and not self.close_sent and self.writable.is_set()

    async def send(self, message: ASGISendEvent) -> None:
        """Send a message. Raise `ClientDisconnected` if the connection is lost; asyncio would log a warning instead."""
        if self.handshake_complete and self.transport.is_closing():
            raise ClientDisconnected
        await super().send(message)

    def handle_parser_exception(self) -> None:
        """Close the connection after invalid data. Before the end of the handshake, no closing frame is sent."""
        if self.conn.close_sent is None:
            self.drop()
        if not self.transport.is_closing():
            super().handle_parser_exception()

    def _count(self, frame: Frame) -> None:
        """Process a parsed web socket frame, or drop the connection if there were too many short frames.

        A limit on the size of messages would not stop empty fragments. Frames are counted while they are parsed,
        because one packet may contain thousands, and parsing all of them would delay other pages.
        """
        is_message = frame.fin and frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)
        if len(frame.data) < _SHORT:
            try:
                (self._short_messages if is_message else self._control_frames).count_message()
            except RefusedMessage as error:
                self.drop()
                raise ProtocolError(str(error)) from None
        self._receive(frame)


def _is_flood(data: bytes) -> bool:
    """Return whether data begins with too many WebSocket frames below 126 bytes, without the work of parsing them."""
    at = n_frames = 0
    while n_frames <= _MAX_MESSAGES and at + 1 < len(data) and data[at] & 0x70 == 0 and 0x80 <= data[at + 1] < 0xFE:
        at += 6 + data[at + 1] - 0x80
        n_frames += 1
    return n_frames > _MAX_MESSAGES


def close_overdue(connections: Iterable[object]) -> None:
    """Close the connections whose clients have been idle for too long."""
    now = asyncio.get_running_loop().time()
    for connection in tuple(connections):
        if isinstance(connection, _Limited):
            connection.close_if_overdue(now)
