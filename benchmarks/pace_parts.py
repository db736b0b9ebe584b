"""What each mechanism of the live step gains, measured by leaving it out: ``python -m benchmarks.pace_parts``.

A step is `PSMT.update` and `PSMT.predict`. Each row of the table leaves one mechanism out. A cell is the processor time
of a step on one thread, divided by that of the code as it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.linalg

from benchmarks.measure import pinned
from benchmarks.pace import FILMS, LAMBDA, Coders, Window, brain_window, other_sizes, read_films, windows_of
from benchmarks.page import machine, table, write_section
from psmt import PSMT
from psmt.embedding import closed_form, followed
from psmt.engines.numba import code_window, inverse

STEPS, REPEATS = 60, 2
WARM = 3
"""Steps before those that are timed."""


def lapack(matrix: np.ndarray, metric: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """LAPACK's routine for the lowest eigenpairs, in the place of `lowest_eigenpairs`."""
    values, vectors = scipy.linalg.eigh(matrix, metric, subset_by_index=(0, count - 1), driver="gvx")
    return values, vectors


def replacing(owner: object, **values: Any) -> Callable[[], list[AbstractContextManager[object]]]:
    """Return a function that makes patches of the attributes of a module or class."""
    return lambda: [patch.object(owner, name, value) for name, value in values.items()]


NOTHING = "nothing"
LEFT_OUT = {
    NOTHING: list,
    "tracking: the closed form at every slide": replacing(followed.FollowedEmbedding, _n_followed=lambda *_: 0),
    "guards beyond 24": replacing(followed, _MOST_GUARDS=24, _MOST_BESIDE_MORE=24),
    "every second operator": replacing(followed, NODES=followed.NODES[1:], _MORE_NODES=followed._MORE_NODES[1::2]),
    "collecting changes of the operators": replacing(inverse, _WAITING=4),
    "operators without rows of atoms out of use": replacing(inverse, _SPARE=1.0),
    "own product of a matrix and few vectors": replacing(inverse, FEW=0),
    "products with V and S from sparse codes": replacing(code_window, _ENTRY=1e9),
    "updating projections instead of computing them": replacing(followed, _EXACT=1),
    "closed form without atoms out of use": replacing(
        code_window.SparseWindow, used=lambda window: np.arange(window.n_features)
    ),
    "own eigenvectors of tridiagonal matrices": replacing(closed_form, lowest_eigenpairs=lapack),
}
"""Mechanisms, and functions that return patches which leave them out."""


def windows() -> list[Window]:
    """Windows of the benchmark of the pace that differ in kind."""
    long = windows_of("highway", read_films(FILMS[:1])["highway"], STEPS)
    chosen = [long[1], long[3], long[6]]
    return [*chosen, *(window for window in other_sizes(long, STEPS) if window.n_atoms > 512), brain_window(STEPS)]


def step_time(window: Window, coders: Coders, patches: list[AbstractContextManager[object]]) -> tuple[float, int]:
    """Return the mean processor time of a step in seconds, and the number of closed forms that were solved."""
    with ExitStack() as stack:
        for one in patches:
            stack.enter_context(one)
        sizes = {"n_atoms": window.n_atoms, "window": window.size, "n_components": window.n_components}
        model = PSMT(**sizes, lam=LAMBDA, coder=coders.of(window)).fit(window.frames[: window.first])
        frames = window.frames[window.first : window.first + window.steps]
        for x in frames[:WARM]:
            model.update(x).predict()
        solved, began = model.followed_.n_solved_, time.process_time()
        for x in frames[WARM:]:
            model.update(x).predict()
        return (time.process_time() - began) / (window.steps - WARM), model.followed_.n_solved_ - solved


def main() -> None:
    """Measure all mechanisms in all windows, and write the table."""
    coders, columns, chosen = Coders(), [], windows()
    for window in chosen:
        window = replace(window, steps=min(window.steps, STEPS if window.n_atoms <= 512 else STEPS // 2))
        found = {name: [step_time(window, coders, make()) for _ in range(REPEATS)] for name, make in LEFT_OUT.items()}
        times = {name: min(one for one, _ in each) for name, each in found.items()}
        cells = {
            name: f"{times[name] / times[NOTHING]:.2f}" + f" ({each[0][1]} solved)" * (each[0][1] > 0)
            for name, each in found.items()
        }
        cells[NOTHING] = f"{1e3 * times[NOTHING]:.1f} ms"
        columns.append(cells)
        print(window.name, window.sizes, cells, flush=True)
    header = ["left out", *(f"{window.name}, {window.sizes}" for window in chosen)]
    rows = [[name, *(cells[name] for cells in columns)] for name in LEFT_OUT]
    write_section("pace-parts", f"{table(header, rows)}\n\n{machine()}")


if __name__ == "__main__":
    with pinned(1):
        main()
