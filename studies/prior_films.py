"""Films from which the prior of the package was learned.

``python -m studies.prior_films prior.psmt`` learns it again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
from scipy.ndimage import map_coordinates

from psmt.data import GlideFilm
from psmt.types import Levels
from psmt.video import learn_prior

_SIZE = 100
_LENGTH = 48
"""Number of frames of each film, a multiple of the length of the snippets from which a prior is learned."""

_GLIDES = ((0.2, 0.3), (0.4, 0.0), (1.0, 0.1), (3.0, 0.05))
"""Speeds in pixels per frame and noises of a gliding camera."""

_WALKS = ((50, 0.005), (60, 0.02))
"""Seeds and noises of films in which objects move in front of a static background."""

_SHAKES = ((80, 0.5), (90, 1.5))
"""For each film with a panning camera, its seed, and how far the camera shakes, in pixels."""


def built_in_films() -> Iterator[Levels]:
    """Yield the films (48, 100, 100) from which the package's prior is learned."""
    for seed, (speed, noise) in enumerate(_GLIDES):
        # Rendered at twice the size and halved, so that frames are as sharp as shrunk frames of real films.
        film = GlideFilm(n_frames=_LENGTH, seed=100 + seed, speed=2 * speed, noise=noise, size=2 * _SIZE)
        yield np.stack([_halved(film[t]) for t in range(_LENGTH)])
    for seed, noise in _WALKS:
        yield walkers(seed, noise)
    for seed, shake in _SHAKES:
        yield shaken_pan(seed, shake)


def walkers(seed: int, noise: float, n_frames: int = _LENGTH) -> Levels:
    """Return a film (n_frames, 100, 100) of seven objects that walk, sway and occlude each other."""
    rng = np.random.default_rng(seed)
    world, side = _still(seed), 2 * _SIZE
    ground = world[:side, :side]
    down, right = np.mgrid[:side, :side].astype(np.float32)
    speed, row, column = rng.uniform(-2, 2, 7), rng.uniform(60, 170, 7), rng.uniform(0, side, 7)
    width, height, period = rng.uniform(8, 18, 7), rng.uniform(18, 40, 7), rng.uniform(15, 30, 7)
    skins = [np.clip(np.roll(world, 50 * k)[side:, side:] + rng.uniform(-0.3, 0.3), 0, 1) for k in range(7)]
    frames = []
    for t in range(n_frames):
        frame = ground.copy()
        for k, skin in enumerate(skins):
            turn = 2 * np.pi * t / period[k]
            y = down - row[k] - 1.5 * np.sin(turn)
            x = right - ((column[k] + speed[k] * t) % (side + 60) - 30) - 4 * np.sin(turn + k) * y / height[k]
            outside = np.clip(8 * ((x / width[k]) ** 2 + (y / height[k]) ** 2 - 1), -30, 30)
            shown = 1 / (1 + np.exp(outside))
            seen = map_coordinates(skin, [y + _SIZE, x + _SIZE], order=1, mode="nearest")
            frame += shown * (seen - frame)
        frames.append(_halved(frame))
    film = np.stack(frames) + noise * rng.standard_normal((n_frames, _SIZE, _SIZE))
    return np.clip(film, 0, 1).astype(np.float32)


def shaken_pan(seed: int, shake: float, n_frames: int = _LENGTH) -> Levels:
    """Return a film (n_frames, 100, 100) of a camera that pans in changing directions and shakes by `shake` pixels."""
    rng = np.random.default_rng(seed)
    world = _still(seed)
    down, right = np.mgrid[:_SIZE, :_SIZE] * 1.5
    place, speed, aim, frames = np.zeros(2), np.zeros(2), np.zeros(2), []
    for t in range(n_frames):
        if t % 24 == 0:
            aim = rng.uniform(-6, 6, 2) * (0.4, 1.0)
        speed += 0.35 * (aim - speed)
        place += speed
        y, x = 1.5 * (place + shake * rng.standard_normal(2))
        frames.append(map_coordinates(world, [(down + y) % 399, (right + x) % 399], order=1, mode="wrap"))
    film = np.stack(frames) + 0.005 * rng.standard_normal((n_frames, _SIZE, _SIZE))
    return np.clip(film, 0, 1).astype(np.float32)


def _still(seed: int) -> Levels:
    """Return a picture (400, 400) of the built-in world."""
    return GlideFilm(seed=seed, size=4 * _SIZE, speed=0.0, n_frames=1)[0].astype(np.float32)


def _halved(frame: Levels) -> Levels:
    """Return a frame of half the size (100, 100), whose pixels are means of 2 x 2 pixels."""
    small: Levels = frame.reshape(_SIZE, 2, _SIZE, 2).mean(axis=(1, 3), dtype=np.float32)
    return small


if __name__ == "__main__":
    learn_prior(built_in_films()).save(sys.argv[1])
