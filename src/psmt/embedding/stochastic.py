"""The mini-batch alternative to the closed form, which the paper names for its locality.

In coordinates in which V is the identity, ``P V P' = I`` means orthonormal rows, and step 5 asks for rows with the
least curvature ``sum_t |R b_t|^2`` of the white second differences b. Their covariance has a condition of 1e5 and more
on real films, which is why plain gradient steps of a stable size hardly move where it matters. Three things help:

- A mini-batch step is taken implicitly (stochastic proximal point): ``R <- R (I + t B'B)^-1`` of its batch B, by
  Woodbury's formula. It is stable at any size, so the size follows the curvature that P has reached.
- After each pass, the best directions in the span of the rows, what the pass made of them, the pass before, and the
  gradient are taken (Rayleigh-Ritz, as in LOBPCG): a line search over all of these at once, and momentum.
- Some guard rows beside the wanted ones put a gap between what is kept and what is left, and a few random ones find
  what the rows of the window before could not have known of.

So a descent that has converged *is* the closed form, to the tolerance that is asked for: whatever the order of the
batches, there is one minimum. What can be more local than it are the other two readings of "stochastic gradient
descent": one that is stopped early (``tol=None``), and the one of the sparse manifold transform (Chen, Paiton and
Olshausen, 2018), which puts a price on the weights of P (``sparsity``). Both leave out Rayleigh-Ritz and the guards,
which mix the rows, and keep each row as close to what it was as the constraint allows (polar retraction).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
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
from psmt.persistence.schema import Field
from psmt.persistence.state import State
from psmt.types import Array

MAX_EPOCHS, BATCH_SIZE, RATE, TOL = 200, 32, 10.0, 1e-2
"""Defaults of all that have the stochastic solver."""

_GUARDS = 0.25
"""Rows beside the wanted ones, as a fraction of these; at least `_FEWEST_GUARDS`."""

_FEWEST_GUARDS = 24

_PROBES = 4
"""Guards that begin at random in every window."""

_PASSES = 4
"""Passes after which plain batches double where they are to converge: what is left of chance would keep P moving."""

_STRAIGHT = 1e-9
"""Curvature, at most 4 for white codes, below which a row counts as straight: steps grow no further."""


def check_solver(solver: str, *, device: str, sparsity: float = 0.0) -> None:
    """Raise where the solver cannot do what is asked for."""
    if solver == "sgd" and device != "cpu":
        raise ValueError(f"solver='sgd' does not run on device={device!r}; use device='cpu' or solver='closed'")
    if solver == "closed" and sparsity > 0:
        raise ValueError(
            f"sparsity={sparsity:g} has no closed form; use solver='sgd', or sparsity=0 with solver='closed'"
        )


def draw_seed(random_state: int | np.random.RandomState | None) -> int:
    """Seed of all batches, drawn once: each window's order then needs no state of a generator."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


class StochasticEmbedding:
    """P of a window by mini-batch steps, from where the window before has left it.

    Parameters
    ----------
    n_components : int or None
        f. With None, all directions, every P that is allowed is as good as any other, and is found at once.
    centred, half_stencils, rank_tol :
        As in `TemporalEmbedding`.
    max_epochs : int
        Passes over a window at the most.
    batch_size : int
        Second differences in a batch.
    rate : float
        Size of a step: one pass damps directions as curved as the roughest wanted row by ``exp(-rate)``.
    tol : float or None
        Excess of the roughness over the least possible, relative to it and estimated from the gradient, at which a
        window is done; with `sparsity`, how far (in the metric of V) a pass over the whole window, which leaves nothing
        to chance, still moves a row. A window that is not done after `max_epochs` is warned of. None is a descent that
        is meant to stop early: it takes `max_epochs` plain passes in every window.
    sparsity : float
        What each pass takes off every weight of P, in standard deviations of its atom: the price of weights.
    seed : int

    Attributes
    ----------
    error_ : float
        What is held against `tol`.
    n_epochs_ : int
        Passes over the last window.
    n_windows_ : int
        Windows so far.

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
    """No slide must be missed: each window begins where the one before it ended."""

    def __init__(
        self,
        n_components: int | None,
        *,
        centred: bool = True,
        half_stencils: bool = False,
        rank_tol: float = RANK_TOL,
        max_epochs: int = MAX_EPOCHS,
        batch_size: int = BATCH_SIZE,
        rate: float = RATE,
        tol: float | None = TOL,
        sparsity: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.n_components = n_components
        self.centred = centred
        self.half_stencils = half_stencils
        self.rank_tol = rank_tol
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.rate = rate
        self.tol = tol
        self.sparsity = sparsity
        self.seed = seed
        self.error_ = 0.0
        self.n_epochs_ = 0
        self.n_windows_ = 0
        self._matrix: Array | None = None

    def update(self, moments: WindowMoments) -> Embedding:
        """The embedding of the window as it is now."""
        problem = WhiteProblem.of(
            moments, centred=self.centred, half_stencils=self.half_stencils, rank_tol=self.rank_tol
        )
        # Where the threshold of the rank is so high that all is noise, nothing is shown.
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
            self._warn()
        self._matrix = rows @ problem.white.T
        eigenvalues = np.maximum(curvatures[:wanted], 0.0) * problem.n_differences
        return Embedding(fix_signs(self._matrix[:wanted]), eigenvalues)

    # To the minimum

    def _converge(
        self, problem: WhiteProblem, wanted: int, tol: float, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Curvatures (n,) and rows (n, n_white) of the wanted directions, which are the first, and their guards."""
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

    # Plain passes, which leave each row where it is

    def _descend(self, problem: WhiteProblem, wanted: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Curvatures (wanted,), ascending, and rows (wanted, n_white), which are not turned inside their span."""
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
        """Rows (count, n_white) to begin with: those of the window before, and random ones for what it had not."""
        rows = rng.standard_normal((count, problem.n_white))
        if self._matrix is not None:
            known = (self._matrix @ problem.dual)[: max(count - probes, 0)]
            rows[: len(known)] = known
        return rows

    def _warn(self) -> None:
        what = "moves P by" if self.sparsity > 0 else "is rougher than the closed form by an estimated"
        warnings.warn(
            f"solver='sgd' {what} {self.error_:.2g} (relative) after max_epochs={self.max_epochs}, above "
            f"tol={self.tol:g}; use more max_epochs, a larger tol, tol=None to stop early on purpose, or "
            "solver='closed'",
            ConvergenceWarning,
            stacklevel=3,
        )

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

    white: Array
    """W (n_features, n_white) with ``W' V W = I``: rows R stand for ``P = R W'``."""
    dual: Array
    """(n_features, n_white) with ``R = P @ dual``."""
    deviations: Array
    """Standard deviation (n_features,) of each atom."""
    noise: Array
    """Curvature (n_white,) that regularisation adds to each coordinate."""
    differences: Array
    """White second differences (n, n_white)."""
    n_differences: int
    """Interior second differences, over which curvature is a mean."""
    covariance: Array
    """(n_white, n_white): what a row's curvature is a quadratic form of."""
    rank: int

    @classmethod
    def of(cls, moments: WindowMoments, *, centred: bool, half_stencils: bool, rank_tol: float) -> WhiteProblem:
        """The problem of a window."""
        V = moments.covariance(centred=centred)
        whitening = whiten(V, rank_tol=rank_tol)
        # Nothing moves along a direction of the noise alone, so that it takes no part in any other.
        shown = whitening.noise_share < ALL_NOISE
        white, noise = whitening.matrix[:, shown], NOISE_ROUGHNESS * whitening.noise_share[shown]
        codes = moments.codes
        bends = second_difference(codes[:-2], codes[1:-1], codes[2:])[moments.bends_kept()]
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
        """Coordinates."""
        return len(self.noise)

    def curvatures(self, rows: Array) -> Array:
        """Mean square (n,) of each row's second differences."""
        curvatures: Array = np.sum((rows @ self.covariance) * rows, axis=1)
        return curvatures

    def gradient(self, rows: Array, values: Array) -> Array:
        """Residuals (n, n_white) of orthonormal rows with these Ritz values: half the gradient on the constraint."""
        residuals: Array = rows @ self.covariance - values[:, None] * rows
        return residuals

    def sweep(self, rows: Array, span: float, batch_size: int, rng: np.random.Generator) -> Array:
        """Rows after implicit steps over all batches, in random order, that add up to a descent over a time `span`.

        No step is put back onto the constraint: all of them are linear, so that once at the end does the same.
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
        """Rows whose weights, in standard deviations of their atoms, are nearer to zero by `threshold`."""
        matrix = rows @ self.white.T
        with np.errstate(divide="ignore"):
            price = np.where(self.deviations > 0, threshold / self.deviations, 0.0)
        shrunk: Array = (np.sign(matrix) * np.maximum(np.abs(matrix) - price, 0.0)) @ self.dual
        return shrunk


def rayleigh_ritz(problem: WhiteProblem, basis: Array, count: int) -> tuple[Array, Array]:
    """The `count` least curvatures in the span of a basis (n, n_white), ascending, and their rows (count, n_white)."""
    lengths = np.linalg.norm(basis, axis=1, keepdims=True)
    span = np.linalg.qr((basis / np.where(lengths > 0, lengths, 1.0)).T)[0].T
    inner = span @ problem.covariance @ span.T
    values, turn = scipy.linalg.eigh((inner + inner.T) / 2, subset_by_index=(0, count - 1))
    return values, turn.T @ span


def relative_excess(values: Array, residuals: Array, wanted: int) -> float:
    """Estimated excess of the first `wanted` Ritz values over the least eigenvalues, relative to their sum.

    An eigenvalue lies within the residual's norm r of its Ritz value, and within ``r^2 / gap`` where the rest of the
    spectrum is that far away (Kato-Temple). Residuals are orthogonal to the guards, so the gap is that to the guards.
    """
    squares = np.sum(residuals[:wanted] ** 2, axis=1)
    guards = len(values) - wanted
    beyond = values[wanted + max((guards - _PROBES) // 2, 0)] if guards else values[-1]
    gaps = np.maximum(beyond - values[:wanted], np.finfo(float).tiny)
    size = float(np.sum(values[:wanted]))
    excess = float(np.sum(np.minimum(np.sqrt(squares), squares / gaps)))
    return excess / size if size > 0 else 0.0


def polar(rows: Array) -> Array:
    """The orthonormal rows that are closest to rows (n, n_white)."""
    left, _, right = np.linalg.svd(rows, full_matrices=False)
    closest: Array = left @ right
    return closest
