"""The embedding of a window that slides: followed from frame to frame instead of being solved afresh.

The directions of the embedding are generalised eigenvectors, ``S x = r V x``, those of smallest eigenvalue r. A slide
changes V and S by a few outer products of vectors b. So an eigenvector of the window after the slide, put into the
equation of the window before it, leaves nothing but b's::

    (S - r V) x  in  span(b),    that is    x  in  (S - r V)^-1 span(b)    with its own r.

What x has of the directions known before, the wanted ones and some guards beside them, is taken from these. The rest
has no pole near the wanted r, so a few fixed shifts tell it for all of them (shift-invert, as in a rational Krylov
method). A Rayleigh-Ritz step on the known directions and those handful of others then finds the embedding to many
digits, however far a single direction has turned. The operators at the shifts change by the same outer products
(Woodbury's formula), and are refactorised only when rounding has piled up in them. They only propose where to look: the
step itself works with V and S as they are, and the error that it leaves is measured. Where the error is too large, or
the window does what cannot be followed, the closed form is solved afresh.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from psmt.embedding.closed_form import Embedding, solve_whitened
from psmt.embedding.pencil import Pencil, diagonal, rank_limits
from psmt.engines.contract import Change, Engine, ShiftInvert
from psmt.moments import WindowMoments
from psmt.numerics.linalg import (
    add_to_diagonal,
    contiguous,
    eigh,
    eigh_generalised,
    inverse_cholesky_unchecked,
    positive_or_one,
    whitening_mixtures,
)
from psmt.numerics.namespace import array_namespace
from psmt.numerics.rank import NULL, RANK_TOL, Whitening, fix_signs, whiten
from psmt.types import Array, Mask

SHIFTS = 5
"""Operators that are kept. Fewer leave larger errors, more cost time and memory."""

_GUARDS = 0.25
"""Directions that are followed beside the wanted ones, as a fraction of these; at least `_FEWEST_GUARDS`."""

_FEWEST_GUARDS = 24

_FEWEST = 256
"""Atoms below which the closed form is solved every time: it takes no longer."""

_MOST = 0.85
"""Fraction of all directions beyond which following takes as long as the closed form."""

_RANK_PROBES = 16
"""Directions that are looked at to see that V is still as it was: determined or not."""

_SLIDES = 500
"""Slides after which the closed form is solved in any case, so that rounding does not pile up."""

_CORRECTIONS = 2
"""Further steps, from the residuals, before the closed form is solved."""

_PATIENCE = 50
"""Such steps in all, after which the closed form is solved."""

_INACCURATE = 1e-4
"""Relative residual of an operator that is too full of rounding to propose well: it is refactorised."""

_MIXTURES = 8
"""Probe vectors, mixtures of residuals, that a further step takes from each operator."""

_DEPENDENT = 1e-15
"""Mixtures of directions with less than this fraction of the largest variance among them are rounding."""

_RIDGE = 1e-10
"""Fraction of a proposed direction's variance, below which what it has of its own is rounding, in the masked step."""


class FollowedEmbedding:
    """P of a sliding window, renewed after each slide.

    Parameters
    ----------
    n_components : int or None
        f, the directions wanted. Where that is most of all there are (or None, all of them), there is little to gain:
        the closed form is solved every time.
    centred, half_stencils, rank_tol :
        As in `TemporalEmbedding`.
    tol : float
        The closed form is solved afresh where the subspace is further than this from the exact one, by the estimate
        that `error_` holds.

    Attributes
    ----------
    error_ : float
        Estimated sine of the largest angle between the present subspace and the exact one.
    n_solved_ : int
        How often the closed form was solved.

    Examples
    --------
    >>> import numpy as np
    >>> from psmt.moments import WindowMoments
    >>> codes = np.abs(np.random.default_rng(0).standard_normal((620, 300)))
    >>> moments, followed = WindowMoments.of(codes[:600]), FollowedEmbedding(8)
    >>> for code in codes[600:]:
    ...     moments.slide(code)
    ...     embedding = followed.update(moments)
    >>> embedding.matrix.shape, followed.n_solved_, bool(followed.error_ < 1e-5)
    ((8, 300), 1, True)
    """

    def __init__(
        self,
        n_components: int | None,
        *,
        centred: bool = True,
        half_stencils: bool = False,
        rank_tol: float = RANK_TOL,
        tol: float = 1e-5,
    ) -> None:
        self.n_components = n_components
        self.centred = centred
        self.half_stencils = half_stencils
        self.rank_tol = rank_tol
        self.tol = tol
        self.error_ = 0.0
        self.n_solved_ = 0
        self._track: Track | None = None
        self._changes = -1
        self._engine: Engine | None = None

    def update(self, moments: WindowMoments) -> Embedding:
        """The embedding of the window as it is now."""
        change = moments.last_change(self._changes, centred=self.centred, half_stencils=self.half_stencils)
        stays = moments.changes == self._changes
        self._changes = moments.changes
        # A track that fails on the way is of no use any more.
        track, self._track = self._track, None
        if track is not None:
            pencil = self._pencil(moments, track.noise_variance)
            if stays or (change is not None and track.update(pencil, change, self.tol)):
                self._track, self.error_ = track, track.error
                return track.embedding
        return self._solve(moments)

    @property
    def is_following(self) -> bool:
        """Whether there is something to follow: then no slide must be missed, and renewing takes little time."""
        return self._track is not None

    def _solve(self, moments: WindowMoments) -> Embedding:
        whitening = whiten(moments.covariance(centred=self.centred), rank_tol=self.rank_tol)
        second_differences = moments.second_differences(half_stencils=self.half_stencils)
        wanted = self.n_components
        followed = 0 if wanted is None else followed_directions(wanted, whitening, moments.n_features)
        found = solve_whitened(whitening, second_differences, followed or wanted, n_codes=len(moments))
        self.n_solved_ += 1
        self.error_ = 0.0
        if wanted is None or not followed:
            return found
        pencil = self._pencil(moments, whitening.noise_variance)
        self._track = Track(found, wanted, whitening, pencil, moments.engine)
        return self._track.embedding

    def _pencil(self, moments: WindowMoments, noise_variance: float) -> Pencil:
        if self._engine is not moments.engine:
            self._engine = moments.engine
            self._limits = moments.engine.capture(rank_limits)
        constant, threshold = self._limits(
            diagonal(moments.products), moments.total, n=len(moments), centred=self.centred, rank_tol=self.rank_tol
        )
        sums = moments.sums(half_stencils=self.half_stencils)
        return Pencil(sums, constant, threshold, self.centred, noise_variance)


def followed_directions(n_components: int, whitening: Whitening, n_features: int) -> int:
    """How many directions to follow, guards included; 0 where the closed form takes no longer."""
    followed = n_components + max(int(_GUARDS * n_components), _FEWEST_GUARDS)
    # Without noise, V has no inverse but where every atom moves.
    if whitening.noise_variance == 0.0 and whitening.rank < n_features:
        return 0
    return followed if n_features >= _FEWEST and followed <= _MOST * whitening.rank else 0


class Track:
    """The wanted directions and their guards, from slide to slide; begins with the closed form."""

    def __init__(self, found: Embedding, wanted: int, whitening: Whitening, pencil: Pencil, engine: Engine) -> None:
        self.directions = contiguous(found.matrix.T)
        """(n_features, n)"""
        self.eigenvalues = found.eigenvalues
        self.wanted = wanted
        self.rank = whitening.rank
        self.noise_variance = whitening.noise_variance
        self.error = 0.0
        self._slides = 0
        self._corrected = 0
        self._engine = engine
        self._matrix: Array | None = None
        xp = array_namespace(self.directions)
        (between,) = xp.nonzero(whitening.variances - whitening.noise_variance <= pencil.threshold)
        chosen = np.linspace(0, len(between) - 1, min(_RANK_PROBES, len(between))).astype(int)
        self._rank_probes = whitening.directions[:, between[chosen.tolist()]]
        shifts = self._good_shifts()
        self._inverses: ShiftInvert = engine.shift_invert(
            pencil.shifted(shifts), shifts, pencil.sums.total, centred=pencil.centred
        )
        self._random = np.random.default_rng(0)
        self._probes: dict[tuple[int, ...], Array] = {}
        # What was captured is bound to the operators, so that it ends with them.
        self._propose, self._estimate = engine.capture(propose), engine.capture(estimate_error)
        self._reduce, self._turn = engine.capture(reduce_masked), engine.capture(turn_masked)

    @property
    def embedding(self) -> Embedding:
        """The wanted directions."""
        xp = array_namespace(self.directions)
        if self._matrix is None:
            self._matrix = fix_signs(contiguous(self.directions[:, : self.wanted].T))
        eigenvalues = self.eigenvalues[: self.wanted]
        return Embedding(self._matrix, xp.clip(eigenvalues, min=0.0), self.rank)

    def update(self, pencil: Pencil, change: Change, tol: float) -> bool:
        """Follow a slide, to an error of at most `tol`; False where that cannot be done, and the track ends."""
        self._slides += 1
        if self._slides > _SLIDES or self._corrected >= _PATIENCE:
            return False
        lost = self._engine.linalg_errors
        with self._engine.small_work():
            if not self._is_as_it_was(pencil):
                return False
            try:
                along = self.directions.T @ change.vectors.T
                (proposed,) = self._propose(along, change, self.directions, self.eigenvalues, self._inverses)
                changed = along @ change.covariance @ along.T, along @ change.curvature @ along.T
                try:
                    self._rayleigh_ritz(pencil, proposed, Known(self.directions, self.eigenvalues, *changed))
                except lost:
                    self._rayleigh_ritz_afresh(pencil, proposed)
                self._measure_error(pencil)
                for _ in range(_CORRECTIONS):
                    if self.error <= tol or self.error == np.inf:
                        break
                    self._corrected += 1
                    self._rayleigh_ritz_afresh(pencil, self._corrections(pencil))
                    self._measure_error(pencil)
            except lost:
                return False
        return self.error <= tol

    def _is_as_it_was(self, pencil: Pencil) -> bool:
        """Whether V is still regularised, by the same noise, or still determined, as it was at the beginning."""
        if not self.noise_variance:
            return pencil.is_determined()
        # Where the host must not wait for the threshold, the error tells that it has become another.
        return self._engine.captures or self.noise_variance == float(pencil.threshold)

    def _good_shifts(self) -> Array:
        """Where shifts (SHIFTS,) should be now."""
        # Where polynomials are interpolated best; in the middle between two values, so that no shift is one of them.
        nodes = 0.5 * self.wanted * (1.0 - np.cos(np.pi * (np.arange(SHIFTS) + 0.5) / SHIFTS))
        before = nodes.astype(int).tolist()
        after = [node + 1 for node in before]
        shifts: Array = 0.5 * (self.eigenvalues[before] + self.eigenvalues[after])
        return shifts

    def _probe_vectors(self, *shape: int) -> Array:
        """Random numbers of a shape; where work is captured always the same: to bring others to the device waits."""
        if not self._engine.captures or shape not in self._probes:
            self._probes[shape] = self._engine.array(self._random.standard_normal(shape))
        return self._probes[shape]

    def _corrections(self, pencil: Pencil) -> Array:
        """Directions (n_features, n) in which the wanted ones are still in error: residuals, under operators."""
        self._refactorise_inaccurate(pencil)
        shifts = self._inverses.shifts
        xp = array_namespace(shifts)
        distance = xp.abs(self.eigenvalues[: self.wanted, None] - shifts)
        nearest = xp.argmin(distance, axis=1)[:, None] == xp.arange(SHIFTS, device=shifts.device)
        mixing = xp.where(nearest[..., None], self._probe_vectors(self.wanted, SHIFTS, _MIXTURES), 0.0)
        residuals = _residuals(pencil, self.directions, self.eigenvalues, xp.reshape(mixing, (self.wanted, -1)))
        mixed = xp.permute_dims(xp.reshape(residuals, (-1, SHIFTS, _MIXTURES)), (1, 0, 2))
        images = xp.permute_dims(self._inverses.times_each(mixed), (1, 0, 2))
        return xp.reshape(images, (len(self.directions), -1))

    def _refactorise_inaccurate(self, pencil: Pencil) -> None:
        """Make those operators afresh, at new shifts, that are too full of rounding."""
        shifts = self._inverses.shifts
        xp = array_namespace(shifts)
        probe = self._engine.array(np.random.default_rng(0).standard_normal((len(self.directions), 1)))
        images = self._inverses.times_each(probe[None])[..., 0].T
        residuals = pencil.residuals(images, shifts * images) - probe
        norm = xp.linalg.vector_norm
        inaccurate = ~(norm(residuals, axis=0) <= _INACCURATE * norm(probe))
        if bool(xp.any(inaccurate)):
            fresh = self._good_shifts()
            shifted = pencil.shifted(fresh[inaccurate])
            self._inverses.refactorise(inaccurate, fresh, shifted, pencil.sums.total)

    def _rayleigh_ritz(self, pencil: Pencil, proposed: Array, known: Known) -> None:
        """Take the best directions in the span of the known and the proposed ones."""
        if not self._engine.captures:
            self.eigenvalues, self.directions = rayleigh_ritz(pencil, proposed, known)
            self._matrix = None
            return
        inner, white, proposed = self._reduce(pencil, proposed, known)
        values, vectors = eigh(inner)
        self.eigenvalues, self.directions, self._matrix = self._turn(
            values, vectors, white, proposed, self.directions, pencil.constant, wanted=self.wanted
        )

    def _rayleigh_ritz_afresh(self, pencil: Pencil, proposed: Array) -> None:
        """The same, more slowly: nothing is taken for known, and directions that depend on others do no harm.

        So it mends what rounding, step after step, has done to the known directions.
        """
        xp, known = array_namespace(proposed), len(self.eigenvalues)
        basis = xp.concat([self.directions, proposed], axis=1)
        covariance = basis.T @ pencil.covariance_times(basis)
        scale = 1.0 / positive_or_one(xp.sqrt(diagonal(covariance)))
        turn = scale[:, None] * whitening_mixtures(scale[:, None] * covariance * scale, dependent=_DEPENDENT)
        inner = turn.T @ (basis.T @ pencil.second_differences_times(basis)) @ turn
        values, vectors = eigh(inner, driver="evr")
        self.eigenvalues = values[:known]
        self.directions = basis @ (turn @ vectors[:, :known])
        self.directions[pencil.constant] = 0.0
        self._matrix = None

    def _measure_error(self, pencil: Pencil) -> None:
        (error,) = self._estimate(
            self.directions,
            self.eigenvalues,
            self._probe_vectors(self.wanted, 2),
            self._rank_probes,
            pencil,
            self._inverses,
        )
        self.error = float(error)


def propose(along: Array, change: Change, directions: Array, eigenvalues: Array, inverses: ShiftInvert) -> tuple[Array]:
    """Directions (n_features, n) in which the new eigenvectors may differ; the operators become those of now.

    `along` (n_directions, n) are the products of the directions known before with the vectors of the change.
    """
    # Less what the known directions have of it: for an eigenvector, known without a product.
    known = along / (eigenvalues[:, None] - inverses.shifts[:, None, None])
    proposed = inverses.update(change) - known.mT @ directions.T
    return (array_namespace(along).reshape(proposed, (-1, len(directions))).T,)


def estimate_error(
    directions: Array, eigenvalues: Array, mixing: Array, rank_probes: Array, pencil: Pencil, inverses: ShiftInvert
) -> tuple[Array]:
    """Sine () of the angle to the exact subspace, from the residuals of random mixtures; infinite if V is another.

    The operator at the last shift, close to where the wanted directions end, turns a residual into the error that it
    comes from. Mixtures say what the errors of all directions add up to, which the largest angle does not exceed.
    """
    xp, wanted = array_namespace(directions), len(mixing)
    errors = inverses.times(-1, _residuals(pencil, directions, eigenvalues, mixing))
    mixed = directions[:, :wanted] @ mixing
    images = pencil.covariance_times(xp.concat([errors, mixed, rank_probes], axis=1))
    outside = xp.sum(errors * images[:, :2]) - xp.sum((directions.T @ images[:, :2]) ** 2)
    # The variance of the mixtures themselves is known: a difference is rounding that has piled up.
    size = xp.sum(mixing**2)
    drift = xp.abs(xp.sum(mixed * images[:, 2:4]) / size - 1.0)
    error = xp.sqrt(wanted * xp.where(outside > 0, outside, 0.0) / size) + drift
    if pencil.noise_variance:
        # A mixture of atoms that varies, but less than the threshold, has an eigenvalue of V below the threshold beside
        # it. If there is none such, the closed form sees the window without noise.
        variances = xp.sum(rank_probes * images[:, 4:], axis=0) - pencil.noise_variance
        between = xp.any((variances > NULL * pencil.threshold) & (variances < pencil.threshold))
        error = xp.where(between & (pencil.threshold == pencil.noise_variance), error, xp.inf)
    return (error,)


class Known(NamedTuple):
    """The directions known before a slide, whose V and S are then taken to be what the last step made them."""

    directions: Array
    """(n_features, n)"""
    eigenvalues: Array
    """(n,): S of the directions, whose V is one."""
    covariance_change: Array
    """(n, n): of V by the slide."""
    curvature_change: Array
    """(n, n): of S by the slide."""

    def bordered(self, pencil: Pencil, proposed: Array, images: Array) -> tuple[Array, Array]:
        """S and V (n + m, n + m) on the known and the proposed directions (n_features, m); V times the latter is known.

        For the known ones no product is needed, only their change.
        """
        covariance = self._bordered(1.0, self.covariance_change, proposed, images)
        images = pencil.second_differences_times(proposed)
        return self._bordered(self.eigenvalues, self.curvature_change, proposed, images), covariance

    def _bordered(self, values: Array | float, change: Array, proposed: Array, images: Array) -> Array:
        """A diagonal matrix of values and its change, bordered by products of all directions with the images."""
        n, size = len(change), len(change) + proposed.shape[1]
        cross = self.directions.T @ images
        matrix = array_namespace(change).empty((size, size), dtype=change.dtype, device=change.device)
        matrix[:n, :n], matrix[:n, n:], matrix[n:, :n], matrix[n:, n:] = change, cross, cross.T, proposed.T @ images
        add_to_diagonal(matrix[:n, :n], values)
        return matrix


def rayleigh_ritz(pencil: Pencil, proposed: Array, known: Known) -> tuple[Array, Array]:
    """The lowest eigenvalues and eigenvectors (n_features, n) in the span of the known and the proposed directions."""
    xp, n = array_namespace(proposed), len(known.eigenvalues)
    sizes = xp.linalg.vector_norm(proposed, axis=0)
    proposed = proposed[:, sizes > 0] / sizes[sizes > 0]
    images = pencil.covariance_times(proposed)
    turn = whitening_mixtures(proposed.T @ images, dependent=_DEPENDENT)
    proposed, images = proposed @ turn, images @ turn
    values, vectors = eigh_generalised(*known.bordered(pencil, proposed, images))
    turned = known.directions @ vectors[:n, :n] + proposed @ vectors[n:, :n]
    turned[pencil.constant] = 0.0
    return values[:n], turned


# The same for captured work, in two parts around the eigenproblem: arrays keep their shapes and the host is not waited
# for, so that proposed directions that add nothing new cannot be dropped. They are masked out instead.


def reduce_masked(pencil: Pencil, proposed: Array, known: Known) -> tuple[Array, Array, Array]:
    """The pencil on the known and the proposed directions as one symmetric matrix, its whitening, and the latter.

    The matrix is not finite where V is not positive there.
    """
    xp = array_namespace(proposed)
    proposed, _ = _orthonormalise_masked(pencil, proposed)
    proposed, images = _orthonormalise_masked(pencil, proposed)  # once more, now that no two are almost the same
    new = xp.sum(proposed * images, axis=0) > 0.5
    proposed, images = xp.where(new, proposed, 0.0), xp.where(new, images, 0.0)
    curvature, covariance = known.bordered(pencil, proposed, images)
    # What adds nothing new has an eigenvalue above all others, and by itself.
    apart = xp.concat([xp.zeros_like(known.eigenvalues), 1.0 - xp.astype(new, proposed.dtype)])
    white, positive = inverse_cholesky_unchecked(add_to_diagonal(covariance, apart))
    inner = white @ curvature @ white.mT
    inner = add_to_diagonal(inner, apart * xp.linalg.trace(inner))
    return xp.where(positive, (inner + inner.mT) / 2, xp.nan), white, proposed


def turn_masked(
    values: Array, vectors: Array, white: Array, proposed: Array, directions: Array, constant: Mask, *, wanted: int
) -> tuple[Array, Array, Array]:
    """Eigenvalues, directions (n_features, n_known) and the matrix (wanted, n_features) of the embedding."""
    xp, known = array_namespace(values), directions.shape[1]
    turn = white.mT @ vectors[:, :known]
    turned = xp.where(constant[:, None], 0.0, directions @ turn[:known] + proposed @ turn[known:])
    return 1.0 * values[:known], turned, fix_signs(turned[:, :wanted].T)


def _orthonormalise_masked(pencil: Pencil, directions: Array) -> tuple[Array, Array]:
    """The directions (n_features, n), each without what those before it have of it, and V times them.

    They get unit variance, less where the rest is no more than rounding.
    """
    xp = array_namespace(directions)
    directions = directions / positive_or_one(xp.linalg.vector_norm(directions, axis=0))
    images = pencil.covariance_times(directions)
    products = directions.T @ images
    scale = 1.0 / xp.sqrt(positive_or_one(diagonal(products)))
    inverse, _ = inverse_cholesky_unchecked(add_to_diagonal(scale[:, None] * products * scale, _RIDGE))
    turn = scale[:, None] * inverse.mT
    return directions @ turn, images @ turn


def _residuals(pencil: Pencil, directions: Array, eigenvalues: Array, mixing: Array) -> Array:
    """``S x - r V x`` (n_features, n) of the wanted directions, mixed by (wanted, n)."""
    wanted = directions[:, : len(mixing)]
    return pencil.residuals(wanted @ mixing, wanted @ (eigenvalues[: len(mixing), None] * mixing))
