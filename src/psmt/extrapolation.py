"""Step 6: where the embedded scene goes next.

Most strategies continue each direction of the embedding by a multiple of its last step, ``b + g * (b - b_before)``:
the paper's straight line has ``g = 1``, holding still has ``g = 0``, and `Gain` learns one ``g`` per direction: the
lag-one autocorrelation of its steps, shrunk by standard errors. `Phase` takes directions in pairs, as planes in which
the scene turns: motion makes pictures turn, not move in straight lines. They are the complex eigenpairs of the
antisymmetric part of the lagged covariance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from psmt.schema import LARGEST_SQUARE, Field, Size
from psmt.types import Array
from psmt.validation import check_choice


class Extrapolation(ABC):
    """A rule that continues trajectories.

    The model calls `advance` to predict and `observe` with what came, seen through an embedding that did not know it.
    Strategies that learn keep what they learned in `state`, a dict of arrays that is saved with the model.
    """

    name: ClassVar[str]
    predicts_change: ClassVar[bool] = False
    """The prediction is the last code plus the recovered change, so that what the embedding does not show stays."""
    adaptive: ClassVar[bool] = False
    """It wants to `observe` what came."""
    keeps_residual: ClassVar[bool] = False
    """What layer 1 does not hold of the last frame is carried along: the prediction is that frame plus a change."""

    @abstractmethod
    def advance(self, previous: Array, current: Array, /) -> Array:
        """The next point (n_components,) after the last two."""

    def observe(self, points: Array, pictures: Array) -> None:
        """Learn from three successive points (3, n_components) and the pictures (3, n_features) they stand for."""

    def fit(self, trajectory: Array, pictures: Array) -> Self:
        """Learn from an embedded sequence (time, n_components) and its pictures (time, n_features)."""
        for t in range(len(trajectory) - 2):
            self.observe(trajectory[t : t + 3], pictures[t : t + 3])
        return self

    @property
    def state(self) -> dict[str, Array]:
        """What was learned."""
        return {}

    @state.setter
    def state(self, state: dict[str, Array]) -> None:
        pass

    @classmethod
    def schema(cls) -> dict[str, Field]:
        """What `state` holds."""
        return {}


class Linear(Extrapolation):
    """The paper's rule: the step repeats itself, ``2 b - b_before``."""

    name = "linear"

    def advance(self, previous: Array, current: Array, /) -> Array:
        """The next point (n_components,), on the straight line through the last two."""
        return 2.0 * current - previous


class Hold(Extrapolation):
    """No extrapolation: the scene stays where it is, seen through the embedding."""

    name = "hold"

    def advance(self, _previous: Array, current: Array, /) -> Array:
        """The last point (n_components,)."""
        return current


class Gain(Extrapolation):
    """One gain per direction: the fraction of a step that the next step has been found to repeat.

    The gain is the lag-one autocorrelation of the steps, over an exponentially weighted past, so it lies in [-1, 1]:
    near 1 for directions that glide, 0 for those that wander, negative for those that flicker. It is soft-thresholded
    by its standard error, and counts only as far as it exceeds that: first the gain of the picture as a whole (by one
    standard error), towards which each direction is shrunk, then what a direction has of its own (by two). A film that
    gives no reason to move is copied.

    The embedding makes the window that it was fitted to look smooth (with H = 3 M its leading gains are near 0.7 there,
    and near 0 on the very next frames), so gains read off that window would over-shoot. The model therefore shows this
    strategy only steps that its embedding had not seen.

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
    predicts_change = adaptive = True

    _MEMORY = 500.0
    """Observations after which old ones have faded to 1/e."""

    def __init__(self) -> None:
        # Faded sums: product of successive steps, their energy, and its square; of the picture, of each direction.
        self._common = np.zeros((3, 1))
        self._own = np.zeros((3, 0))

    def observe(self, points: Array, pictures: Array) -> None:
        """Add the two steps between three points (3, n_components) and their pictures (3, n_features) to the sums."""
        kept = np.exp(-1.0 / self._MEMORY)
        self._common = kept * self._common + _sums(*(part.sum(keepdims=True) for part in _steps(pictures)))
        fresh = _sums(*_steps(points))
        width = max(fresh.shape[1], self._own.shape[1])
        self._own = kept * _widened(self._own, width) + _widened(fresh, width)

    def gains(self, n_components: int) -> Array:
        """Gains (n_components,) as learned so far."""
        common = _proven(self._common, 0.0, 1.0)
        return common + _proven(_widened(self._own, n_components)[:, :n_components], common, 2.0)

    def advance(self, previous: Array, current: Array, /) -> Array:
        """The next point (n_components,): each direction repeats its gain's share of the last step."""
        return current + self.gains(len(current)) * (current - previous)

    @property
    def state(self) -> dict[str, Array]:
        """The weighted sums behind the gains."""
        return {"common": self._common, "own": self._own}

    @state.setter
    def state(self, state: dict[str, Array]) -> None:
        self._common, self._own = state["common"], state["own"]

    @classmethod
    def schema(cls) -> dict[str, Field]:
        """What `state` holds."""
        return {"common": _sums_of(1), "own": _sums_of("n_gains")}


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
        self._common = kept * self._common + _sums(agreed.sum(keepdims=True), energy.sum(keepdims=True))
        self._own = kept * _widened(self._own, width // 2) + _widened(_sums(agreed, energy), width // 2)
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
        common = _proven(self._common, 0.0, 1.0)
        return np.clip(common + _proven(_widened(self._own, n_planes)[:, :n_planes], common, 2.0), 0.0, 1.0)

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
        return {"lagged": lagged, "common": _sums_of(1), "own": _sums_of("n_planes"), **line}


def _steps(triple: Array) -> tuple[Array, Array]:
    """Product of the two steps between three points (3, n), and their mean energy, each (n,)."""
    before, after = np.diff(triple, axis=0)
    return before * after, 0.5 * (before**2 + after**2)


def _sums(product: Array, energy: Array) -> Array:
    """What is faded and summed (3, n) of products and energies (n,)."""
    return np.array([product, energy, energy**2])


def _sums_of(n: Size) -> Field:
    """Declaration of what `_sums` gives, faded and added up."""
    high = np.finfo(float).max
    return Field((3, n), low=-high, high=high, may_be_empty=True, check=(_are_sums, "has correlations beyond 1"))


def _are_sums(sums: Array) -> bool:
    """Whether energies are not negative, and no product is larger than its energy."""
    product, energy, squared = sums
    return bool((energy >= 0).all() and (squared >= 0).all() and (np.abs(product) <= (1.0 + 1e-6) * energy).all())


def _widened(sums: Array, width: int) -> Array:
    return np.pad(sums, ((0, 0), (0, max(width - sums.shape[1], 0))))


def _proven(sums: Array, prior: Array | float, errors: float) -> Array:
    """By how much the correlations (n,) differ from `prior`, soft-thresholded at so many standard errors."""
    repeated, energy, squared = sums
    known = energy > 0
    difference = np.divide(repeated, energy, out=np.zeros_like(energy), where=known) - prior
    # Lively moments weigh most: they are fewer observations than frames.
    error = np.divide(np.sqrt(squared), energy, out=np.full_like(energy, np.inf), where=known)
    proven: Array = np.sign(difference) * np.maximum(np.abs(difference) - errors * error, 0.0)
    return proven


EXTRAPOLATIONS: dict[str, type[Extrapolation]] = {cls.name: cls for cls in (Linear, Hold, Gain, Phase)}


def make_extrapolation(name: str) -> Extrapolation:
    """A fresh strategy by its name: 'linear', 'hold', 'gain' or 'phase'."""
    return EXTRAPOLATIONS[check_choice("extrapolation", name, tuple(EXTRAPOLATIONS))]()
