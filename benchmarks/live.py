"""Does `psmt live` keep up with a film: 25 frames a second at 200 x 200 on two cores, end to end?

    python -m benchmarks.live [SOURCE] [--seconds 15]

The server runs in a process of its own, as the command starts it, with the film at its own rate. A client reads its
socket as a page does and counts: frames that came, predictions that were new, frames that were dropped on the way, and
milliseconds from a frame to its prediction. Both share two cores, where the system lets them be held to these.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from websockets.sync.client import ClientConnection, connect

from benchmarks.page import machine, table, write_section
from psmt.live.messages import unpack

TARGET = 25.0
"""Frames a second."""

WARM = 20.0
"""Seconds before anything is counted: compiling, and the first windows."""

CORES = 2


@dataclass
class Watched:
    """What a client saw."""

    steps: list[int] = field(default_factory=list)
    of_steps: list[int] = field(default_factory=list)
    """Frames that were predicted."""
    dropped: list[int] = field(default_factory=list)
    latency: list[float] = field(default_factory=list)
    ratio: float | None = None
    seconds: float = 0.0

    @property
    def pace(self) -> float:
        """Different frames a second that came with a prediction of what follows."""
        return (len(set(self.steps)) - 1) / self.seconds


def watch(socket: ClientConnection, seconds: float) -> Watched:
    """Read as a page does for so long."""
    seen, began = Watched(), time.monotonic()
    while (now := time.monotonic() - began) < seconds:
        header, _ = unpack(_bytes(socket.recv(timeout=60)))
        if header["kind"] == "frame" and header["of_step"] is not None:
            seen.steps.append(header["step"])
            seen.of_steps.append(header["of_step"])
            seen.dropped.append(header["dropped"])
            seen.latency.append(header["latency"])
            seen.ratio, seen.seconds = header["ratio"], now
    return seen


def ask(socket: ClientConnection, name: str, value: object) -> None:
    """Send a control, and read on until it counts."""
    socket.send(json.dumps({"do": name, "value": value}))
    while unpack(_bytes(socket.recv(timeout=60)))[0].get(name) != value:
        pass


def _bytes(message: str | bytes) -> bytes:
    assert isinstance(message, bytes)
    return message


@contextmanager
def serving(source: str) -> Iterator[str]:
    """The address of the socket of a server that ends with the context, by Ctrl-C."""
    start = "import sys; from psmt.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", start, "live", source, "--no-browser", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        found = re.search(r"http://(\S+?)/", process.stdout.readline())
        assert found is not None, "the server does not start"
        yield f"ws://{found[1]}/ws"
    finally:
        process.send_signal(signal.SIGINT)
        if process.wait(timeout=30):
            raise RuntimeError(f"Ctrl-C ended the server with {process.returncode}")


def measure(source: str, seconds: float) -> list[tuple[str, Watched]]:
    """What a client sees at several horizons, and beside another client, and beside one that hardly reads."""
    with serving(source) as address:

        def join() -> Any:
            return connect(address, max_size=None, compression=None, close_timeout=1.0)

        rows = []
        with join() as socket:
            watch(socket, WARM)
            rows.append(("1 frame ahead", watch(socket, seconds)))
            with join() as other:
                reader = threading.Thread(target=watch, args=(other, seconds))
                reader.start()
                rows.append(("1 frame ahead, two clients", watch(socket, seconds)))
                reader.join()
            with join():
                rows.append(("1 frame ahead, beside a client that never reads", watch(socket, seconds)))
            for horizon in (2, 5, 10):
                ask(socket, "horizon", horizon)
                watch(socket, 2.0)
                rows.append((f"{horizon} frames ahead", watch(socket, seconds)))
        return rows


def cells(name: str, seen: Watched) -> Sequence[str]:
    """A line of the table."""
    if len(seen.steps) < 20:
        return (name, "too few to tell (missed)", *"----", "-")
    n_dropped = seen.dropped[-1] - seen.dropped[0]
    late = statistics.quantiles(seen.latency, n=20)[-1]
    missed = "" if seen.pace >= 0.98 * TARGET else " (missed)"
    ratio = "-" if seen.ratio is None else f"{seen.ratio:.2f}"
    return (
        name,
        f"{seen.pace:.1f}{missed}",
        f"{(len(set(seen.of_steps)) - 1) / seen.seconds:.1f}",
        f"{n_dropped / seen.seconds:.1f}",
        f"{statistics.median(seen.latency):.0f}",
        f"{late:.0f}",
        ratio,
    )


def main() -> None:
    """Measure, print, and write the section of the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument("source", nargs="?", default="builtin:glide")
    parser.add_argument("--seconds", type=float, default=15.0)
    options = parser.parse_args()
    cores = f"{os.cpu_count()} cores"
    if hasattr(os, "sched_setaffinity"):
        chosen = sorted(os.sched_getaffinity(0))[:CORES]
        os.sched_setaffinity(0, chosen)
        cores = f"{len(chosen)} cores"
    busy = f"Load of the machine before: {os.getloadavg()[0]:.1f}. " if hasattr(os, "getloadavg") else ""
    header = ("what", "frames/s", "predictions/s", "dropped/s", "latency, ms", "95 %, ms", "MSE / copying")
    shown = table(header, [cells(*row) for row in measure(options.source, options.seconds)])
    text = (
        f"`psmt live {options.source}`, 200 x 200, server and client on {cores}; target {TARGET:g} frames a second.\n\n"
        f"{shown}\n\n{busy}{machine('starlette', 'uvicorn', 'websockets')}"
    )
    print(text)
    write_section("live", text)


if __name__ == "__main__":
    main()
