"""`TemporalEmbedding`, the estimator of layer 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from psmt.embedding.closed_form import embed_window
from psmt.embedding.moments import WindowMoments
from psmt.engines import engine_for
from psmt.errors import NotEnoughFramesError
from psmt.numerics.rank import RANK_TOL, rank_of
from psmt.recovery import Recovery
from psmt.types import Array
from psmt.utils.constraints import Declared, allowing, by_name, check_parameters, count, parameter, real, truth
from psmt.utils.validation import check_samples, check_size


@by_name
@dataclass(kw_only=True, eq=False, repr=False)
class TemporalEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Linear embedding in which a sequence moves as straight as possible (layer 2 of the paper).

    Finds ``P`` that minimises ``||P A D||^2`` subject to ``P V P' = I``, where the columns of ``A`` are the codes in
    the order of time, ``D`` takes second differences and ``V`` is the covariance of the codes.

    Parameters
    ----------
    n_components : int or None, default None
        The number of directions, f in the paper. It is at most the rank of V. None keeps all directions.
    centred : bool, default True
        If True, V is the covariance, as in the paper. If False, V is the second moment of the codes about zero, as in
        the original sparse manifold transform. The latter is far less stable when the scene does not move.
    half_stencils : bool, default False
        If True, D has two more terms, as in the paper: the first code minus half the second code, and the last code
        minus half the code before it. If False, D has only the second differences between three codes.
    lam : float, default 0.0
        Sparsity (L1) penalty of the codes in `inverse_transform`.
    rank_tol : float, default 5e-9
        Strength of the regularisation, which acts as if white noise were added to the codes: the variance of the noise
        divided by that of the atoms (see `psmt.numerics.rank`). With 0, V is inverted on its range.
    device : str, default 'cpu'
        Where to compute: 'cpu', or 'cuda' for a GPU (see docs/how-to/gpu.md).

    Attributes
    ----------
    embedding_ : ``(n_components_, n_features)`` array
        The embedding matrix P, straightest direction first. The column of an atom that does not vary is zero.
    eigenvalues_ : ``(n_components_,)`` array
        ``||p A D||^2`` of each direction, ascending.
    rank_ : int
        Rank of V.
    moments_ : WindowMoments
        Moments of the codes.

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
    device: str = "cpu"

    _parameter_constraints = Declared()

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn the embedding from three or more codes (time, n_features), in the order of time. `y` is ignored.

        A ValueError is raised if `n_components` exceeds the rank of the codes.
        """
        self._check_parameters()
        codes: Array = check_samples(self, X)
        if len(codes) < 3:
            raise NotEnoughFramesError(
                f"X has n_samples = {len(codes)} codes (1 sample gives no motion); a second difference needs 3"
            )
        engine = engine_for(self.device)
        self.moments_ = WindowMoments.of(engine.array(codes), engine)
        return self._solve()

    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
        """Continue learning from the codes (time, n_features) that follow those seen so far. `y` is ignored.

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
        """Return the points ``(n_samples, n_components_)`` of codes (n_samples, n_features)."""
        check_is_fitted(self)
        codes: Array = check_samples(self, X, reset=False)
        return codes @ self.embedding_.T

    def inverse_transform(self, points: ArrayLike) -> Array:
        """Recover non-negative codes (n_samples, n_features) from points ``(n_samples, n_components_)`` (step 7).

        Each point is recovered independently, with the penalty `lam` and without a bound on activity.
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
        """Return the number of directions of the embedding."""
        return len(self.embedding_)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _check_parameters(self) -> None:
        engine_for(self.device)
        check_parameters(self, self._parameter_constraints)

    def _solve(self) -> Self:
        engine = engine_for(self.device)
        self.rank_ = rank_of(self.moments_.covariance(centred=self.centred))
        if self.n_components is not None and self.n_components > self.rank_:
            raise ValueError(
                f"n_components={self.n_components} is more than the rank {self.rank_} of the window's codes; "
                f"use n_components <= {self.rank_}, a longer window, one with more motion, or a smaller rank_tol"
            )
        how = {"centred": self.centred, "half_stencils": self.half_stencils}
        found = embed_window(self.moments_, self.n_components, rank_tol=self.rank_tol, **how)
        self.embedding_, self.eigenvalues_ = engine.numpy(found.matrix), engine.numpy(found.eigenvalues)
        return self
