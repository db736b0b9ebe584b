"""Coverage and width of prediction intervals on series and films: ``python -m benchmarks.intervals [DATA]``.

Each model is fitted to the past and then walks over rows that it has not seen, one step ahead. The constants of
`psmt.model.intervals` were chosen on other stretches (glide seed 3, cuts, shapes, highway from frame 800, brain 1, and
a vector autoregression whose noise doubles); the rows below were not used for that. Width is the mean width divided by
the root mean squared error of the prediction; normal errors of constant size would have 3.29 at 90%. A run on all
sources writes the table of `benchmarks/README.md`.
"""

import sys
import warnings
from pathlib import Path

import numpy as np

from benchmarks.cuts_film import CutsFilm
from benchmarks.page import machine, table, write_section
from psmt import PSMT, read_patches
from psmt.data import open_frames, open_series


def walk(model, X, start, n, coverages=(0.8, 0.9)):
    """Coverage and relative width of each interval over the `n` rows after `start`."""
    model.fit(X[:start])
    rows, found = X[start : start + n], []
    for coverage in coverages:
        interval = model.predict(rows[:-1], interval=coverage)
        hits = (interval.lower <= rows[1:]) & (rows[1:] <= interval.upper)
        scale = np.sqrt(np.mean((interval.predicted - rows[1:]) ** 2, axis=0))
        width = np.mean((interval.upper - interval.lower).mean(axis=0)[scale > 0] / scale[scale > 0])
        found += [hits.mean(), np.abs(np.quantile(hits.mean(axis=0), [0.05, 0.95])), width]
    return found


def sources(data):
    """Name, model, values, start and number of scored rows of each source."""
    bold = open_series("builtin:bold?seed=5").values
    yield "simulated brain", PSMT.for_series(random_state=0), bold, len(bold) // 2, 300
    for person in (2, 3, 4):
        path = data / "brain" / f"rest-{person}.npz"
        if path.is_file():
            with np.load(path) as file:
                values = next(np.asarray(file[name], float) for name in file.files if file[name].ndim == 2)
            yield f"brain {person}", PSMT.for_series(random_state=0), values, 600, 600
    films = {"glide": ("builtin:glide?frames=1200&seed=11", 0), "cuts": (CutsFilm(n_frames=1200, seed=4), 0)}
    films |= {"highway": (data / "highway.mp4", 3000), "ocean": (data / "ocean.mp4", 0)}
    for name, (film, first) in films.items():
        if not isinstance(film, Path) or film.is_file():
            length = open_frames(film).n_frames or 1200
            X = np.asarray(read_patches(film, start=first, stop=min(first + 1200, length)).values)
            yield name, PSMT(n_atoms=128, window=384, random_state=0), X, 600, min(600, len(X) - 600)


def main():
    """Print a table, and write it to the page if all sources are there."""
    warnings.simplefilter("ignore")
    data = Path(sys.argv[1] if len(sys.argv) > 1 else "/work/shared/data")
    found = []
    print("source           rows   80%: covered  features      width   90%: covered  features      width")
    for name, model, X, start, n in sources(data):
        cells = []
        for covered, (low, high), width in zip(*[iter(walk(model, X, start, n))] * 3, strict=True):
            cells.append(f"{covered:11.3f}  {low:.2f} to {high:.2f} {width:9.2f}")
        rows = min(n, len(X) - start) - 1
        print(f"{name:16s} {rows:5d} {'  '.join(cells)}", flush=True)
        found.append([name, rows, *(text for cell in cells for text in _percent(*cell.split()[::4]))])
    if len(found) == 8:
        write_section("intervals", as_section(found))


def _percent(covered, width):
    return f"{100 * float(covered):.1f}", width


def as_section(found):
    """The section of the page, from rows of name, number of rows, and percent covered and width at 80% and at 90%."""
    heads = ["source", "rows", *(f"{level}% {what}" for level in (80, 90) for what in ("covered", "width"))]
    return f"## Intervals\n\n    python -m benchmarks.intervals\n\n{table(heads, found)}\n\n{machine()}"


if __name__ == "__main__":
    main()
