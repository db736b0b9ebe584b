"""Attacks: other hosts and pages, missing tokens, hostile messages, and clients that misbehave."""

import asyncio
import http.client
import json
import re
import socket
import threading
import time
from base64 import b64encode
from contextlib import contextmanager, suppress
from importlib.resources import files

import pytest
from websockets.asyncio.client import connect as connect_async
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect as _connect

from live.conftest import SIDE, StandIn, address_of, frame_headers, wait_for
from psmt.live import messages, serving


def connect(address, **options):
    """Open a socket that waits only briefly when it closes."""
    return _connect(address, close_timeout=0.2, **options)


def ask(where, path="/", *, method="GET", **headers):
    """Return status, headers and text of an answer; a header that is None is not sent."""
    line = http.client.HTTPConnection("127.0.0.1", where.port, timeout=10)
    line.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in ({"Host": where.place} | headers).items():
        if value is not None:
            line.putheader(name.replace("_", "-"), value)
    line.endheaders()
    answer = line.getresponse()
    return answer.status, answer.headers, answer.read().decode("utf-8", "replace")


def closed_with(line):
    """Return the code and the reason with which a socket is closed."""
    with pytest.raises(ConnectionClosed) as closed:
        while True:
            line.recv(timeout=10)
    return closed.value.rcvd.code, closed.value.rcvd.reason


# Other hosts and pages


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "",
        None,
        "[::1",
        "10.0.0.1",
    ],
)
def test_other_hosts_get_neither_page_nor_socket(where, host):
    # DNS rebinding: the address is ours, the name is not. Without a Host, the HTTP parser itself refuses.
    assert ask(where, Host=host)[0] in ({400, 403} if host is None else {403})
    if host:
        with pytest.raises(InvalidStatus):
            connect(where.socket, additional_headers={"Host": host})


def test_two_hosts_are_refused(where):
    line = http.client.HTTPConnection("127.0.0.1", where.port, timeout=10)
    line.putrequest("GET", "/", skip_host=True)
    line.putheader("Host", where.place)
    line.putheader("Host", "evil.example")
    line.endheaders()
    assert line.getresponse().status in (400, 403)


@pytest.mark.parametrize("host", ["localhost:9999", "127.0.0.1", "[::1]:8765"])
def test_a_tunnel_may_have_another_port(where, host):
    assert ask(where, Host=host)[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", "file://", "http://127.0.0.1"])
def test_pages_of_other_origins_get_neither_page_nor_socket(where, origin):
    assert ask(where, Origin=origin)[0] == 403
    with pytest.raises(InvalidStatus) as refused:
        connect(where.socket, origin=origin)
    assert refused.value.response.status_code == 403


def test_our_own_page_gets_both(where):
    assert ask(where, Origin=f"http://{where.place}")[0] == 200
    with connect(where.socket, origin=f"http://{where.place}") as line:
        assert next(frame_headers(line))["kind"] == "frame"


def test_other_sites_cannot_load_our_files_or_tables(where):
    for path in ("/static/page.js", "/scores.csv", "/events.csv"):
        assert ask(where, path, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors")[0] == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_only_get_is_answered(where, method):
    assert ask(where, method=method)[0] == 403


# Security headers


def test_the_policy_allows_only_our_own_files(where):
    _, headers, text = ask(where)
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=|https?://", text)


def test_no_file_of_the_page_names_another_machine():
    for entry in files("psmt.live").joinpath("static").iterdir():
        found = re.findall(r"(?:https?|wss?)://[\w.-]+", entry.read_text())
        assert set(found) <= {"http://www.w3.org"}, entry.name


@pytest.mark.parametrize(
    "path",
    [
        "/static/../serving.py",
        "/static/%2e%2e/serving.py",
        "/static/..%2fserving.py",
        "/etc/passwd",
        "//etc/passwd",
        "/static/",
        "/scores.csv/x",
        "/passwd.csv",
        "/..%2fscores.csv",
    ],
)
def test_no_path_reaches_the_file_system(where, path):
    status, _, text = ask(where, path)
    assert status == 404
    assert "import" not in text and "root:" not in text


# The token


def test_other_hosts_than_loopback_require_the_token(serve):
    running = serve(host="0.0.0.0")
    where, token = address_of(running), running.address.partition("?token=")[2]
    assert len(token) >= 32
    for path in (
        "/",
        "/?token=",
        f"/?token={token[:-1]}",
        f"/?token={token}x",
        "/static/page.js",
        "/scores.csv",
        "/?" + "a=1&" * 50,
    ):
        status, headers, text = ask(where, path)
        assert status == 403 and "set-cookie" not in headers and token not in text
    with pytest.raises(InvalidStatus):
        connect(where.socket)

    status, headers, _ = ask(where, f"/?token={token}")
    assert (status, headers["location"]) == (303, "/")
    cookie, *flags = headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(flags)
    assert ask(where, Cookie=cookie)[0] == ask(where, "/static/page.js", Cookie=cookie)[0] == 200
    with connect(where.socket, additional_headers={"Cookie": cookie}) as line:
        assert next(frame_headers(line))["kind"] == "frame"
    assert ask(where, Cookie=cookie[:-1])[0] == ask(where, Cookie='psmt=;;"x')[0] == 403
    # The token does not help a page or a name that is not ours.
    assert ask(where, Cookie=cookie, Origin="http://evil.example")[0] == 403
    assert ask(where, Cookie=cookie, Host="evil.example")[0] == 403


def test_two_servers_have_two_tokens(serve):
    first, second = (serve(host="0.0.0.0").address.partition("?token=")[2] for _ in range(2))
    assert first != second


# Hostile messages


HOSTILE = [
    "",
    "x",
    "[]",
    "null",
    "{}",
    "[" * 200,
    '{"do": 1}',
    '{"do": "exec"}',
    '{"do": "pause", "value": 1}',
    '{"do": "save", "value": "/etc/passwd"}',
    '{"do": "save", "path": "/tmp/x"}',
    '{"do": "horizon"}',
    '{"do": "horizon", "value": 0}',
    '{"do": "horizon", "value": 11}',
    '{"do": "horizon", "value": true}',
    '{"do": "horizon", "value": 1.5}',
    '{"do": "horizon", "value": 1e999}',
    '{"do": "source", "value": "/etc/passwd"}',
    '{"do": "source", "value": -1}',
    '{"do": "seek", "value": -1}',
    '{"do": "seek", "value": "1"}',
    '{"do": "speed", "value": 1000}',
    '{"do": "alarms", "value": 0}',
    '{"do": "patch", "value": [0.5]}',
    '{"do": "patch", "value": [0.5, 2]}',
    '{"do": "patch", "value": [[], {}]}',
    '{"do": "speed", "value": "../x"}',
    '{"do": "speed", "value": [1]}',
    '{"do": "ping", "value": NaN}',
    '{"do": "ping", "value": "x"}',
    '{"do": "pause"' + " " * messages.MAX_CONTROL + "}",
    b"",
    b"x",
    bytes(3 * SIDE * (SIDE * 4 // 3) - 1),
]


def test_a_hostile_message_closes_its_own_socket_with_a_reason_and_nothing_else(serve):
    session = StandIn()
    where = address_of(serve(session))
    with connect(where.socket) as witness:
        for message in HOSTILE:
            with connect(where.socket) as line:
                line.send(message)
                code, reason = closed_with(line)
                assert code == 1008 and reason, message
        assert next(frame_headers(witness))["kind"] == "frame"
        witness.send('{"do": "pause"}')
        wait_for(lambda: session.controls)
    assert [control.name for control in session.controls] == ["pause"]


@pytest.mark.parametrize("message", [bytes(200_000), "x" * 200_000])
def test_an_oversized_message_closes_its_socket(where, message):
    with connect(where.socket) as line:
        line.send(message)
        assert closed_with(line)[0] == 1009


def test_a_film_takes_no_frames(serve_film, film):
    where = address_of(serve_film(film))
    with connect(where.socket) as line:
        line.send(bytes(3 * SIDE * (SIDE * 4 // 3)))
        code, reason = closed_with(line)
    assert code == 1008 and "takes no frames" in reason


def test_a_flood_closes_its_socket(where):
    with connect(where.socket, max_queue=None) as line:
        with suppress(ConnectionClosed):
            for _ in range(int(3 * messages.BURST)):
                line.send('{"do": "play"}')
        code, reason = closed_with(line)
    assert code == 1008 and "messages per second" in reason


def test_the_rate_limit_does_not_depend_on_the_clock():
    limit = messages.RateLimit(rate=0.0, burst=3.0)
    for _ in range(3):
        limit.count_message()
    with pytest.raises(messages.RefusedMessage, match="messages per second"):
        limit.count_message()


# Clients that misbehave


def test_pages_beyond_the_limit_are_closed(where, monkeypatch):
    monkeypatch.setattr(serving, "MAX_VIEWERS", 2)
    with connect(where.socket) as first, connect(where.socket) as second:
        for page in (first, second):
            page.send('{"do": "ping", "value": 0}')
            next(frame_headers(page))
        time.sleep(0.2)
        with connect(where.socket) as third:
            assert closed_with(third) == (1013, "2 pages are already open")


@pytest.mark.slow
def test_a_thousand_connects_and_disconnects_leave_nothing_behind(serve):
    session = StandIn()
    where = address_of(serve(session))
    before = threading.active_count()

    async def come_and_go(rude):
        line = await connect_async(where.socket, compression=None)
        if rude:
            line.transport.abort()
        else:
            await line.recv()
            await line.close()

    async def all_of_them():
        for start in range(0, 1_000, 10):
            await asyncio.gather(*(come_and_go(rude=(start + k) % 2 == 0) for k in range(10)))

    asyncio.run(all_of_them())
    with connect(where.socket) as line:
        assert next(frame_headers(line))["viewers"] <= 11
        wait_for(lambda: len(session.listeners) <= 1)
    wait_for(lambda: threading.active_count() <= before)


@contextmanager
def deaf(where):
    """Connect a client that never reads."""
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        line.connect(("127.0.0.1", where.port))
        key = b64encode(bytes(16)).decode()
        line.sendall(
            f"GET /ws HTTP/1.1\r\nHost: {where.place}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        yield


def test_a_client_that_never_reads_does_not_delay_the_end(serve):
    running = serve(StandIn(n_bytes=400_000))
    with deaf(address_of(running)):
        wait_for(lambda: running.sessions[0].listeners)
        # Wait until the buffers of the system are full.
        time.sleep(0.5)
        began = time.monotonic()
        running.stop()
        assert time.monotonic() - began < 1.0


def test_a_client_that_never_reads_is_closed_and_slows_no_other(serve, monkeypatch):
    monkeypatch.setattr(serving, "READ_TIMEOUT", 0.5)
    session = StandIn(n_bytes=200_000)
    where = address_of(serve(session))
    with deaf(where), connect(where.socket, max_size=None) as line:
        frames = frame_headers(line)
        seen = [next(frames)["viewers"] for _ in range(20)]
        deadline = time.monotonic() + 20
        while seen[-1] > 1 and time.monotonic() < deadline:
            seen.append(next(frames)["viewers"])
    assert max(seen) == 2 and seen[-1] == 1


def test_a_slow_reader_gets_the_newest(serve):
    session = StandIn(n_bytes=400_000)
    where = address_of(serve(session))
    with connect(where.socket, max_size=None, max_queue=1) as line:
        frames = frame_headers(line)
        next(frames)
        time.sleep(0.6)
        published, n_old = session.snapshot.number, 0
        while next(frames)["published"] < published:
            n_old += 1
    # A queue would hold everything that was published meanwhile; the buffers of the system hold only a few.
    assert n_old < published / 4


def test_pings_are_answered(where):
    with connect(where.socket) as line:
        line.send(json.dumps({"do": "ping", "value": 12.5}))
        while True:
            header, _ = messages.unpack(line.recv(timeout=10))
            if header["kind"] == "pong":
                break
    assert header["value"] == 12.5
