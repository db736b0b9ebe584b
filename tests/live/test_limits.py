"""Limits of the server: clients that send no request, read no answer, flood it with frames, or stay for ever."""

import os
import re
import select
import socket
import subprocess
import sys
import time
from base64 import b64encode
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection
from itertools import count

import numpy as np
import pytest
from websockets.protocol import Protocol
from websockets.sync.client import connect

from live.conftest import StandIn, address_of, frame_headers, wait_for
from psmt.live import limits, serving
from psmt.live.limits import LimitedHTTP, LimitedSocket
from psmt.live.messages import unpack

RUN = "import sys; from psmt.cli import main; sys.exit(main())"
N_CLIENTS = 140
"""More than `MAX_CONNECTIONS`."""


def masked(opcode, payload, *, final=True):
    """Return a frame of a web socket with a mask of zeros. `payload` has at most 125 bytes."""
    return bytes([0x80 * final + opcode, 0x80 + len(payload)]) + bytes(4) + payload


PINGS = 200 * masked(0x9, bytes(125))
PONGS = 200 * masked(0xA, bytes(125))
EMPTY_FRAGMENTS = masked(0x1, b"x", final=False) + 400 * masked(0x0, b"", final=False)
TINY_MESSAGES = 2_000 * masked(0x1, b"{}")


def dial(where, request=b"", *, receive_buffer=2_048):
    """Connect, send a request if there is one, and read nothing."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    line.settimeout(10)
    line.connect(("127.0.0.1", where.port))
    line.sendall(request.replace(b"HOST", where.place.encode()))
    return line


GET = b"GET /static/page.js HTTP/1.1\r\nHost: HOST\r\n\r\n"
TABLE = b"GET /scores.csv HTTP/1.1\r\nHost: HOST\r\n\r\n"
UPGRADE = (
    b"GET /ws HTTP/1.1\r\nHost: HOST\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: " + b64encode(bytes(16)) + b"\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def is_closed(line):
    """Whether the server has closed a connection; this reads nothing else from it."""
    poll = select.poll()
    poll.register(line, select.POLLHUP | select.POLLERR | select.POLLRDHUP)
    return bool(poll.poll(0))


def served_within(where, seconds):
    """Fetch the page and open its socket, as a browser does. Check that both took at most this long."""
    began = time.monotonic()
    while True:
        with closing(HTTPConnection("127.0.0.1", where.port, timeout=20)) as line:
            try:
                line.request("GET", "/")
                assert line.getresponse().status == 200
                break
            except ConnectionResetError:  # the server made room for others; a browser tries again
                assert time.monotonic() - began < seconds
    with connect(where.socket, close_timeout=0.2, max_size=None) as page:
        page.send('{"do": "ping", "value": 1}')
        assert next(frame_headers(page))["kind"] == "frame"
        took = time.monotonic() - began
    assert took < seconds


# Connections without a request


def test_a_request_must_arrive_in_time(where, monkeypatch):
    monkeypatch.setattr(LimitedHTTP, "timeout", 0.6)
    begun, took = (b"GET / HTTP/1.1\r\nHo", GET + b"GET / HT"), {}
    with ExitStack() as stack:
        lines = {first: stack.enter_context(dial(where, first, receive_buffer=1 << 16)) for first in (b"", GET, *begun)}
        began = time.monotonic()
        while took.keys() != lines.keys() and time.monotonic() - began < 10:
            time.sleep(0.1)
            took = dict.fromkeys(filter(lambda first: is_closed(lines[first]), lines), time.monotonic() - began) | took
            # A byte of a header now and then does not extend the time.
            for first in begun:
                with suppress(OSError):
                    lines[first].sendall(b"s")
    assert took.keys() == lines.keys() and all(0.3 < seconds < 5 for seconds in took.values())


def test_requests_of_one_connection_may_pause(where, monkeypatch):
    monkeypatch.setattr(LimitedHTTP, "timeout", 0.9)
    with closing(HTTPConnection("127.0.0.1", where.port, timeout=10)) as line:
        for _ in range(4):
            line.request("GET", "/static/page.js")
            answer = line.getresponse()
            assert answer.status == 200 and answer.read()
            time.sleep(0.35)


@pytest.mark.parametrize("first", [b"", b"GET / HTTP/1.1\r\nHo", GET])
def test_idle_connections_keep_nobody_out(where, first):
    with ExitStack() as stack:
        lines = [stack.enter_context(dial(where, first, receive_buffer=1 << 16)) for _ in range(N_CLIENTS)]
        served_within(where, 5.0)
        wait_for(lambda: sum(map(is_closed, lines)) >= N_CLIENTS - limits.MAX_CONNECTIONS)
        # The connection that is idle for the longest time is closed first. Answers may overtake each other.
        assert first == GET or all(map(is_closed, lines[: N_CLIENTS - limits.MAX_CONNECTIONS]))


def test_pages_survive_a_flood_of_connections(where, monkeypatch):
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 4)
    with ExitStack() as stack:
        page = stack.enter_context(connect(where.socket, close_timeout=0.2))
        frames = frame_headers(page)
        next(frames)
        lines = [stack.enter_context(dial(where)) for _ in range(20)]
        wait_for(lambda: sum(map(is_closed, lines)) >= 16)
        assert next(frames)["kind"] == "frame"


# Clients that do not read


class LongTable:
    """Stands in for scores whose table does not fit into the buffers of the system."""

    def table(self, _name):
        return 4_000_000 * "x"


@pytest.fixture
def tables(serve):
    session = StandIn()
    session.scores = LongTable()
    return address_of(serve(session))


def test_an_answer_must_be_read(tables, monkeypatch):
    monkeypatch.setattr(LimitedHTTP, "timeout", 0.6)
    with dial(tables, TABLE) as first, dial(tables, TABLE) as second, dial(tables, 400 * GET) as many:
        # The second one is told at once that the table of the first is on its way.
        assert b"503" in second.recv(200)
        wait_for(lambda: is_closed(first) and is_closed(many), 10)
    with closing(HTTPConnection("127.0.0.1", tables.port, timeout=20)) as line:
        line.request("GET", "/scores.csv")
        assert len(line.getresponse().read()) == 4_000_000


def test_a_slow_reader_gets_its_table(tables, monkeypatch):
    monkeypatch.setattr(LimitedHTTP, "timeout", 0.6)
    with dial(tables, TABLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), receive_buffer=1 << 16) as line:
        n_read, began = 0, time.monotonic()
        while part := line.recv(1 << 16):
            n_read += len(part)
            if time.monotonic() - began < 1.2:
                time.sleep(0.03)
    assert n_read > 4_000_000 and time.monotonic() - began > 1.2


# Web sockets


@pytest.mark.parametrize(
    "flood", [PINGS, PONGS, EMPTY_FRAGMENTS, TINY_MESSAGES], ids=["pings", "pongs", "empty fragments", "tiny messages"]
)
def test_a_flood_of_frames_is_cut_off(where, flood):
    with dial(where, UPGRADE) as line:
        line.settimeout(0.5)
        n_sent = 0
        with suppress(ConnectionError):
            while n_sent < 20_000_000:
                with suppress(TimeoutError):
                    n_sent += line.send(flood)
        assert n_sent < 20_000_000
    served_within(where, 5.0)


@pytest.mark.parametrize(("flood", "most"), [(PINGS, 40), (EMPTY_FRAGMENTS, 40), (TINY_MESSAGES, 300)])
def test_a_flood_is_cut_off_before_it_is_parsed(where, monkeypatch, flood, most):
    """All of it comes in few packets, which would otherwise block the server until their last frame."""
    parsed = []
    receive = Protocol.recv_frame
    monkeypatch.setattr(Protocol, "recv_frame", lambda self, frame: parsed.append(frame) or receive(self, frame))
    with dial(where, UPGRADE) as line:
        assert b" 101 " in line.recv(100)
        with suppress(OSError):  # it is closed before all is sent
            line.sendall(200 * flood)
        wait_for(lambda: is_closed(line))
    assert len(parsed) < most


def test_a_packet_of_short_messages_is_not_parsed():
    assert limits._is_flood(TINY_MESSAGES) and limits._is_flood(EMPTY_FRAGMENTS)
    assert not limits._is_flood(60 * masked(0x1, b"{}"))
    # The payload of a camera frame, and one that looks like the headers of short frames for a while
    assert not any(limits._is_flood(np.random.default_rng(seed).bytes(1 << 16)) for seed in range(20))
    assert not limits._is_flood(100 * masked(0x2, b"") + bytes(1 << 16))


def test_frames_before_the_handshake_has_ended_close_the_connection(where, monkeypatch):
    """A browser waits for the answer. What comes earlier is not parsed."""
    parsed, connected = [], LimitedSocket.handle_connect
    monkeypatch.setattr(Protocol, "recv_frame", lambda _, frame: parsed.append(frame))

    def flooded(self, event):
        connected(self, event)
        self.data_received(masked(0x1, b"{}"))

    monkeypatch.setattr(LimitedSocket, "handle_connect", flooded)
    with dial(where, UPGRADE) as line:
        wait_for(lambda: is_closed(line))
    assert not parsed


def test_requests_that_do_not_wait_for_an_answer_are_cut_off(where, monkeypatch):
    answered = []
    complete = LimitedHTTP.on_response_complete
    monkeypatch.setattr(LimitedHTTP, "on_response_complete", lambda self: answered.append(self) or complete(self))
    with dial(where, 100 * GET, receive_buffer=1 << 16) as line:
        wait_for(lambda: is_closed(line), 4)
    assert len(answered) < 5


def test_threads_of_the_model_do_not_keep_the_server_waiting(serve):
    before = 0.005
    sys.setswitchinterval(before)  # the server of the other tests has made it shorter
    server = serve()
    with connect(address_of(server).socket, close_timeout=0.2) as page:
        next(frame_headers(page))
        assert sys.getswitchinterval() < before / 5
    server.stop()
    assert sys.getswitchinterval() == before


def test_pings_of_a_browser_are_answered(where):
    # The client stops reading, pongs included, when its queue of unread pictures is full.
    with connect(where.socket, close_timeout=0.2, max_queue=None) as page:
        for _ in range(5):
            assert page.ping().wait(5)
        assert next(frame_headers(page))["kind"] == "frame"


def test_pages_that_do_not_read_make_room(serve, monkeypatch):
    monkeypatch.setattr(serving, "MAX_VIEWERS", 3)
    monkeypatch.setattr(serving, "STALLED", 0.3)
    where = address_of(serve(StandIn(n_bytes=300_000)))
    with ExitStack() as stack:
        good = stack.enter_context(connect(where.socket, max_size=None, close_timeout=0.2))
        frames = frame_headers(good)
        for _ in range(2):
            stack.enter_context(dial(where, UPGRADE))
        end = time.monotonic() + 1.2
        while time.monotonic() < end:
            next(frames)
        served_within(where, 5.0)
        assert next(frames)["kind"] == "frame"


# Every abuse for a minute


def abuse_with(first, again=b""):
    """Return an abuse: many clients send `first`, read nothing, send `again` repeatedly, and come back if closed.

    Each call is one round, in which at most five clients come back.
    """

    def abuse(where, lines):
        for line in list(lines):
            try:
                if again:
                    line.send(again)
                if is_closed(line):
                    raise ConnectionError
            except BlockingIOError:
                pass
            except OSError:
                line.close()
                lines.remove(line)
        # What is sent again comes after the handshake, as from a client that waits for it.
        for _ in range(min(5, N_CLIENTS - len(lines))):
            line = dial(where, first)
            line.setblocking(False)
            lines.append(line)

    return abuse


ABUSES = {
    "idle": abuse_with(b""),
    "slow headers": abuse_with(b"GET / HTTP/1.1\r\n", b"x"),
    "answers not read": abuse_with(TABLE),
    "many requests": abuse_with(100 * GET, GET),
    "pages that do not read": abuse_with(UPGRADE),
    "pings": abuse_with(UPGRADE, PINGS),
    "pongs": abuse_with(UPGRADE, PONGS),
    "empty fragments": abuse_with(UPGRADE, EMPTY_FRAGMENTS),
    "tiny messages": abuse_with(UPGRADE, TINY_MESSAGES),
    "frames before the handshake": abuse_with(UPGRADE + EMPTY_FRAGMENTS),
}


def resident(process):
    """Return the memory of a process in megabytes."""
    with open(f"/proc/{process.pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.fixture(scope="module")
def apart():
    """A server in a process of its own, and its address."""
    command = [sys.executable, "-c", RUN, "live", "builtin:glide?size=64", "--no-browser", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        port = int(re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())[1])
        where = address_of(type("Server", (), {"address": f"http://127.0.0.1:{port}/"}))
        with connect(where.socket, close_timeout=0.2) as page:
            # The models have compiled and learned, and their memory is allocated.
            while unpack(page.recv(timeout=300))[0].get("step", 0) <= 300:
                pass
        yield process, where
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process from /proc")
@pytest.mark.parametrize("name", ABUSES)
def test_a_minute_of_abuse(name, apart):
    """One server bears all of it in turn; PSMT_ABUSE_SECONDS=60 makes each a minute."""
    process, where = apart
    given = os.environ.get("PSMT_ABUSE_SECONDS")
    seconds = float(given or 2)
    lines = []
    try:
        before, most, answers, served = resident(process), 0.0, [], time.monotonic()
        began = time.monotonic()
        for _ in count():
            ABUSES[name](where, lines)
            most = max(most, resident(process) - before)
            if time.monotonic() - served > 5:
                asked = time.monotonic()
                served_within(where, 20.0)
                served = time.monotonic()
                answers.append(served - asked)
            if time.monotonic() - began > seconds:
                break
            time.sleep(0.05)
        served_within(where, 20.0)
        assert most < 100
        # The time of an answer means something on a machine that does nothing else.
        if given:
            print(
                f"{name}: {most:+.0f} MB, answers {np.median(answers):.2f} s (median), {max(answers):.2f} s (slowest)"
            )
            assert np.median(answers) < 1.0 and max(answers) < 5.0
    finally:
        for line in lines:
            line.close()
