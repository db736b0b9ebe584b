"""Tracking the embedding of a sliding window from slide to slide, instead of solving it afresh.

The directions of the embedding are the generalised eigenvectors ``S x = r V x`` of smallest eigenvalue r. A slide
changes V and S, noise included (see `psmt.numerics.rank`), by a few outer products of vectors b. For an eigenvector of
the window after the slide, the equation of the window before it therefore leaves only a combination of the b's::

    (S - r V) x  in  span(b),    that is    x  in  (S - r V)^-1 span(b)    with its own r.

The known directions, that is the wanted ones and some guards beside them, supply one part of x. The rest has no pole
near the wanted r, so a few fixed shifts approximate it for all of them (shift-invert, as in a rational Krylov method).
A Rayleigh-Ritz step on the known directions and these few others finds the embedding to many digits, however far a
single direction has turned. The operators at the shifts change by the same outer products (Woodbury's formula). The
shifts are complex, because an eigenvalue that passes a real shift would make its operator almost singular, and rounding
would grow tenfold from slide to slide. When the eigenvalues have moved away from a shift, its operator is refactorised,
one at a time and in parallel with the next slides. The operators only propose directions: the step itself uses the
present V and S, and its error is measured. If the error is too large, further steps start from the residuals. If these
do not help, the closed form is solved, and tracking goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

import numpy as np

from psmt.embedding.closed_form import Embedding, embed_window
from psmt.embedding.moments import WindowMoments
from psmt.embedding.pencil import (
    Known,
    Pencil,
    estimate_error,
    lifted_covariance,
    mixed_residuals,
    products_on,
    propose,
    rayleigh_ritz,
    real_parts,
    reduce_masked,
    regularised_change,
    turn_masked,
    window_noise,
)
from psmt.engines.contract import Engine, LowRankChange, ShiftInvert
from psmt.engines.window import Sums
from psmt.numerics.arrays import array_namespace, contiguous, eigh, eigh_generalised
from psmt.numerics.rank import RANK_TOL, fix_signs
from psmt.types import Array, Mask

NODES = (0.08 + 0.1j, 0.5 + 0.12j, 0.92 + 0.1j)
"""Shifts of the operators, in the range of the wanted eigenvalues. Each is as good as two real ones, because its image
has a real and an imaginary part. Fewer leave larger errors, more cost time and memory."""

# When tracking pays, and how exact it must be
_GUARDS, _FEWEST_GUARDS = 0.25, 24  # directions tracked beside the wanted ones, as a fraction of these, and at least
_MOST = 0.6  # fraction of all directions beyond which tracking takes as long as the closed form
_FEWEST = 192  # with fewer atoms the closed form is solved every time: it takes no longer
_FEW_CODES, _TIGHTER = 2.0, 0.1  # with fewer codes per atom predictions magnify errors, so the tolerance is smaller

_FEWEST_OF_FEW = 513
"""As `_FEWEST`, for a window with no more codes than atoms. There some directions of V are only noise, and predictions
magnify errors a hundredfold that are too small to show in the subspace."""

# The resolvent
_REFINEMENTS = 2  # of its change by a slide; with only one, errors could grow from slide to slide
_STALE = 1e-8  # error of a refined change from which the resolvent is computed afresh; also after n_features / 2 slides

# Further steps and operators
_CORRECTIONS = 4  # further steps before the closed form is solved; only the first of them uses known products
_MIXTURES, _MIXTURES_AFRESH = 3, 8  # probes for each operator in a further step, and if all directions may be wrong
_INACCURATE = 0.1  # relative residual from which an operator is refactorised because of rounding
_MOVED = 0.5  # relative change of the range of wanted eigenvalues from which an operator is refactorised

_DOUBTFUL = 1e-3
"""If a direction has less than this fraction of its variance of its own, beside the others of a step, rounding shows in
the known products: V and S on the directions are then computed."""


@dataclass(eq=False)
class FollowedEmbedding:
    """P of a sliding window, updated after each slide.

    Parameters
    ----------
    n_components : int or None
        f, the number of directions. If these are most of all directions (or None, all of them), or V is not regularised
        (``rank_tol=0``), tracking gains nothing, and the closed form is solved every time.
    centred, half_stencils, rank_tol :
        As in `TemporalEmbedding`.
    tol : float
        Largest error of the subspace, as estimated in `error_`, before the closed form is solved; a tenth of it for a
        window of few codes.

    Attributes
    ----------
    error_ : float
        Estimated sine of the largest angle between the present subspace and the exact one.
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
    tol: float = 2e-7

    def __post_init__(self) -> None:
        self.error_ = 0.0
        self.n_solved_ = 0
        self._track: Track | None = None
        self._changes = -1
        self._engine: Engine | None = None

    def update(self, moments: WindowMoments) -> Embedding:
        """The embedding of the present window."""
        change = moments.last_change(self._changes, centred=self.centred, half_stencils=self.half_stencils)
        stays = moments.changes == self._changes
        self._changes = moments.changes
        # A track that fails midway cannot be used again.
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
        """Whether an embedding is being tracked: then every slide must be passed to `update`, which is fast."""
        return self._track is not None

    def _start(self, moments: WindowMoments) -> Embedding:
        """Solve the closed form, and track it from here on if that pays."""
        wanted, n_features = self.n_components, moments.n_features
        followed = 0  # directions to track, guards included, if that takes less time than the closed form
        fewest = _FEWEST if len(moments) > n_features else _FEWEST_OF_FEW
        if wanted is not None and self.rank_tol and n_features >= fewest:
            with_guards = wanted + max(int(_GUARDS * wanted), _FEWEST_GUARDS)
            followed = with_guards if with_guards <= _MOST * n_features else 0
        found = self._solve(moments, followed or wanted)
        if wanted is None or not 0 < followed == len(found):
            return Embedding(found.matrix[:wanted], found.eigenvalues[:wanted])
        self._track = Track(found, wanted, self._view(moments), moments.engine)
        return self._track.embedding

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


class View(NamedTuple):
    """The data of a window that a track uses."""

    sums: Sums
    constant: Mask  # atoms (n_features,) that do not vary
    noise: Array  # variance () of the noise
    centred: bool


class Track:
    """The wanted directions and their guards, from slide to slide, starting from the closed form."""

    def __init__(self, found: Embedding, wanted: int, view: View, engine: Engine) -> None:
        self.wanted = wanted
        self._engine = engine
        self._random = np.random.default_rng(0)
        self._probes: dict[tuple[int, ...], Array] = {}
        nodes = np.array(NODES)
        self._nodes: Array = engine.array(nodes.real) + 1j * engine.array(nodes.imag)
        self._suspicious = False  # whether the error was too large after the last slide's proposals
        self._begin(found)
        self._make_resolvent(view)
        shifts = self._good_shifts()
        self._inverses: ShiftInvert = engine.shift_invert(self._pencil(view).shifted(shifts), shifts)
        # Captured work belongs to the operators, so it is released with them.
        self._regularise, self._propose = engine.capture(regularised_change), engine.capture(propose)
        self._estimate = engine.capture(estimate_error)
        self._products_on = engine.capture(products_on)
        self._reduce, self._turn = engine.capture(reduce_masked), engine.capture(turn_masked)

    def _begin(self, found: Embedding) -> None:
        self.directions = contiguous(found.matrix.T)  # (n_features, n)
        self.eigenvalues = found.eigenvalues
        self.error = 0.0
        self._matrix: Array | None = None
        none = array_namespace(self.directions).zeros_like(self.directions[: self.followed])
        self._exact = none, none
        self._doubtful = False  # whether V and S on the directions may differ from the unit matrix and eigenvalues

    def _make_resolvent(self, view: View) -> None:
        self.noise = float(view.noise)
        self._slides = 0
        lifted = lifted_covariance(view.sums, self.noise, centred=view.centred)
        self._resolvent: ShiftInvert = self._engine.shift_invert(lifted, self._engine.array([-1.0]))

    def _pencil(self, view: View) -> Pencil:
        return Pencil(*view, self.noise, self._resolvent)

    @property
    def followed(self) -> int:
        """Number of tracked directions, guards included."""
        return len(self.eigenvalues)

    @property
    def embedding(self) -> Embedding:
        """The wanted directions."""
        xp = array_namespace(self.directions)
        if self._matrix is None:
            self._matrix = fix_signs(contiguous(self.directions[:, : self.wanted].T))
        return Embedding(self._matrix, xp.clip(self.eigenvalues[: self.wanted], min=0.0))

    def update(self, view: View, change: LowRankChange, tol: float) -> bool:
        """Track a slide, to an error of at most `tol`; return False if that is not possible."""
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
                if suspicious and not self._suspicious:  # at a slide with time left for it
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
        """Go on from the closed form with the present operators; return False if there are too few directions."""
        if len(found) < self.followed:
            return False
        self._begin(found)
        if self.noise != float(view.noise):
            self._make_resolvent(view)
        with self._engine.small_work():
            self._refactorise_worst(self._pencil(view))
        return True

    def _full_change(self, view: View, change: LowRankChange) -> LowRankChange:
        """The change of V and S with their noise; the resolvent takes up the change."""
        *full, accuracy = self._regularise(change, self._pencil(view), refinements=_REFINEMENTS)
        self._slides += 1
        if 2 * self._slides >= len(self.directions) or float(accuracy) > _STALE:
            self._slides = 0
            lifted = lifted_covariance(view.sums, self.noise, centred=view.centred)
            self._resolvent.refactorise(self._resolvent.shifts < 0, self._resolvent.shifts, lifted)
        return LowRankChange(*full)

    def _good_shifts(self) -> Array:
        """Best shifts (n_shifts,) for the present eigenvalues."""
        first, last = self.eigenvalues[0], self.eigenvalues[self.wanted]
        shifts: Array = first + (last - first) * self._nodes
        return shifts

    def _probe_vectors(self, *shape: int) -> Array:
        """Random numbers of a shape; always the same if work is captured, because moving new ones would wait."""
        if not self._engine.captures or shape not in self._probes:
            self._probes[shape] = self._engine.array(self._random.standard_normal(shape))
        return self._probes[shape]

    def _correct(self, pencil: Pencil, *, afresh: bool) -> None:
        """Take one more Rayleigh-Ritz step, in directions given by the residuals."""
        if afresh:
            self._refactorise_worst(pencil)
            self._rayleigh_ritz_afresh(pencil, self._corrections(pencil, _MIXTURES_AFRESH))
            return
        known = self._known(pencil, lambda exact: exact)
        self._rayleigh_ritz(pencil, self._corrections(pencil, _MIXTURES), known)

    def _known(self, pencil: Pencil, since: Callable[[Known], Known]) -> Known:
        """V and S on the directions: the result of the last step and the changes `since`, or computed if doubtful."""
        if not self._engine.captures and not self._doubtful:
            return since(Known(self.directions, self.eigenvalues, *self._exact))
        self._doubtful = False
        return Known(self.directions, self.eigenvalues, *self._products_on(pencil, self.directions, self.eigenvalues))

    def _corrections(self, pencil: Pencil, mixtures: int) -> Array:
        """Directions (n_features, n) in which the wanted ones still have errors: images of residuals."""
        shifts = self._inverses.shifts
        xp, n_shifts = array_namespace(shifts), len(shifts)
        distance = xp.abs(self.eigenvalues[: self.wanted, None] - shifts)
        nearest = xp.argmin(distance, axis=1)[:, None] == xp.arange(n_shifts, device=shifts.device)
        mixing = xp.where(nearest[..., None], self._probe_vectors(self.wanted, n_shifts, mixtures), 0.0)
        residuals = mixed_residuals(pencil, self.directions, self.eigenvalues, xp.reshape(mixing, (self.wanted, -1)))
        mixed = xp.permute_dims(xp.reshape(residuals, (-1, n_shifts, mixtures)), (1, 0, 2))
        images = xp.permute_dims(real_parts(self._inverses.times_each(mixed)), (1, 0, 2))
        return xp.reshape(images, (len(self.directions), -1))

    def _refactorise_worst(self, pencil: Pencil, *, later: bool = False) -> None:
        """Refactorise the worst operator at a new shift, if it has much rounding or its shift is far off.

        With `later` the engine may do so in the background.
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
        """Find the best directions in the span of the known and the proposed ones."""
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
        """The same, more slowly: all products are computed, and dependent directions do no harm.

        This removes the rounding that has accumulated in the known directions, step after step.
        """
        images, rough = pencil.times(self.directions)
        values, turn = eigh_generalised(self.directions.T @ rough, self.directions.T @ images)
        directions, images = self.directions @ turn, images @ turn
        # Subtract the known part: otherwise little but rounding would be left of the proposed directions.
        proposed = proposed - directions @ (images.T @ proposed)
        known = Known(directions, values, *self._exact)
        self.eigenvalues, self.directions, own = rayleigh_ritz(pencil, proposed, known)
        self._matrix, self._doubtful = None, own < _DOUBTFUL

    def _measure_error(self, pencil: Pencil) -> None:
        mixing = self._probe_vectors(self.wanted, 2)
        (error,) = self._estimate(self.directions, self.eigenvalues, mixing, pencil, self._inverses)
        self.error = float(error)
