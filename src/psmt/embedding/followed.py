"""Update the embedding of a sliding window after each slide, instead of solving it again.

V is the covariance of the window's codes, and S the second moment of their second differences. The embedding consists
of the eigenvectors x of ``S x = r V x`` with the smallest eigenvalues r. A slide by one code adds a few outer products
of vectors b to V and S. Let V and S be the matrices before the slide. An eigenvector x after the slide satisfies::

    (S - r V) x  in  span(b),    that is    x  in  (S - r V)^-1 span(b).

A Rayleigh-Ritz step finds the best approximations of these x in the span of two sets of directions:

- Tracked: the wanted directions from before the slide, and some with the next larger eigenvalues. The latter are called
  guards, because they separate the wanted directions from the rest.
- Proposed: ``(S - shift V)^-1 b`` for a few fixed shifts, as in rational Krylov methods. A few shifts suffice, because
  outside the span of the tracked directions, ``(S - r V)^-1`` has no pole near the wanted r.

The result is accurate to many digits, however far a direction has turned. The inverses ``(S - shift V)^-1`` are called
operators, and are updated by Woodbury's formula. The shifts are complex: an eigenvalue that passed a real shift would
make ``S - shift V`` almost singular. Errors of the operators affect only which directions are proposed.

Each step estimates its error from the contributions of the last two operators to the wanted directions. The estimates
are added up. When their sum exceeds the tolerance, or digits were lost, the error is measured from residuals. If this
error is too large, further steps propose directions made from the residuals. If these steps do not help, the embedding
is solved in closed form, the operators are computed again, and tracking restarts.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

import numpy as np

from psmt.embedding.closed_form import Embedding, embed_window
from psmt.embedding.moments import WindowMoments
from psmt.embedding.pencil import (
    Known,
    Pencil,
    changed,
    estimate_error,
    mixed_errors,
    products_on,
    propose,
    reduce,
    turn,
    window_noise,
)
from psmt.engines.contract import Engine, LowRankChange
from psmt.engines.window import Sums
from psmt.numerics.arrays import array_namespace, contiguous, eigh
from psmt.numerics.rank import RANK_TOL, fix_signs
from psmt.types import Array, Mask

EMBEDDING_TOL = 3e-7
"""Default tolerance of the tracked subspace. Predictions then differ from those by the closed form by at most 1e-5 of
the patch's contrast."""

# When tracking is faster than solving, and its tolerance
_APART = 5.0  # guards are added until their eigenvalues reach this multiple of the largest wanted one,
_FEWEST_GUARDS, _MOST_GUARDS = 24, 192  # between these numbers
_MOST = 0.6  # if there are more tracked directions than this fraction of the atoms in use, the closed form is as fast
_FEWEST = 160  # with fewer atoms in use than this plus the tracked directions, the closed form is as fast
_FEW_CODES, _TIGHTER = 2.0, 0.1  # with fewer codes per atom, predictions magnify errors: `tol` is scaled by this factor
_FEWEST_OF_FEW = 513  # with so few codes, the closed form is as fast up to 512 atoms in use
_STAYS = 0.8  # tracking goes on until the number of atoms in use falls below this fraction of what it needs to start

# Operators
NODES = (0.25 + 0.15j, 0.85 + 0.15j)
"""Shifts of the operators, as fractions of the smallest eigenvalue of the guards. A complex shift is as good as two
real ones, because its image has a real and an imaginary part. With one shift, the error per slide is 1e-4; with two, it
is 1e-7. A third shift costs more than guards with the same effect: 12 more guards reduce the error to a tenth."""
_MORE_NODES, _MOST_BESIDE_MORE = (0.08 + 0.08j, 0.3 + 0.1j, 0.6 + 0.12j, 0.95 + 0.12j), 48
"""Shifts and largest number of guards if the eigenproblem of the tracked directions costs more than operators do."""
_MANY = 128  # the values above are used on a GPU, and from this number of wanted directions on

# Steps
_EXACT = 32  # slides after which the projections of V and S are computed again
_CORRECTIONS, _FALL = 4, 3.0  # largest number of further steps; each must reduce the error by at least this factor
_MIXTURES = 24  # random combinations of residuals in a further step
_PROBES = 8  # random combinations for error estimates; with 2, one estimate in 100 is a tenth of the error


@dataclass(eq=False)
class FollowedEmbedding:
    """The embedding matrix P of a sliding window, updated after each slide.

    Parameters
    ----------
    n_components : int or None
        The number of directions, f in the paper. None means all directions. Nothing is tracked in four cases: f is
        None, f is not much below the number of atoms, the window has no more codes than atoms, or ``rank_tol=0``.
    centred, half_stencils, rank_tol :
        As in `TemporalEmbedding`.
    tol : float
        Largest allowed `error_`. If it is exceeded, the window is solved in closed form. If there are fewer than two
        codes per atom, only a tenth of `tol` is allowed, and nothing is tracked unless more than 512 atoms are in use.

    Attributes
    ----------
    error_ : float
        Estimated sine of the largest angle between the present subspace and the exact subspace.
    n_solved_ : int
        Number of times the closed form was solved.

    Examples
    --------
    >>> import numpy as np
    >>> from psmt.embedding.moments import WindowMoments
    >>> codes = np.abs(np.random.default_rng(0).standard_normal((620, 300)))
    >>> moments, followed = WindowMoments.of(codes[:600]), FollowedEmbedding(8)
    >>> for code in codes[600:]:
    ...     moments.slide(code)
    ...     embedding = followed.update(moments)
    >>> embedding.matrix.shape, followed.n_solved_, bool(followed.error_ < 1e-5)
    ((8, 300), 1, True)
    """

    n_components: int | None
    _: KW_ONLY
    centred: bool = True
    half_stencils: bool = False
    rank_tol: float = RANK_TOL
    tol: float = EMBEDDING_TOL

    def __post_init__(self) -> None:
        self.error_ = 0.0
        self.n_solved_ = 0
        self._track: Track | None = None
        self._changes = -1
        self._engine: Engine | None = None

    def update(self, moments: WindowMoments) -> Embedding:
        """Return the embedding of the present window, tracked from the last window or solved in closed form."""
        change = moments.last_change(self._changes, centred=self.centred, half_stencils=self.half_stencils)
        stays = moments.changes == self._changes
        self._changes = moments.changes
        # A track that fails midway cannot be used again.
        track, self._track = self._track, None
        if not moments.engine.captures and self._n_followed(moments, _STAYS) == 0:
            track = None
        if track is None or not (stays or change is not None):
            return self._start(moments)
        if not stays and self.centred and not moments.engine.captures and moments.cancels():
            return self._start(moments)
        if change is not None and not stays:
            view = self._view(moments)
            if not track.update(view, change, self.tol * (_TIGHTER if _has_few_codes(moments) else 1.0)):
                try:
                    restarted = track.restart(self._solve(moments, track.followed), view)
                except moments.engine.linalg_errors:
                    restarted = False
                if not restarted:
                    return self._start(moments)
        self._track, self.error_ = track, track.error
        return track.embedding

    @property
    def is_following(self) -> bool:
        """Return whether an embedding is being tracked. If True, every slide must be passed to `update`."""
        return self._track is not None

    def _start(self, moments: WindowMoments) -> Embedding:
        """Return the embedding in closed form. Start tracking it if that is faster than solving each window."""
        wanted, followed = self.n_components, self._n_followed(moments)
        found = self._solve(moments, followed or wanted)
        if wanted is not None and 0 < followed == len(found) and not (self.centred and moments.cancels()):
            found = _with_guards(found, wanted)
            with suppress(*moments.engine.linalg_errors):  # otherwise it is solved afresh at the next slide
                self._track = Track(found, wanted, self._view(moments), moments.engine)
                return self._track.embedding
        return Embedding(found.matrix[:wanted], found.eigenvalues[:wanted])

    def _n_followed(self, moments: WindowMoments, fraction: float = 1.0) -> int:
        """Return the largest number of directions to track, including guards. 0 means that each window is solved.

        The time of the closed form grows with the cube of the number of atoms in use. The time of tracking depends
        mostly on the number of directions. `fraction` scales the number of atoms above which tracking is used.
        """
        wanted, n_used = self.n_components, int(moments.window.n_used)
        if wanted is None or not self.rank_tol or not self.tol or len(moments) <= moments.n_features:
            return 0  # V of fewer codes than atoms is singular, and step 7 magnifies errors without bound
        followed = wanted + _FEWEST_GUARDS
        fewest = _FEWEST_OF_FEW if _has_few_codes(moments) else _FEWEST + followed
        if n_used < fraction * fewest or fraction * followed > _MOST * n_used:
            return 0
        most = _MOST_BESIDE_MORE if _has_more_nodes(moments.engine, wanted) else _MOST_GUARDS
        return max(followed, min(wanted + most, int(_MOST * n_used)))

    def _solve(self, moments: WindowMoments, n_components: int | None) -> Embedding:
        self.n_solved_ += 1
        self.error_ = 0.0
        how = {"centred": self.centred, "half_stencils": self.half_stencils}
        return embed_window(moments, n_components, rank_tol=self.rank_tol, **how)

    def _view(self, moments: WindowMoments) -> View:
        if self._engine is not moments.engine:
            self._engine = moments.engine
            self._noise = moments.engine.capture(window_noise)
        sums = moments.window.sums(half_stencils=self.half_stencils)
        squares = array_namespace(sums.products).linalg.diagonal(sums.products)
        constant, noise = self._noise(squares, sums.total, n=sums.n, centred=self.centred, rank_tol=self.rank_tol)
        return View(sums, constant, noise, self.centred)


def _has_few_codes(moments: WindowMoments) -> bool:
    return bool(len(moments) < _FEW_CODES * moments.n_features)


def _has_more_nodes(engine: Engine, wanted: int) -> bool:
    """Return whether tracking is faster with more shifts and fewer guards."""
    return engine.captures or wanted >= _MANY


def _with_guards(found: Embedding, wanted: int) -> Embedding:
    """Return the wanted directions of an embedding, and as many further directions (guards) as tracking needs."""
    xp = array_namespace(found.eigenvalues)
    near = int(xp.sum(xp.astype(found.eigenvalues < _APART * found.eigenvalues[wanted - 1], xp.int64)))
    n = max(near, wanted + _FEWEST_GUARDS)
    return Embedding(found.matrix[:n], found.eigenvalues[:n])


class View(NamedTuple):
    """The sums and the noise of a window, from which `Track` computes the matrices V and S."""

    sums: Sums
    constant: Mask  # atoms (n_features,) that do not vary
    noise: Array  # variance () of the noise
    centred: bool


class Track:
    """The wanted directions and the guards. They come from the closed form and are updated after each slide."""

    def __init__(self, found: Embedding, wanted: int, view: View, engine: Engine) -> None:
        self.wanted = wanted
        self._engine = engine
        self._random = np.random.default_rng(0)
        self._probes: dict[tuple[int, ...], Array] = {}
        self._begin(found, view)
        pencil, self._shifts = self._pencil(view), self._good_shifts()
        self._inverses = tuple(engine.inverse(pencil.shifted(shift)) for shift in self._shifts)
        # Captured functions refer to the operators, so they are kept here and released together with them.
        self._propose, self._changed = engine.capture(propose), engine.capture(changed)
        self._products_on, self._reduce = engine.capture(products_on), engine.capture(reduce)
        self._turn, self._errors = engine.capture(turn), engine.capture(mixed_errors)
        self._estimate = engine.capture(estimate_error)

    def _begin(self, found: Embedding, view: View) -> None:
        self.noise = float(view.noise)
        self._slides = 0  # since the closed form was solved
        self.directions = contiguous(found.matrix.T)  # (n_features, n)
        self.eigenvalues = found.eigenvalues
        self.error = 0.0
        self._doubtful = False  # whether the products with V and S that the last step implies have lost digits
        self._matrix = fix_signs(found.matrix[: self.wanted])

    def _pencil(self, view: View) -> Pencil:
        return Pencil(*view, self.noise)

    @property
    def followed(self) -> int:
        """Return the number of tracked directions, including guards."""
        return len(self.eigenvalues)

    @property
    def embedding(self) -> Embedding:
        """Return the embedding made of the wanted directions."""
        xp = array_namespace(self.directions)
        return Embedding(self._matrix, xp.clip(self.eigenvalues[: self.wanted], min=0.0))

    def update(self, view: View, change: LowRankChange, tol: float) -> bool:
        """Update the directions after a slide of the window. Return whether the error is at most `tol`."""
        with self._engine.small_work():
            try:
                self._slides += 1
                pencil = self._pencil(view)
                present = self.directions, self.eigenvalues
                proposals = self._propose(change, pencil, *present, *self._inverses, shifts=self._shifts)
                try:
                    doubtful = self._doubtful or self._slides % _EXACT == 0
                    products = None if doubtful else self._changed(self.directions, change)
                    self.error += self._rayleigh_ritz(pencil, proposals, products)
                except self._engine.linalg_errors:  # digits were lost
                    self._rayleigh_ritz(pencil, proposals)
                    self.error = np.inf
                self._doubtful = self.error == np.inf
                if self.error > tol:
                    self.error = self._measured_error(pencil)
                for _ in range(_CORRECTIONS):
                    if self.error <= tol:
                        break
                    before = self.error
                    self._correct(pencil)
                    self.error = self._measured_error(pencil)
                    if self.error > before / _FALL:
                        break
            except self._engine.linalg_errors:
                return False
        return self.error <= tol

    def restart(self, found: Embedding, view: View) -> bool:
        """Restart from the closed form `found`, with new operators. Return False if it has too few directions."""
        if len(found) < self.followed:
            return False
        self._begin(found, view)
        with self._engine.small_work():
            self._refactorise(self._pencil(view))
        return True

    def _good_shifts(self) -> tuple[complex, ...]:
        """Return shifts for the operators ``(S - shift V)^-1`` that suit the present eigenvalues."""
        last = float(self.eigenvalues[self.wanted])
        nodes = _MORE_NODES if _has_more_nodes(self._engine, self.wanted) else NODES
        return tuple(last * node for node in nodes)

    def _probe_vectors(self, *shape: int) -> Array:
        """Return normal random numbers of the given shape. On a GPU they are drawn once, because transfers are slow."""
        if not self._engine.captures or shape not in self._probes:
            self._probes[shape] = self._engine.array(self._random.standard_normal(shape))
        return self._probes[shape]

    def _correct(self, pencil: Pencil) -> None:
        """Correct the directions by a Rayleigh-Ritz step in which their estimated errors are proposed directions."""
        mixing = self._probe_vectors(self.wanted, min(self.wanted, _MIXTURES))
        (errors,) = self._errors(pencil, self.directions, self.eigenvalues, mixing, self._inverses[-1])
        self._rayleigh_ritz(pencil, (errors, *pencil.times(errors)))

    def _refactorise(self, pencil: Pencil) -> None:
        """Compute the operators ``(S - shift V)^-1`` again, at new shifts."""
        self._shifts = self._good_shifts()
        for inverse, shift in zip(self._inverses, self._shifts, strict=True):
            inverse.refactorise(pencil.shifted(shift))

    def _rayleigh_ritz(
        self, pencil: Pencil, proposals: tuple[Array, ...], products: tuple[Array, Array] | None = None
    ) -> float:
        """Replace the tracked directions by the best in the span of tracked and proposed directions. Return the error.

        `products` are the last two fields of `Known`. If None, they are computed here. The returned error is an
        estimate, which is valid only if `propose` made the proposals.
        """
        if products is None:
            products = self._products_on(pencil, self.directions, self.eigenvalues)
        known = Known(self.directions, self.eigenvalues, *products)
        try:
            inner, white, kept, proposed = self._reduce(pencil, known, *proposals)
            values, vectors = eigh(inner)
        except self._engine.linalg_errors:
            inner, white, kept, proposed = reduce(pencil, known, *proposals, dependent=True)
            values, vectors = eigh(inner)
        block = proposals[0].shape[1] // len(self._inverses)
        probe = self._probe_vectors(len(self.directions), 2)
        self.eigenvalues, self.directions, self._matrix, left = self._turn(
            values, vectors, white, kept, proposed, pencil, probe, wanted=self.wanted, block=block
        )
        return float(left)

    def _measured_error(self, pencil: Pencil) -> float:
        mixing = self._probe_vectors(self.wanted, _PROBES)
        (error,) = self._estimate(pencil, self.directions, self.eigenvalues, mixing, self._inverses[-1])
        return float(error)
