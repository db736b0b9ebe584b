"""How much memory does each command take, on films of a thousand, twenty thousand and two hundred thousand frames?

    python -m benchmarks.memory [COMMAND ..] [--frames N ..]

Each runs in a process of its own, with one worker and at small sizes, so that what grows with the film is not hidden
behind matrices. Peak memory is that of the kernel's record (``ru_maxrss``), pages of files included. The table goes to
`benchmarks/README.md`; with commands or numbers of frames of one's own it is only printed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.page import machine, table, write_section

FRAMES = (1_000, 20_000, 200_000)
FILM = "builtin:glide?frames={frames}&size=32&noise=0.05"
PATCHES = ("--size", "32", "--workers", "1")
SIZES = ("--atoms", "32", "--window", "288")
COMMANDS: dict[str, tuple[str, ...]] = {
    "reconstruct": (*PATCHES, *SIZES),
    "predict": (*PATCHES, *SIZES, "--start", "{last}", "--starts", "1"),
    "sweep": (*PATCHES, "--atoms", "32", "--window", "960"),
    "topology": (*PATCHES, "--atoms", "32", "--window", "480"),
    "changes": (*PATCHES, *SIZES, "--at", "{middle}"),
    "readings": (*PATCHES, "--atoms", "32"),
    "locality": (*PATCHES, *SIZES, "--starts", "2"),
    "predict-video": ("--size", "32", "--horizon", "all"),
}
CODE = "import sys; from psmt.cli import main; sys.exit(main())"


def peak(command: str, frames: int, out: Path) -> tuple[float, float]:
    """Peak memory in MB and seconds of a command on a film of so many frames."""
    asked = [part.format(last=frames - 100, middle=frames // 2) for part in COMMANDS[command]]
    call = [command, FILM.format(frames=frames), "--frames", str(frames), "--out", str(out), *asked]
    begin = time.perf_counter()
    with open(out.with_suffix(".log"), "wb") as log:
        process = subprocess.Popen([sys.executable, "-c", CODE, *call], stdout=log, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(
            f"psmt {' '.join(call)} ended with {process.returncode}: {out.with_suffix('.log').read_text()}"
        )
    scale = 1 if sys.platform == "darwin" else 1024
    return usage.ru_maxrss * scale / 1e6, time.perf_counter() - begin


def measure(commands: list[str], lengths: list[int]) -> str:
    """The table, as text."""
    rows = []
    for command in commands:
        found = []
        for frames in lengths:
            with TemporaryDirectory() as folder:
                found.append(peak(command, frames, Path(folder) / "out")[0])
                shutil.rmtree(Path(folder) / "out")
            print(f"{command}, {frames:,} frames: {found[-1]:.0f} MB", flush=True)
        growth = ""
        if len(lengths) > 1:
            growth = f"{1e6 * (found[-1] - found[-2]) / (lengths[-1] - lengths[-2]):,.0f}"
        rows.append((f"`psmt {command}`", *(f"{value:.0f} MB" for value in found), growth))
    header = ("command", *(f"{frames:,} frames" for frames in lengths), "bytes per frame between the last two")
    return table(header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", metavar="COMMAND", choices=[[], *COMMANDS])
    parser.add_argument("--frames", type=int, nargs="+", metavar="N", default=list(FRAMES))
    asked = parser.parse_args()
    text = f"{measure(asked.commands or list(COMMANDS), asked.frames)}\n\n{machine()}"
    print(f"\n{text}")
    if not asked.commands and asked.frames == list(FRAMES):
        write_section("memory", text)


if __name__ == "__main__":
    main()
