"""Rules that continue the last step: a straight line (the paper's rule), no motion, learned gains, and rotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from psmt.extrapolation.contract import Extrapolation
from psmt.persistence.schema import LARGEST_SQUARE, Field, Size, under
from psmt.types import Array


class Linear(Extrapolation):
    """The paper's rule, which repeats the last step: after the points c and b, the next point is ``2 b - c``."""

    name = "linear"

    def advance(self, previous: Array, current: Array, /) -> Array:
        """Return the next point (n_components,), on the straight line through the last two points."""
        return 2.0 * current - previous


class Hold(Extrapolation):
    """The rule without motion: the next point equals the last point."""

    name = "hold"

    def advance(self, _previous: Array, current: Array, /) -> Array:
        """Return the last point (n_components,)."""
        return current


class _Correlation(Extrapolation):
    """Base of rules that learn the correlation between predicted and observed motion.

    They learn a separate correlation for each direction of the embedding, and a common correlation of all directions.
    Separate correlations are shrunk towards the common correlation.
    """

    predicts_change = adaptive = True
    state_arrays: tuple[str, ...] = ("_common", "_own")

    _MEMORY = 500.0  # number of observations after which the weight of an observation has fallen to 1/e

    def __init__(self) -> None:
        # Weighted sums of products, of energies, and of squared energies.
        self._common = np.zeros((3, 1))
        self._own = np.zeros((3, 0))

    def _add(self, common: tuple[Array, Array], own: tuple[Array, Array], width: int) -> None:
        """Add one observation to the sums for the common correlation and for the `width` separate correlations.

        `common` and `own` are pairs of arrays (n,): the products of two motions, and the mean of their squares
        (energy). A correlation is the sum of products divided by the sum of energies.
        """
        kept = np.exp(-1.0 / self._MEMORY)
        self._common = kept * self._common + _terms(*(part.sum(keepdims=True) for part in common))
        self._own = kept * _widened(self._own, width) + _widened(_terms(*own), width)

    def _correlations(self, n: int) -> Array:
        """Return the correlation (n,) of each direction: the common correlation plus a separate difference.

        The common correlation is soft-thresholded at one standard error, and the difference at two standard errors.
        """
        common = _significant(self._common, 0.0, 1.0)
        return common + _significant(_widened(self._own, n)[:, :n], common, 2.0)


class Gain(_Correlation):
    """Repeats a learned fraction of the last step in each direction of the embedding. The fraction is called gain.

    The gain is the lag-one autocorrelation of the steps over an exponentially weighted past, so it lies in [-1, 1]. It
    is near 1 for steady motion, near 0 for a random walk, and negative for flicker. A common gain is computed from the
    decoded frames and soft-thresholded at one standard error. The difference between the gain of a direction and the
    common gain is soft-thresholded at two standard errors. Without evidence of motion the gains are zero.

    The model passes only steps to which its embedding was not fitted. Gains of fitted steps are too large: with three
    codes per atom, gains of the leading directions are near 0.7 in the window and near 0 on the frames after it.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.arange(400.0)
    >>> glide, flicker = np.sin(t / 20), (-1.0) ** t
    >>> sequence = np.column_stack([glide, flicker])
    >>> rule = Gain().fit(sequence, sequence)
    >>> [round(float(g), 1) for g in rule.gains(2)]
    [0.9, -0.9]
    """

    name = "gain"

    def observe(self, points: Array, pictures: Array) -> None:
        """Learn from the two steps between three points (3, n_components) and their decoded frames (3, n_features)."""
        self._add(_steps(pictures), _steps(points), max(points.shape[1], self._own.shape[1]))

    def gains(self, n_components: int) -> Array:
        """Return the gains (n_components,) learned so far."""
        return self._correlations(n_components)

    def advance(self, previous: Array, current: Array, /) -> Array:
        """Return the next point (n_components,). Each direction repeats its last step, multiplied by its gain."""
        return current + self.gains(len(current)) * (current - previous)

    @classmethod
    def schema(cls) -> dict[str, Field]:
        """Return the shapes and bounds that the saved arrays must have, by name."""
        return {"common": _field_of_sums(1), "own": _field_of_sums("n_gains")}


class Phase(_Correlation):
    """Repeats the last rotation in each plane of the embedding in which the scene rotates.

    The planes are computed from the lag-one covariance ``L = sum b_t b_(t-1)'`` of the points b. A steady rotation by
    the angle w per step adds a term proportional to sin(w) to the antisymmetric part ``L - L'``. The eigenvectors of
    this part are complex conjugate pairs, and each pair spans a plane. Rotations that occur equally often in both
    senses cancel, and are not found. The coordinates of a point in a plane form a complex number. Its phase is
    predicted to advance by as much as in the last step.

    `Gain` predicts the directions outside the planes. In a plane, the prediction is ``g + share (r - g)``, where g is
    the prediction by `Gain` and r the prediction by rotation. The share is the correlation of ``r - g`` with ``y - g``,
    where y is the observed point. It is shrunk by its standard error, as gains are, and lies in [0, 1]. Without
    evidence of motion the last point is repeated.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.arange(400.0)
    >>> circle = np.column_stack([np.cos(t / 3), np.sin(t / 3)])
    >>> rule = Phase().fit(circle, circle)
    >>> bool(np.abs(rule.advance(circle[-2], circle[-1]) - [np.cos(400 / 3), np.sin(400 / 3)]).max() < 0.05)
    True
    """

    name = "phase"
    keeps_residual = True
    state_arrays = ("_lagged", "_common", "_own")
    state_parts: ClassVar = {"_line": "line_"}

    _SHOWN = 128
    """Number of leading directions in which planes are sought. Later directions are the fastest and noisiest."""

    def __init__(self) -> None:
        super().__init__()
        self._line = Gain()
        self._lagged = np.zeros((0, 0))
        self._planes: dict[int, NDArray[np.complex128]] = {}

    def observe(self, points: Array, pictures: Array) -> None:
        """Learn from three points (3, n_components). Shares of planes are learned by predicting the third point."""
        before, now, came = points[:, : self._SHOWN]
        width = max(len(now), len(self._lagged))
        straight = self.planes(len(now)) @ self._line.advance(before, now)
        predicted, true = self._turned(before, now) - straight, self.planes(len(now)) @ came - straight
        agreed = np.real(predicted.conj() * true)
        energy = 0.5 * (np.abs(predicted) ** 2 + np.abs(true) ** 2)
        self._add((agreed, energy), (agreed, energy), width // 2)
        missing = width - len(self._lagged)
        self._lagged = np.exp(-1.0 / self._MEMORY) * np.pad(self._lagged, ((0, missing), (0, missing)))
        self._lagged[: len(now), : len(now)] += np.outer(came, now)
        self._planes = {}
        self._line.observe(points, pictures)

    def planes(self, n_components: int) -> NDArray[np.complex128]:
        """Return orthogonal planes as complex rows (n_components // 2, n_components), the steadiest rotation first."""
        n = min(n_components, self._SHOWN)
        if n not in self._planes:
            lagged = np.zeros((n, n))
            known = min(n, len(self._lagged))
            lagged[:known, :known] = self._lagged[:known, :known]
            # i times an antisymmetric matrix is Hermitian. Its eigenvalues are real and come in pairs of opposite sign.
            _, vectors = np.linalg.eigh(1j * (lagged - lagged.T))
            self._planes[n] = np.sqrt(2.0) * vectors[:, ::-1][:, : n // 2].conj().T
        return self._planes[n]

    def shares(self, n_components: int) -> Array:
        """Return the learned share (n_planes,) of each plane, from 0 (prediction by gains) to 1 (by rotation)."""
        return np.clip(self._correlations(min(n_components, self._SHOWN) // 2), 0.0, 1.0)

    def advance(self, previous: Array, current: Array, /) -> Array:
        """Return the next point (n_components,).

        In each plane, the share of the plane says how far the prediction by `Gain` moves to the prediction by rotation.
        """
        shown = slice(self._SHOWN)
        planes = self.planes(len(current))
        following = self._line.advance(previous, current)
        bend = self._turned(previous[shown], current[shown]) - planes @ following[shown]
        following[shown] += np.real(planes.conj().T @ (self.shares(len(current)) * bend))
        return following

    def _turned(self, previous: Array, current: Array) -> NDArray[np.complex128]:
        """Return the complex coordinates (n_planes,) of the next point if each plane repeats its last rotation."""
        planes = self.planes(len(current))
        before, now = planes @ previous, planes @ current
        turn = now * before.conj()
        size = np.abs(turn)
        return now * np.divide(turn, size, out=np.ones_like(turn), where=size > 0)

    def set_state(self, state: Mapping[str, NDArray[Any]], /) -> None:
        """Restore a state that `get_state` returned."""
        super().set_state(state)
        self._planes = {}

    @classmethod
    def schema(cls) -> dict[str, Field]:
        """Return the shapes and bounds that the saved arrays must have, by name."""
        lagged = Field(("n_lagged", "n_lagged"), low=-LARGEST_SQUARE, high=LARGEST_SQUARE, may_be_empty=True)
        own = {"lagged": lagged, "common": _field_of_sums(1), "own": _field_of_sums("n_planes")}
        return own | under("line_", Gain.schema())


def _steps(triple: Array) -> tuple[Array, Array]:
    """Return the product (n,) of the two steps between three points (3, n), and the mean (n,) of their squares."""
    before, after = np.diff(triple, axis=0)
    return before * after, 0.5 * (before**2 + after**2)


def _terms(product: Array, energy: Array) -> Array:
    """Return the summands (3, n) of a correlation: the products, the energies and the squared energies, each (n,)."""
    return np.array([product, energy, energy**2])


def _field_of_sums(n: Size) -> Field:
    high = np.finfo(float).max
    return Field((3, n), low=-high, high=high, may_be_empty=True, check=(_are_sums, "has correlations beyond 1"))


def _are_sums(sums: Array) -> bool:
    product, energy, squared = sums
    return bool((energy >= 0).all() and (squared >= 0).all() and (np.abs(product) <= (1.0 + 1e-6) * energy).all())


def _widened(sums: Array, width: int) -> Array:
    """Return the sums (3, n), padded with zeros to at least `width` columns."""
    return np.pad(sums, ((0, 0), (0, max(width - sums.shape[1], 0))))


def _significant(sums: Array, prior: Array | float, n_errors: float) -> Array:
    """Return the correlations minus `prior` (n,), soft-thresholded at `n_errors` standard errors."""
    repeated, energy, squared = sums
    known = energy > 0
    difference = np.divide(repeated, energy, out=np.zeros_like(energy), where=known) - prior
    # Observations are weighted by energy, so there are fewer effective observations than frames.
    error = np.divide(np.sqrt(squared), energy, out=np.full_like(energy, np.inf), where=known)
    return np.asarray(np.sign(difference) * np.maximum(np.abs(difference) - n_errors * error, 0.0))
