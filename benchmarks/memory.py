"""How much memory does each command take, on films of a thousand, twenty thousand and two hundred thousand frames?

    python -m benchmarks.memory [COMMAND ..] [--frames N ..] [--limit SECONDS]

Each runs in a process of its own, with one worker and at small sizes, so that what grows with the film is not hidden
behind matrices. Peak memory is that of the kernel's record (``ru_maxrss``), pages of files included. The whole table
takes hours: each run is kept in `benchmarks/memory.csv` as it ends, so that the table can be made in pieces, and what
was asked for again replaces what was there. A run beyond the limit is told as such, with the most that it had taken.
"""

from __future__ import annotations

import argparse
import csv
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from benchmarks.page import machine, table, write_section
from psmt.utils.files import writing

FRAMES = (1_000, 20_000, 200_000)
LIMIT = 3_600
RECORD = Path(__file__).with_name("memory.csv")
FILM = "builtin:glide?frames={frames}&size=32&noise=0.05"
SMALL_FILM = "builtin:glide?frames={frames}&size=16&noise=0.05"
"""For `predict-video`, which takes longest: what grows with the film does not depend on the size of its frames."""
PATCHES = ("--size", "32", "--workers", "1")
SIZES = ("--atoms", "32", "--window", "288")
REGIONS = 16
LINES = "predict-video without model and painter"
"""No command, see `benchmarks.memory_lines`: all of it at 200,000 frames takes more than an hour."""
COMMANDS: dict[str, tuple[str, ...]] = {
    "reconstruct": (FILM, *PATCHES, *SIZES),
    "predict": (FILM, *PATCHES, *SIZES, "--start", "{last}", "--starts", "1"),
    "sweep": (FILM, *PATCHES, "--atoms", "32", "--window", "960"),
    "topology": (FILM, *PATCHES, "--atoms", "32", "--window", "480"),
    "reproduce": (FILM, *PATCHES, *SIZES, "--starts", "1"),
    "predict-video": (SMALL_FILM, "--size", "16", "--start", "20", "--horizon", "all"),
    LINES: (),
    "learn": (FILM, "--size", "32"),
    "brain": ("{series}", "--atoms", "16", "--workers", "1", "--tr", "2", "--states", "3", "--surrogates", "19"),
}
CODE = "import sys; from psmt.cli import main; sys.exit(main())"


class Run(NamedTuple):
    """One row of the record."""

    command: str
    frames: int
    megabytes: float
    seconds: float
    ended: bool


def walk(frames: int, path: Path) -> None:
    """Write a series (frames, REGIONS) that a command reads in place of a film: a slow random walk that returns."""
    rng = np.random.default_rng(0)
    series = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(frames, REGIONS))
    state = np.zeros(REGIONS)
    for begin in range(0, frames, 1000):
        for index, step in enumerate(rng.standard_normal((min(1000, frames - begin), REGIONS))):
            state = 0.9 * state + step
            series[begin + index] = state


def run(command: str, frames: int, limit: float, folder: Path) -> Run:
    """What a command takes on a film of so many frames."""
    series, out, log = folder / "series.npy", folder / "out", folder / "log"
    if "{series}" in COMMANDS[command]:
        walk(frames, series)
    asked = [
        part.format(frames=frames, last=frames - 100, middle=frames // 2, series=series) for part in COMMANDS[command]
    ]
    call = ["-c", CODE, command, *asked, "--frames", str(frames), "--out", str(out)]
    if command == LINES:
        call = ["-m", "benchmarks.memory_lines", str(frames), str(out)]
    begin = time.perf_counter()
    with open(log, "wb") as file:
        process = subprocess.Popen([sys.executable, *call], stdout=file, stderr=file)
        clock = threading.Timer(limit, process.send_signal, [signal.SIGKILL])
        clock.start()
        _, status, usage = os.wait4(process.pid, 0)
        clock.cancel()
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode and seconds < limit:
        raise RuntimeError(f"{command} {' '.join(call)} ended with {process.returncode}: {log.read_text()}")
    scale = 1 if sys.platform == "darwin" else 1024
    return Run(command, frames, usage.ru_maxrss * scale / 1e6, seconds, not process.returncode)


def recorded(path: Path = RECORD) -> dict[tuple[str, int], Run]:
    """All runs that are kept, by command and number of frames."""
    if not path.exists():
        return {}
    with open(path, newline="") as file:
        rows = [
            Run(
                row["command"],
                int(row["frames"]),
                float(row["megabytes"]),
                float(row["seconds"]),
                row["ended"] == "yes",
            )
            for row in csv.DictReader(file)
        ]
    return {(row.command, row.frames): row for row in rows}


def keep(found: Run, path: Path = RECORD) -> None:
    """Put a run among those that are kept."""
    runs = recorded(path)
    runs[found.command, found.frames] = found
    order = list(COMMANDS)
    lines = [",".join(Run._fields)]
    for row in sorted(runs.values(), key=lambda row: (order.index(row.command), row.frames)):
        ended = "yes" if row.ended else "no"
        lines.append(f"{row.command},{row.frames},{row.megabytes:.0f},{row.seconds:.0f},{ended}")
    with writing(path) as file:
        file.write("\n".join(lines).encode() + b"\n")


def shown(found: Run | None, before: Run | None = None) -> str:
    """A cell of the table; what was not run says how long the run `before` took, which is why."""
    if found is None:
        return f"not run: {before.frames:,} took {before.seconds:.0f} s" if before else "not run"
    if not found.ended:
        return f"stopped after {found.seconds:.0f} s, at {found.megabytes:.0f} MB"
    return f"{found.megabytes:.0f} MB"


def growth(ended: list[Run]) -> str:
    """Bytes per frame between the last two runs that came to their end, or nothing."""
    if len(ended) < 2:
        return ""
    less, more = ended[-2:]
    return f"{1e6 * (more.megabytes - less.megabytes) / (more.frames - less.frames):,.0f}"


def text() -> str:
    """The table of all that is kept."""
    runs = recorded()
    rows = []
    for command in COMMANDS:
        row = [runs.get((command, frames)) for frames in FRAMES]
        done = [found for found in row if found is not None and found.ended]
        cells = [shown(found, done[-1] if done else None) for found in row]
        name, _, less = command.partition(" ")
        rows.append((f"`psmt {name}` {less}".strip(), *cells, growth(done)))
    header = ("command", *(f"{frames:,} frames" for frames in FRAMES), "bytes per frame between the last two")
    return f"{table(header, rows)}\n\n{machine()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", metavar="COMMAND", choices=[[], *COMMANDS])
    parser.add_argument("--frames", type=int, nargs="+", metavar="N", default=list(FRAMES))
    parser.add_argument("--limit", type=float, metavar="SECONDS", default=LIMIT)
    asked = parser.parse_args()
    for frames in asked.frames:
        for command in asked.commands or COMMANDS:
            with TemporaryDirectory() as folder:
                found = run(command, frames, asked.limit, Path(folder))
            print(f"{command}, {frames:,} frames: {shown(found)}, {found.seconds:.0f} s", flush=True)
            keep(found)
    write_section("memory", text())


if __name__ == "__main__":
    main()
