"""Patches: what is cut is what is there, and what is standardised comes back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from psmt.data import FrameSource, GlideFilm, open_frames, open_source
from psmt.data.patches import (
    PatchCutter,
    Patches,
    read_patches,
    read_values,
    standardise,
)
from psmt.errors import FrameSourceError


def box_average(square, size):
    """Oracle: average each output pixel's area over a grid fine enough to split no cell."""
    side = len(square)
    fine = np.kron(square, np.ones((size, size)))
    return fine.reshape(size, side, size, side).mean(axis=(1, 3))


@pytest.mark.parametrize(("side", "size"), [(12, 4), (13, 5), (17, 16), (20, 7), (9, 9)])
def test_reduce_averages_areas_exactly(side, size):
    frame = np.random.default_rng(0).random((side, side))
    reduced = PatchCutter(frame_size=size, patch_size=1).reduce(frame)
    assert reduced.dtype == np.float64
    assert np.allclose(reduced, box_average(frame, size), atol=1e-13)
    assert reduced.mean() == pytest.approx(frame.mean())


def test_reduce_takes_the_centred_square():
    frame = np.zeros((10, 16))
    frame[:, 3:13] = 1
    cutter = PatchCutter(frame_size=None, patch_size=4)
    assert np.array_equal(cutter.reduce(frame), np.ones((10, 10)))
    assert np.array_equal(cutter.reduce(frame.T), np.ones((10, 10)))


def test_small_squares_are_enlarged_linearly():
    ramp = np.tile(np.arange(8.0), (8, 1))
    reduced = PatchCutter(frame_size=32, patch_size=4).reduce(ramp)
    expected = np.clip((np.arange(32) + 0.5) / 4 - 0.5, 0, 7)
    assert np.allclose(reduced, expected[None, :])
    assert np.allclose(PatchCutter(frame_size=3, patch_size=1).reduce([[0.5]]), 0.5)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_cut_is_a_piece_of_reduce(data):
    shape = data.draw(st.tuples(st.integers(4, 40), st.integers(4, 40)))
    size = data.draw(st.none() | st.integers(4, 50))
    patch = data.draw(st.integers(1, 4))
    room = (size or min(shape)) - patch
    position = data.draw(st.none() | st.tuples(st.integers(0, room), st.integers(0, room)))
    frame = np.random.default_rng(shape).random(shape, dtype=np.float32)
    cutter = PatchCutter(frame_size=size, patch_size=patch, position=position)
    row, column = position or (room // 2, room // 2)
    piece = cutter.reduce(frame)[row : row + patch, column : column + patch]
    cut = cutter.cut(frame)
    assert cut.dtype == np.float64
    assert np.allclose(cut, piece.ravel(), rtol=0, atol=1e-12)


def test_cut_reads_only_what_it_needs():
    frame = np.full((100, 100), np.nan)
    frame[40:60, 40:60] = 1.0
    assert np.allclose(PatchCutter(frame_size=50, patch_size=10).cut(frame), 1.0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"frame_size": 0}, "frame_size=0 .* >= 1"),
        ({"patch_size": 2.5}, "patch_size=2.5"),
        ({"frame_size": 12, "patch_size": 16}, "patch_size=16 is larger than the reduced frame of 12 x 12"),
        ({"position": (185, 0)}, r"position=\(185, 0\) .* from 0 to 184"),
        ({"position": (-1, 0)}, "position row=-1"),
        ({"position": (1, 2, 3)}, r"must be \(row, column\)"),
    ],
)
def test_bad_parameters_name_value_and_bound(parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        PatchCutter(**parameters)


def test_bad_frames_are_refused():
    with pytest.raises(ValueError, match=r"shape \(8, 8, 3\)"):
        PatchCutter().cut(np.zeros((8, 8, 3)))
    with pytest.raises(ValueError, match="larger than the reduced frame of 8 x 8"):
        PatchCutter(frame_size=None).cut(np.zeros((8, 9)))


levels = arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(2, 9)),
    elements=st.floats(0, 1, allow_subnormal=False),
)


@given(levels)
def test_standardise_comes_back(grey):
    patches = standardise(grey)
    lively = grey.std(axis=1) >= 1e-3
    assert np.allclose(patches.values.mean(axis=1), 0, atol=1e-9)
    assert np.allclose(patches.values[lively].std(axis=1), 1)
    assert np.allclose(patches.to_grey()[lively], grey[lively], atol=1e-12)


def test_flat_patches_come_back_as_their_mean():
    grey = np.array([[0.5, 0.5004], [0.2, 0.2], [0.1, 0.9]])
    patches = standardise(grey)
    assert np.array_equal(patches.values[:2], np.zeros((2, 2)))
    assert np.array_equal(patches.contrast, [0, 0, 0.4])
    assert np.allclose(patches.to_grey(), [[0.5002, 0.5002], [0.2, 0.2], [0.1, 0.9]])
    assert np.all(standardise(grey, flat=0.0).contrast == pytest.approx([0.0002, 0, 0.4]))


def test_predictions_go_back_with_the_kept_mean_and_contrast():
    patches = standardise([[0.0, 1.0], [0.2, 0.4]])
    assert np.allclose(patches.to_grey([[0.0, 0.0], [1.0, 3.0]]), [[0.5, 0.5], [0.4, 0.6]])
    assert np.allclose(patches[1:].to_grey([[1.0, 3.0]]), [[0.4, 0.6]])
    with pytest.raises(ValueError, match=r"shape \(1, 2\) but the patches have \(2, 2\)"):
        patches.to_grey([[0.0, 0.0]])


def test_slices_are_patches():
    patches = standardise(np.random.default_rng(0).random((6, 4)))
    part = patches[2:5]
    assert isinstance(part, Patches)
    assert len(part) == 3
    assert np.array_equal(part.to_grey(), patches.to_grey()[2:5])
    with pytest.raises(TypeError, match="not a slice"):
        patches[2]


def test_standardise_refuses_what_are_no_patches():
    with pytest.raises(ValueError, match=r"shape \(4,\)"):
        standardise(np.zeros(4))
    with pytest.raises(ValueError, match="patch 1 holds NaN"):
        standardise([[0.0, 1.0], [np.nan, 1.0]])
    with pytest.raises(ValueError, match="flat=-1"):
        standardise([[0.0, 1.0]], flat=-1)


def test_read_patches_is_cut_and_standardise():
    film = GlideFilm(n_frames=30, size=64)
    patches = read_patches(film, frame_size=32, patch_size=8, position=(1, 5), start=10, stop=25)
    cutter = PatchCutter(frame_size=32, patch_size=8, position=(1, 5))
    expected = standardise(np.array([cutter.cut(film[index]) for index in range(10, 25)]))
    assert patches.values.dtype == np.float64
    assert patches.values.shape == (15, 64)
    assert np.allclose(patches.values, expected.values, atol=1e-12)
    assert np.allclose(patches.to_grey(), expected.to_grey(), atol=1e-12)


def test_read_patches_opens_any_source(tmp_path):
    frames = np.random.default_rng(0).random((5, 20, 20))
    np.save(tmp_path / "film.npy", frames)
    patches = read_patches(tmp_path / "film.npy", frame_size=None, patch_size=4)
    assert np.allclose(patches.to_grey(), frames[:, 8:12, 8:12].reshape(5, 16), atol=1e-6)
    assert len(read_patches("builtin:glide?frames=3")) == 3


class Counter(FrameSource):
    """Seven frames, a container that does not know its length, and a memory of what was read."""

    def __init__(self, n_read):
        for key, value in {"name": "counter", "shape": (16, 16), "n_frames": None, "n_read": n_read}.items():
            object.__setattr__(self, key, value)

    def _read(self, *, colour):
        for index in range(7):
            self.n_read.append(index)
            yield np.full((16, 16), np.nan if index == 5 else index, dtype=np.float32)

    def checksum(self):
        return "0" * 64

    def head(self, stop):
        other = Counter(self.n_read)
        object.__setattr__(other, "stop", stop)
        return other


def test_progress_is_told_after_each_frame():
    told = []
    read_patches(Counter([]), frame_size=None, start=1, stop=4, progress=lambda *step: told.append(step))
    assert told == [(1, 3), (2, 3), (3, 3)]
    told.clear()
    with pytest.raises(FrameSourceError):
        read_patches(Counter([]), frame_size=None, progress=lambda *step: told.append(step))
    assert told[-1] == (5, None)
    told.clear()
    read_patches(np.zeros((4, 16, 16)), frame_size=None, start=2, progress=lambda *step: told.append(step))
    assert told == [(1, 2), (2, 2)]


def test_frames_after_stop_are_not_read():
    n_read = []
    read_patches(Counter(n_read), frame_size=None, stop=3)
    assert n_read == [0, 1, 2]


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"start": 9}, "array has 9 frames, too few for start=9"),
        ({"start": 20, "stop": 30}, "array has 9 frames, too few for start=20"),
        ({"stop": 10}, "array has 9 frames, too few for stop=10"),
    ],
)
def test_films_that_are_too_short_say_how_long_they_are(limits, message):
    with pytest.raises(FrameSourceError, match=message):
        read_patches(np.zeros((9, 16, 16)), frame_size=None, **limits)


@pytest.mark.parametrize("limits", [{"start": -1}, {"start": 5, "stop": 5}, {"stop": 0}, {"start": 1.5}])
def test_limits_must_make_sense(limits):
    with pytest.raises((ValueError, TypeError), match=r"start=|stop="):
        read_patches(np.zeros((9, 16, 16)), frame_size=None, **limits)


def test_only_the_patches_are_held(peak):
    film = open_frames("builtin:glide?frames=300")
    film[0]
    patches, n_bytes = peak(lambda: read_patches(film))
    # The film itself would be 48 MB.
    assert n_bytes < 4 * patches.values.nbytes + 4_000_000


def test_values_are_patches_of_frames_or_a_series_as_it_stands(tmp_path):
    film = GlideFilm(n_frames=12, size=64)
    cut = {"frame_size": 32, "patch_size": 8, "position": (1, 5)}
    expected = read_patches(film, **cut, stop=9).values
    assert np.array_equal(read_values(film, **cut, stop=9), expected)
    assert np.array_equal(read_values(iter(list(film)), **cut, stop=9), expected)
    series = np.random.default_rng(0).normal(size=(9, 5))
    np.savetxt(tmp_path / "series.csv", series, delimiter=",", fmt="%.17g")
    for source in (series, tmp_path / "series.csv", open_source(series)):
        assert np.array_equal(read_values(source, **cut), series)
        assert np.array_equal(read_values(source, stop=4), series[:4])


def test_the_length_of_a_series_is_checked_and_told():
    told = []
    read_values(np.zeros((9, 5)), stop=4, progress=lambda *step: told.append(step))
    assert told == [(4, 4)]
    with pytest.raises(FrameSourceError, match="array has 9 frames, too few for stop=10; use stop <= 9"):
        read_values(np.zeros((9, 5)), stop=10)
    with pytest.raises(FrameSourceError, match=r"array has shape \(9, 5\), which is a series"):
        read_patches(np.zeros((9, 5)))
