"""Planes that turn: a pure wave goes on exactly, and nothing is invented where nothing moves."""

import numpy as np
import pytest

from psmt.video.candidates import Candidates


def wave(shape, frequency, shift):
    """A plane wave (height, width), `frequency` (down, right) in radians per pixel, moved on by `shift` radians."""
    down, right = np.mgrid[: shape[0], : shape[1]]
    return np.cos(frequency[0] * down + frequency[1] * right - shift).astype(np.float32)


def followed(planes, frames):
    scene = planes.start(frames[0])
    for frame in frames[1:]:
        scene = planes.update(scene, frame)
    return scene


def changes_of(planes, scene):
    """Changes (2, height, width) by the two memories of one size of tiles."""
    return planes.look_ahead(scene)[0][1:3]


@pytest.mark.parametrize("size", [9, 18, 36])
@pytest.mark.parametrize("speed", [0.3, -0.8])
def test_a_wave_moves_on(size, speed):
    shape, frequency = (96, 96), (0.9, 0.7)
    planes = Candidates(shape, ((size, (0.0, 0.9)),))
    film = [wave(shape, frequency, speed * t) for t in range(6)]
    changes = changes_of(planes, followed(planes, film[:5]))
    inner = (slice(size, -size),) * 2  # beyond the frame's edge the mirror image moves the other way
    for change in changes:
        error = film[4] + change - film[5]
        assert np.mean(error[inner] ** 2) < 0.02 * np.mean((film[4] - film[5])[inner] ** 2)


def test_a_still_scene_stays():
    frame = np.random.default_rng(0).uniform(0, 255, (40, 30)).astype(np.float32)
    planes = Candidates(frame.shape, ((18, (0.0, 0.5)),))
    assert np.abs(changes_of(planes, followed(planes, [frame] * 3))).max() < 1e-2
    assert np.array_equal(changes_of(planes, planes.start(frame)), np.zeros((2, 40, 30)))


def test_memory_steadies_a_noisy_turn():
    rng = np.random.default_rng(0)
    shape = (64, 64)
    film = [wave(shape, (0.8, 0.4), 0.5 * t) + 0.3 * rng.standard_normal(shape).astype(np.float32) for t in range(20)]
    planes = Candidates(shape, ((18, (0.0, 0.9)),))
    scene = followed(planes, film)
    clean = wave(shape, (0.8, 0.4), 0.5 * 20) - wave(shape, (0.8, 0.4), 0.5 * 19)
    last, steady = (np.mean((change - clean) ** 2) for change in changes_of(planes, scene))
    assert steady < last


def test_receiving_leaves_what_was_known_alone():
    rng = np.random.default_rng(0)
    film = rng.standard_normal((3, 20, 20)).astype(np.float32)
    planes = Candidates((20, 20), ((9, (0.5,)),))
    scene = followed(planes, film[:2])
    spectra = scene.spectra[0]
    before = spectra.now.copy(), spectra.cross[0].copy()
    planes.update(scene, film[2])
    assert np.array_equal(spectra.now, before[0])
    assert np.array_equal(spectra.cross[0], before[1])
