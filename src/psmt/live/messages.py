"""What goes over the socket: controls and camera frames from the page, snapshots to it."""

from __future__ import annotations

import json
import math
import struct
from itertools import takewhile
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from psmt.live.frame_predictor import EXTRAPOLATIONS, MAX_HORIZON

if TYPE_CHECKING:
    from psmt.live.session import Snapshot

MAX_CONTROL = 256
"""Characters of a control at the most."""

RATE, BURST = 80.0, 160.0
"""Messages a second that a page may send, and how many at once."""

_PLAIN = ("pause", "play", "step", "reset", "save")


class RefusedMessage(Exception):
    """A message that no page of ours sends; its text is the reason that the socket is closed with."""


class Control(NamedTuple):
    """Something that a page asks for."""

    name: str
    value: Any = None


def parse_control(text: str) -> Control:
    """Return what a page asks for: ``{"do": name}``, with some of them a ``"value"``.

    >>> parse_control('{"do": "horizon", "value": 3}')
    Control(name='horizon', value=3)
    """
    if len(text) > MAX_CONTROL:
        raise RefusedMessage(f"a control has at most {MAX_CONTROL} characters")
    try:
        asked = json.loads(text)
    except (ValueError, RecursionError):
        raise RefusedMessage("a control is JSON") from None
    if not isinstance(asked, dict) or not isinstance(asked.get("do"), str) or asked.keys() - {"do", "value"}:
        raise RefusedMessage('a control is {"do": name, "value": value}')
    name, value = asked["do"], asked.get("value")
    if name in _PLAIN:
        good = value is None
    elif name == "horizon":
        good = type(value) is int and 1 <= value <= MAX_HORIZON
    elif name == "extrapolation":
        good = isinstance(value, str) and value in EXTRAPOLATIONS
    elif name == "ping":
        good = isinstance(value, int | float) and abs(value) < 1e15
    else:
        raise RefusedMessage("there is no such control")
    if not good:
        raise RefusedMessage(f"{name} does not take this value")
    return Control(name, value)


class Allowance:
    """How many messages a page may still send: a token bucket."""

    def __init__(self, rate: float = RATE, burst: float = BURST) -> None:
        self._rate, self._burst = rate, burst
        self._left, self._last = burst, monotonic()

    def spend(self) -> None:
        """Take one message off; raise `RefusedMessage` where none is left."""
        now = monotonic()
        self._left = min(self._left + self._rate * (now - self._last), self._burst) - 1.0
        self._last = now
        if self._left < 0:
            raise RefusedMessage(f"more than {self._rate:g} messages a second")


def pack(header: dict[str, Any], payload: bytes = b"") -> bytes:
    """Return a message: the length of the header (4 bytes, little-endian), the header as JSON, and a picture."""
    try:
        text = _as_json(header)
    except ValueError:
        # NaN, which JSON has not: rare, and looking for it in each message would cost more than the rest.
        text = _as_json(_finite(header))
    return struct.pack("<I", len(text)) + text + payload


def unpack(message: bytes) -> tuple[dict[str, Any], bytes]:
    """Return header and picture of a message.

    >>> unpack(pack({"kind": "frame", "ratio": float("nan")}, b"picture"))
    ({'kind': 'frame', 'ratio': None}, b'picture')
    """
    (length,) = struct.unpack_from("<I", message)
    return json.loads(message[4 : 4 + length]), message[4 + length :]


def _as_json(header: dict[str, Any]) -> bytes:
    return json.dumps(header, separators=(",", ":"), allow_nan=False).encode()


def _finite(value: Any) -> Any:
    """The same with None for numbers that JSON has not."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


class Mailbox:
    """What one page has had so far, so that it gets the newest snapshot and all small things that it missed."""

    def __init__(self) -> None:
        self._number = 0
        self._epoch = -1
        self._step = -1
        self._moment: tuple[int, str] = (-1, "")
        self._atoms = 0
        self._patch = b""
        self.replies: list[bytes] = []
        """Answers that go out with the next snapshot."""

    def mail(self, snapshot: Snapshot, extra: dict[str, Any]) -> list[bytes]:
        """Return the messages that bring a page up to date; none where it is."""
        out, self.replies = self.replies, []
        if snapshot.number == self._number:
            return out
        self._number = snapshot.number
        if snapshot.state["epoch"] != self._epoch:
            self._epoch, self._step = snapshot.state["epoch"], -1
            self._atoms, self._patch = 0, b""
            self._moment = (-1, "")
        # The new ones are few, and at the end.
        points = list(takewhile(lambda point: point.step > self._step, reversed(snapshot.points)))[::-1]
        if points:
            self._step = points[-1].step
        # The frame comes first: it says whether all that a page knows is forgotten.
        out.append(pack({"kind": "frame", **snapshot.state, **extra, "points": points}, snapshot.strip))
        if snapshot.patch.version != self._atoms:
            self._atoms = snapshot.patch.version
            out.append(pack({"kind": "atoms", "version": self._atoms}, snapshot.patch.atoms))
        if snapshot.patch.message is not self._patch:
            self._patch = snapshot.patch.message
            out.append(self._patch)
        for moment in snapshot.moments:
            # One that is known already comes again under another name: a cut turns out to be a flash.
            if moment.number > self._moment[0] or (moment.number == self._moment[0] and moment.kind != self._moment[1]):
                self._moment = (moment.number, moment.kind)
                told = {key: getattr(moment, key) for key in ("number", "step", "surprise", "seconds")}
                out.append(pack({"kind": "moment", "what": moment.kind, **told}, moment.strip))
        return out
