"""The embedding of a window that slides: followed from frame to frame instead of being solved afresh.

The directions of the embedding are generalised eigenvectors, ``S x = r V x``, those of smallest eigenvalue r. A slide
changes V and S, their noise included (see `psmt.numerics.rank`), by a few outer products of vectors b. So an
eigenvector of the window after the slide, put into the equation of the window before it, leaves nothing but b's::

    (S - r V) x  in  span(b),    that is    x  in  (S - r V)^-1 span(b)    with its own r.

What x has of the directions known before, the wanted ones and some guards beside them, is taken from these. The rest
has no pole near the wanted r, so a few fixed shifts tell it for all of them (shift-invert, as in a rational Krylov
method). A Rayleigh-Ritz step on the known directions and those handful of others then finds the embedding to many
digits, however far a single direction has turned. The operators at the shifts change by the same outer products
(Woodbury's formula). Their shifts are complex, beside the eigenvalues: an eigenvalue that passed by a real shift would
leave an operator that is next to singular, and rounding that grows tenfold from slide to slide. They are refactorised,
one at a time and beside the slides that follow, when the eigenvalues have moved away from their shifts. They only
propose where to look: the step itself works with V and S as they are, and the error that it leaves is measured. Where
it is too large, further steps go on from the residuals; where these do not help, the closed form is solved, and
following goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np

from psmt.embedding.closed_form import Embedding, embed_window
from psmt.embedding.moments import WindowMoments
from psmt.embedding.pencil import Pencil, diagonal, lifted_covariance, regularised_change, window_noise
from psmt.engines.contract import Change, Engine, ShiftInvert
from psmt.engines.window import Sums
from psmt.numerics.linalg import (
    add_to_diagonal,
    contiguous,
    eigh,
    eigh_generalised,
    inverse_cholesky_unchecked,
    positive_or_one,
    unit_columns,
    whitening_mixtures,
)
from psmt.numerics.namespace import array_namespace
from psmt.numerics.rank import RANK_TOL, fix_signs
from psmt.types import Array, Mask

NODES = (0.08 + 0.1j, 0.5 + 0.12j, 0.92 + 0.1j)
"""Shifts of the operators, in the range of the wanted eigenvalues. Each tells as much as two real ones: its image has a
real and an imaginary part. Fewer leave larger errors, more cost time and memory."""

_GUARDS = 0.25
"""Directions that are followed beside the wanted ones, as a fraction of these; at least `_FEWEST_GUARDS`."""

_FEWEST_GUARDS = 24

_FEWEST = 192
"""Atoms below which the closed form is solved every time: it takes no longer."""

_FEWEST_OF_FEW = 513
"""As `_FEWEST`, where the window has no more codes than atoms. V owes directions to its noise there, and predictions
magnify errors a hundredfold that are too small to be seen in the subspace."""

_FEW_CODES, _TIGHTER = 2.0, 0.1
"""Codes per atom below which predictions magnify errors, and what part of the tolerance is kept to there."""

_MOST = 0.6
"""Fraction of all directions beyond which following takes as long as the closed form."""

_STALE = 1e-8
"""Error of the resolvent's changes, after their refinement, from which on it is made afresh: then it is not good enough
to be refined much longer. So it is in any case after ``n_features / 2`` slides."""

_REFINEMENTS = 2
"""Of what a slide changes the resolvent by. After one, errors could grow from slide to slide."""

_CORRECTIONS = 4
"""Further steps, from the residuals, before the closed form is solved. After the first nothing is taken for known."""

_INACCURATE = 0.1
"""Relative residual of an operator that is too full of rounding to propose well: it is refactorised."""

_MOVED = 0.5
"""Change of the range of the wanted eigenvalues, as a fraction, from which on an operator is refactorised."""

_MIXTURES = 3
"""Probe vectors, mixtures of residuals, that a further step takes from each operator."""

_MIXTURES_AFRESH = 8
"""The same where nothing is taken for known: all directions may be in error then."""

_DOUBTFUL = 1e-3
"""Fraction of its variance that a direction has of its own, beside the others of a step, below which rounding shows in
what is known after it: V and S are then asked for."""

_ROUNDING = 1e-11
"""The same, from which on there is nothing but rounding: such mixtures are left out."""

_STOPPED = 4
"""Atoms that may stop at once, in captured work."""

_DEPENDENT = 1e-12
"""Mixtures of unit vectors with less than this fraction of the largest variance among them are mostly rounding, which
might pass for a straight direction."""

_RIDGE = 1e-10
"""Fraction of a proposed direction's variance, below which what it has of its own is rounding, in the masked step."""


class FollowedEmbedding:
    """P of a sliding window, renewed after each slide.

    Parameters
    ----------
    n_components : int or None
        f, the directions wanted. Where that is most of all there are (or None, all of them), or V is not regularised
        (``rank_tol=0``), there is nothing to gain: the closed form is solved every time.
    centred, half_stencils, rank_tol :
        As in `TemporalEmbedding`.
    tol : float
        The closed form is solved afresh where the subspace is further than this from the exact one, by the estimate
        that `error_` holds; a tenth of it in a window of few codes.

    Attributes
    ----------
    error_ : float
        Estimated sine of the largest angle between the present subspace and the exact one.
    n_solved_ : int
        How often the closed form was solved.

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

    def __init__(
        self,
        n_components: int | None,
        *,
        centred: bool = True,
        half_stencils: bool = False,
        rank_tol: float = RANK_TOL,
        tol: float = 2e-7,
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
        if track is None or not (stays or change is not None):
            return self._start(moments)
        if change is not None and not stays:
            view = self._view(moments)
            tol = self.tol * (_TIGHTER if len(moments) < _FEW_CODES * moments.n_features else 1.0)
            if not track.update(view, change, tol) and not track.restart(self._solve(moments, track.followed), view):
                return self._start(moments)
        self._track, self.error_ = track, track.error
        return track.embedding

    @property
    def is_following(self) -> bool:
        """Whether there is something to follow: then no slide must be missed, and renewing takes little time."""
        return self._track is not None

    def _start(self, moments: WindowMoments) -> Embedding:
        """Solve the closed form, and follow it from here on if that pays."""
        wanted, followed = self.n_components, self._followed_directions(moments)
        found = self._solve(moments, followed or wanted)
        if wanted is None or not 0 < followed == len(found):
            return Embedding(found.matrix[:wanted], found.eigenvalues[:wanted])
        self._track = Track(found, wanted, self._view(moments), moments.engine)
        return self._track.embedding

    def _solve(self, moments: WindowMoments, n_components: int | None) -> Embedding:
        self.n_solved_ += 1
        self.error_ = 0.0
        return embed_window(
            moments,
            n_components,
            centred=self.centred,
            half_stencils=self.half_stencils,
            rank_tol=self.rank_tol,
        )

    def _followed_directions(self, moments: WindowMoments) -> int:
        """How many directions to follow, guards included; 0 where the closed form takes no longer."""
        n_features = moments.n_features
        fewest = _FEWEST if len(moments) > n_features else _FEWEST_OF_FEW
        if self.n_components is None or not self.rank_tol or n_features < fewest:
            return 0
        followed = self.n_components + max(int(_GUARDS * self.n_components), _FEWEST_GUARDS)
        return followed if followed <= _MOST * n_features else 0

    def _view(self, moments: WindowMoments) -> View:
        if self._engine is not moments.engine:
            self._engine = moments.engine
            self._noise = moments.engine.capture(window_noise)
        constant, noise = self._noise(
            diagonal(moments.products), moments.total, n=len(moments), centred=self.centred, rank_tol=self.rank_tol
        )
        return View(moments.sums(half_stencils=self.half_stencils), constant, noise, self.centred)


class View(NamedTuple):
    """What a track sees of a window."""

    sums: Sums
    constant: Mask
    """Atoms (n_features,) that do not vary."""
    noise: Array
    """Variance () of the noise."""
    centred: bool


class Track:
    """The wanted directions and their guards, from slide to slide; begins with the closed form."""

    def __init__(self, found: Embedding, wanted: int, view: View, engine: Engine) -> None:
        self.wanted = wanted
        self._engine = engine
        self._random = np.random.default_rng(0)
        self._probes: dict[tuple[int, ...], Array] = {}
        nodes = np.array(NODES)
        self._nodes: Array = engine.array(nodes.real) + 1j * engine.array(nodes.imag)
        self._suspicious = False
        """Whether the operators proposed too little at the last slide."""
        self._begin(found)
        self._make_resolvent(view)
        shifts = self._good_shifts()
        self._inverses: ShiftInvert = engine.shift_invert(self._pencil(view).shifted(shifts), shifts)
        # What was captured is bound to the operators, so that it ends with them.
        self._regularise, self._propose = engine.capture(regularised_change), engine.capture(propose)
        self._estimate = engine.capture(estimate_error)
        self._ask = engine.capture(ask)
        self._reduce, self._turn = engine.capture(reduce_masked), engine.capture(turn_masked)

    def _begin(self, found: Embedding) -> None:
        self.directions = contiguous(found.matrix.T)
        """(n_features, n)"""
        self.eigenvalues = found.eigenvalues
        self.error = 0.0
        self._matrix: Array | None = None
        none = array_namespace(self.directions).zeros_like(self.directions[: self.followed])
        self._exact = none, none
        self._doubtful = False
        """Whether V and S of the directions may be others than the unit matrix and the eigenvalues."""

    def _make_resolvent(self, view: View) -> None:
        self.noise = float(view.noise)
        self._slides = 0
        lifted = lifted_covariance(view.sums, self.noise, centred=view.centred)
        self._resolvent: ShiftInvert = self._engine.shift_invert(lifted, self._engine.array([-1.0]))

    def _pencil(self, view: View) -> Pencil:
        return Pencil(view.sums, view.constant, view.noise, view.centred, self.noise, self._resolvent)

    @property
    def followed(self) -> int:
        """How many directions are followed, guards included."""
        return len(self.eigenvalues)

    @property
    def embedding(self) -> Embedding:
        """The wanted directions."""
        xp = array_namespace(self.directions)
        if self._matrix is None:
            self._matrix = fix_signs(contiguous(self.directions[:, : self.wanted].T))
        return Embedding(self._matrix, xp.clip(self.eigenvalues[: self.wanted], min=0.0))

    def update(self, view: View, change: Change, tol: float) -> bool:
        """Follow a slide, to an error of at most `tol`; False where that cannot be done."""
        lost = self._engine.linalg_errors
        with self._engine.small_work():
            try:
                change = self._full_change(view, change)
                pencil = self._pencil(view)
                along = self.directions.T @ change.vectors.T
                (proposed,) = self._propose(along, change, self.directions, self.eigenvalues, self._inverses)
                known = self._known(pencil, lambda exact: exact.changed(along, change))
                try:
                    self._rayleigh_ritz(pencil, proposed, known)
                except lost:
                    self._rayleigh_ritz_afresh(pencil, proposed)
                self._measure_error(pencil)
                suspicious, self._suspicious = self._suspicious, self.error > tol
                if suspicious and not self._suspicious:  # at a slide that leaves time for it
                    self._refactorise_worst(pencil, later=True)
                for attempt in range(_CORRECTIONS):
                    if self.error <= tol or self.error == np.inf:
                        break
                    self._correct(pencil, afresh=attempt > 0)
                    self._measure_error(pencil)
            except lost:
                return False
        return self.error <= tol

    def restart(self, found: Embedding, view: View) -> bool:
        """Go on from the closed form, with the operators as they are; False where there are too few directions."""
        if len(found) < self.followed:
            return False
        self._begin(found)
        if self.noise != float(view.noise):
            self._make_resolvent(view)
        with self._engine.small_work():
            self._refactorise_worst(self._pencil(view))
        return True

    def _full_change(self, view: View, change: Change) -> Change:
        """The change of V and S with their noise; the resolvent becomes that of now."""
        *full, accuracy = self._regularise(change, self._pencil(view), refinements=_REFINEMENTS)
        self._slides += 1
        if 2 * self._slides >= len(self.directions) or float(accuracy) > _STALE:
            self._slides = 0
            lifted = lifted_covariance(view.sums, self.noise, centred=view.centred)
            self._resolvent.refactorise(self._resolvent.shifts < 0, self._resolvent.shifts, lifted)
        return Change(*full)

    def _good_shifts(self) -> Array:
        """Where shifts (n_shifts,) should be now."""
        first, last = self.eigenvalues[0], self.eigenvalues[self.wanted]
        shifts: Array = first + (last - first) * self._nodes
        return shifts

    def _probe_vectors(self, *shape: int) -> Array:
        """Random numbers of a shape; where work is captured always the same: to bring others to the device waits."""
        if not self._engine.captures or shape not in self._probes:
            self._probes[shape] = self._engine.array(self._random.standard_normal(shape))
        return self._probes[shape]

    def _correct(self, pencil: Pencil, *, afresh: bool) -> None:
        """One more Rayleigh-Ritz step, towards what the residuals show."""
        if afresh:
            self._refactorise_worst(pencil)
            self._rayleigh_ritz_afresh(pencil, self._corrections(pencil, _MIXTURES_AFRESH))
            return
        known = self._known(pencil, lambda exact: exact)
        self._rayleigh_ritz(pencil, self._corrections(pencil, _MIXTURES), known)

    def _known(self, pencil: Pencil, since: Callable[[Known], Known]) -> Known:
        """What is known of the directions: what the last step made it, and what came since; or V and S are asked."""
        if not self._engine.captures and not self._doubtful:
            return since(Known(self.directions, self.eigenvalues, *self._exact))
        self._doubtful = False
        return Known(self.directions, self.eigenvalues, *self._ask(pencil, self.directions, self.eigenvalues))

    def _corrections(self, pencil: Pencil, mixtures: int) -> Array:
        """Directions (n_features, n) in which the wanted ones are still in error: residuals, under operators."""
        shifts = self._inverses.shifts
        xp, n_shifts = array_namespace(shifts), len(shifts)
        distance = xp.abs(self.eigenvalues[: self.wanted, None] - shifts)
        nearest = xp.argmin(distance, axis=1)[:, None] == xp.arange(n_shifts, device=shifts.device)
        mixing = xp.where(nearest[..., None], self._probe_vectors(self.wanted, n_shifts, mixtures), 0.0)
        residuals = _residuals(pencil, self.directions, self.eigenvalues, xp.reshape(mixing, (self.wanted, -1)))
        mixed = xp.permute_dims(xp.reshape(residuals, (-1, n_shifts, mixtures)), (1, 0, 2))
        images = xp.permute_dims(real_parts(self._inverses.times_each(mixed)), (1, 0, 2))
        return xp.reshape(images, (len(self.directions), -1))

    def _refactorise_worst(self, pencil: Pencil, *, later: bool = False) -> None:
        """Make that operator afresh, at a new shift, that serves worst, if it serves badly; `later` if need be.

        It is full of rounding, or its shift is far from where it should be.
        """
        shifts, fresh = self._inverses.shifts, self._good_shifts()
        xp = array_namespace(shifts)
        probe = self._engine.array(np.random.default_rng(0).standard_normal((len(self.directions), 1)))
        images = self._inverses.times_each(probe[None])[..., 0]
        left = pencil.residuals(real_parts(images).T, real_parts(shifts[:, None] * images).T)
        left[:, : len(shifts)] -= probe
        sizes = xp.linalg.vector_norm(xp.reshape(left, (len(left), 2, -1)), axis=(0, 1))
        rounding = sizes / (_INACCURATE * xp.linalg.vector_norm(probe))
        moved = xp.abs(shifts - fresh) / (_MOVED * (self.eigenvalues[self.wanted] - self.eigenvalues[0]))
        badness = xp.where(rounding > moved, rounding, moved)
        worst = xp.argmax(xp.where(badness >= 0, badness, xp.inf), axis=0)
        if not bool(badness[worst] <= 1.0):
            which = xp.arange(len(shifts), device=shifts.device) == worst
            self._inverses.refactorise(which, fresh, pencil.shifted(fresh[which]), later=later)

    def _rayleigh_ritz(self, pencil: Pencil, proposed: Array, known: Known) -> None:
        """Take the best directions in the span of the known and the proposed ones."""
        if not self._engine.captures:
            self.eigenvalues, self.directions, own = rayleigh_ritz(pencil, proposed, known)
            self._matrix, self._doubtful = None, own < _DOUBTFUL
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
        images, rough = pencil.times(self.directions)
        values, turn = eigh_generalised(self.directions.T @ rough, self.directions.T @ images)
        directions, images = self.directions @ turn, images @ turn
        # What is known already would leave little but rounding of the proposed ones, if it were left in.
        proposed = proposed - directions @ (images.T @ proposed)
        known = Known(directions, values, *self._exact)
        self.eigenvalues, self.directions, own = rayleigh_ritz(pencil, proposed, known)
        self._matrix, self._doubtful = None, own < _DOUBTFUL

    def _measure_error(self, pencil: Pencil) -> None:
        mixing = self._probe_vectors(self.wanted, 2)
        (error,) = self._estimate(self.directions, self.eigenvalues, mixing, pencil, self._inverses)
        self.error = float(error)


def propose(along: Array, change: Change, directions: Array, eigenvalues: Array, inverses: ShiftInvert) -> tuple[Array]:
    """Directions (n_features, n) in which the new eigenvectors may differ; the operators become those of now.

    `along` (n_directions, n) are the products of the directions known before with the vectors of the change.
    """
    # Less what the known directions have of it: for an eigenvector, known without a product.
    known = real_parts(along / (eigenvalues[:, None] - inverses.shifts[:, None, None]))
    proposed = real_parts(inverses.update(change)) - known.mT @ directions.T
    return (array_namespace(along).reshape(proposed, (-1, len(directions))).T,)


def real_parts(values: Array) -> Array:
    """Real and imaginary parts (2 n, ..) of complex numbers (n, ..), one after the other."""
    xp = array_namespace(values)
    return xp.concat([xp.real(values), xp.imag(values)])


def estimate_error(
    directions: Array, eigenvalues: Array, mixing: Array, pencil: Pencil, inverses: ShiftInvert
) -> tuple[Array]:
    """Sine () of the angle to the exact subspace, from the residuals of random mixtures; infinite if V is another.

    The operator at the last shift, close to where the wanted directions end, turns a residual into the error that it
    comes from. Mixtures say what the errors of all directions add up to, which the largest angle does not exceed.
    """
    xp, wanted = array_namespace(directions), len(mixing)
    errors = xp.real(inverses.times(-1, _residuals(pencil, directions, eigenvalues, mixing)))
    mixed, n = directions[:, :wanted] @ mixing, errors.shape[1]
    images = pencil.covariance_times(xp.concat([errors, mixed], axis=1))
    outside = xp.sum(errors * images[:, :n]) - xp.sum((directions.T @ images[:, :n]) ** 2)
    # The variance of the mixtures themselves is known: a difference is rounding that has piled up.
    size = xp.sum(mixing**2)
    drift = xp.abs(xp.sum(mixed * images[:, n:]) / size - 1.0)
    error = xp.sqrt(wanted * xp.where(outside > 0, outside, 0.0) / size) + drift
    return (xp.where(pencil.noise_now == pencil.noise, error, xp.inf),)


class Known(NamedTuple):
    """The directions known before a slide: V and S on them are what the last step made them, and the slide's change."""

    directions: Array
    """(n_features, n)"""
    eigenvalues: Array
    """(n,): S of the directions, whose V is one."""
    covariance_beyond: Array
    """(n, n): what V is on them, less the unit matrix."""
    curvature_beyond: Array
    """(n, n): what S is on them, less the eigenvalues."""

    def changed(self, along: Array, change: Change) -> Self:
        """The same after a slide, given the products (n, k) with the vectors of its change."""
        covariance = self.covariance_beyond + (along * change.covariance) @ along.T
        curvature = self.curvature_beyond + (along * change.curvature) @ along.T
        return self._replace(covariance_beyond=covariance, curvature_beyond=curvature)

    def bordered(self, proposed: Array, images: Array, rough: Array) -> tuple[Array, Array]:
        """S and V (n + m, n + m) on the known and the proposed directions (n_features, m), given V and S times these.

        For the known ones no product is needed, only their change.
        """
        covariance = self._bordered(1.0, self.covariance_beyond, proposed, images)
        return self._bordered(self.eigenvalues, self.curvature_beyond, proposed, rough), covariance

    def _bordered(self, values: Array | float, change: Array, proposed: Array, images: Array) -> Array:
        """A diagonal matrix of values and its change, bordered by products of all directions with the images."""
        n, size = len(change), len(change) + proposed.shape[1]
        cross = self.directions.T @ images
        matrix = array_namespace(change).empty((size, size), dtype=change.dtype, device=change.device)
        matrix[:n, :n], matrix[:n, n:], matrix[n:, :n], matrix[n:, n:] = change, cross, cross.T, proposed.T @ images
        add_to_diagonal(matrix[:n, :n], values)
        return matrix


def rayleigh_ritz(pencil: Pencil, proposed: Array, known: Known) -> tuple[Array, Array, float]:
    """The lowest eigenvalues and eigenvectors (n_features, n) in the span of the known and the proposed directions.

    And the least fraction of its variance that one of all these directions has of its own.
    """
    xp, n = array_namespace(proposed), len(known.eigenvalues)
    # An atom that has stopped is a direction by itself, from now on. With it the known ones can be rid of the atom.
    (constant,) = xp.nonzero(pencil.constant)
    shows = xp.any(known.directions[constant] != 0, axis=1)
    proposed[constant[~shows]] = 0.0
    if bool(xp.any(shows)):
        places = xp.arange(len(proposed), device=proposed.device)[:, None]
        units = xp.astype(places == constant[shows], proposed.dtype)
        proposed = xp.concat([proposed, units], axis=1)
    # What one operator proposes differs little from what the next does, and the difference counts: by QR it is found to
    # all digits, where products of the proposed directions would tell half of them.
    proposed, _ = xp.linalg.qr(unit_columns(proposed.T)[0].T)
    images, rough = pencil.times(proposed)
    turn = whitening_mixtures(proposed.T @ images, dependent=_DEPENDENT)
    curvature, covariance = known.bordered(proposed @ turn, images @ turn, rough @ turn)
    own = float(xp.min(xp.linalg.diagonal(xp.linalg.cholesky(covariance)))) ** 2
    if own > _ROUNDING:
        values, vectors = eigh_generalised(curvature, covariance)
    else:
        mixtures = whitening_mixtures(covariance, dependent=_ROUNDING)
        values, vectors = eigh(mixtures.T @ curvature @ mixtures)
        vectors = mixtures @ vectors
    turned = known.directions @ vectors[:n, :n] + (proposed @ turn) @ vectors[n:, :n]
    turned[pencil.constant] = 0.0  # but for rounding they are, and the recovery would find it
    return values[:n], turned, own


def ask(pencil: Pencil, directions: Array, eigenvalues: Array) -> tuple[Array, Array]:
    """What V and S (n, n) are on the directions, less the unit matrix and less the eigenvalues: asked, not known."""
    images, rough = pencil.times(directions)
    covariance, curvature = add_to_diagonal(directions.T @ images, -1.0), directions.T @ rough
    return covariance, add_to_diagonal(curvature, -eigenvalues)


# The same for captured work, in two parts around the eigenproblem: arrays keep their shapes and the host is not waited
# for, so that proposed directions that add nothing new cannot be dropped. They are masked out instead.


def reduce_masked(pencil: Pencil, proposed: Array, known: Known) -> tuple[Array, Array, Array]:
    """The pencil on the known and the proposed directions as one symmetric matrix, its whitening, and the latter.

    The matrix is not finite where V is not positive there.
    """
    xp = array_namespace(proposed)
    shown = xp.where(pencil.constant, xp.sum(known.directions**2, axis=1), 0.0)
    stopped = xp.argsort(-shown)[:_STOPPED]
    units = xp.arange(len(shown), device=shown.device)[:, None] == stopped
    proposed = xp.concat([proposed, xp.where(units, shown[:, None], 0.0)], axis=1)
    proposed, _ = _orthonormalise_masked(pencil, proposed)
    proposed, images = _orthonormalise_masked(pencil, proposed)  # once more, now that no two are almost the same
    new = xp.sum(proposed * images, axis=0) > 0.5
    proposed = xp.where(new, proposed, 0.0)
    curvature, covariance = known.bordered(proposed, *pencil.times(proposed))
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
