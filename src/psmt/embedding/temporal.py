"""`TemporalEmbedding`, the estimator of layer 2, and `solve_window`, step 5 for one window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from psmt.embedding.closed_form import Embedding, embed_window
from psmt.embedding.moments import WindowMoments
from psmt.embedding.stochastic import BATCH_SIZE, MAX_EPOCHS, RATE, TOL, StochasticEmbedding, check_solver, draw_seed
from psmt.engines import engine_for
from psmt.errors import NotEnoughFramesError
from psmt.numerics.rank import RANK_TOL, rank_of
from psmt.recovery import Recovery
from psmt.types import Array
from psmt.utils.constraints import (
    Declared,
    allowing,
    check_parameters,
    choice,
    count,
    parameter,
    real,
    renamed,
    truth,
    warn_renamed,
)
from psmt.utils.validation import check_samples, check_size


def solve_window(
    moments: WindowMoments, n_components: int | None, *, solver: str = "closed", seed: int = 0, **how: Any
) -> Embedding:
    """The embedding of a window by 'closed', or by 'sgd' from a random start.

    `how` are `centred`, `half_stencils` and `rank_tol`, as in `TemporalEmbedding`.
    """
    if solver == "closed":
        return embed_window(moments, n_components, **how)
    check_solver(solver, device=moments.engine.device)
    return StochasticEmbedding(n_components, seed=seed, **how).update(moments)


@dataclass(kw_only=True, eq=False, repr=False)
class TemporalEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Linear embedding in which a sequence moves as straight as possible (layer 2 of the paper).

    Finds ``P`` that minimises ``||P A D||^2`` subject to ``P V P' = I``, where the columns of ``A`` are the codes in
    the order of time, ``D`` takes second differences and ``V`` is the covariance of the codes.

    Parameters
    ----------
    n_components : int or None, default None
        f of the paper, at most the rank of V; None keeps all directions.
    centred : bool, default True
        If True, V is the covariance, as in the paper. If False, V is the second moment of the original sparse manifold
        transform, which is far less stable when the scene does not move.
    half_stencils : bool, default False
        If True, D is H x H with half stencils at both ends, as in the paper. If False, D has interior differences only.
    lam : float, default 0.0
        Sparsity (L1) penalty of the codes in `inverse_transform`.
    rank_tol : float, default 5e-9
        Regularisation of V and S: variance of an added noise, relative to the atoms' variance, in directions that the
        window does not show. In other directions the noise is far smaller (see `psmt.numerics.rank`). With 0, V is not
        regularised and is inverted inside its range.
    solver : {'closed', 'sgd'}, default 'closed'
        'sgd' takes mini-batch steps, and `partial_fit` goes on from the last of them. At convergence they give the
        closed form, up to `tol`: see `psmt.embedding.stochastic`.
    max_epochs, batch_size : int
        Of 'sgd': most passes over the codes, and second differences in a batch.
    rate : float
        Of 'sgd': one pass damps directions as rough as the roughest that is kept by ``exp(-rate)``; any rate is stable.
    tol : float or None
        Of 'sgd': stop at this relative excess of the roughness over the minimum, as estimated from the gradient. If it
        is not reached, a `ConvergenceWarning` says so. With None, stop early after `max_epochs` plain passes, whose
        rows are not turned into eigenvectors.
    sparsity : float
        Of 'sgd': amount by which each pass shrinks every weight of P, in standard deviations of its atom, so that rows
        use fewer atoms. This is the sparsity penalty of the sparse manifold transform.
    random_state : int, RandomState or None
    device : str, default 'cpu'
        Where to compute: 'cpu', or 'cuda' for a GPU (see docs/how-to/gpu.md).
    ends : bool
        Deprecated name of `half_stencils`.

    Attributes
    ----------
    embedding_ : ``(n_components_, n_features)`` array
        P, straightest direction first. An atom that does not vary has a zero column.
    eigenvalues_ : ``(n_components_,)`` array
        ``||p A D||^2`` of each direction, ascending.
    rank_ : int
        Rank of V.
    moments_ : WindowMoments
        Moments of the codes.
    descent_ : StochasticEmbedding or None
        State of 'sgd', with its `n_epochs_` and `error_`.

    Examples
    --------
    A point that circles at constant speed is embedded so that it moves smoothly, and is recovered:

    >>> import numpy as np
    >>> from psmt import TemporalEmbedding
    >>> t = np.linspace(0, 6, 200)
    >>> codes = np.column_stack([1 + np.cos(t), 1 + np.sin(t), np.random.default_rng(0).random(200)])
    >>> layer = TemporalEmbedding(n_components=2).fit(codes)
    >>> bool((layer.eigenvalues_ < 0.01).all())
    True
    >>> full = TemporalEmbedding().fit(codes)
    >>> bool(np.allclose(full.inverse_transform(full.transform(codes)), codes))
    True
    """

    n_components: int | None = parameter(None, allowing(None, count()))
    centred: bool = parameter(True, truth)
    half_stencils: bool = parameter(False, truth)
    lam: float = parameter(0.0, real())
    rank_tol: float = parameter(RANK_TOL, real())
    solver: str = parameter("closed", choice("closed", "sgd"))
    max_epochs: int = parameter(MAX_EPOCHS, count())
    batch_size: int = parameter(BATCH_SIZE, count())
    rate: float = parameter(RATE, real(open_bound=True))
    tol: float | None = parameter(TOL, allowing(None, real()))
    sparsity: float = parameter(0.0, real())
    random_state: int | np.random.RandomState | None = None
    device: str = "cpu"
    ends: bool | Literal["deprecated"] = "deprecated"

    _parameter_constraints = Declared()

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn P from three or more codes (time, n_features), in the order of time; `y` is ignored.

        If `n_components` is more than the rank of the codes, ValueError is raised.
        """
        self._check_parameters()
        codes: Array = check_samples(self, X)
        if len(codes) < 3:
            raise NotEnoughFramesError(
                f"X has n_samples = {len(codes)} codes (1 sample gives no motion); a second difference needs 3"
            )
        engine = engine_for(self.device)
        self.moments_ = WindowMoments.of(engine.array(codes), engine)
        self.descent_ = self._start_descent() if self.solver == "sgd" else None
        return self._solve()

    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
        """Continue learning from the codes (time, n_features) that follow those seen so far; `y` is ignored.

        >>> import numpy as np
        >>> codes = np.random.default_rng(0).random((100, 4))
        >>> whole = TemporalEmbedding().fit(codes)
        >>> parts = TemporalEmbedding().fit(codes[:60]).partial_fit(codes[60:])
        >>> bool(np.allclose(whole.embedding_, parts.embedding_))
        True
        """
        if not hasattr(self, "moments_"):
            return self.fit(X)
        codes: Array = check_samples(self, X, reset=False)
        for code in engine_for(self.device).array(codes):
            self.moments_.update(code)
        return self._solve()

    def transform(self, X: ArrayLike) -> Array:
        """Points ``(n_samples, n_components_)`` of the codes (n_samples, n_features)."""
        check_is_fitted(self)
        codes: Array = check_samples(self, X, reset=False)
        return codes @ self.embedding_.T

    def inverse_transform(self, points: ArrayLike) -> Array:
        """Non-negative codes (n_samples, n_features) recovered from points: step 7 of the paper.

        Each of the points ``(n_samples, n_components_)`` is recovered by itself, with the penalty `lam` and without a
        bound on activity.
        """
        check_is_fitted(self)
        given: Array = check_array(points, dtype=np.float64)
        check_size(given, name="points")
        if given.shape[1] != len(self.embedding_):
            raise ValueError(f"points have {given.shape[1]} columns, but there are {len(self.embedding_)} components")
        engine = engine_for(self.device)
        recover = Recovery(engine.array(self.embedding_), self.lam, engine=engine)
        return np.array([engine.numpy(recover(point)) for point in engine.array(given)])

    @property
    def n_components_(self) -> int:
        """Number of directions in P."""
        return len(self.embedding_)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    @property
    def roughness_(self) -> Array:
        """Deprecated name of `eigenvalues_`."""
        warn_renamed("roughness_", "eigenvalues_")
        return self.eigenvalues_

    @property
    def _half_stencils(self) -> bool:
        return renamed("half_stencils", self.half_stencils, "ends", self.ends)

    def _check_parameters(self) -> None:
        engine_for(self.device)
        check_parameters(self, self._parameter_constraints)
        check_solver(self.solver, device=self.device, sparsity=self.sparsity)

    def _solve(self) -> Self:
        engine = engine_for(self.device)
        self.rank_ = rank_of(self.moments_.covariance(centred=self.centred))
        if self.n_components is not None and self.n_components > self.rank_:
            raise ValueError(
                f"n_components={self.n_components} is more than the rank {self.rank_} of the window's codes; "
                f"use n_components <= {self.rank_}, a longer or livelier window, or a smaller rank_tol"
            )
        if self.descent_ is not None:
            found = self.descent_.update(self.moments_)
        else:
            how = {"centred": self.centred, "half_stencils": self._half_stencils}
            found = embed_window(self.moments_, self.n_components, rank_tol=self.rank_tol, **how)
        self.embedding_, self.eigenvalues_ = engine.numpy(found.matrix), engine.numpy(found.eigenvalues)
        return self

    def _start_descent(self) -> StochasticEmbedding:
        shared = ("centred", "rank_tol", "max_epochs", "batch_size", "rate", "tol", "sparsity")
        own = {name: getattr(self, name) for name in shared}
        seed = draw_seed(self.random_state)
        return StochasticEmbedding(self.n_components, half_stencils=self._half_stencils, seed=seed, **own)
