"""Made-up series of four places with different dynamics, in which each atom belongs to a known place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psmt.types import Array, Ints

PLACES, SENSORS, SHARPNESS = 4, 12, 3.0
"""Number of places, number of sensors on the ring of each place, and concentration of a bump."""
ATOMS_PER_PLACE = 2 * SENSORS
SPEEDS = (0.06, 0.13, 0.27, 0.5)
"""Speed of the bump of each place, in radians per frame."""
JITTER, NOISE = 0.02, 0.02
"""Standard deviation of the speed, and of the noise of a sensor. The height of a bump is 1."""
STAY = (30, 60)
"""Shortest and longest time that a place is active, in frames, if places take turns."""
FADE = 11
"""Duration of a change of place, in frames."""

KINDS = {"places": "all places at once", "times": "places in turn"}
"""Kinds of series. In the first, all places are active at once; in the second, one place after another."""


@dataclass(frozen=True)
class MadeUp:
    """A made-up series, a dictionary for it, and the place of each atom."""

    values: Array
    """(time, PLACES * SENSORS)"""
    dictionary: Array
    """(n_atoms, PLACES * SENSORS): twice as many bumps as sensors, each within one place."""
    groups: Ints
    """Place (n_atoms,) of each atom."""


def make_up(kind: str, n_frames: int, seed: int) -> MadeUp:
    """Return a series in which a bump moves around the ring of each place. `kind` is a key of `KINDS`.

    Each place has a different speed.
    """
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    speeds = np.array(SPEEDS) * rng.choice([-1.0, 1.0], PLACES)
    angles = np.cumsum(speeds + JITTER * rng.standard_normal((n_frames, PLACES)), axis=0)
    angles += rng.uniform(0, 2 * np.pi, PLACES)
    heights = _in_turn(n_frames, rng) if kind == "times" else np.ones((n_frames, PLACES))
    values = (heights[..., None] * _bumps(angles)).reshape(n_frames, -1)
    values += NOISE * rng.standard_normal(values.shape)
    centres = 2 * np.pi * np.arange(ATOMS_PER_PLACE) / ATOMS_PER_PLACE
    atoms = _bumps(centres)
    dictionary = np.kron(np.eye(PLACES), atoms / np.linalg.norm(atoms, axis=1, keepdims=True))
    return MadeUp(values, dictionary, np.repeat(np.arange(PLACES), ATOMS_PER_PLACE))


def _bumps(angles: Array) -> Array:
    """Return the values (.., SENSORS) of the sensors of a ring for a bump at the angles (..)."""
    sensors = 2 * np.pi * np.arange(SENSORS) / SENSORS
    bumps: Array = np.exp(SHARPNESS * (np.cos(sensors - angles[..., None]) - 1.0))
    return bumps


def _in_turn(n_frames: int, rng: np.random.Generator) -> Array:
    """Return the height (n_frames, PLACES) of the bump of each place, if one place after another is active."""
    heights = np.zeros((n_frames, PLACES))
    time, place = 0, int(rng.integers(PLACES))
    while time < n_frames:
        stay = int(rng.integers(*STAY))
        heights[time : time + stay, place] = 1.0
        time, place = time + stay, (place + int(rng.integers(1, PLACES))) % PLACES
    fade = np.hanning(FADE + 2)
    return np.column_stack([np.convolve(column, fade / fade.sum(), mode="same") for column in heights.T])
