"""Kernels for whole frames against plain NumPy, on every engine."""

import itertools

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from scipy.signal import correlate2d

from psmt.engines.contract import Engine, check_engine
from psmt.engines.frame_kernels import Tiles
from psmt.engines.numba.engine import NumbaEngine

SHAPES = [(24, 40), (37, 51), (5, 3)]
CELL = 8


@pytest.fixture
def kernels(engine):
    return engine.frames


def maps(n, shape, seed=0):
    return np.random.default_rng(seed).standard_normal((n, *shape)).astype(np.float32)


def mirrored_tiles(frame, tiles):
    """Tiles (rows, columns, size, size) of the mirrored frame, one by one."""
    lead = tiles.size - tiles.stride
    padded = np.pad(frame, [(lead, lead + -(n + lead) % tiles.stride) for n in frame.shape], mode="symmetric")
    rows, columns = ((n - tiles.size) // tiles.stride + 1 for n in padded.shape)
    size, stride = tiles.size, tiles.stride
    cut = [[padded[r * stride :, c * stride :][:size, :size] for c in range(columns)] for r in range(rows)]
    raw = np.array(cut, dtype=np.float64)
    means = (raw * tiles.window).sum(axis=(2, 3), keepdims=True) / tiles.window.sum(dtype=np.float64)
    return (raw - means) * tiles.window


def overlap_added(cut, tiles):
    """The least-squares frame of windowed tiles, tile by tile."""
    rows, columns, size, _ = cut.shape
    total = np.zeros(((rows - 1) * tiles.stride + size, (columns - 1) * tiles.stride + size))
    weight = np.zeros_like(total)
    for r in range(rows):
        for c in range(columns):
            place = np.s_[r * tiles.stride : r * tiles.stride + size, c * tiles.stride : c * tiles.stride + size]
            total[place] += cut[r, c] * tiles.window
            weight[place] += tiles.window.astype(float) ** 2
    inside = tuple(slice(tiles.lead, tiles.lead + n) for n in tiles.shape)
    return (total / weight)[inside]


def cells(values):
    """Maps (n, height, width) by cell, (rows, columns, n, pixels); zero beyond the frame."""
    n, height, width = values.shape
    rows, columns = -(-height // CELL), -(-width // CELL)
    padded = np.zeros((n, rows * CELL, columns * CELL))
    padded[:, :height, :width] = values
    return padded.reshape(n, rows, CELL, columns, CELL).transpose(1, 3, 0, 2, 4).reshape(rows, columns, n, -1)


def pooled(moments):
    for axis in (0, 1):
        padded = np.pad(moments, [(1, 1) if k == axis else (0, 0) for k in range(moments.ndim)], mode="edge")
        n = moments.shape[axis]
        before, after = (np.take(padded, np.arange(n) + k, axis=axis) for k in (0, 2))
        moments = 0.25 * (before + after) + 0.5 * moments
    return moments


def test_a_stride_must_divide_the_size():
    with pytest.raises(ValueError, match="size=16 is not a multiple of stride=5"):
        Tiles((20, 20), 16, 5)


@pytest.mark.parametrize("shape", [*SHAPES, (1, 1)])
@pytest.mark.parametrize("size", [8, 12, 16, 32])
def test_tiles_and_spectra(kernels, shape, size):
    tiles = Tiles(shape, size, size // 4)
    first, second = maps(2, shape)
    own = [kernels.levels(frame) for frame in (first, second)]
    before, now = (np.fft.rfft2(mirrored_tiles(frame, tiles)) for frame in (first, second))
    known = kernels.spectra(own[0], tiles)
    assert np.allclose(kernels.numpy(known), before, atol=1e-3)
    old = kernels.levels(before * 1j)
    found, (cross, fresh) = kernels.next_spectra(own[1], tiles, known, (old, 0 * old), (0.5, 0.0))
    expected = 0.5j * before + now * before.conj()
    assert np.allclose(kernels.numpy(found), now, atol=1e-3)
    assert np.allclose(kernels.numpy(cross), expected, rtol=1e-3, atol=1e-2)

    turned = kernels.numpy(kernels.advanced(found, (cross, fresh, 0 * fresh), tiles))
    for k, one in enumerate((kernels.numpy(cross), kernels.numpy(fresh))):
        turn = np.divide(one, np.abs(one), out=np.ones_like(one), where=one != 0)
        change = np.fft.irfft2(kernels.numpy(found) * (turn - 1), s=(size, size))
        assert np.allclose(turned[k], overlap_added(change, tiles), atol=1e-4)
    assert not turned[2].any()  # without a phase nothing turns


def scene(shape, down=0.0, right=0.0):
    """A smooth picture (height, width) that has moved on."""
    y, x = np.mgrid[: shape[0], : shape[1]].astype(float)
    y, x = y - down, x - right
    return (np.sin(y / 5) + np.cos(x / 7 + y / 11) + np.sin((x + y) / 4)).astype(np.float32)


def test_flow_finds_where_pixels_came_from(kernels):
    shape, inner = (70, 90), np.s_[:, 12:-12, 12:-12]
    before, now = (kernels.levels(scene(shape, *by)) for by in ((0, 0), (2.5, -1.25)))
    flow = kernels.numpy(kernels.flow(before, now))
    assert np.abs(flow[inner] - np.array([-2.5, 1.25])[:, None, None]).mean() < 0.1
    assert np.abs(kernels.numpy(kernels.flow(now, now))).max() < 1e-6
    oracle = NumbaEngine().frames.flow(kernels.numpy(before), kernels.numpy(now))
    assert np.allclose(flow, oracle, atol=5e-3)


@pytest.mark.parametrize("shape", [(37, 51), (5, 3), (1, 1)])
def test_frames_are_moved_along_a_flow(kernels, shape):
    (frame,) = maps(1, shape)
    whole = np.broadcast_to(np.array([-2.0, 1.0], np.float32)[:, None, None], (2, *shape)).copy()
    y, x = np.mgrid[: shape[0], : shape[1]]
    shifted = frame[np.clip(y - 2, 0, shape[0] - 1), np.clip(x + 1, 0, shape[1] - 1)]
    assert np.allclose(kernels.numpy(kernels.moved(kernels.levels(frame), kernels.levels(whole))), shifted, atol=1e-5)
    if shape[0] > 8:  # a parabola is interpolated without error
        curve = (0.1 * (y - x) ** 2).astype(np.float32)
        half = kernels.levels(np.full((2, *shape), 0.25))
        found = kernels.numpy(
            kernels.moved(kernels.levels(curve), kernels.levels(half) * kernels.levels([[[1.0]], [[-1.0]]]))
        )
        assert np.allclose(found[4:-4, 4:-4], 0.1 * (y - x + 0.5)[4:-4, 4:-4] ** 2, atol=1e-3)


@pytest.mark.parametrize("shape", SHAPES)
def test_bands_are_differences_of_gaussians(kernels, shape):
    changes = maps(3, shape)
    parts = kernels.levels(np.full((3, *changes.shape), np.nan))
    kernels.bands(kernels.levels(changes), (0.8, 2.0), parts)
    parts = kernels.numpy(parts)
    smooth = gaussian_filter(changes.astype(float), (0, 0.8, 0.8))
    smoother = gaussian_filter(smooth, (0, 2.0, 2.0))
    assert np.allclose(parts, [changes - smooth, smooth - smoother, smoother], atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_neighbours_are_shifted_frames_whose_edge_goes_on(kernels, shape):
    frame, base = maps(2, shape)
    offsets = ((-2, 0), (0, 1), (1, -1))
    found = kernels.levels(np.full((3, *shape), np.nan))
    kernels.neighbours(kernels.levels(frame), offsets, kernels.levels(base), found)
    found = kernels.numpy(found)
    y, x = np.mgrid[: shape[0], : shape[1]]
    for k, (down, right) in enumerate(offsets):
        shifted = frame[np.clip(y + down, 0, shape[0] - 1), np.clip(x + right, 0, shape[1] - 1)]
        assert np.allclose(found[k], shifted - base, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [1, 6])
def test_moments_by_cell_fade_and_add_up(kernels, shape, n):
    candidates, (change,) = maps(n, shape), maps(1, shape, seed=1)
    seen, truth = cells(candidates), cells(change[None])
    gram, match = seen @ seen.swapaxes(2, 3), (seen @ truth.swapaxes(2, 3))[..., 0]
    own = kernels.levels(candidates), kernels.levels(change)
    found = kernels.cell_moments(*own, CELL)
    for one, other in zip(found, (gram, match), strict=True):
        assert np.allclose(kernels.numpy(one), other, atol=1e-4)
    # Two sums, which keep different shares of what they were.
    before, found = (tuple(kernels.levels(np.stack([one, factor * one])) for one in (gram, match)) for factor in (2, 7))
    kernels.add_moments(before, (0.5, 1.0), *own, 3.0, (CELL, CELL), found)
    for old, new, other in zip(before, found, (gram, match), strict=True):
        assert np.allclose(kernels.numpy(old), [other, 2 * other], atol=1e-4)  # still what they were
        assert np.allclose(kernels.numpy(new), [3.5 * other, 5 * other], atol=1e-3)
    # Every second row of pixels, even and odd, makes up all of them.
    for part in (slice(0, None, 2), slice(1, None, 2)):
        kernels.add_moments(found, (1.0, 1.0), own[0][:, part], own[1][part], 1.0, (CELL // 2, CELL), found)
    for new, other in zip(found, (gram, match), strict=True):
        assert np.allclose(kernels.numpy(new), [4.5 * other, 6 * other], atol=1e-3)
    assert np.allclose(kernels.numpy(kernels.cell_energy(own[1], CELL)), (truth**2).sum(axis=(2, 3)), atol=1e-4)


@pytest.mark.parametrize(("layout", "n"), [((4, 5), 7), ((1, 3), 2), ((3, 2), 45), ((1, 1), 1)])
@pytest.mark.parametrize("with_prior", [False, True])
def test_weights_by_cell_are_those_of_ridge_regression(kernels, layout, n, with_prior):
    rng = np.random.default_rng(0)
    other = rng.standard_normal((n, 64))
    known = (other @ other.T, other @ rng.standard_normal(64)) if with_prior else None
    seen = rng.standard_normal((*layout, n, 64)) * rng.uniform(0.1, 2, (n, 1))
    gram, match = seen @ seen.swapaxes(2, 3), (seen @ rng.standard_normal((*layout, 64, 1)))[..., 0]
    found = kernels.numpy(kernels.cell_weights(kernels.levels(gram), kernels.levels(match), 0.01, 1e-3, known))
    gram, match = pooled(gram), pooled(match)
    whole, target = gram.mean(axis=(0, 1)), match.mean(axis=(0, 1))
    if known:
        whole, target = whole + known[0], target + known[1]
    usual = np.diagonal(whole)
    floor = 1e-6 * usual.mean()
    common = np.linalg.solve(whole + np.diag(1e-3 * usual + floor), target)
    pull = 0.01 * (usual + np.einsum("...kk->...k", gram)) + floor
    expected = np.linalg.solve(gram + pull[..., None] * np.eye(n), (match + pull * common)[..., None])[..., 0]
    assert np.allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_weights_of_nothing_are_zero(kernels):
    gram, match = (kernels.levels(np.zeros(shape)) for shape in ((2, 3, 4, 4), (2, 3, 4)))
    assert not kernels.numpy(kernels.cell_weights(gram, match, 0.01, 1e-3, None)).any()


@pytest.mark.parametrize("shape", [*SHAPES, (8, 8), (64, 20)])
def test_weights_are_interpolated_between_centres(kernels, shape):
    rows, columns = (-(-length // CELL) for length in shape)
    candidates, weights = maps(3, shape), np.random.default_rng(1).standard_normal((rows, columns, 3))
    found = kernels.numpy(kernels.weighted(kernels.levels(candidates), kernels.levels(weights), CELL))

    def between(length, n):
        at = np.clip((np.arange(length) + 0.5) / CELL - 0.5, 0, n - 1)
        share = np.zeros((length, n))
        for pixel, position in enumerate(at):
            share[pixel, int(position)] += 1 - position % 1
            share[pixel, min(int(position) + 1, n - 1)] += position % 1
        return share

    field = np.einsum("yr,xc,rck->kyx", between(shape[0], rows), between(shape[1], columns), weights)
    assert np.allclose(found, (candidates * field).sum(axis=0), atol=1e-4)


SIZES = (6, 8, 5, 1)


def network(sides, seed=0):
    """Weights (side * side, inputs, outputs) and biases (outputs,) of layers."""
    rng = np.random.default_rng(seed)
    shapes = [(side * side, a, b) for side, (a, b) in zip(sides, itertools.pairwise(SIZES), strict=True)]
    return [(rng.standard_normal((p, a, b)) / (p * a) ** 0.5, rng.standard_normal(b)) for p, a, b in shapes]


def output(layers, inputs, sides):
    """Output (height, width) of a network for inputs (n, height, width), by SciPy's correlation."""
    beyond = sum(side // 2 for side in sides)
    values = np.pad(inputs.astype(np.float64), ((0, 0), (beyond, beyond), (beyond, beyond)), mode="edge")
    for k, (side, (weights, biases)) in enumerate(zip(sides, layers, strict=True)):
        values = np.maximum(values, 0) if k else values
        filters = weights.reshape(side, side, len(values), len(biases))
        pairs = [zip(values, filters[..., o].transpose(2, 0, 1), strict=True) for o in range(len(biases))]
        sums = [sum(correlate2d(one, filter, "valid") for one, filter in pair) for pair in pairs]
        values = np.stack(sums) + biases[:, None, None]
    return values[0]


def on_device(kernels, layers):
    return tuple((kernels.levels(weights), kernels.levels(biases)) for weights, biases in layers)


@pytest.mark.parametrize("sides", [(1, 1, 1), (3, 1, 3)])
@pytest.mark.parametrize("shape", [*SHAPES, (150, 200)])
def test_a_network_sees_every_pixel_and_those_around_it(kernels, shape, sides):
    inputs, layers = maps(6, shape), network(sides)
    parts = kernels.levels(inputs[:2]), kernels.levels(inputs[2:])
    found = kernels.numpy(kernels.network(parts, on_device(kernels, layers)))
    assert np.allclose(found, output(layers, inputs, sides), rtol=1e-4, atol=1e-4)


def test_an_engine_without_a_kernel_for_frames_is_refused():
    class Kernels:
        levels = None

    class WithoutFrames(NumbaEngine):
        frames = Kernels()

    with pytest.raises(TypeError, match="Kernels has no kernel"):
        check_engine(WithoutFrames())


def test_kernels_that_are_only_inherited_from_the_contract_are_missing():
    class Empty(Engine):
        device, captures, linalg_errors = "empty", False, ()

    with pytest.raises(TypeError, match="Empty has no kernel add_codes"):
        check_engine(Empty())


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    from psmt.engines.numba import fan_out

    kernels, shape = NumbaEngine().frames, (61, 83)
    tiles = Tiles(shape, 16, 4)
    candidates = maps(5, shape)

    def everything():
        known = kernels.spectra(candidates[0], tiles)
        spectra, cross = kernels.next_spectra(candidates[1], tiles, known, (known,), (0.5,))
        moments = kernels.cell_moments(candidates, candidates[0], CELL)
        weights = kernels.cell_weights(*moments, 0.01, 1e-3, None)
        parts = np.empty((3, *candidates.shape), np.float32)
        kernels.bands(candidates, (0.8, 2.0), parts)
        turned = kernels.advanced(spectra, cross, tiles)
        return (turned, parts, kernels.weighted(candidates, weights, CELL))

    alone = everything()
    monkeypatch.setattr(fan_out, "get_num_threads", lambda: 3)
    assert all(np.array_equal(one, other) for one, other in zip(alone, everything(), strict=True))
