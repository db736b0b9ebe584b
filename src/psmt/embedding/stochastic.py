"""Mini-batch descent, the alternative to the closed form that the paper names for its locality.

In coordinates in which V is the identity, ``P V P' = I`` means orthonormal rows, and step 5 asks for the rows with the
smallest curvature ``sum_t |R b_t|^2`` of the white second differences b. On real films their covariance has a condition
number of 1e5 and more, so plain gradient steps of a stable size hardly move in the flat directions. Three things help:

- Mini-batch steps are implicit (stochastic proximal point): ``R <- R (I + t B'B)^-1`` for a batch B, by Woodbury's
  formula. They are stable at any size, so the size follows the curvature that P has reached.
- After each pass, Rayleigh-Ritz (as in LOBPCG) finds the best directions in the span of the rows, the rows after the
  pass, the pass before and the gradient. It acts as a line search over all of these at once, with momentum.
- Some guard rows beside the wanted ones put a gap between what is kept and what is left. A few random rows find
  directions that the window before did not show.

A converged descent is the closed form, up to the tolerance: there is one minimum, whatever the order of the batches.
Two other readings of "stochastic gradient descent" can be more local. One stops early (``tol=None``). The other, of the
sparse manifold transform (Chen, Paiton and Olshausen, 2018), penalises the weights of P (``sparsity``). Both do without
Rayleigh-Ritz and guards, which mix the rows, and keep each row as close to its last value as the constraint allows
(polar retraction).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from psmt.embedding.closed_form import ALL_NOISE, Embedding
from psmt.embedding.moments import WindowMoments
from psmt.engines.window import half_stencil, second_difference
from psmt.numerics.rank import NOISE_ROUGHNESS, RANK_TOL, fix_signs, whiten
from psmt.persistence.schema import Field, State
from psmt.types import Array

MAX_EPOCHS, BATCH_SIZE, RATE, TOL = 200, 32, 10.0, 1e-2  # defaults of the stochastic solver

_GUARDS, _FEWEST_GUARDS = 0.25, 24  # guard rows as a fraction of the wanted ones, and their smallest number
_PROBES = 4  # guards that start at random in every window
_PASSES = 4  # after this many plain passes batches double, so that the randomness of batches does not keep P moving
_STRAIGHT = 1e-9  # rows with a smaller curvature (at most 4 for white codes) are straight: steps grow no further


def check_solver(solver: str, *, device: str, sparsity: float = 0.0) -> None:
    """Raise ValueError if the solver does not support the device or the sparsity."""
    if solver == "sgd" and device != "cpu":
        raise ValueError(f"solver='sgd' does not run on device={device!r}; use device='cpu' or solver='closed'")
    if solver == "closed" and sparsity > 0:
        raise ValueError(
            f"sparsity={sparsity:g} has no closed form; use solver='sgd', or sparsity=0 with solver='closed'"
        )


def draw_seed(random_state: int | np.random.RandomState | None) -> int:
    """Seed of all batches, drawn once, so that no generator has to be saved with the state."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


@dataclass(eq=False)
class StochasticEmbedding:
    """P of a window by mini-batch steps that start from P of the window before.

    Parameters
    ----------
    n_components : int or None
        f. With None, all directions are kept: then every allowed P is optimal, and one pass is enough.
    centred, half_stencils, rank_tol, max_epochs, batch_size, rate, sparsity :
        As in `TemporalEmbedding`.
    tol : float or None
        A window is done at this relative excess of the roughness over the minimum, as estimated from the gradient. With
        `sparsity`, it is done when a pass over the whole window in one batch moves rows by less than this, in the
        metric of V. A window that is not done after `max_epochs` gives a warning. With None the descent stops early: it
        takes `max_epochs` plain passes in every window.
    seed : int

    Attributes
    ----------
    error_ : float
        The error that is compared with `tol`.
    n_epochs_ : int
        Passes over the last window.
    n_windows_ : int
        Number of windows so far.

    Examples
    --------
    >>> import numpy as np
    >>> from psmt.embedding import embed_window
    >>> from psmt.embedding.moments import WindowMoments
    >>> codes = np.abs(np.random.default_rng(0).standard_normal((200, 40)).cumsum(axis=0))
    >>> moments = WindowMoments.of(codes)
    >>> least = embed_window(moments, 4).eigenvalues.sum()
    >>> found = StochasticEmbedding(4, tol=1e-4).update(moments)
    >>> bool(found.eigenvalues.sum() < 1.0001 * least)
    True
    """

    is_following = True
    """Every slide must be passed to `update`: each window starts from the one before."""

    n_components: int | None
    _: KW_ONLY
    centred: bool = True
    half_stencils: bool = False
    rank_tol: float = RANK_TOL
    max_epochs: int = MAX_EPOCHS
    batch_size: int = BATCH_SIZE
    rate: float = RATE
    tol: float | None = TOL
    sparsity: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        self.error_ = 0.0
        self.n_epochs_ = 0
        self.n_windows_ = 0
        self._matrix: Array | None = None

    def update(self, moments: WindowMoments) -> Embedding:
        """The embedding of the present window."""
        problem = WhiteProblem.of(
            moments, centred=self.centred, half_stencils=self.half_stencils, rank_tol=self.rank_tol
        )
        # With a very large rank_tol everything is noise, and no direction is left.
        rank = min(problem.rank, problem.n_white)
        wanted = rank if self.n_components is None else min(self.n_components, rank)
        rng = np.random.default_rng([self.seed, self.n_windows_])
        self.n_windows_ += 1
        if wanted == 0:
            self.error_, self.n_epochs_ = 0.0, 0
            return Embedding(problem.white.T[:0], problem.noise[:0])
        if self.tol is None or self.sparsity > 0:
            curvatures, rows = self._descend(problem, wanted, rng)
        else:
            curvatures, rows = self._converge(problem, wanted, self.tol, rng)
        if self.tol is not None and self.error_ > self.tol:
            what = "moves P by" if self.sparsity > 0 else "is rougher than the closed form by an estimated"
            warnings.warn(
                f"solver='sgd' {what} {self.error_:.2g} (relative) after max_epochs={self.max_epochs}, above "
                f"tol={self.tol:g}; use more max_epochs, a larger tol, tol=None to stop early on purpose, or "
                "solver='closed'",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._matrix = rows @ problem.white.T
        eigenvalues = np.maximum(curvatures[:wanted], 0.0) * problem.n_differences
        return Embedding(fix_signs(self._matrix[:wanted]), eigenvalues)

    def _converge(
        self, problem: WhiteProblem, wanted: int, tol: float, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Descend to the minimum; curvatures (n,) and rows (n, n_white) of the wanted directions and their guards."""
        total = min(wanted + max(int(_GUARDS * wanted), _FEWEST_GUARDS), problem.n_white)
        values, rows = rayleigh_ritz(problem, self._start(problem, total, rng, probes=_PROBES), total)
        previous = rows[:0]
        for epoch in range(1, self.max_epochs + 1):
            self.n_epochs_ = epoch
            moved = problem.sweep(rows, self.rate / max(values[wanted - 1], _STRAIGHT), self.batch_size, rng)
            basis = np.vstack([rows, moved, previous, problem.gradient(rows, values)])
            values, found = rayleigh_ritz(problem, basis, total)
            previous, rows = found - (found @ rows.T) @ rows, found
            self.error_ = relative_excess(values, problem.gradient(rows, values), wanted)
            if self.error_ <= tol:
                break
        return values, rows

    def _descend(self, problem: WhiteProblem, wanted: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Take plain passes; curvatures (wanted,), ascending, and rows (wanted, n_white), not turned in their span."""
        rows = polar(self._start(problem, wanted, rng, probes=0))
        whole, batch_size = len(problem.differences), self.batch_size
        for epoch in range(1, self.max_epochs + 1):
            self.n_epochs_ = epoch
            roughest = max(float(problem.curvatures(rows).max()), _STRAIGHT)
            moved = problem.sweep(rows, self.rate / roughest, batch_size, rng)
            if self.sparsity > 0:
                moved = problem.shrink(polar(moved), self.sparsity)
            moved = polar(moved)
            self.error_ = float(np.sqrt(np.mean(np.sum((moved - rows) ** 2, axis=1))))
            rows = moved
            if self.tol is None:
                continue
            if batch_size >= whole and self.error_ <= self.tol:
                break
            if epoch % _PASSES == 0:
                batch_size = min(2 * batch_size, whole)
        curvatures = problem.curvatures(rows)
        order = np.argsort(curvatures, kind="stable")
        return curvatures[order], rows[order]

    def _start(self, problem: WhiteProblem, count: int, rng: np.random.Generator, *, probes: int) -> Array:
        """Rows (count, n_white) to start from: those of the window before, and random ones."""
        rows = rng.standard_normal((count, problem.n_white))
        if self._matrix is not None:
            known = (self._matrix @ problem.dual)[: max(count - probes, 0)]
            rows[: len(known)] = known
        return rows

    # State

    def get_state(self) -> State:
        """Return all arrays that a copy with the same parameters needs to continue exactly alike."""
        matrix = np.zeros((0, 0)) if self._matrix is None else self._matrix
        counts = np.array([self.seed, self.n_windows_, self.n_epochs_])
        return {"matrix": matrix, "counts": counts, "error": np.array(self.error_)}

    def set_state(self, state: Mapping[str, NDArray[Any]], /) -> None:
        """Continue from a state that `get_state` returned."""
        self._matrix = state["matrix"] if state["matrix"].size else None
        self.seed, self.n_windows_, self.n_epochs_ = map(int, state["counts"])
        self.error_ = float(state["error"])

    @staticmethod
    def schema() -> dict[str, Field]:
        """Declaration of the state; the matrix is empty before the first window."""
        return {
            "matrix": Field(("n_directions", "n_descended"), may_be_empty=True),
            "counts": Field((3,), "int64", 0, (2**32 - 1, 2**53, 2**53)),
            "error": Field((), low=0.0, high=np.inf),
        }


@dataclass(frozen=True)
class WhiteProblem:
    """Step 5 of one window in coordinates in which its V is the identity."""

    white: Array  # W (n_features, n_white) with W' V W = I: rows R stand for P = R W'
    dual: Array  # (n_features, n_white) with R = P @ dual
    deviations: Array  # standard deviation (n_features,) of each atom
    noise: Array  # curvature (n_white,) that regularisation adds to each coordinate
    differences: Array  # white second differences (n, n_white)
    n_differences: int  # number of interior second differences, over which curvature is a mean
    covariance: Array  # quadratic form (n_white, n_white) of a row's curvature
    rank: int

    @classmethod
    def of(cls, moments: WindowMoments, *, centred: bool, half_stencils: bool, rank_tol: float) -> WhiteProblem:
        """The problem of a window."""
        V = moments.covariance(centred=centred)
        whitening = whiten(V, rank_tol=rank_tol)
        # Nothing moves along a direction that is only noise, so it is left out.
        shown = whitening.noise_share < ALL_NOISE
        white, noise = whitening.matrix[:, shown], NOISE_ROUGHNESS * whitening.noise_share[shown]
        codes = moments.codes
        bends = second_difference(codes[:-2], codes[1:-1], codes[2:])[moments.window.bends_kept()]
        if half_stencils:
            bends = np.vstack([bends, half_stencil(codes[0], codes[1]), half_stencil(codes[-1], codes[-2])])
        differences = csr_array(bends) @ white
        n = len(codes) - 2
        covariance = differences.T @ differences / n + np.diag(noise)
        deviations = np.sqrt(np.maximum(np.diagonal(V), 0.0))
        dual = whitening.dual[:, shown]
        return cls(white, dual, deviations, noise, differences, n, covariance, whitening.rank)

    @property
    def n_white(self) -> int:
        """Number of white coordinates."""
        return len(self.noise)

    def curvatures(self, rows: Array) -> Array:
        """Mean square (n,) of each row's second differences."""
        curvatures: Array = np.sum((rows @ self.covariance) * rows, axis=1)
        return curvatures

    def gradient(self, rows: Array, values: Array) -> Array:
        """Residuals (n, n_white) of orthonormal rows with these Ritz values: half of the constrained gradient."""
        residuals: Array = rows @ self.covariance - values[:, None] * rows
        return residuals

    def sweep(self, rows: Array, span: float, batch_size: int, rng: np.random.Generator) -> Array:
        """Rows after implicit steps over all batches, in random order, that add up to a descent over a time `span`.

        No step is projected onto the constraint: all are linear, so projecting once at the end gives the same.
        """
        n = len(self.differences)
        if batch_size >= n:
            step = np.eye(self.n_white) + span * self.covariance
            whole: Array = scipy.linalg.solve(step, rows.T, assume_a="pos").T
            return whole
        order = rng.permutation(n)
        for start in range(0, n, batch_size):
            batch = self.differences[order[start : start + batch_size]]
            inner = batch @ batch.T
            inner[np.diag_indices_from(inner)] += n / span
            rows = rows - scipy.linalg.solve(inner, batch @ rows.T, assume_a="pos").T @ batch
            rows = rows / (1.0 + self.noise * (span * len(batch) / n))
        return rows

    def shrink(self, rows: Array, threshold: float) -> Array:
        """Rows whose weights, in standard deviations of their atoms, are closer to zero by `threshold`."""
        matrix = rows @ self.white.T
        with np.errstate(divide="ignore"):
            penalty = np.where(self.deviations > 0, threshold / self.deviations, 0.0)
        shrunk: Array = (np.sign(matrix) * np.maximum(np.abs(matrix) - penalty, 0.0)) @ self.dual
        return shrunk


def rayleigh_ritz(problem: WhiteProblem, basis: Array, count: int) -> tuple[Array, Array]:
    """The `count` smallest curvatures in the span of a basis (n, n_white), and their rows (count, n_white)."""
    lengths = np.linalg.norm(basis, axis=1, keepdims=True)
    span = np.linalg.qr((basis / np.where(lengths > 0, lengths, 1.0)).T)[0].T
    inner = span @ problem.covariance @ span.T
    values, turn = scipy.linalg.eigh((inner + inner.T) / 2, subset_by_index=(0, count - 1))
    return values, turn.T @ span


def relative_excess(values: Array, residuals: Array, wanted: int) -> float:
    """Estimated excess of the first `wanted` Ritz values over the smallest eigenvalues, relative to their sum.

    An eigenvalue lies within the norm r of the residual of its Ritz value, and within ``r^2 / gap`` if the rest of the
    spectrum is at a distance of `gap` (Kato-Temple). Residuals are orthogonal to the guards, so that is the distance to
    the guards.
    """
    squares = np.sum(residuals[:wanted] ** 2, axis=1)
    guards = len(values) - wanted
    beyond = values[wanted + max((guards - _PROBES) // 2, 0)] if guards else values[-1]
    gaps = np.maximum(beyond - values[:wanted], np.finfo(float).tiny)
    size = float(np.sum(values[:wanted]))
    excess = float(np.sum(np.minimum(np.sqrt(squares), squares / gaps)))
    return excess / size if size > 0 else 0.0


def polar(rows: Array) -> Array:
    """The orthonormal rows closest to the given ones (n, n_white)."""
    left, _, right = np.linalg.svd(rows, full_matrices=False)
    closest: Array = left @ right
    return closest
