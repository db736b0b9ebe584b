"""Planes of the embedding in which the scene turns: motion makes pictures turn, not move in straight lines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psmt.extrapolation.contract import Extrapolation
from psmt.extrapolation.lines import Gain
from psmt.extrapolation.proof import faded_sums, field_of_sums, proven, widened
from psmt.persistence.schema import LARGEST_SQUARE, Field
from psmt.types import Array


class Phase(Extrapolation):
    """Planes of the embedding in which the scene turns; each turns on as it did between the last two points.

    The planes are read off the lag-one covariance ``L = sum b_t b_(t-1)'`` in closed form: a scene that turns by a
    steady angle in some plane leaves its sine in the antisymmetric part ``L - L'``, whose eigenvectors come in complex
    conjugate pairs that span such planes. What turns both ways as often leaves nothing there and is not a plane to this
    rule. In a plane the last two points are complex numbers; the next has the phase advanced by as much once more.

    A plane turns on as far as turning has proved better than the learned gains of `Gain`, which continue what does not
    turn: its share in [0, 1] is the correlation of what turning foretold beyond them with what came beyond them, shrunk
    by its standard error as the gains are. A film that gives no reason to move is copied.

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
    predicts_change = adaptive = keeps_residual = True

    _MEMORY = 500.0
    """Observations after which old ones have faded to 1/e."""

    _SHOWN = 128
    """Directions that planes are sought in. Those beyond are the fastest and noisiest of the embedding."""

    def __init__(self) -> None:
        self._line = Gain()
        self._lagged = np.zeros((0, 0))
        # Faded sums as in `Gain`, of foretold and true changes: of all planes together, of each plane.
        self._common = np.zeros((3, 1))
        self._own = np.zeros((3, 0))
        self._planes: dict[int, NDArray[np.complex128]] = {}

    def observe(self, points: Array, pictures: Array) -> None:
        """Compare what turning foretold of the last of three points (3, n_components), then learn from all of them."""
        kept = np.exp(-1.0 / self._MEMORY)
        before, now, came = points[:, : self._SHOWN]
        width = max(len(now), len(self._lagged))
        straight = self.planes(len(now)) @ self._line.advance(before, now)
        foretold, true = self._turned(before, now) - straight, self.planes(len(now)) @ came - straight
        agreed = np.real(foretold.conj() * true)
        energy = 0.5 * (np.abs(foretold) ** 2 + np.abs(true) ** 2)
        self._common = kept * self._common + faded_sums(agreed.sum(keepdims=True), energy.sum(keepdims=True))
        self._own = kept * widened(self._own, width // 2) + widened(faded_sums(agreed, energy), width // 2)
        missing = width - len(self._lagged)
        self._lagged = kept * np.pad(self._lagged, ((0, missing), (0, missing)))
        self._lagged[: len(now), : len(now)] += np.outer(came, now)
        self._planes = {}
        self._line.observe(points, pictures)

    def planes(self, n_components: int) -> NDArray[np.complex128]:
        """Complex coordinates (n_components // 2, n_components) of orthogonal planes, most steadily turning first."""
        n = min(n_components, self._SHOWN)
        if n not in self._planes:
            lagged = np.zeros((n, n))
            known = min(n, len(self._lagged))
            lagged[:known, :known] = self._lagged[:known, :known]
            # i times an antisymmetric matrix is Hermitian: its eigenvalues are real and come in pairs of opposite sign.
            _, vectors = np.linalg.eigh(1j * (lagged - lagged.T))
            self._planes[n] = np.sqrt(2.0) * vectors[:, ::-1][:, : n // 2].conj().T
        return self._planes[n]

    def shares(self, n_components: int) -> Array:
        """How far each plane turns, (n_components // 2,), as learned so far."""
        n_planes = min(n_components, self._SHOWN) // 2
        common = proven(self._common, 0.0, 1.0)
        return np.clip(common + proven(widened(self._own, n_planes)[:, :n_planes], common, 2.0), 0.0, 1.0)

    def advance(self, previous: Array, current: Array, /) -> Array:
        """The next point (n_components,): planes turn on by their shares, all else repeats by its gain."""
        shown = slice(self._SHOWN)
        planes = self.planes(len(current))
        following = self._line.advance(previous, current)
        bend = self._turned(previous[shown], current[shown]) - planes @ following[shown]
        following[shown] += np.real(planes.conj().T @ (self.shares(len(current)) * bend))
        return following

    def _turned(self, previous: Array, current: Array) -> NDArray[np.complex128]:
        """Complex coordinates (n_planes,) after the current ones if they turn on as between the two points."""
        planes = self.planes(len(current))
        before, now = planes @ previous, planes @ current
        turn = now * before.conj()
        size = np.abs(turn)
        return now * np.divide(turn, size, out=np.ones_like(turn), where=size > 0)

    @property
    def state(self) -> dict[str, Array]:
        """The lagged covariance and the weighted sums behind shares and gains."""
        line = {f"line_{key}": value for key, value in self._line.state.items()}
        return {"lagged": self._lagged, "common": self._common, "own": self._own, **line}

    @state.setter
    def state(self, state: dict[str, Array]) -> None:
        self._lagged, self._common, self._own = state["lagged"], state["common"], state["own"]
        self._line.state = {key: state[f"line_{key}"] for key in self._line.state}
        self._planes = {}

    @classmethod
    def schema(cls) -> dict[str, Field]:
        """What `state` holds."""
        lagged = Field(("n_lagged", "n_lagged"), low=-LARGEST_SQUARE, high=LARGEST_SQUARE, may_be_empty=True)
        line = {f"line_{key}": field for key, field in Gain.schema().items()}
        return {"lagged": lagged, "common": field_of_sums(1), "own": field_of_sums("n_planes"), **line}
