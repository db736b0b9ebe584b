"""Does `psmt live` keep up with its source: 25 frames a second at 200 x 200 on two cores, end to end?

    python -m benchmarks.live [--seconds 8] [--warm 12] [--film FILE] [--parts]

The server runs in a process of its own, as the command starts it. A client reads its socket as a page does and counts
the frames that came with a prediction, those that were dropped on the way, and the milliseconds from the arrival of a
frame at the server to its prediction in the client's hands. Server and client share two cores, where the system lets
them be held to these. Each line is printed as soon as it is measured; the whole takes about three minutes, and the
first line says how many.

With --parts nothing is served: processor time of each part of a frame, in one process, which a busy machine does not
lengthen much.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from benchmarks.live_parts import parts_table
from benchmarks.page import DATA, machine, table, write_section
from psmt.data import open_frames
from psmt.live.messages import unpack

TARGET = 25.0
"""Frames a second."""

CORES = 2
SIZE = 200
SETTLE = 2.0
"""Seconds that a change of horizon or of clients gets before anything is counted."""

START = 60.0
"""Seconds after which a server that has not printed its address never will."""

OCEAN = DATA / "ocean.mp4"
"""640 x 360 at 25 frames a second: decoding and shrinking are part of the work."""

HEADER = (
    "source and clients",
    "frames/s",
    "predictions/s",
    "dropped/s",
    "latency, ms",
    "99 %",
    "worst",
    "server, CPU ms a frame",
    "MSE / copying",
)


@dataclass
class Watched:
    """What a client saw."""

    steps: set[int] = field(default_factory=set)
    of_steps: set[int] = field(default_factory=set)
    """Frames that were predicted."""
    dropped: list[int] = field(default_factory=list)
    latency: list[float] = field(default_factory=list)
    """Milliseconds."""
    ratio: float | None = None
    seconds: float = 0.0
    cpu: float | None = None
    """Seconds of processor time that the server took meanwhile."""


class Server(NamedTuple):
    """A server that runs."""

    place: str
    process: subprocess.Popen[str]

    def join(self) -> ClientConnection:
        """A client."""
        return connect(f"ws://{self.place}/ws", max_size=None, compression=None, close_timeout=1.0)

    def cpu(self) -> float | None:
        """Seconds of processor time so far, where the system tells."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(source: str) -> Iterator[Server]:
    """A server that ends with the context, by Ctrl-C."""
    start = "import sys; from psmt.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", start, "live", source, "--no-browser", "--port", "0", "--size", str(SIZE)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    watchdog = threading.Timer(START, process.kill)
    watchdog.start()
    try:
        found = re.search(r"http://(\S+?)/", process.stdout.readline())
        watchdog.cancel()
        if found is None:
            raise RuntimeError(f"psmt live {source} does not start")
        yield Server(found[1], process)
    finally:
        watchdog.cancel()
        process.send_signal(signal.SIGINT)
        try:
            ended = process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            raise RuntimeError("the server did not end within ten seconds of Ctrl-C") from None
        if ended:
            raise RuntimeError(f"Ctrl-C ended the server with {ended}")


# Clients


def watch(line: ClientConnection, seconds: float, server: Server | None = None) -> Watched:
    """Read as a page does for so long, whatever comes or does not come."""
    seen, began = Watched(), time.monotonic()
    before = None if server is None else server.cpu()
    while (left := began + seconds - time.monotonic()) > 0:
        try:
            message = line.recv(timeout=left)
        except TimeoutError:
            break
        assert isinstance(message, bytes)
        header, _ = unpack(message)
        if header["kind"] != "frame" or header["of_step"] is None:
            continue
        if header["step"] not in seen.steps:
            # One clock for all processes of a machine: this is the whole way, socket included.
            seen.latency.append(1000.0 * (time.monotonic() - header["came"]))
        seen.steps.add(header["step"])
        seen.of_steps.add(header["of_step"])
        seen.dropped.append(header["dropped"])
        seen.ratio = header["ratio"]
    seen.seconds = time.monotonic() - began
    if server is not None and before is not None:
        seen.cpu = (server.cpu() or before) - before
    return seen


def _reading(line: ClientConnection, stopped: threading.Event) -> None:
    """Read until told to stop, and throw it away."""
    while not stopped.is_set():
        watch(line, 0.2)


def _filming(line: ClientConnection, stopped: threading.Event) -> None:
    """Send frames of the built-in film as a page sends those of its camera, 25 a second."""
    frames = open_frames(f"builtin:glide?frames=250&size={SIZE}")
    # The camera of a page is wider than high, and in colour.
    wide = (np.pad(frame, ((0, 0), (33, 34)), mode="edge") for frame in frames)
    film = [np.rint(255 * np.stack(3 * [frame], axis=2)).astype(np.uint8).tobytes() for frame in wide]
    # There and back, so that there is no cut where it begins again.
    film += film[-2:0:-1]
    due, k = time.monotonic(), 0
    while not stopped.wait(max(0.0, due - time.monotonic())):
        try:
            line.send(film[k % len(film)])
        except ConnectionClosed:
            return
        due, k = max(due + 1 / TARGET, time.monotonic() - 1.0), k + 1


@contextmanager
def beside(work: Callable[[ClientConnection, threading.Event], None], line: ClientConnection) -> Iterator[None]:
    """Have a client work in a thread until the end of the context."""
    stopped = threading.Event()
    thread = threading.Thread(target=work, args=(line, stopped), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(timeout=5.0)


@contextmanager
def mute(server: Server) -> Iterator[None]:
    """A client that opens the socket and never reads from it, not even into a buffer of its own."""
    host, _, port = server.place.rpartition(":")
    key = base64.b64encode(os.urandom(16)).decode()
    with socket.create_connection((host, int(port))) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.sendall(
            f"GET /ws HTTP/1.1\r\nHost: {server.place}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        yield


# The table


def measure(name: str, source: str, seconds: float, warm: float, horizons: Sequence[int]) -> Iterator[Sequence[str]]:
    """Yield the lines of one source: one client, two, one that never reads, and further ahead."""
    with serving(source) as server, server.join() as line, ExitStack() as stack:
        if source == "camera":
            stack.enter_context(beside(_filming, line))
        watch(line, warm)
        yield cells(f"{name}, one client", watch(line, seconds, server))
        with server.join() as other, beside(_reading, other):
            watch(line, SETTLE)
            yield cells(f"{name}, two clients", watch(line, seconds, server))
        with mute(server):
            watch(line, SETTLE)
            yield cells(f"{name}, beside one that never reads", watch(line, seconds, server))
        for horizon in horizons:
            line.send(json.dumps({"do": "horizon", "value": horizon}))
            watch(line, SETTLE)
            yield cells(f"{name}, {horizon} frames ahead", watch(line, seconds, server))


def cells(name: str, seen: Watched) -> Sequence[str]:
    """A line of the table."""
    if len(seen.steps) < 20:
        # Too few to say more of.
        return (name, f"{len(seen.steps) / seen.seconds:.1f} (missed)", *["-"] * (len(HEADER) - 2))
    pace = len(seen.steps) / seen.seconds
    missed = "" if pace >= 0.98 * TARGET else " (missed)"
    return (
        name,
        f"{pace:.1f}{missed}",
        f"{len(seen.of_steps) / seen.seconds:.1f}",
        f"{(seen.dropped[-1] - seen.dropped[0]) / seen.seconds:.1f}",
        f"{statistics.mean(seen.latency):.0f}",
        f"{np.quantile(seen.latency, 0.99):.0f}",
        f"{max(seen.latency):.0f}",
        "-" if seen.cpu is None else f"{1000 * seen.cpu / len(seen.steps):.0f}",
        "-" if seen.ratio is None else f"{seen.ratio:.2f}",
    )


def main() -> None:
    """Measure, print, and write the section of the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=8.0, help="that each line is measured for")
    parser.add_argument("--warm", type=float, default=12.0, help="seconds before that: compiling, the first windows")
    parser.add_argument("--film", default=str(OCEAN), help="file, besides the built-in film and the camera")
    parser.add_argument("--parts", action="store_true", help="processor time by part of a frame instead")
    options = parser.parse_args()
    cores = f"{os.cpu_count()} cores"
    if hasattr(os, "sched_setaffinity"):
        chosen = sorted(os.sched_getaffinity(0))[:CORES]
        os.sched_setaffinity(0, chosen)
        cores = f"{len(chosen)} cores"
    if options.parts:
        text = parts_table()
        print(text)
        write_section("live-parts", text)
        return
    sources: list[tuple[str, str, Sequence[int]]] = [
        ("builtin:glide", "builtin:glide", (2, 5, 10)),
        ("camera of the browser", "camera", ()),
    ]
    if Path(options.film).exists():
        sources.append((Path(options.film).name, options.film, ()))
    else:
        print(f"There is no {options.film}; --film FILE names another.", file=sys.stderr)
    n_lines = sum(3 + len(horizons) for _, _, horizons in sources)
    wanted = len(sources) * (options.warm + 5) + n_lines * (options.seconds + SETTLE)
    print(f"{n_lines} lines, about {wanted:.0f} seconds.", file=sys.stderr, flush=True)
    load = f"Load of the machine before: {os.getloadavg()[0]:.1f}. " if hasattr(os, "getloadavg") else ""
    rows: list[Any] = []
    for name, source, horizons in sources:
        for row in measure(name, source, options.seconds, options.warm, horizons):
            print(" | ".join(row), file=sys.stderr, flush=True)
            rows.append(row)
    text = (
        f"### Live, end to end\n\n    python -m benchmarks.live\n\n`psmt live`, {SIZE} x {SIZE}, server and clients on "
        f"{cores}; target {TARGET:g} frames a second. Latency is from the arrival of a frame at the server to its "
        "prediction in the client's hands: mean, 99th percentile and worst.\n\n"
        f"{table(HEADER, rows)}\n\n{load}{machine('starlette', 'uvicorn', 'websockets')}"
    )
    print(text)
    write_section("live", text)


if __name__ == "__main__":
    main()
