"""Layer 2 and the whole step, live: a fresh embedding and a prediction at every frame."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.linalg

from benchmarks.measure import ALPHA, Row, dictionary, medians, oracles, patches, pinned
from psmt import PSMT, SparseCoder
from psmt.embedding import FollowedEmbedding, solve_closed_form
from psmt.embedding.closed_form import noise_curvature
from psmt.embedding.moments import WindowMoments
from psmt.extrapolation import make_extrapolation
from psmt.numerics.rank import RANK_TOL, moving, noise_variance
from psmt.recovery import ACTIVITY_FACTOR, Recovery, recover_next

LAMBDA = 0.1
SLIDES = 500
SIZES = {512: (1536, 64), 2048: (6144, 256)}
"""H and f by M."""

FIRST = 2000
"""Frame of the film at which the first window begins."""


def embedding() -> list[Row]:
    """An embedding per slide: followed, and solved from the same window; with two threads, and with one."""
    with pinned():
        rows = _follow(512, 64, check_every=1, target=8) + _follow(512, 128, check_every=1, target=8)
        rows += _follow(2048, 256, check_every=25, target=15)
    with pinned(1):
        alone = [*_follow(512, 64, check_every=SLIDES)[:2], *_follow(2048, 256, check_every=SLIDES)[:2]]
    return rows + [replace(row, work=f"{row.work}, one thread each") for row in alone]


def _follow(n_atoms: int, n_components: int, check_every: int, target: float | None = None) -> list[Row]:
    window = SIZES[n_atoms][0]
    atoms = dictionary(n_atoms)
    codes = SparseCoder.from_dictionary(atoms, alpha=ALPHA).transform(patches()[FIRST : FIRST + window + SLIDES])
    moments, tracked = WindowMoments.of(codes[:window]), FollowedEmbedding(n_components)
    tracked.update(moments)
    rule = make_extrapolation("linear")

    def prediction(matrix: np.ndarray) -> np.ndarray:
        recover = Recovery(matrix, LAMBDA, activity=ACTIVITY_FACTOR * moments.peak_activity)
        return recover_next(recover, rule, *moments.latest(2)) @ atoms

    times, whole, used, worst, checked = [], [], [], 0.0, 0
    for slide, code in enumerate(codes[window:]):
        begin = time.perf_counter()
        moments.slide(code)
        followed = tracked.update(moments).matrix
        times.append(time.perf_counter() - begin)
        if slide % check_every == 0:
            exact = solve_closed_form(
                moments.covariance(), moments.second_differences(), n_components, n_codes=len(moments)
            ).matrix
            expected = prediction(exact)
            worst = max(worst, np.linalg.norm(prediction(followed) - expected) / np.linalg.norm(expected))
            checked += 1
        if slide % (SLIDES // 5) == 0:
            atoms_used = moving(np.diag(moments.covariance()))
            whole.append(_lapack(moments, np.ones_like(atoms_used)))
            used.append(_lapack(moments, atoms_used))
    assert worst <= 1e-4, f"predictions {worst:.1e} apart"
    work = f"embedding of each of {SLIDES} slides, M={n_atoms} H={window} f={n_components}"
    ours, mean = float(np.median(times)), float(np.mean(times))
    same = f"predictions within 1e-4 ({worst:.0e}, {checked} slides)"
    solved = f"ours is the mean: {tracked.n_solved_} of {SLIDES} slides solved afresh"
    return [
        Row(work, "scipy.linalg.eigh(S, V)", ours, float(np.median(whole)), target, same),
        Row(work, "the same", mean, float(np.median(whole)), None, solved),
        Row(work, f"the same, on the {atoms_used.sum()} atoms in use", ours, float(np.median(used)), None, same),
    ]


def _lapack(moments: WindowMoments, atoms: np.ndarray) -> float:
    """Seconds of the generalised eigenproblem of the window for some of the atoms, lifted by noise as ours is."""
    part = np.ix_(atoms, atoms)
    noise = float(noise_variance(np.diag(moments.covariance()), RANK_TOL)) * np.eye(int(atoms.sum()))
    covariance = moments.covariance()[part] + noise
    curvature = moments.second_differences()[part] + noise_curvature(len(moments)) * noise
    begin = time.perf_counter()
    scipy.linalg.eigh(curvature, covariance)
    return time.perf_counter() - begin


def step() -> list[Row]:
    """Receive a patch, predict the next: against the clock, the paper's procedure, and twice the window."""
    with pinned():
        small, longer = _ready(512, 1536, 64), _ready(512, 3072, 64)
        times = medians({"H": lambda: small(10), "2 H": lambda: longer(10)}, repeats=11)
        single = times["H"] / 10
        large = {f: _ready(2048, 6144, f) for f in (64, 256)}
        big = medians({str(f): lambda run=run: run(5) for f, run in large.items()})
        literal = _literal_step(512, 1536)
    return [
        Row("whole step, M=512 H=1536 f=64", "60 per second", single, 1 / 60, 1, f"{1 / single:.0f} per second"),
        *(
            Row(f"whole step, M=2048 H=6144 f={f}", "10 per second", t / 5, 1 / 10, 1, f"{5 / t:.1f} per second")
            for f, t in big.items()
        ),
        Row(
            "whole step, M=512 H=1536",
            "the paper's procedure, to the letter",
            single,
            literal,
            None,
            "in tests; here with V made full rank",
        ),
        Row("whole step, M=512 H=3072", "the same with H=1536", times["2 H"], times["H"], 1 / 1.1, "cost within 10%"),
    ]


def _ready(n_atoms: int, window: int, n_components: int) -> Callable[[int], None]:
    """A function that receives and predicts so many frames of the film and goes on from there when called again."""
    coder = SparseCoder.from_dictionary(dictionary(n_atoms), alpha=ALPHA)
    model = PSMT(n_atoms=n_atoms, window=window, n_components=n_components, lam=LAMBDA, coder=coder)
    film = patches()[FIRST:]
    model.fit(film[:window])
    coming = iter(film[window:])

    def steps(count: int) -> None:
        for _ in range(count):
            model.update(next(coming)).predict()

    return steps


def _literal_step(n_atoms: int, window: int) -> float:
    """Median seconds of Algorithm 1 as written.

    Its V must have full rank, which that of a film has not: a little noise on the codes changes no operation.
    """
    literal = oracles()
    atoms, film = dictionary(n_atoms), patches()
    codes = SparseCoder.from_dictionary(atoms, alpha=ALPHA).transform(film[:window]).T
    noisy = codes + 0.05 * np.random.default_rng(0).random(codes.shape)
    settings = {"H": window, "f": SIZES[n_atoms][1], "alpha": ALPHA, "lam": LAMBDA}
    run = medians({"step": lambda: literal.algorithm_1(atoms.T, noisy, film[window : window + 1], **settings)})
    return run["step"]
