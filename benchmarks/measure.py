"""What all speed benchmarks share: the data, pinned threads, interleaved timing, and the rows of the table."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.page import default_film
from psmt import SparseCoder, read_patches

THREADS = 2
ALPHA = 1.0


@dataclass(frozen=True)
class Row:
    """One line of the table: seconds of us and of a peer for the same work, and what shows that it is the same."""

    work: str
    peer: str
    ours: float
    theirs: float
    target: float | None
    agreement: str

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours

    def cells(self) -> tuple[str, ...]:
        """The line as text; a target that was missed is said to be."""
        aim = "" if self.target is None else f"{self.target:g} x"
        verdict = f"**{self.ratio:.1f} x**" if self.target is None or self.ratio >= self.target else self._missed()
        return (self.work, self.peer, seconds(self.ours), seconds(self.theirs), verdict, aim, self.agreement)

    def _missed(self) -> str:
        return f"{self.ratio:.1f} x (missed)"


HEADER = ("work", "peer", "ours", "theirs", "ratio", "target", "same result")


def seconds(value: float) -> str:
    """A duration with three digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e6:.3g} us"


@contextmanager
def pinned(threads: int = THREADS) -> Iterator[None]:
    """BLAS, OpenMP and numba held to the same number of threads, for all libraries that are loaded."""
    before = numba.get_num_threads()
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    try:
        with threadpool_limits(threads):
            yield
    finally:
        numba.set_num_threads(before)


def medians(runs: dict[str, Callable[[], object]], repeats: int = 5, *, rehearsed: bool = False) -> dict[str, float]:
    """Median seconds of each run; in turn, so that all meet the same noise, after one that does not count."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(repeats if rehearsed else repeats + 1):
        for name, run in runs.items():
            begin = time.perf_counter()
            run()
            if rehearsed or turn:
                times[name].append(time.perf_counter() - begin)
    return {name: float(np.median(values)) for name, values in times.items()}


def once(run: Callable[[], object]) -> float:
    """Seconds of one run, for what takes too long to be repeated."""
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def agree(what: str, ours: float, theirs: float, tolerance: float) -> str:
    """Words on two figures that are equal to a relative tolerance; an error where they are not."""
    apart = abs(ours - theirs) / max(abs(ours), abs(theirs))
    assert apart <= tolerance, f"{what}: {ours!r} and {theirs!r} are {apart:.1e} apart, more than {tolerance:.0e}"
    return f"{what} within {tolerance:.0e} ({apart:.0e})"


def objective(samples: np.ndarray, codes: np.ndarray, atoms: np.ndarray, alpha: float = ALPHA) -> float:
    """Mean objective of layer 1, in float64, from its definition: one judge for all solvers."""
    return float(0.5 * np.sum((samples - codes @ atoms) ** 2) + alpha * np.sum(codes)) / len(samples)


def oracles() -> ModuleType:
    """The paper's algorithm to the letter, which lives with the tests."""
    tests = str(Path(__file__).parents[1] / "tests")
    if tests not in sys.path:
        sys.path.insert(0, tests)
    return importlib.import_module("oracles.literal")


@cache
def patches() -> np.ndarray:
    """10,000 patches (10000, 256) in film order: the centre 16 x 16, standardised."""
    film = default_film()
    return read_patches(film if film.endswith(".mp4") else f"{film}?frames=10000").values[:10_000]


@cache
def dictionary(n_atoms: int) -> np.ndarray:
    """Atoms (n_atoms, 256) learned from the patches."""
    return SparseCoder(n_atoms=n_atoms, alpha=ALPHA, max_epochs=2, random_state=0).fit(patches()).dictionary_
