"""Tiles over a frame, and back."""

import numpy as np
import pytest

from psmt.video.tiling import Tiling


@pytest.mark.parametrize("shape", [(40, 40), (37, 51), (16, 16), (5, 3), (1, 1)])
@pytest.mark.parametrize(("size", "stride"), [(16, 4), (16, 8), (8, 2), (32, 8)])
def test_joining_undoes_cutting(shape, size, stride):
    rng = np.random.default_rng(0)
    tiling = Tiling(shape, size, stride)
    frame = rng.standard_normal(shape).astype(np.float32)
    tiles = tiling.cut(frame)
    assert tiles.shape == (*tiling.layout, size, size)
    # What `cut` took out of each tile, added again.
    padding = [(size - stride, size - stride + -(n + size - stride) % stride) for n in shape]
    padded = np.pad(frame, padding, mode="symmetric")
    means = np.empty(tiling.layout, np.float32)
    for r in range(tiling.layout[0]):
        for c in range(tiling.layout[1]):
            raw = padded[r * stride : r * stride + size, c * stride : c * stride + size]
            means[r, c] = (raw * tiling.window).sum() / tiling.window.sum()
            assert np.allclose(tiles[r, c], (raw - means[r, c]) * tiling.window, atol=1e-5)
    assert np.allclose(tiling.join(tiles + means[..., None, None] * tiling.window), frame, atol=1e-5)


def test_tiles_do_not_see_the_level():
    frame = np.random.default_rng(1).uniform(0, 255, (30, 30)).astype(np.float32)
    tiling = Tiling(frame.shape, 16, 4)
    assert np.allclose(tiling.cut(frame + 1000), tiling.cut(frame), atol=1e-2)
    assert np.abs(tiling.cut(np.full_like(frame, 7.0))).max() < 1e-5


def test_a_stride_must_divide_the_size():
    with pytest.raises(ValueError, match="size=16 is not a multiple of stride=5"):
        Tiling((20, 20), 16, 5)
