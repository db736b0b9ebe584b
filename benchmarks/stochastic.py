"""The stochastic solver against the one before it: passes and flops to the same roughness, and to the closed form's.

Flops, not seconds: what is counted is the same on every machine. Whitening V, which both do once, is left out.

    python -m benchmarks.stochastic
"""

from __future__ import annotations

import warnings

import numpy as np
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning
from studies.locality.stochastic import BATCH_SIZE, StochasticEmbedding, WhiteProblem

from psmt import SparseCoder
from psmt.data import open_repeatable
from psmt.data.patches import read_values
from psmt.embedding import embed_window
from psmt.embedding.moments import WindowMoments
from psmt.numerics.rank import RANK_TOL

N_ATOMS, WINDOW, FORMER_EPOCHS = 512, 1536, 200


def former(problem: WhiteProblem, n_components: int, epochs: int) -> np.ndarray:
    """Roughness after each epoch of explicit steps of rate 0.25 / (1 + k / 10), each put back onto the constraint."""
    rng = np.random.default_rng(0)

    def orthonormal(rows: np.ndarray) -> np.ndarray:
        return scipy.linalg.solve_triangular(scipy.linalg.cholesky(rows @ rows.T, lower=True), rows, lower=True)

    rows = orthonormal(rng.standard_normal((n_components, problem.n_white)))
    roughness = []
    for epoch in range(epochs):
        order = rng.permutation(len(problem.differences))
        for start in range(0, len(order), BATCH_SIZE):
            batch = problem.differences[order[start : start + BATCH_SIZE]]
            gradient = (rows @ batch.T) @ batch / len(batch) + rows * problem.noise
            rows = orthonormal(rows - 0.25 / (1 + epoch / 10) * gradient)
        roughness.append(problem.curvatures(rows).sum() * problem.n_differences)
    return np.array(roughness)


def former_flops(n_white: int, n_components: int) -> float:
    """Of an epoch: it made the white second differences anew each time."""
    batches = -(-WINDOW // BATCH_SIZE)
    f = n_components
    return 2 * WINDOW * N_ATOMS * n_white + 4 * WINDOW * n_white * f + batches * (3 * f**2 * n_white + f**3 / 3)


def own_flops(n_white: int, rows: int) -> tuple[float, float]:
    """Before the first pass, and of a pass with so many rows, guards included."""
    batches, b, basis = -(-WINDOW // BATCH_SIZE), BATCH_SIZE, min(4 * rows, n_white)
    once = 2 * WINDOW * N_ATOMS * n_white + 2 * WINDOW * n_white**2
    sweep = 4 * WINDOW * n_white * rows + batches * (2 * b**2 * n_white + b**3 / 3 + 2 * b**2 * rows)
    ritz = 4 * n_white * basis**2 + 2 * n_white**2 * basis + 2 * n_white * basis**2 + 9 * basis**3
    return once, sweep + ritz + 4 * n_white**2 * rows


def main() -> None:
    """Print a line per f."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    film = open_repeatable(f"builtin:glide?frames={WINDOW + 500}", stop=None, wanted_by="the benchmark")
    patches = read_values(film, frame_size=200, patch_size=16, position=None)
    codes = SparseCoder(n_atoms=N_ATOMS, alpha=1.0, max_epochs=3, random_state=0).fit(patches).transform(patches)
    moments = WindowMoments.of(codes[:WINDOW])
    problem = WhiteProblem.of(moments, centred=True, half_stencils=False, rank_tol=RANK_TOL)
    n = problem.n_white
    print(f"M = {N_ATOMS}, H = {WINDOW}, rank {problem.rank}, condition {np.linalg.cond(problem.covariance):.1e}")
    for f in (16, 64):
        least = embed_window(moments, f).eigenvalues.sum()
        before = former(problem, f, FORMER_EPOCHS) / least
        rows = min(f + max(f // 4, 24), n)
        once, each = own_flops(n, rows)
        spent = FORMER_EPOCHS * former_flops(n, f)
        print(f"f = {f}: formerly {before[-1]:.2f} times the least after {FORMER_EPOCHS} epochs, {spent:.1e} flops")
        passes = next(
            k
            for k in range(1, 100)
            if StochasticEmbedding(f, max_epochs=k, tol=0.0).update(moments).eigenvalues.sum() <= before[-1] * least
        )
        cost = once + passes * each
        print(f"    now as smooth after {passes} passes, {cost:.1e} flops, {spent / cost:.0f} times fewer")
        for tol in (1e-2, 1e-4):
            solver = StochasticEmbedding(f, tol=tol)
            found = solver.update(moments).eigenvalues.sum() / least
            cost = once + solver.n_epochs_ * each
            print(f"    tol {tol:g}: {found - 1:.1e} above the least after {solver.n_epochs_} passes, {cost:.1e} flops")


if __name__ == "__main__":
    main()
