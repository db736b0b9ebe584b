"""Simulated resting-state fMRI with known states, ``builtin:bold``.

A Markov chain draws hidden states, which determine the activity of networks of regions. The parameter `world` of
`BoldSimulation` says how states differ. Without states, networks fluctuate slowly, as a stationary linear process. The
scan is the haemodynamic response to this activity, with noise and drifts, in scanner units.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from psmt.data.contract import BuiltinName, check_integers
from psmt.data.readers.tables import SeriesSource
from psmt.types import Array, Ints
from psmt.utils.constraints import check_real

BASELINE = (8_000.0, 12_000.0)  # mean of a region in scanner units
SCALE = 50.0  # standard deviation of the networks' signal in scanner units, about half a percent
WORLDS = ("amplitude", "covariance", "none")
COUPLING = 0.8  # correlation of networks that fluctuate together, in the world of covariance states
LIVELINESS = 0.3  # fluctuation of an active network, relative to its mean activity
VARIETY = 0.2  # standard deviation between subjects of the logarithm of a region's weight
COLOURED = 0.5  # share of autocorrelated noise, as from breathing and pulse
MEMORY = 6.0  # time constant of the autocorrelated noise in seconds
_DRAWN = 1_024  # number of random combinations of networks from which those of the states are chosen
SETTLING = 32.0  # length of the haemodynamic response in seconds, simulated before the scan begins


@dataclass(frozen=True, kw_only=True)
class BoldSimulation:
    """Simulated scans of several subjects. A subject's scan does not depend on the number of subjects.

    Parameters
    ----------
    n_subjects : int
        Number of subjects.
    n_frames : int
        Number of volumes per scan.
    n_regions, n_networks, n_states : int
        Number of regions, of networks of regions, and of states.
    world : {'amplitude', 'covariance', 'none'}
        How states differ. In 'amplitude' different networks are active. In 'covariance' different networks fluctuate
        together, with equal means and variances. In 'none' there are no states.
    tr : float
        Repetition time in seconds.
    dwell : float
        Mean dwell time of a state in seconds. Without states, it is the time constant of the networks' activity.
    noise : float
        Standard deviation of the noise, relative to that of the networks' signal.
    drift : float
        Standard deviation of slow drifts, relative to that of the networks' signal.
    effect : float
        Difference between two groups. Every second subject is a patient, and the others are controls. When a state
        ends, `effect` multiplies a patient's odds of entering the first state. 1 means no difference.
    seed : int
        Seed of networks, states and all subjects.

    Examples
    --------
    >>> scans = BoldSimulation(n_subjects=2, n_frames=100, seed=1)
    >>> scans.subject(0).values.shape, scans.states(0).shape
    ((100, 60), (100,))
    """

    n_subjects: int = 8
    n_frames: int = 600
    n_regions: int = 60
    n_networks: int = 6
    n_states: int = 5
    world: str = "amplitude"
    tr: float = 2.0
    dwell: float = 24.0
    noise: float = 1.0
    drift: float = 1.0
    effect: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_integers(self, n_subjects=(1, 10_000), n_frames=(1, 100_000), n_networks=(2, 100), n_states=(2,))
        check_integers(self, n_regions=(self.n_networks, 2_000), seed=(0,))
        if self.n_states > 3 * self.n_networks:
            raise ValueError(
                f"n_states={self.n_states} is too many for {self.n_networks} networks to distinguish; "
                f"use at most {3 * self.n_networks}"
            )
        if self.world not in WORLDS:
            raise ValueError(f"world={self.world!r} is not simulated; use one of {', '.join(WORLDS)}")
        bounds = {"tr": True, "dwell": True, "noise": False, "drift": False, "effect": True}
        for key, open_bound in bounds.items():
            check_real(key, getattr(self, key), open_bound=open_bound)
        if self.dwell < self.tr:
            raise ValueError(f"dwell={self.dwell} is shorter than tr={self.tr}; a state lasts at least one volume")

    @cached_property
    def networks(self) -> Array:
        """Return the regions' weights (n_networks, n_regions). A region has a large weight and perhaps small ones."""
        rng = np.random.default_rng((self.seed, 0))
        each = np.arange(self.n_networks)
        own = np.sort(np.concatenate([each, rng.integers(self.n_networks, size=self.n_regions - self.n_networks)]))
        weights = np.where(own == each[:, None], rng.uniform(0.6, 1.0, self.n_regions), 0.0)
        shared = rng.random(weights.shape) < 0.5 / self.n_networks
        return np.maximum(weights, shared * rng.uniform(0.2, 0.5, weights.shape))

    @cached_property
    def patterns(self) -> Array:
        """Return an array (n_states, n_networks) that is 1 where a network is active in a state and 0 elsewhere.

        All states differ. In the world ``covariance``, active networks are anticorrelated with inactive ones.
        """
        rng = np.random.default_rng((self.seed, 1))
        drawn = rng.random((_DRAWN, self.n_networks))
        # The first half of the candidates has half of the networks on, the others any number.
        ranks = np.argsort(np.argsort(drawn, axis=1), axis=1)
        sizes = np.where(np.arange(_DRAWN) < _DRAWN // 2, self.n_networks // 2, 1 + np.arange(_DRAWN) % self.n_networks)
        candidates = (ranks < sizes[:, None]).astype(np.float64)
        chosen = candidates[:1]
        while len(chosen) < self.n_states:
            # Take the candidate that differs most from all states so far.
            apart = np.abs(candidates[:, None] - chosen).sum(axis=2)
            if self.world == "covariance":  # opposite patterns have the same covariance
                apart = np.minimum(apart, self.n_networks - apart)
            apart = apart.min(axis=1)
            chosen = np.vstack([chosen, candidates[np.argmax(apart)]])
        return chosen

    @cached_property
    def transitions(self) -> Array:
        """Return the transition probabilities (n_states, n_states) between successive volumes."""
        rng = np.random.default_rng((self.seed, 2))
        leaving = self.tr / self.dwell
        moves = rng.dirichlet(np.full(self.n_states, 2.0), size=self.n_states)
        np.fill_diagonal(moves, 0.0)
        moves /= moves.sum(axis=1, keepdims=True)
        return (1 - leaving) * np.eye(self.n_states) + leaving * moves

    def subject(self, index: int) -> SeriesSource:
        """Return the scan of one subject as a series (n_frames, n_regions) in scanner units."""
        rng = np.random.default_rng((self.seed, 3, self._checked(index)))
        states = self._chain(index)
        weights = self.networks * np.exp(VARIETY * rng.standard_normal(self.networks.shape))
        signal = self._responded(self._activity(rng, states) @ weights)
        signal = signal - signal.mean(axis=0)
        signal /= max(float(signal.std()), np.finfo(float).tiny)
        shape, noise, drift = signal.shape, self.noise, self.drift
        values = signal + noise * self._noise(rng, shape) + drift * self._drift(rng, shape)
        level = rng.uniform(*BASELINE, size=self.n_regions)
        return SeriesSource(
            name=f"bold-{index + 1:03d}",
            array=level + SCALE * values,
            feature_names=tuple(f"region {k + 1}" for k in range(self.n_regions)),
            truth=self.states(index),
        )

    def _activity(self, rng: np.random.Generator, states: Ints) -> Array:
        """Draw the activity (_settling + n_frames, n_networks) of the networks, given the hidden states."""
        drawn = rng.standard_normal((len(states), self.n_networks))
        if self.world == "none":
            return self._autocorrelated(drawn, self.dwell)
        if self.world == "amplitude":
            return np.asarray(self.patterns[states] * (1.0 + LIVELINESS * drawn))
        shared = (2.0 * self.patterns[states] - 1.0) * rng.standard_normal((len(states), 1))
        return np.asarray(np.sqrt(COUPLING) * shared + np.sqrt(1 - COUPLING) * drawn)

    def group(self, index: int) -> str:
        """Return the group of a subject, 'control' or 'patient'."""
        return ("control", "patient")[self._checked(index) % 2]

    def states(self, index: int, *, hidden: bool = False) -> Ints | None:
        """Return the true state (n_frames,) at each volume, or None in the world without states.

        This is the state that contributes most to the BOLD signal of the volume. If `hidden` is True, it is the state
        of the hidden Markov chain at the time of the volume. The BOLD signal shows this state some seconds later.
        """
        if self.world == "none":
            return None
        chain = self._chain(self._checked(index))
        if hidden:
            return chain[self._settling :]
        return np.asarray(np.argmax(self._responded(np.eye(self.n_states)[chain]), axis=1), dtype=np.int64)

    def _chain(self, index: int) -> Ints:
        """Draw the hidden states (_settling + n_frames,) of one subject, including those before the scan begins."""
        draws = np.random.default_rng((self.seed, 4, index)).random(self._settling + self.n_frames)
        moves = self.transitions.copy()
        if self.group(index) == "patient":
            moves[1:, 0] *= self.effect
            np.fill_diagonal(moves, 0.0)
            moves *= ((1 - np.diag(self.transitions)) / moves.sum(axis=1))[:, None]
            np.fill_diagonal(moves, np.diag(self.transitions))
        later = np.cumsum(moves, axis=1)
        states = np.empty(len(draws), dtype=np.int64)
        state = int(draws[0] * self.n_states)
        for t, draw in enumerate(draws):
            state = min(int(np.searchsorted(later[state], draw, side="right")), self.n_states - 1)
            states[t] = state
        return states

    @property
    def _settling(self) -> int:
        """Return the number of volumes that are simulated before the scan begins."""
        return int(np.ceil(SETTLING / self.tr))

    def _responded(self, activity: Array) -> Array:
        """Return the haemodynamic response (n_frames, n) to activity (_settling + n_frames, n)."""
        from scipy.signal import lfilter  # slow to import, and all commands import this file

        seen: Array = lfilter(haemodynamic_response(self.tr), [1.0], activity, axis=0)
        return seen[self._settling :]

    def _noise(self, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        """Draw noise of this shape and of unit variance, partly white and partly autocorrelated."""
        coloured = self._autocorrelated(rng.standard_normal(shape), MEMORY)
        return np.asarray(np.sqrt(COLOURED) * coloured + np.sqrt(1 - COLOURED) * rng.standard_normal(shape))

    def _autocorrelated(self, white: Array, seconds: float) -> Array:
        """Return an AR(1) process (time, n) of unit variance with time constant `seconds`, driven by `white` noise."""
        from scipy.signal import lfilter

        kept = float(np.exp(-self.tr / seconds))
        return np.asarray(lfilter([np.sqrt(1 - kept**2)], [1.0, -kept], white, axis=0))

    def _drift(self, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        """Draw slow cosine drifts of this shape and of about unit variance, independent between regions."""
        waves = np.sqrt(2) * np.cos(np.pi * np.arange(1, 4) * ((np.arange(shape[0]) + 0.5) / shape[0])[:, None])
        return np.asarray(waves @ (rng.standard_normal((3, shape[1])) * np.array([0.8, 0.5, 0.33])[:, None]))

    def _checked(self, index: int) -> int:
        if not 0 <= index < self.n_subjects:
            raise IndexError(f"subject {index} is not simulated; there are 0 to {self.n_subjects - 1}")
        return index


def haemodynamic_response(tr: float) -> Array:
    """Return the canonical double-gamma haemodynamic response (n,), one value per volume. The values sum to 1.

    >>> response = haemodynamic_response(1.0)
    >>> int(response.argmax()), round(float(response.sum()), 6)
    (5, 1.0)
    """
    from scipy.stats import gamma

    seconds = np.arange(0.0, SETTLING, tr)
    response = gamma.pdf(seconds, 6) - gamma.pdf(seconds, 16) / 6
    total = float(response.sum())
    # If the TR is longer than the response, all of it falls into the next volume.
    return response / total if total > 0.1 / tr else np.array([0.0, 1.0])


BOLD = BuiltinName("bold", BoldSimulation)
