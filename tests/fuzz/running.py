"""Cases in worker processes that are started again when a case has killed them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from select import select
from typing import Any

_TESTS = Path(__file__).parents[1]

PATIENCE = 120.0
"""Seconds without an answer after which a case is given up: far more than it may cost, for machines with much to do."""

_START = 900.0
"""Seconds that a worker may compile for."""


class Attack(AbstractContextManager["Attack"]):
    """Carries out cases in one worker.

    Parameters
    ----------
    environment : mapping
        Variables that the worker has besides ours, such as NUMBA_BOUNDSCHECK.
    """

    def __init__(self, environment: dict[str, str] | None = None) -> None:
        one_thread = dict.fromkeys(("OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS"), "1")
        paths = [str(_TESTS), str(_TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")]
        # Cases write many small files: in memory, if the machine has such a folder.
        one_thread |= {"TMPDIR": "/dev/shm"} if os.access("/dev/shm", os.W_OK) else {}
        self._environment = os.environ | one_thread | {"PYTHONPATH": os.pathsep.join(paths)} | (environment or {})
        self._worker: subprocess.Popen[str] | None = None

    def __exit__(self, *error: object) -> None:
        if self._worker is not None:
            self._worker.kill()
            self._worker.wait()

    def run(self, cases: Iterable[tuple[str, int]]) -> Iterator[dict[str, Any]]:
        """Yield how each case, a target and a number, ends."""
        for target, number in cases:
            yield self._ask(target, number)

    def _ask(self, target: str, number: int) -> dict[str, Any]:
        if self._worker is None:
            self._worker = self._start()
        assert self._worker.stdin is not None
        self._worker.stdin.write(f"{target} {number}\n")
        self._worker.stdin.flush()
        answer = self._answer(PATIENCE)
        if answer:
            return json.loads(answer)
        self._worker.kill()
        code = self._worker.wait()
        self._worker = None
        why = f"no answer in {PATIENCE:g} s" if answer is None else f"the process died with code {code}"
        return {"target": target, "number": number, "case": "", "ended": "failed", "why": why, "seconds": 0.0}

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-X", "faulthandler", "-m", "fuzz.worker"]
        worker = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=self._environment
        )
        self._worker = worker
        if self._answer(_START) != "ready\n":
            raise RuntimeError(f"the worker does not begin: {' '.join(command)}")
        return worker

    def _answer(self, seconds: float) -> str | None:
        """A line from the worker; empty when it died, None when it said nothing for so long."""
        assert self._worker is not None and self._worker.stdout is not None
        ready, _, _ = select([self._worker.stdout], [], [], seconds)
        return self._worker.stdout.readline() if ready else None


def told(outcomes: Counter[str]) -> str:
    """How many cases ended how."""
    return ", ".join(f"{n:,} {ended}" for ended, n in sorted(outcomes.items()))
