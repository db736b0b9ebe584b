"""Speed on one GPU, with two floors for each piece of work, and agreement with the CPU.

    python -m benchmarks.gpu [--film FILM] [--page FILE] [--reproduce]

FILM is read as `psmt` reads films, and the middle 16 x 16 of its frames is used; or it is an .npy file of such patches
(n_frames, 256). The table goes into the page.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.page import PAGE, default_film, table, write_section
from psmt import PSMT, SparseCoder
from psmt.coding.dictionary import Atoms
from psmt.embedding import FollowedEmbedding, embed_window
from psmt.embedding.moments import WindowMoments
from psmt.engines import engine_for
from psmt.engines.torch.lasso import pose, solve

DEVICE = "cuda"
BANDWIDTH = 4.3e12
"""Bytes read and written per second by a large copy, as measured on an H200."""
RATE = 56e12
"""Float64 operations per second of a large matrix product there."""


class Line(NamedTuple):
    """One line of the table."""

    work: str
    measured: str
    target: str
    bytes_moved: float
    """Bytes that must move, each input read and each output written once."""
    operations: float

    def cells(self) -> tuple[str, ...]:
        moved, computed = self.bytes_moved / BANDWIDTH, self.operations / RATE
        return self.work, self.measured, self.target, _time(moved), _time(computed)


def _time(seconds: float) -> str:
    """A duration with three digits; nothing for a floor that was not counted."""
    if seconds == 0:
        return ""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.2g} ns"


def clock(work: Callable[[], Any], repeat: int = 5) -> float:
    """Median seconds of the work, after one run that does not count."""
    times = []
    for _ in range(repeat + 1):
        torch.cuda.synchronize()
        began = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return float(np.median(times[1:]))


def coding(patches: np.ndarray, dictionary: np.ndarray, count: int = 1_000_000) -> Line:
    """All of a million patches: those of the film, in any order, each with a little noise of its own."""
    engine = engine_for(DEVICE)
    generator = torch.Generator(DEVICE).manual_seed(0)
    own = engine.array(patches)
    samples = own[torch.randint(len(own), (count,), generator=generator, device=DEVICE)]
    samples += 0.05 * torch.randn(samples.shape, generator=generator, device=DEVICE, dtype=samples.dtype)
    samples = (samples - samples.mean(1, keepdim=True)) / samples.std(1, keepdim=True, correction=0)
    atoms = Atoms(dictionary, engine)
    seconds = clock(lambda: atoms.code(samples, 1.0, tol=1e-6), 3)
    n_atoms, n_features = dictionary.shape
    return Line(
        f"code {count:,} patches, M={n_atoms}, gap 1e-6",
        f"{seconds:.2f} s",
        "< 2 s",
        8.0 * count * (n_features + n_atoms),
        2.0 * count * n_atoms * n_features,
    )


def learning(patches: np.ndarray, n_atoms: int = 2048) -> tuple[Line, SparseCoder]:
    """A dictionary with the parameters that `psmt` uses."""
    coder = SparseCoder(n_atoms=n_atoms, random_state=0, device=DEVICE)
    seconds = clock(lambda: coder.fit(patches), 1)
    batches = len(coder.objective_) * -(-len(patches) // coder.batch_size)
    n_features = patches.shape[1]
    line = Line(
        f"dictionary M={n_atoms} on {len(patches):,} patches, {len(coder.objective_)} epochs",
        f"{seconds:.1f} s to a mean objective of {coder.objective_[-1]:.4f}",
        "< 10 s",
        8.0 * batches * (2 * n_atoms**2 + 3 * n_atoms * n_features),
        2.0 * batches * (2 * n_atoms**2 * n_features + coder.batch_size * n_atoms * (n_atoms + 3 * n_features)),
    )
    return line, coder


def frames(patches: np.ndarray, dictionary: np.ndarray, count: int = 576, f: int = 64, window: int = 1536) -> Line:
    """The patches of a frame, each coded and recovered with an embedding of its own."""
    engine = engine_for(DEVICE)
    atoms = Atoms(dictionary, engine)
    codes = atoms.code(engine.array(patches), 1.0, tol=1e-12)
    starts = np.linspace(0, len(patches) - window, 16).astype(int)
    found = [embed_window(WindowMoments.of(codes[s : s + window], engine), f) for s in starts]
    embeddings = torch.stack([found[i % len(found)].matrix for i in range(count)])
    samples = engine.array(patches[:count])

    def step() -> Any:
        fresh = atoms.code(samples, 1.0, tol=1e-12)
        columns = embeddings.mT
        norms = columns.norm(dim=2)
        unit = columns / torch.where(norms > 0, norms, 1.0)[..., None]
        points = (embeddings @ fresh[..., None])[..., 0]
        prices = torch.full_like(norms[0], 0.05)
        return solve(pose(unit, points, prices), tol=1e-12)

    seconds = clock(step)
    gap = float(step().gap.max())
    n_atoms, n_features = dictionary.shape
    return Line(
        f"{count} patches of a frame, M={n_atoms}, f={f}, each with its own P, coded and recovered (gap {gap:.0e})",
        f"{1 / seconds:.0f} frames per second",
        "60",
        8.0 * count * (n_features + 2 * n_atoms + n_atoms * f),
        2.0 * count * (n_atoms * n_features + n_atoms * f),
    )


def step(
    patches: np.ndarray, coder: SparseCoder, window: int, f: int, dtype: str = "float64", n_frames: int = 160
) -> tuple[Line, str]:
    """Receive a patch and predict the next; agreement is with the CPU, frame by frame."""
    start = len(patches) - n_frames - 1
    past = patches[start - window : start]
    asked: dict[str, Any] = {"window": window, "n_components": f, "lam": 0.1}
    model = PSMT(coder=coder, device=DEVICE, dtype=dtype, **asked).fit(past)
    times, predictions = [], []
    for x in patches[start : start + n_frames]:
        torch.cuda.synchronize()
        began = time.perf_counter()
        predictions.append(model.update(x).predict())
        times.append(time.perf_counter() - began)
    stages = _stages(model, patches[start + n_frames])
    reference = PSMT(coder=coder.to("cpu"), **asked).fit(past)
    errors = []
    for x, predicted in zip(patches[start : start + 20], predictions, strict=False):
        expected = reference.update(x).predict()
        errors.append(np.linalg.norm(predicted - expected) / np.linalg.norm(expected))
    n_atoms = len(coder.dictionary_)
    line = Line(
        f"whole step M={n_atoms} H={window} f={f}, {dtype}, embedding renewed ({stages})",
        f"{1 / np.median(times[10:]):.0f} per second; {1 / np.mean(times[10:]):.0f} on average, with closed forms",
        "200" if n_atoms == 2048 else "",
        8.0 * n_atoms * (7 * n_atoms + 2 * f),
        2.0 * n_atoms * (n_atoms * (f + 60) + 2 * f * f),
    )
    said = f"M={n_atoms}, f={f}, {dtype}: predictions of {len(errors)} frames within {max(errors):.0e} of the CPU's"
    return line, f"{said}; the closed form was solved {model.followed_.n_solved_} times in {n_frames} frames"


def _stages(model: PSMT, x: np.ndarray) -> str:
    """Where the time of a step goes, each stage alone."""
    engine = engine_for(DEVICE)
    own = engine.array(x)
    last = model.moments_.latest(1)[0]
    code = clock(lambda: model.coder_.transform_next(own, last))
    followed = FollowedEmbedding(model.n_components_)
    followed.update(model.moments_)

    def renew() -> None:
        model.moments_.slide(last)
        followed.update(model.moments_)

    slide = clock(renew, 3)
    predict = clock(lambda: model.predict_codes(1))
    return f"code {_time(code)}, moments and embedding {_time(slide)}, recovery {_time(predict)}"


def reproduction(patches: np.ndarray) -> Line:
    """The four experiments of the paper, without decoding the film and drawing."""
    from psmt.cli.app import COMMANDS
    from psmt.cli.work import run_experiments
    from psmt.pipeline.run import Run, StageClock
    from psmt.utils.threads import one_blas_thread

    with tempfile.TemporaryDirectory() as folder:
        stages = StageClock()
        began = time.perf_counter()
        run = Run(folder=Path(folder), device=DEVICE, progress=stages)
        with one_blas_thread():
            run_experiments(patches, COMMANDS["reproduce"].job({}).settings(), run)
        seconds = time.perf_counter() - began
    parts = ", ".join(f"{name} {value:.1f} s" for name, value in stages.seconds.items())
    return Line(f"`psmt reproduce`, {len(patches):,} frames ({parts})", f"{seconds:.0f} s", "< 60 s", 0.0, 0.0)


def _patches(film: str, size: int) -> np.ndarray:
    """Patches (n_frames, 256) of a film, or those that an .npy file holds."""
    if film.endswith(".npy"):
        return np.load(film).astype(np.float64)
    from psmt.data.patches import read_patches  # a machine that has the patches need not be able to decode films

    return read_patches(film, frame_size=size).values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--film", default=default_film())
    parser.add_argument("--size", type=int, default=200, help="side of the frames")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--reproduce", action="store_true", help="the whole paper as well")
    given = parser.parse_args()
    patches = _patches(given.film, given.size)[:10_000]
    lines, said = [], []

    def add(line: Line) -> None:
        lines.append(line.cells())
        print(" | ".join(lines[-1]), flush=True)

    small = learning(patches, 512)[1]
    add(coding(patches, small.dictionary_))
    line, large = learning(patches)
    add(line)
    add(frames(patches, small.dictionary_))
    steps = ((small, 1536, 64), (large, 6144, 64), (large, 6144, 64, "float32"), (large, 6144, 256))
    for asked in steps:
        line, text = step(patches, *asked)
        add(line)
        said.append(text)
        print(text, flush=True)
    if given.reproduce:
        add(reproduction(patches))
    text = table(("work", "measured", "target", "floor: bytes", "floor: operations"), lines)
    about = f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, float64, {len(patches):,} patches."
    write_section("gpu", f"{about}\n\n{text}\n\n" + "\n".join(f"- {item}" for item in said), given.page)


if __name__ == "__main__":
    main()
