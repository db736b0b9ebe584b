"""Step 5 by mini-batch descent, the local alternative to the closed form that the paper mentions.

V is the covariance of the codes, and P the embedding matrix. In coordinates in which V is the identity, the constraint
``P V P' = I`` means that the rows R of P are orthonormal. Step 5 minimises their curvature ``sum_t |R b_t|^2``, where
b_t are the whitened second differences. On real films, the covariance of the b_t has a condition number of 1e5 or more.
Plain gradient steps that are small enough to be stable then hardly move in the flat directions. Three measures help:

- Mini-batch steps are implicit (stochastic proximal point): ``R <- R (I + t B'B)^-1`` for a batch B, by Woodbury's
  formula. They are stable for any step size t, so t follows the curvature that P has reached.
- After each pass, a Rayleigh-Ritz step (as in LOBPCG) finds the best rows in the span of the rows before the pass, the
  rows after it, the previous change and the gradient. It acts as a line search with momentum.
- Extra rows, called guards, are computed beside the wanted rows and separate them from the rest of the spectrum. A few
  random rows find directions that did not occur in the previous window.

Converged descent agrees with the closed form up to the tolerance, because there is only one minimum. Two other readings
of "stochastic gradient descent" can be more local. One stops early (``tol=None``). The other penalises the weights of P
(``sparsity``), as the sparse manifold transform does (Chen, Paiton and Olshausen, 2018). Both of these omit
Rayleigh-Ritz steps and guards, which mix the rows. They keep each row as close to its last value as the constraint
allows (polar retraction).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.linalg
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from psmt.embedding.closed_form import ALL_NOISE, Embedding
from psmt.embedding.moments import WindowMoments
from psmt.engines.window import half_stencil, second_difference
from psmt.model import PSMT
from psmt.numerics.rank import NOISE_ROUGHNESS, RANK_TOL, fix_signs, whiten
from psmt.types import Array

MAX_EPOCHS, BATCH_SIZE, RATE, TOL = 200, 32, 10.0, 1e-2  # defaults of the stochastic solver

_GUARDS, _FEWEST_GUARDS = 0.25, 24  # guard rows as a fraction of the wanted ones, and their smallest number
_PROBES = 4  # guards that start at random in every window
_PASSES = 4  # the batch size doubles after this many plain passes, so that random batches do not keep P moving
_LONGEST_STEP = 1e12  # longer steps damp no more, and their equations are singular in float64
_STRAIGHT = 1e-9  # the step size does not grow below this curvature (white codes have at most 4)


@dataclass(eq=False)
class StochasticEmbedding:
    """The embedding matrix P of a window, computed by mini-batch steps that start from P of the previous window.

    Parameters
    ----------
    n_components : int or None
        Number of rows of P, f in the paper. With None all directions are kept. Every P with ``P V P' = I`` is then
        optimal, and one pass is enough.
    centred, half_stencils, rank_tol :
        As in `TemporalEmbedding`.
    max_epochs, batch_size : int
        Largest number of passes over the codes of a window, and number of second differences in a batch.
    rate : float
        One pass damps directions with the largest wanted roughness by ``exp(-rate)``. Any rate is stable.
    sparsity : float
        Threshold at which each pass soft-thresholds the weights of P, in standard deviations of their atoms, so that
        rows use fewer atoms. This is the sparsity penalty of the sparse manifold transform.
    tol : float or None
        The descent of a window stops at this relative excess of the roughness over the minimum, as estimated from the
        gradient. With `sparsity`, it stops when a pass with the whole window as one batch moves the rows of P by at
        most this distance, measured in coordinates in which V is the identity. If `max_epochs` is reached first, there
        is a warning. With None the descent always takes `max_epochs` plain passes.
    seed : int

    Attributes
    ----------
    error_ : float
        The error that is compared with `tol`.
    n_epochs_ : int
        Number of passes over the last window.
    n_windows_ : int
        Number of windows so far.

    Examples
    --------
    >>> import numpy as np
    >>> from psmt.embedding import embed_window
    >>> from psmt.embedding.moments import WindowMoments
    >>> from studies.locality.stochastic import StochasticEmbedding
    >>> codes = np.abs(np.random.default_rng(0).standard_normal((200, 40)).cumsum(axis=0))
    >>> moments = WindowMoments.of(codes)
    >>> least = embed_window(moments, 4).eigenvalues.sum()
    >>> found = StochasticEmbedding(4, tol=1e-4).update(moments)
    >>> bool(found.eigenvalues.sum() < 1.0001 * least)
    True
    """

    is_following = True
    """Every slide must be passed to `update`, because each window starts from the previous one."""

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
        """Return the embedding of the present window."""
        problem = WhiteProblem.of(
            moments, centred=self.centred, half_stencils=self.half_stencils, rank_tol=self.rank_tol
        )
        # With a very large rank_tol everything counts as noise, and no direction is left.
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
                f"the descent {what} {self.error_:.2g} (relative) after max_epochs={self.max_epochs}, above "
                f"tol={self.tol:g}; use more max_epochs, a larger tol, or tol=None to stop early on purpose",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._matrix = rows @ problem.white.T
        eigenvalues = np.maximum(curvatures[:wanted], 0.0) * problem.n_differences
        return Embedding(fix_signs(self._matrix[:wanted]), eigenvalues)

    def _converge(
        self, problem: WhiteProblem, wanted: int, tol: float, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Descend to the minimum. Return the curvatures (n,) and the rows (n, n_white) of n directions.

        The first `wanted` directions are the result. The others are guards: extra directions that make the descent
        faster.
        """
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
        """Take plain passes, which do not mix rows. Return ascending curvatures (wanted,) and rows (.., n_white)."""
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
        """Return rows (count, n_white) to start from: the previous window's rows and at least `probes` random ones."""
        rows = rng.standard_normal((count, problem.n_white))
        if self._matrix is not None:
            known = (self._matrix @ problem.dual)[: max(count - probes, 0)]
            rows[: len(known)] = known
        return rows


@dataclass(frozen=True)
class WhiteProblem:
    """Step 5 for one window, in coordinates in which the covariance V is the identity (white coordinates)."""

    white: Array  # W (n_features, n_white) with W' V W = I; P = R W' for rows R
    dual: Array  # (n_features, n_white) with R = P @ dual
    deviations: Array  # standard deviation (n_features,) of each atom
    noise: Array  # curvature (n_white,) that regularisation adds to each coordinate
    differences: Array  # white second differences (n, n_white)
    n_differences: int  # number of interior second differences, by which curvatures are divided
    covariance: Array  # quadratic form (n_white, n_white) of a row's curvature
    rank: int

    @classmethod
    def of(cls, moments: WindowMoments, *, centred: bool, half_stencils: bool, rank_tol: float) -> WhiteProblem:
        """Return the problem of a window."""
        V = moments.covariance(centred=centred)
        whitening = whiten(V, rank_tol=rank_tol)
        # Directions that are only noise carry no motion, so they are left out.
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
        """Return the number of white coordinates."""
        return len(self.noise)

    def curvatures(self, rows: Array) -> Array:
        """Return the mean square (n,) of each row's second differences."""
        curvatures: Array = np.sum((rows @ self.covariance) * rows, axis=1)
        return curvatures

    def gradient(self, rows: Array, values: Array) -> Array:
        """Return half of the constrained gradient, the residuals (n, n_white) of orthonormal rows with Ritz values."""
        residuals: Array = rows @ self.covariance - values[:, None] * rows
        return residuals

    def sweep(self, rows: Array, span: float, batch_size: int, rng: np.random.Generator) -> Array:
        """Return the rows after implicit steps over all batches in random order, with a total step size of `span`.

        The steps are linear, so the rows need to be projected onto the constraint only once, after the sweep.
        """
        n, span = len(self.differences), min(span, _LONGEST_STEP)
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
        """Soft-threshold the weights of the rows at `threshold`, in units of the atoms' standard deviations."""
        matrix = rows @ self.white.T
        penalty = np.divide(threshold, self.deviations, out=np.zeros_like(self.deviations), where=self.deviations > 0)
        shrunk: Array = (np.sign(matrix) * np.maximum(np.abs(matrix) - penalty, 0.0)) @ self.dual
        return shrunk


def rayleigh_ritz(problem: WhiteProblem, basis: Array, count: int) -> tuple[Array, Array]:
    """Return the `count` smallest curvatures in the span of a basis (n, n_white), and their rows (count, n_white)."""
    lengths = np.linalg.norm(basis, axis=1, keepdims=True)
    span = np.linalg.qr((basis / np.where(lengths > 0, lengths, 1.0)).T)[0].T
    inner = span @ problem.covariance @ span.T
    values, turn = scipy.linalg.eigh((inner + inner.T) / 2, subset_by_index=(0, count - 1))
    return values, turn.T @ span


def relative_excess(values: Array, residuals: Array, wanted: int) -> float:
    """Estimate the excess of the first `wanted` Ritz values over the smallest eigenvalues, relative to their sum.

    An eigenvalue lies within the residual's norm r of its Ritz value. It also lies within ``r^2 / gap`` if the rest of
    the spectrum is at a distance of at least `gap` (Kato-Temple). Residuals are orthogonal to the guards, so `gap` is
    measured to an eigenvalue beyond them.
    """
    squares = np.sum(residuals[:wanted] ** 2, axis=1)
    guards = len(values) - wanted
    beyond = values[wanted + max((guards - _PROBES) // 2, 0)] if guards else values[-1]
    gaps = np.maximum(beyond - values[:wanted], np.finfo(float).tiny)
    size = float(np.sum(values[:wanted]))
    excess = float(np.sum(np.minimum(np.sqrt(squares), squares / gaps)))
    return excess / size if size > 0 else 0.0


def polar(rows: Array) -> Array:
    """Return the orthonormal rows closest to the given rows (n, n_white)."""
    left, _, right = np.linalg.svd(rows, full_matrices=False)
    closest: Array = left @ right
    return closest


class StochasticPSMT(PSMT):
    """`PSMT` whose step 5 is solved by mini-batch descent. Parameters that are 'auto' are chosen by the closed form."""

    descent: Mapping[str, Any] = MappingProxyType({})
    """Parameters of `StochasticEmbedding`, to be set before `fit`."""

    def _start_following(self) -> StochasticEmbedding:  # type: ignore[override]
        shared = {name: getattr(self, name) for name in ("centred", "rank_tol", "half_stencils")}
        return StochasticEmbedding(self.n_components_, **shared, **self.descent)
