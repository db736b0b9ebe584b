"""Messages over the web socket: commands and camera frames from the page, and snapshots to the page."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from itertools import takewhile
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from psmt.live.predictions import MAX_HORIZON

if TYPE_CHECKING:
    from psmt.live.session import LiveSnapshot

MAX_CONTROL = 256  # characters
SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0)
ALARMS = (0.1, 1.0, 10.0, 100.0)  # false alarms per hour
RATE, BURST = 80.0, 60.0  # messages of one page, per second and at once

_VALID_VALUES: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("pause", "play", "step", "reset", "save"), lambda value: value is None),
    "horizon": lambda value: type(value) is int and 1 <= value <= MAX_HORIZON,
    "source": lambda value: type(value) is int and 0 <= value < 100,
    "seek": lambda value: _is_number(value) and 0 <= value < 1e6,
    "speed": lambda value: _is_number(value) and value in SPEEDS,
    "alarms": lambda value: _is_number(value) and value in ALARMS,
    "patch": lambda value: (
        type(value) is list and len(value) == 2 and all(_is_number(x) and 0 <= x <= 1 for x in value)
    ),
    "ping": lambda value: _is_number(value) and abs(value) < 1e15,
}


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


class RefusedMessage(Exception):
    """Raised for a message that the live page never sends. The socket is then closed, with the text as the reason."""


class Control(NamedTuple):
    """Command that a page sends."""

    name: str
    value: Any = None


def parse_control(text: str) -> Control:
    """Return the command in a JSON message ``{"do": name}`` or ``{"do": name, "value": value}``.

    >>> parse_control('{"do": "horizon", "value": 3}')
    Control(name='horizon', value=3)
    """
    if len(text) > MAX_CONTROL:
        raise RefusedMessage(f"a control has at most {MAX_CONTROL} characters")
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        raise RefusedMessage("a control is JSON") from None
    if not isinstance(given, dict) or not isinstance(given.get("do"), str) or given.keys() - {"do", "value"}:
        raise RefusedMessage('a control is {"do": name, "value": value}')
    name, value = given["do"], given.get("value")
    if name not in _VALID_VALUES:
        raise RefusedMessage("there is no such control")
    if not _VALID_VALUES[name](value):
        raise RefusedMessage(f"{name} does not take this value")
    return Control(name, value)


class RateLimit:
    """Token bucket that limits the rate of messages from one page."""

    def __init__(self, rate: float = RATE, burst: float = BURST) -> None:
        self._rate, self._burst = rate, burst
        self._left, self._last = burst, monotonic()

    def count_message(self) -> None:
        """Count one message. Raise `RefusedMessage` if messages come faster than the limit."""
        now = monotonic()
        self._left = min(self._left + self._rate * (now - self._last), self._burst) - 1.0
        self._last = now
        if self._left < 0:
            raise RefusedMessage(f"more than {self._rate:g} messages per second")


def pack(header: dict[str, Any], payload: bytes = b"") -> bytes:
    """Return a message: the length of the header (4 bytes, little-endian), the header as JSON, and the payload."""
    try:
        text = _as_json(header)
    except ValueError:
        # JSON has no NaN. It is rare, and checking every message would cost more than everything else here.
        text = _as_json(json.loads(json.dumps(header), parse_constant=lambda _: None))
    return struct.pack("<I", len(text)) + text + payload


def unpack(message: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header and the payload of a message that `pack` made.

    >>> unpack(pack({"kind": "frame", "ratio": float("nan")}, b"picture"))
    ({'kind': 'frame', 'ratio': None}, b'picture')
    """
    (length,) = struct.unpack_from("<I", message)
    return json.loads(message[4 : 4 + length]), message[4 + length :]


def _as_json(header: dict[str, Any]) -> bytes:
    return json.dumps(header, separators=(",", ":"), allow_nan=False).encode()


class Mailbox:
    """Selects what to send to one page: the newest snapshot, and curve points and events that the page lacks."""

    def __init__(self) -> None:
        self.replies: list[bytes] = []  # sent with the next snapshot
        self._number = 0
        self._epoch = -1
        self._forget()

    def _forget(self) -> None:
        self._step = -1
        self._event = (-1, "")
        self._atoms = 0
        self._patch = b""
        self._timeline = b""

    def mail(self, snapshot: LiveSnapshot, extra: dict[str, Any]) -> list[bytes]:
        """Return the messages that bring the page up to date. `extra` is added to the header of the frame message."""
        out, self.replies = self.replies, []
        if snapshot.number == self._number:
            return out
        self._number = snapshot.number
        if snapshot.state["epoch"] != self._epoch:
            self._epoch = snapshot.state["epoch"]
            self._forget()
        # New points are few, and at the end.
        points = list(takewhile(lambda point: point.step > self._step, reversed(snapshot.points)))[::-1]
        if points:
            self._step = points[-1].step
        # The frame comes first, because its epoch may tell the page to clear everything.
        out.append(pack({"kind": "frame", **snapshot.state, **extra, "points": points}, snapshot.strip))
        if snapshot.patch.version not in (0, self._atoms):
            self._atoms = snapshot.patch.version
            out.append(pack({"kind": "atoms", "version": self._atoms}, snapshot.patch.atoms))
        if snapshot.patch.message and snapshot.patch.message is not self._patch:
            self._patch = snapshot.patch.message
            out.append(self._patch)
        if snapshot.timeline is not self._timeline:
            self._timeline = snapshot.timeline
            out.append(self._timeline)
        for event in snapshot.events:
            # A cut that turns out to be a flash is sent again.
            if event.number > self._event[0] or (event.number == self._event[0] and event.kind != self._event[1]):
                self._event = (event.number, event.kind)
                header = event._replace(strip=b"")._asdict() | {"kind": "event", "what": event.kind, "strip": None}
                out.append(pack(header, event.strip))
        return out
