"""Least squares that say which candidate to believe: by place, and by what a place shows, wherever it is."""

import numpy as np
import pytest

from psmt.video.blending import CodeBlend, PlaceBlend, fit_tile_coder, shrunk_weights
from psmt.video.grid import Grid

SHAPE = (64, 64)


def test_much_evidence_gives_least_squares_and_none_gives_the_common_weights():
    rng = np.random.default_rng(0)
    seen = rng.standard_normal((3, 500, 4))
    truth = np.array([[1.0, 0.0, 0.5, -1.0], [0.0, 2.0, 0.5, 0.0]])
    gram = np.einsum("gtk,gtl->gkl", seen, seen).astype(np.float32)
    match = np.zeros((3, 4), np.float32)
    match[:2] = np.einsum("gkl,gl->gk", gram[:2], truth)
    gram[2] = 0
    weights, common = shrunk_weights(gram, match, 1e-6)
    assert np.allclose(weights[:2], truth, atol=1e-2)
    assert np.allclose(weights[2], common, atol=1e-3)
    assert np.array_equal(shrunk_weights(np.zeros_like(gram), np.zeros_like(match), 0.01)[0], np.zeros((3, 4)))


def test_places_learn_what_is_true_where():
    """Left the first candidate is right, to the right the second."""
    rng = np.random.default_rng(0)
    places = PlaceBlend(Grid((32, 64)), 2)
    left = np.arange(64) < 32
    for _ in range(40):
        candidates = rng.standard_normal((2, 32, 64)).astype(np.float32)
        places.learn(candidates, np.where(left, candidates[0], candidates[1]))
    weights = places.weights()
    assert np.allclose(weights[:, 0], [1, 0], atol=0.05)
    assert np.allclose(weights[:, -1], [0, 1], atol=0.05)


def patchwork(rng):
    """A frame (height, width) of stripes that lie or stand, block by block, and where they lie (height, width)."""
    lying = np.kron(rng.integers(0, 2, (2, 2)), np.ones((32, 32))).astype(bool)
    down, right = np.mgrid[: SHAPE[0], : SHAPE[1]]
    stripes = np.where(lying, np.sin(down + rng.uniform(0, 6)), np.sin(right + rng.uniform(0, 6)))
    return stripes.astype(np.float32), lying


def learned(frames):
    grid = Grid(SHAPE)
    return CodeBlend(grid, 2, *fit_tile_coder(frames, grid, n_atoms=16, alpha=0.2, rng=np.random.RandomState(0)))


@pytest.fixture
def content():
    frames = np.array([patchwork(np.random.default_rng(seed))[0] for seed in range(20)])
    return learned(frames)


def test_candidates_are_weighed_by_what_is_seen(content):
    """The first candidate is right where stripes lie, the second where they stand; places change with every frame."""
    rng = np.random.default_rng(1)
    for _ in range(40):
        frame, lying = patchwork(rng)
        candidates = rng.standard_normal((2, *SHAPE)).astype(np.float32)
        content.learn(candidates, np.where(lying, candidates[0], candidates[1]), content.activity(frame))
    frame, lying = patchwork(rng)
    candidates = rng.standard_normal((2, *SHAPE)).astype(np.float32)
    truth = np.where(lying, *candidates)
    error = np.mean((content.blend(candidates, content.activity(frame)) - truth) ** 2)
    # The best that can be done without looking is to take half of each.
    assert error < 0.5 * np.mean((candidates.mean(axis=0) - truth) ** 2)


def test_without_experience_nothing_changes(content):
    frame, _ = patchwork(np.random.default_rng(2))
    assert np.array_equal(content.blend(np.ones((2, *SHAPE), np.float32), content.activity(frame)), np.zeros(SHAPE))


def test_a_place_without_a_code_is_treated_as_all_places_are(content):
    rng = np.random.default_rng(3)
    for _ in range(5):
        frame, _ = patchwork(rng)
        candidates = rng.standard_normal((2, *SHAPE)).astype(np.float32)
        content.learn(candidates, 0.5 * candidates[0], content.activity(frame))
    flat = content.activity(np.full(SHAPE, 9.0, np.float32))
    assert flat.shape == (8, 8, 16)
    assert np.abs(flat).max() < 1e-6
    assert np.allclose(content.blend(candidates, flat), 0.5 * candidates[0], atol=0.05)


def test_codes_do_not_depend_on_brightness_or_contrast_of_the_film():
    frames = np.array([patchwork(np.random.default_rng(seed))[0] for seed in range(5)])
    one, other = (learned(levels) for levels in (frames, 50 * frames + 100))
    assert np.allclose(one.activity(frames[0]), other.activity(50 * frames[0] + 100), atol=1e-2)
