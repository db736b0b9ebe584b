"""Does the live step keep its pace, on any window of any film, alone and beside other work?

    python -m benchmarks.pace [FILM ..] [--steps N] [--quick]

A step is `PSMT.update` and `PSMT.predict`. All of them count: the mean, the 99th percentile and the worst hold what a
median hides. Without a FILM: those of the shared folder that are there, and the built-in one; a FILM is read as `psmt`
reads films. Models learn their dictionary from all frames before the first step. The tables go to
`benchmarks/README.md`; ``--quick``, for trying this out, times 20 steps of three windows and writes nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.linalg

from benchmarks.measure import ALPHA, medians, pinned, seconds
from benchmarks.page import FILM, machine, table, write_section
from psmt import PSMT, SparseCoder, read_patches
from psmt.embedding import embed_window
from psmt.embedding.moments import WindowMoments
from psmt.errors import FrameSourceError
from psmt.extrapolation import make_extrapolation
from psmt.numerics.arrays import drawn_back, robust_peak
from psmt.recovery import ACTIVITY_FACTOR, Recovery, recover_next

FILMS = (
    *(str(FILM.with_name(f"{name}.mp4")) for name in ("highway", "ocean", "carphone")),
    "builtin:glide?frames=3000",
)
BRAIN = FILM.parent / "brain" / "rest-1.npz"

LAMBDA = 0.1
ATOMS, COMPONENTS = 512, 64
WINDOWS = tuple(round(share * ATOMS) for share in (3, 1.2, 0.8))
STEPS, FEWEST_STEPS = 500, 100
MIDDLE, LATE = 0.45, 0.75
"""Where in a long film the windows begin, as shares of its frames: 4500 and 7500 of 10,000."""
STRIDE = 250
"""Frames between the windows among which the calmest and the liveliest are sought."""

CHECKS = 10
"""Predictions per window that are held against the closed form, evenly spaced; the last one is among them."""
CLOSE = 1e-5
"""How near they are to be, relative to the prediction's norm."""
WORST = 0.040
"""Seconds that no step at M = 512, f = 64 is to exceed."""
BUSY_FACTOR, AUTO_FACTOR = 2.5, 1.5
"""How many times slower a step may be beside two busy processes, and `fit` where it chooses lam and f."""
BUSY_THREADS = (1, 2)
"""Of each of these. A fair share of two cores is then two thirds of one, and two fifths: 1.5 and 2.5 times slower."""

BUSY = """
import os
import numpy as np
a = np.random.default_rng(0).random((512, 512))
parent = os.getppid()
print("ready", flush=True)
while os.getppid() == parent:
    a @ a
"""
"""What a busy process runs; it ends by itself where this one was killed."""

FIRST = """
import sys, time
import numpy as np
from psmt import PSMT
model, frame = PSMT.load(sys.argv[1]), np.load(sys.argv[2])
begin = time.perf_counter()
model.update(frame).predict()
print(time.perf_counter() - begin)
"""
"""What a process runs whose first step is timed."""
FIRST_TARGET = 0.2


@dataclass(frozen=True)
class Window:
    """Where a model begins to run: the `size` frames from `start` on are its window, the next one is its first step."""

    series: str
    place: str
    start: int
    size: int
    frames: np.ndarray = field(repr=False, compare=False)
    """The whole series (n_frames, n_features)."""
    n_atoms: int = ATOMS
    n_components: int = COMPONENTS
    steps: int = STEPS
    target: float | None = 120
    """Steps per second that are asked for on average."""
    worst: float | None = None
    """Seconds that no step is to exceed."""

    @property
    def first(self) -> int:
        return self.start + self.size

    @property
    def name(self) -> str:
        return f"{self.series}, {self.place} ({self.start})"

    @property
    def sizes(self) -> str:
        return f"M={self.n_atoms} H={self.size} f={self.n_components}"


@dataclass(frozen=True)
class Pace:
    """What so many steps from a window on were like."""

    window: Window
    times: np.ndarray
    """Seconds (n_steps,)."""
    n_solved: int
    """Closed forms that were solved after the first one."""
    error: float
    """The largest `error_`."""
    predictions: np.ndarray
    """(n_steps, n_features)"""
    codes: np.ndarray
    """(window + n_steps, n_atoms): those of the window, then those received."""
    atoms: np.ndarray

    @property
    def per_second(self) -> float:
        return 1 / float(self.times.mean())

    def cells(self) -> tuple[str, ...]:
        """Steps, and their times in figures; what misses its target is said to."""
        window, worst = self.window, float(self.times.max())
        median, late = np.percentile(self.times, (50, 99))
        mean = _judged(f"{self.per_second:.0f}", window.target is not None and self.per_second < window.target)
        slowest = _judged(_ms(worst), window.worst is not None and worst > window.worst)
        return str(len(self.times)), mean, _ms(median), _ms(late), slowest, str(self.n_solved), f"{self.error:.0e}"


def _judged(text: str, missed: bool) -> str:
    return f"{text} (missed)" if missed else text


def _ms(value: float) -> str:
    return f"{1000 * value:.1f}"


# Windows


def read_films(names: Sequence[str]) -> dict[str, np.ndarray]:
    """Standardised patches (n_frames, 256) by film; one that cannot be read is left out with a line."""
    films = {}
    for name in names:
        try:
            films[name if name.startswith("builtin:") else Path(name).stem] = read_patches(name).values
        except FrameSourceError as error:
            print(f"left out: {error}", flush=True)
    return films


def windows_of(film: str, frames: np.ndarray, steps: int) -> list[Window]:
    """Windows of a film at M = 512, f = 64: many of a long one, of a short one those that it has room for."""
    whole = Window(film, "beginning", 0, WINDOWS[0], frames, steps=steps, worst=WORST)
    if len(frames) >= 2 * (WINDOWS[0] + steps):
        return _many(whole)
    fewest = min(FEWEST_STEPS, steps)
    sizes = [size for size in WINDOWS if len(frames) >= size + fewest]
    if sizes:
        return [
            replace(whole, size=size, steps=min(steps, len(frames) - size), target=120 if size == WINDOWS[0] else 60)
            for size in sizes
        ]
    size = len(frames) - fewest
    if size < 6:
        print(f"left out: {film} has {len(frames)} frames, too few for a window and {fewest} steps", flush=True)
        return []
    # The window's codes have a rank below its size, so that f has to be smaller, and no target is set for that.
    few = min(COMPONENTS, size // 2)
    return [replace(whole, size=size, n_components=few, steps=fewest, target=None, worst=None)]


def _many(whole: Window) -> list[Window]:
    """Early, middle, late, calm and lively windows of 3 M codes; a middle and a lively one of 1.2 M and of 0.8 M."""
    n, long = len(whole.frames), whole.size + whole.steps
    calm, lively = _calmest_and_liveliest(whole.frames, long)
    # A late window has to leave room for its steps.
    middle, late = int(MIDDLE * n), min(int(LATE * n), n - long)
    places = {"early": 0, "middle": middle, "late": late, "calm": calm, "lively": lively}
    windows = [replace(whole, place=place, start=start) for place, start in places.items()]
    for size in WINDOWS[1:]:
        _, lively = _calmest_and_liveliest(whole.frames, size + whole.steps)
        windows.append(replace(whole, place="middle", start=middle, size=size, target=60))
        windows.append(replace(whole, place="lively", start=lively, size=size, target=60))
    return windows


def _calmest_and_liveliest(frames: np.ndarray, length: int) -> tuple[int, int]:
    """Where the stretches of so many frames begin that change least and most, by mean absolute frame difference."""
    changes = np.abs(np.diff(frames, axis=0)).mean(axis=1)
    starts = np.arange(0, len(frames) - length + 1, STRIDE)
    means = [changes[start : start + length - 1].mean() for start in starts]
    return int(starts[np.argmin(means)]), int(starts[np.argmax(means)])


def other_sizes(windows: Sequence[Window], steps: int) -> list[Window]:
    """Windows of other sizes of model: f = 128 on two of those given, M = 2048 on the longest film, and 94 regions."""
    long = [window for window in windows if window.size == WINDOWS[0] and window.place in ("middle", "lively")]
    found = [replace(window, n_components=128, target=80, worst=None) for window in long[:2]]
    longest, size = max(windows, key=lambda window: len(window.frames)), 3 * 2048
    start = min(2000, len(longest.frames) - size - steps)
    if start >= 0:
        window = replace(longest, place="long", start=start, size=size, n_atoms=2048, steps=steps, worst=None)
        found += [replace(window, n_components=f, target=target) for f, target in ((64, 30), (256, 12))]
    else:
        print(f"left out: M=2048, no film has {size + steps} frames", flush=True)
    return [*found, brain_window(steps)]


def brain_window(steps: int, size: int = 800) -> Window:
    """94 channels at M = 160: regions of a brain at rest or, where these are missing, channels that are made up."""
    if BRAIN.exists():
        name = f"brain {BRAIN.stem}"
        with np.load(BRAIN, allow_pickle=False) as file:
            series = file["series"].astype(float)
    else:
        name, series = "94 synthetic channels", _synthetic_channels()
        print(f"left out: {BRAIN} does not exist; {name} instead", flush=True)
    past = series[:size]
    frames = (series - past.mean(axis=0)) / past.std(axis=0)
    steps = min(steps, len(frames) - size)
    return Window(name, "beginning", 0, size, frames, n_atoms=160, steps=steps, target=300)


def _synthetic_channels(n_frames: int = 1200, n_channels: int = 94, n_sources: int = 20) -> np.ndarray:
    """A series (n_frames, n_channels) of slow sources, mixed, with some noise."""
    rng = np.random.default_rng(0)
    shocks = rng.standard_normal((n_frames, n_sources))
    kernel = np.hanning(12)
    sources = np.stack([np.convolve(shock, kernel / np.linalg.norm(kernel), "same") for shock in shocks.T], axis=1)
    return sources @ rng.standard_normal((n_sources, n_channels)) + rng.standard_normal((n_frames, n_channels))


# Steps


class Coders:
    """Dictionaries by what they are learned from: windows that differ in f alone, or in other work, share one."""

    def __init__(self) -> None:
        self._learned: dict[tuple[str, int, int], SparseCoder] = {}

    def of(self, window: Window) -> SparseCoder:
        """A coder that has learned from all frames before the window's first step."""
        key = window.series, window.first, window.n_atoms
        if key not in self._learned:
            coder = SparseCoder(n_atoms=window.n_atoms, alpha=ALPHA, random_state=0)
            self._learned[key] = coder.fit(window.frames[: window.first])
        return self._learned[key]


def run(window: Window, coder: SparseCoder) -> Pace:
    """Time each step from the window on.

    Nothing is checked on the way: work that a model does behind its steps would have the time of the check for it.
    """
    model = PSMT(
        n_atoms=window.n_atoms, window=window.size, n_components=window.n_components, lam=LAMBDA, coder=coder
    ).fit(window.frames[: window.first])
    codes, solved = [*np.array(model.codes_)], model.followed_.n_solved_
    times, errors, predictions = [], [], []
    for x in window.frames[window.first : window.first + window.steps]:
        begin = time.perf_counter()
        predicted = model.update(x).predict()
        times.append(time.perf_counter() - begin)
        errors.append(model.followed_.error_)
        predictions.append(predicted)
        codes.append(np.array(model.moments_.latest(1)[0]))
    return Pace(
        window,
        np.array(times),
        model.followed_.n_solved_ - solved,
        max(errors),
        np.array(predictions),
        np.array(codes),
        coder.dictionary_,
    )


def first_step(window: Window, coder: SparseCoder) -> float:
    """Return the seconds of the first step in a new process, which loads the model and cached compiled kernels."""
    with tempfile.TemporaryDirectory() as folder:
        model, frame = Path(folder) / "model.psmt", Path(folder) / "frame.npy"
        sizes = {"n_atoms": window.n_atoms, "window": window.size, "n_components": window.n_components}
        PSMT(lam=LAMBDA, coder=coder, **sizes).fit(window.frames[: window.first]).save(model)
        np.save(frame, window.frames[window.first])
        command = [sys.executable, "-c", FIRST, str(model), str(frame)]
        times = [float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(4)]
    return float(np.median(times[1:]))  # the first of them may have compiled kernels


@contextmanager
def busy_processes(threads: int, count: int = 2) -> Iterator[None]:
    """Beside so many processes that multiply matrices, each with so many threads."""
    command, environment = [sys.executable, "-c", BUSY], {**os.environ, "OPENBLAS_NUM_THREADS": str(threads)}
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(count)]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", "a busy process did not start"
        yield
    finally:
        for process in processes:
            process.kill()
            process.communicate()


# The closed form


class Checked(NamedTuple):
    """Predictions held against those by the closed form."""

    worst: float
    """Largest difference, relative to the prediction's norm."""
    rounding: float
    """The same between two closed forms of one window, whose moments were summed in one go and slid by a code."""
    compared: int
    peer: list[float]
    """Seconds of LAPACK for the same windows."""

    def cell(self) -> str:
        if not self.compared:
            return "none compared"
        return _judged(f"{self.worst:.0e} of {self.compared} ({self.rounding:.0e})", self.worst > CLOSE)


def check(pace: Pace) -> Checked:
    """Some predictions against those that the closed form makes from the same codes.

    While a model holds the code after a cut, its prediction owes nothing to the embedding and is not compared.
    """
    window, n_steps = pace.window, len(pace.times)
    worst, rounding, peer = [], [], []
    for step in np.unique(np.linspace(0, n_steps - 1, CHECKS if window.n_atoms <= ATOMS else 3).astype(int)):
        now = step + 1 + window.size
        moments = WindowMoments.of(pace.codes[step + 1 : now])
        peer.append(_lapack(moments))
        predicted = pace.predictions[step]
        if np.allclose(predicted, pace.codes[now - 1] @ pace.atoms, rtol=0, atol=1e-12):
            continue
        received = window.frames[window.start + step + 1 : window.start + now]
        slid = WindowMoments.of(pace.codes[step : now - 1])
        slid.slide(pace.codes[now - 1])
        expected, same = (_closed_form_prediction(window, sums, received, pace.atoms) for sums in (moments, slid))
        worst.append(_apart(predicted, expected))
        rounding.append(_apart(same, expected))
    return Checked(max(worst, default=0.0), max(rounding, default=0.0), len(worst), peer)


def _apart(frame: np.ndarray, expected: np.ndarray) -> float:
    """Norm of the difference, relative to the expected frame's; 0 where both are nothing."""
    difference = float(np.linalg.norm(frame - expected))
    return difference and difference / float(np.linalg.norm(expected))


def _closed_form_prediction(
    window: Window, moments: WindowMoments, received: np.ndarray, atoms: np.ndarray
) -> np.ndarray:
    """The frame (n_features,) that follows a window, from its moments and frames (window, n_features) alone."""
    matrix = embed_window(moments, window.n_components).matrix
    recover = Recovery(matrix, LAMBDA, activity=ACTIVITY_FACTOR * moments.peak_activity)
    previous, latest = moments.latest(2)
    code = recover_next(recover, make_extrapolation("linear"), previous, latest)
    length = np.linalg.norm((code - latest) @ atoms)
    reach = ACTIVITY_FACTOR * robust_peak(np.linalg.norm(received, axis=1))
    return drawn_back(code, latest, length, reach) @ atoms


def _lapack(moments: WindowMoments) -> float:
    """Seconds of the generalised eigenproblem on the atoms that vary, with a ridge that makes V definite."""
    covariance, curvature = moments.covariance(), moments.second_differences()
    varying = np.diag(covariance) > 0
    part = np.ix_(varying, varying)
    covariance, curvature = covariance[part], curvature[part]
    covariance[np.diag_indices_from(covariance)] += 1e-6 * np.trace(covariance) / len(covariance)
    begin = time.perf_counter()
    scipy.linalg.eigh(curvature, covariance)
    return time.perf_counter() - begin


def choosing(window: Window) -> tuple[str, ...]:
    """What it costs `fit`, dictionary included, to choose lam and f."""
    past = window.frames[: window.first]
    sizes = {"n_atoms": window.n_atoms, "window": window.size, "random_state": 0}
    runs = {
        "given": lambda: PSMT(n_components=window.n_components, lam=LAMBDA, **sizes).fit(past),
        "auto": lambda: PSMT(n_components="auto", lam="auto", **sizes).fit(past),
    }
    times = medians(runs, repeats=3)
    ratio = times["auto"] / times["given"]
    name = f"{window.name}, M={window.n_atoms} H={window.size}, {len(past)} frames"
    return name, seconds(times["given"]), seconds(times["auto"]), _judged(f"{ratio:.2f}", ratio > AUTO_FACTOR)


# The page

HEADER = (
    *("window (first frame)", "M, H, f", "steps", "mean per second", "median ms", "99% ms", "worst ms"),
    *("fresh solves", "largest `error_`", "from the closed form (by rounding)", "target"),
)
BUSY_HEADER = (*HEADER[:2], "threads of each", *HEADER[2:9], "alone, per second", "times slower")
AUTO_HEADER = ("past", "given", "auto", "ratio")


def measure(windows: Sequence[Window], beside: Sequence[Window], chosen: Sequence[Window]) -> str:
    """All tables, as text: of windows alone, of those that are run beside busy processes too, and of `fit`."""
    coders, rows, slowed, peer = Coders(), [], [], []
    run(replace(windows[0], steps=5), coders.of(windows[0]))  # compiled code is loaded when first used
    for window in windows:
        try:
            pace = run(window, coders.of(window))
        except ValueError as error:
            print(f"left out: {window.name}, {window.sizes}: {error}", flush=True)
            continue
        if window in beside:
            for threads in BUSY_THREADS:
                with busy_processes(threads):
                    other = run(window, coders.of(window))
                ratio = pace.per_second / other.per_second
                verdict = _judged(f"{ratio:.2f}", ratio > BUSY_FACTOR)
                judged = replace(other, window=replace(window, target=None, worst=None))
                slowed.append((window.name, window.sizes, threads, *judged.cells(), f"{pace.per_second:.0f}", verdict))
        checked = check(pace)
        if window.n_atoms == ATOMS:
            peer += checked.peer
        target = "" if window.target is None else f"{window.target:g} per second"
        if window.worst is not None:
            target += f", {_ms(window.worst)} ms"
        rows.append((window.name, window.sizes, *pace.cells(), checked.cell(), target))
        print(table(HEADER, rows[-1:]).splitlines()[-1], flush=True)
    parts = [f"Alone:\n\n{table(HEADER, rows)}"]
    if slowed:
        told = "Beside two processes that multiply 512 x 512 matrices; fair shares would be 1.5 and 2.5 times slower"
        parts.append(f"{told}:\n\n{table(BUSY_HEADER, slowed)}")
    if peer:
        parts.append(
            f"The closed form at every step instead, by `scipy.linalg.eigh(S, V)` on the atoms in use of the same "
            f"windows at M={ATOMS}, coding and recovery not counted: {1 / np.median(peer):.0f} per second (median)."
        )
    first = first_step(windows[0], coders.of(windows[0]))
    parts.append(
        f"The first step of a process ({windows[0].sizes}; the model is loaded before, compiled kernels are cached; "
        f"median of three): {_judged(f'{first:.2f} s', first > FIRST_TARGET)}, target {FIRST_TARGET:g} s."
    )
    if chosen:
        lines = [choosing(window) for window in chosen]
        parts.append(f"`fit`, dictionary included, median of three:\n\n{table(AUTO_HEADER, lines)}")
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("films", nargs="*", metavar="FILM", help="instead of those of the shared folder")
    parser.add_argument("--steps", type=int, metavar="N", help=f"per window, at the most (default {STEPS})")
    parser.add_argument("--quick", action="store_true", help="20 steps of three windows; writes nothing")
    asked = parser.parse_args()
    steps = asked.steps or (20 if asked.quick else STEPS)
    if steps < 1:
        parser.error(f"--steps {steps} leaves nothing to time; use 1 or more")
    films = read_films(asked.films or FILMS)
    windows = [window for film, frames in films.items() for window in windows_of(film, frames, steps)]
    if not windows:
        parser.error("no film is left to time steps on")
    spread = [windows[i] for i in np.unique(np.linspace(0, len(windows) - 1, 3).astype(int))]
    with pinned():
        if asked.quick:
            text = measure(spread, spread[:1], spread[:1])
        else:
            chosen = [window for window in windows if window.size == WINDOWS[0]][:2]
            others = other_sizes(windows, steps)
            # Beside other work the last of them too: so small a model solves the closed form at each step.
            text = measure([*windows, *others], [*spread, others[-1]], chosen)
    text = f"{text}\n\n{machine('scikit-learn')}"
    print(f"\n{text}")
    if not asked.quick:
        write_section("pace", text)


if __name__ == "__main__":
    main()
