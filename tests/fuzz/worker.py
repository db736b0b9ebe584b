"""A process that carries out cases, one after another, under limits: what kills it kills nobody else.

Lines come in as ``target number``; each is answered by a line of JSON with what the case was and how it ended.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import traceback
import warnings
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from fuzz.saved_models import KINDS, saved, use, write
from fuzz.targets import REFUSED, TARGETS, Skipped
from psmt.utils import threads
from psmt.video import correction

SECONDS, BYTES = 20.0, 2 << 30
"""What a case may cost: time of the processor, and memory beyond what the process has anyway."""


def peak() -> int:
    """Bytes of memory that the process has had at the most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def outcome(target: str, number: int) -> dict[str, object]:
    """How a case ends: 'fine', 'refused', 'skipped' or 'failed'."""
    told, ended, why = "", "fine", ""
    memory, began = peak(), process_time()
    with TemporaryDirectory(prefix="psmt-fuzz-") as folder:
        try:
            told, act = TARGETS[target](number, Path(folder))
            act()
        except Skipped:
            ended = "skipped"
        except REFUSED as error:
            ended, why = "refused", str(error)
            if "\n" in why or not why:
                ended = "failed"
        except BaseException:
            ended, why = "failed", traceback.format_exc()
    seconds, grown = process_time() - began, peak() - memory
    if seconds > SECONDS or grown > BYTES:
        ended, why = "failed", f"{seconds:.1f} s, {grown / 2**20:.0f} MiB. {why}"
    cost = {"seconds": seconds, "memory": peak()}
    return {"target": target, "number": number, "case": told, "ended": ended, "why": why, **cost}


def warm_up() -> None:
    """Compile what is compiled: that is no cost of a case."""
    with TemporaryDirectory(prefix="psmt-fuzz-") as folder:
        for kind in KINDS:
            _, header, parts = saved(kind)
            write(Path(folder) / "model.psmt", json.dumps(header), parts)
            use(kind, Path(folder) / "model.psmt")


def limit_memory() -> None:
    """No case may take the machine down with it."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    if pages:
        most = pages * os.sysconf("SC_PAGE_SIZE") + 2 * BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main() -> None:
    """Answer each line until there are no more."""
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a case prints is no answer
    # Whole frames remember few pixels, so that their files are small, and a case is quick.
    correction.PIXELWISE = correction.PIXELWISE._replace(frames=4, crops=32, batch=32)
    # It has one thread anyway, and the search for libraries would take most of the time of a task.
    threads.threadpool_limits = lambda *_, **__: nullcontext()
    warm_up()
    limit_memory()
    answers.write("ready\n")
    for line in sys.stdin:
        target, number = line.split()
        answers.write(json.dumps(outcome(target, int(number))) + "\n")


if __name__ == "__main__":
    main()
