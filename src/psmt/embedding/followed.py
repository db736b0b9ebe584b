"""The embedding of a window that slides: followed from frame to frame instead of being solved afresh.

The directions of the embedding are eigenvectors, ``S x = r V x``, those of smallest roughness r. A slide changes V and
S by a few outer products of vectors b. So an eigenvector of the window after the slide, put into the equation of the
window before it, leaves nothing but b's::

    (S - r V) x  in  span(b),    that is    x  in  (S - r V)^-1 span(b)    with its own r.

What x has of the directions known before, the wanted ones and some guards beside them, is taken from these. The rest
has no pole near the wanted r, so a few fixed ones (the shifts) tell it for all of them. A Rayleigh-Ritz step on the
known directions and those handful of others then finds the embedding to many digits, however far a single direction
has turned. The inverses at the shifts change by the same outer products, and are made afresh only when rounding has
piled up in them. They only propose where to look: the step itself works with V and S as they are, and the error that
it leaves is measured. Where the error is too large, or the window does what cannot be followed, the closed form is
solved afresh.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from psmt.embedding.closed_form import Embedding, noise_curvature, straightest_in
from psmt.moments import Change, WindowMoments
from psmt.numerics.rank import NULL, RANK_TOL, Whitening, fix_signs, moving, noise_line, whiten
from psmt.threads import one_blas_thread

Array = NDArray[np.float64]

SHIFTS = 5
"""Inverses that are kept. Fewer leave larger errors, more cost time and memory."""

_GUARDS = 0.25
"""Directions that are followed beside the wanted ones, as a fraction of these; at least `_FEWEST_GUARDS`."""

_FEWEST_GUARDS = 24

_FEWEST = 256
"""Atoms below which the closed form is solved every time: it takes no longer."""

_MOST = 0.85
"""Fraction of all directions beyond which following takes as long as the closed form."""

WITNESSES = 16
"""Directions that are looked at to see that V is still as it was: determined or not."""

_SLIDES = 500
"""Slides after which the closed form is solved in any case, so that rounding does not pile up."""

_CORRECTIONS = 2
"""Further steps, from the residuals, before the closed form is solved."""

_PATIENCE = 50
"""Such steps in all, after which the closed form is solved."""

WORN = 1e-4
"""Relative residual of an inverse that is too full of rounding to propose well: it is made afresh."""

MIXED = 8
"""Mixtures of residuals that such a step takes from each inverse."""

_FOLD = 64
"""Changes of an inverse that are kept aside before they are put into it, all in one product."""

DEPENDENT = 1e-15
"""Mixtures of directions with less than this fraction of the largest variance among them are rounding."""


class TrackedEmbedding:
    """P of a sliding window, renewed after each slide.

    Parameters
    ----------
    n_components : int or None
        f, the directions wanted. Where that is most of all there are (or None, all of them), there is little to gain:
        the closed form is solved every time.
    centred, ends, rank_tol :
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
    >>> moments, tracked = WindowMoments.of(codes[:600]), TrackedEmbedding(8)
    >>> for code in codes[600:]:
    ...     moments.slide(code)
    ...     embedding = tracked.renew(moments)
    >>> embedding.matrix.shape, tracked.n_solved_, bool(tracked.error_ < 1e-5)
    ((8, 300), 1, True)
    """

    def __init__(
        self,
        n_components: int | None,
        *,
        centred: bool = True,
        ends: bool = False,
        rank_tol: float = RANK_TOL,
        tol: float = 1e-5,
    ) -> None:
        self.n_components = n_components
        self.centred = centred
        self.ends = ends
        self.rank_tol = rank_tol
        self.tol = tol
        self.error_ = 0.0
        self.n_solved_ = 0
        self._track: Track | None = None
        self._changes = -1

    def renew(self, moments: WindowMoments) -> Embedding:
        """The embedding of the window as it is now."""
        change = moments.last_change(self._changes, centred=self.centred, ends=self.ends)
        stays = moments.changes == self._changes
        self._changes = moments.changes
        # A track that fails on the way is of no use any more.
        track, self._track = self._track, None
        if track is not None:
            pencil = self._pencil(moments, track.floor)
            if stays or (change is not None and track.follow(pencil, change, self.tol)):
                self._track, self.error_ = track, track.error
                return track.embedding
        return self._solve(moments)

    @property
    def is_following(self) -> bool:
        """Whether there is something to follow: then no slide must be missed, and renewing takes little time."""
        return self._track is not None

    def _solve(self, moments: WindowMoments) -> Embedding:
        whitening = self._whiten(moments.covariance(centred=self.centred), rank_tol=self.rank_tol)
        curvature = moments.second_differences(ends=self.ends)
        wanted = self.n_components
        followed = 0 if wanted is None else followed_directions(wanted, whitening, moments.n_features)
        found = self._straightest_in(whitening, curvature, followed or wanted, n_codes=len(moments))
        self.n_solved_ += 1
        self.error_ = 0.0
        if wanted is None or not followed:
            return found
        self._track = self._begin(found, wanted, whitening, self._pencil(moments, whitening.floor))
        return self._track.embedding

    # What depends on the kind of arrays

    _whiten: ClassVar[Callable[..., Any]] = staticmethod(whiten)
    _straightest_in: ClassVar[Callable[..., Any]] = staticmethod(straightest_in)

    def _pencil(self, moments: WindowMoments, floor: float) -> Any:
        variances = moments.variances(centred=self.centred)
        line = noise_line(variances, self.rank_tol)
        return _Pencil(moments, self.centred, self.ends, ~moving(variances), line, floor)

    def _begin(self, found: Embedding, wanted: int, whitening: Whitening, pencil: Any) -> Track:
        return _Track(found, wanted, whitening, pencil)


def followed_directions(n_components: int, whitening: Whitening, n_features: int) -> int:
    """How many directions to follow, guards included; 0 where the closed form takes no longer."""
    followed = n_components + max(int(_GUARDS * n_components), _FEWEST_GUARDS)
    # Without noise, V has no inverse but where every atom moves.
    if whitening.floor == 0.0 and whitening.rank < n_features:
        return 0
    return followed if n_features >= _FEWEST and followed <= _MOST * whitening.rank else 0


@dataclass(frozen=True)
class _Pencil:
    """V and S of a window, seen through the noise."""

    moments: WindowMoments
    centred: bool
    ends: bool
    still: NDArray[np.bool_]
    """Atoms (n_features,) that do not vary."""
    line: float
    """Variance below which a direction is not determined."""
    floor: float
    """Variance of the noise."""

    def covariance_times(self, vectors: Array) -> Array:
        return self.moments.covariance_times(vectors, centred=self.centred) + self.floor * vectors

    def curvature_times(self, vectors: Array) -> Array:
        noise = noise_curvature(len(self.moments)) * self.floor
        return self.moments.second_differences_times(vectors, ends=self.ends) + noise * vectors

    def shifted(self, shifts: Array) -> Array:
        """S - shift V for each shift (n,), as matrices (n, n_features, n_features)."""
        covariance = self.moments.covariance(centred=self.centred)
        matrices = self.moments.second_differences(ends=self.ends) - shifts[:, None, None] * covariance
        noise = (noise_curvature(len(self.moments)) - shifts) * self.floor
        np.einsum("ijj->ij", matrices)[:] += noise[:, None]
        return matrices

    def is_determined(self) -> bool:
        """Whether V has more than the line in every direction."""
        covariance = self.moments.covariance(centred=self.centred)
        covariance[np.diag_indices_from(covariance)] -= self.line
        try:
            scipy.linalg.cholesky(covariance, overwrite_a=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            return False
        return True


class _Inverses:
    """(S - shift V)^-1 of a sliding window, for each of the shifts (n_shifts,).

    They are symmetric, so that rows serve as columns.
    """

    def __init__(self, pencil: _Pencil, shifts: Array) -> None:
        self.shifts = shifts
        self._centred = pencil.centred
        self._matrices = np.linalg.inv(pencil.shifted(shifts))
        # Changes that have not been put into the matrices yet: less left' right.
        self._left = np.empty((len(shifts), _FOLD, self._matrices.shape[-1]))
        self._right = np.empty_like(self._left)
        self._waiting = 0
        self._totals = self._matrices @ pencil.moments.total

    def times(self, which: int, vectors: Array) -> Array:
        """One of the inverses times the columns of `vectors` (n_features, n)."""
        left, right = self._left[which, : self._waiting], self._right[which, : self._waiting]
        return self._matrices[which] @ vectors - left.T @ (right @ vectors)

    def mend(self, pencil: _Pencil, shifts: Array) -> None:
        """Make those afresh that have come to grief, at new shifts (n_shifts,)."""
        probe = np.random.default_rng(0).standard_normal((self._matrices.shape[-1], 1))
        images = np.hstack([self.times(i, probe) for i in range(len(shifts))])
        residuals = pencil.curvature_times(images) - self.shifts * pencil.covariance_times(images) - probe
        worn = ~(np.linalg.norm(residuals, axis=0) <= WORN * np.linalg.norm(probe))
        if worn.any():
            self.shifts = np.where(worn, shifts, self.shifts)
            self._matrices[worn] = np.linalg.inv(pencil.shifted(shifts[worn]))
            self._left[worn] = self._right[worn] = 0.0
            self._totals[worn] = self._matrices[worn] @ pencil.moments.total

    def follow(self, change: Change) -> Array:
        """Images (n_shifts, n, n_features) of the n vectors of a slide under the inverses before it.

        The inverses become those after the slide.
        """
        vectors = change.vectors
        n = len(vectors)
        if self._waiting + n > _FOLD:
            self._fold()
        sparse = vectors[:-1] if self._centred else vectors
        atoms = np.flatnonzero(sparse.any(axis=0))
        left, right = self._left[:, : self._waiting], self._right[:, : self._waiting]
        images = (vectors @ right.mT) @ left
        np.negative(images, out=images)
        images[:, : len(sparse)] += sparse[:, atoms] @ self._matrices[:, atoms]
        if self._centred:
            images[:, -1] = self._totals  # followed as well, being the only dense one
        weights = change.curvature - self.shifts[:, None, None] * change.covariance
        inner = np.eye(n) + weights @ (vectors @ images.mT)
        changes = np.linalg.solve(inner, weights @ images)
        if self._centred:
            total = vectors[-1] + vectors[0] - vectors[1]
            self._totals += images[:, 0] - images[:, 1] - ((changes @ total)[:, None] @ images)[:, 0]
        self._left[:, self._waiting : self._waiting + n] = images
        self._right[:, self._waiting : self._waiting + n] = changes
        self._waiting += n
        return images

    def _fold(self) -> None:
        for matrix, left, right in zip(self._matrices, self._left, self._right, strict=True):
            waiting = slice(self._waiting)
            scipy.linalg.blas.dgemm(
                -1.0, right[waiting].T, left[waiting].T, beta=1.0, c=matrix.T, trans_b=True, overwrite_c=True
            )
        self._waiting = 0


class Track(ABC):
    """The wanted directions and their guards, from slide to slide; begins with the closed form.

    What is here works on any kind of arrays; a subclass holds the inverses at the shifts.
    """

    lost: ClassVar[tuple[type[Exception], ...]]
    """What linear algebra raises where an inverse has come to grief: something is not positive, or not finite."""

    def __init__(self, directions: Any, roughness: Any, wanted: int, whitening: Any) -> None:
        self.directions = directions
        self.roughness = roughness
        self.wanted = wanted
        self.rank = whitening.rank
        self.floor = whitening.floor
        self.error = 0.0
        self._slides = 0
        self._corrected = 0

    @property
    @abstractmethod
    def embedding(self) -> Any:
        """The wanted directions as an `Embedding`."""

    def follow(self, pencil: Any, change: Any, tol: float) -> bool:
        """Follow a slide, to an error of at most `tol`; False where that cannot be done, and the track ends."""
        self._slides += 1
        if self._slides > _SLIDES or self._corrected >= _PATIENCE:
            return False
        if not (self.floor == float(pencil.line) if self.floor else pencil.is_determined()):
            return False
        try:
            along = self.directions.T @ change.vectors.T
            proposed = self._propose(change, along)
            changed = along @ change.covariance @ along.T, along @ change.curvature @ along.T
            try:
                self._rayleigh_ritz(pencil, proposed, *changed)
            except self.lost:
                self._rayleigh_ritz_afresh(pencil, proposed)
            self.error = self._estimate_error(pencil)
            for _ in range(_CORRECTIONS):
                if self.error <= tol or self.error == np.inf:
                    break
                self._corrected += 1
                self._rayleigh_ritz_afresh(pencil, self._corrections(pencil))
                self.error = self._estimate_error(pencil)
        except self.lost:
            return False
        return self.error <= tol

    def _good_shifts(self) -> Any:
        """Where shifts (SHIFTS,) should be now."""
        # Where polynomials are interpolated best; in the middle between two values, so that no shift is one of them.
        nodes = (0.5 * self.wanted * (1.0 - np.cos(np.pi * (np.arange(SHIFTS) + 0.5) / SHIFTS))).astype(int)
        return 0.5 * (self.roughness[nodes] + self.roughness[nodes + 1])

    def _residuals(self, pencil: Any, mixing: Any) -> Any:
        """``S x - r V x`` (n_features, n) of the wanted directions, mixed by (wanted, n)."""
        wanted, roughness = self.directions[:, : self.wanted], self.roughness[: self.wanted, None]
        return pencil.curvature_times(wanted @ mixing) - pencil.covariance_times(wanted @ (roughness * mixing))

    @abstractmethod
    def _propose(self, change: Any, along: Any) -> Any:
        """Directions (n_features, n) in which the new eigenvectors may differ from the old; changes the inverses."""

    @abstractmethod
    def _corrections(self, pencil: Any) -> Any:
        """Directions (n_features, n) in which the wanted ones are still in error: residuals, under the next inverse."""

    @abstractmethod
    def _rayleigh_ritz(self, pencil: Any, proposed: Any, covariance_change: Any, curvature_change: Any) -> None:
        """Take the best directions in the span of the known and the proposed ones.

        V and S of the known directions, before they changed by so much, are taken to be what the last step made them.
        """

    @abstractmethod
    def _rayleigh_ritz_afresh(self, pencil: Any, proposed: Any) -> None:
        """The same, more slowly: nothing is taken for known, and directions that depend on others do no harm.

        So it mends what rounding, step after step, has done to the known directions.
        """

    @abstractmethod
    def _estimate_error(self, pencil: Any) -> float:
        """Sine of the angle to the exact subspace, from the residuals of random mixtures; infinite if V is another.

        The inverse at the last shift, close to where the wanted directions end, turns a residual into the error that it
        comes from. Mixtures say what the errors of all directions add up to, which the largest angle does not exceed.
        """


class _Track(Track):
    lost = (np.linalg.LinAlgError, ValueError)

    def __init__(self, found: Embedding, wanted: int, whitening: Whitening, pencil: _Pencil) -> None:
        super().__init__(np.ascontiguousarray(found.matrix.T), found.roughness, wanted, whitening)
        between = np.flatnonzero(whitening.variances - whitening.floor <= pencil.line)
        chosen = between[np.linspace(0, len(between) - 1, min(WITNESSES, len(between))).astype(int)]
        self._witnesses = whitening.directions[:, chosen]
        self._inverses = _Inverses(pencil, self._good_shifts())
        self._random = np.random.default_rng(0)

    @property
    def embedding(self) -> Embedding:
        matrix = fix_signs(np.ascontiguousarray(self.directions[:, : self.wanted].T))
        return Embedding(matrix, np.maximum(self.roughness[: self.wanted], 0.0), self.rank)

    def follow(self, pencil: _Pencil, change: Change, tol: float) -> bool:
        # The matrices are small or thin: more threads would wait for each other longer than they work.
        with one_blas_thread():
            return super().follow(pencil, change, tol)

    def _propose(self, change: Change, along: Array) -> Array:
        # Less what the known directions have of it: for an eigenvector, known without a product.
        shifts = self._inverses.shifts
        known = along / (self.roughness[:, None] - shifts[:, None, None])
        proposed = self._inverses.follow(change) - known.mT @ self.directions.T
        return proposed.reshape(-1, len(self.directions)).T

    def _corrections(self, pencil: _Pencil) -> Array:
        self._inverses.mend(pencil, self._good_shifts())
        shifts = self._inverses.shifts
        nearest = np.abs(self.roughness[: self.wanted, None] - shifts).argmin(axis=1)
        mixing = self._random.standard_normal((self.wanted, len(shifts), MIXED))
        mixing[nearest[:, None] != np.arange(len(shifts))] = 0.0
        residuals = self._residuals(pencil, mixing.reshape(self.wanted, -1)).reshape(-1, len(shifts), MIXED)
        return np.hstack([self._inverses.times(j, residuals[:, j]) for j in range(len(shifts))])

    def _rayleigh_ritz(
        self, pencil: _Pencil, proposed: Array, covariance_change: Array, curvature_change: Array
    ) -> None:
        sizes = np.linalg.norm(proposed, axis=0)
        proposed = proposed[:, sizes > 0] / sizes[sizes > 0]
        images = pencil.covariance_times(proposed)
        turn = _orthonormal(proposed.T @ images)
        proposed, images = proposed @ turn, images @ turn

        known = len(self.roughness)
        size = known + proposed.shape[1]
        covariance, curvature = np.empty((size, size)), np.empty((size, size))
        covariance[:known, :known] = np.eye(known) + covariance_change
        curvature[:known, :known] = np.diag(self.roughness) + curvature_change
        for matrix, image in ((covariance, images), (curvature, pencil.curvature_times(proposed))):
            matrix[:known, known:] = self.directions.T @ image
            matrix[known:, :known] = matrix[:known, known:].T
            matrix[known:, known:] = proposed.T @ image
        roughness, turn = scipy.linalg.eigh(curvature, covariance, driver="gvd")
        self.roughness = roughness[:known]
        self.directions = self.directions @ turn[:known, :known] + proposed @ turn[known:, :known]
        self.directions[pencil.still] = 0.0

    def _rayleigh_ritz_afresh(self, pencil: _Pencil, proposed: Array) -> None:
        known = len(self.roughness)
        basis = np.hstack([self.directions, proposed])
        covariance = basis.T @ pencil.covariance_times(basis)
        sizes = np.sqrt(np.diag(covariance))
        scale = 1.0 / np.where(sizes > 0, sizes, 1.0)
        turn = scale[:, None] * _orthonormal(scale[:, None] * covariance * scale)
        self.roughness, inner = scipy.linalg.eigh(turn.T @ (basis.T @ pencil.curvature_times(basis)) @ turn)
        self.roughness = self.roughness[:known]
        self.directions = basis @ (turn @ inner[:, :known])
        self.directions[pencil.still] = 0.0

    def _estimate_error(self, pencil: _Pencil) -> float:
        mixing = self._random.standard_normal((self.wanted, 2))
        errors = self._inverses.times(-1, self._residuals(pencil, mixing))
        mixed = self.directions[:, : self.wanted] @ mixing
        images = pencil.covariance_times(np.hstack([errors, mixed, self._witnesses]))
        outside = np.sum(errors * images[:, :2]) - np.sum((self.directions.T @ images[:, :2]) ** 2)
        # The variance of the mixtures themselves is known: a difference is rounding that has piled up.
        size = np.sum(mixing**2)
        drift = abs(np.sum(mixed * images[:, 2:4]) / size - 1.0)
        # A mixture of atoms that varies, but less than the line, has an eigenvalue of V below the line beside it. If
        # there is none such, the closed form sees the window without noise.
        variances = np.einsum("ij,ij->j", self._witnesses, images[:, 4:]) - self.floor
        if self.floor and not ((variances > NULL * pencil.line) & (variances < pencil.line)).any():
            return np.inf
        return float(np.sqrt(self.wanted * max(outside, 0.0) / size) + drift)


def _orthonormal(covariance: Array) -> Array:
    """Mixtures (n, m) of n directions with this covariance (n, n) of unit covariance; dependent ones drop out."""
    variances, turn = scipy.linalg.eigh(covariance)
    new = variances > DEPENDENT * variances[-1]
    return turn[:, new] / np.sqrt(variances[new])
