"""The built-in film: deterministic, smooth, textured, and true to the motion it reports."""

import tracemalloc

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

from psmt.errors import FrameSourceError
from psmt.patches import PatchCutter
from psmt.sources import GlideFilm, glide, open_frames


def runs(mask):
    """Return the lengths of the runs of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(int), [0]])))
    return edges[1::2] - edges[::2]


def test_a_frame_depends_on_seed_and_time_alone():
    short, long = GlideFilm(n_frames=60, seed=3, noise=0.05), GlideFilm(n_frames=9000, seed=3, noise=0.05)
    frames = list(short)
    assert len(frames) == 60
    assert np.array_equal(frames[59], long.frame(59))
    assert np.array_equal(frames[17], short.frame(17))
    assert np.allclose(long.motion(start=40, stop=45).row, short.motion().row[40:45], rtol=0, atol=1e-9)
    assert not np.allclose(frames[17], GlideFilm(seed=4, noise=0.05).frame(17), atol=0.1)


def test_frames_are_pictures():
    film = GlideFilm(n_frames=3, size=64)
    (frame, *_), (colour, *_) = list(film), list(film.iter_colour())
    assert frame.dtype == np.float32
    assert frame.shape == film.shape == (64, 64)
    assert colour.shape == (64, 64, 3)
    assert np.array_equal(colour[..., 1], frame)
    assert frame.min() >= 0
    assert frame.max() <= 1


def test_a_smaller_sensor_sees_the_middle_of_a_larger_one():
    small, large = GlideFilm(size=80).frame(700), GlideFilm(size=200).frame(700)
    assert np.allclose(small, large[60:140, 60:140], atol=1e-4)


@pytest.mark.parametrize(("seed", "first", "second"), [(0, 100, 112), (1, 1500, 1540), (2, 5200, 5190)])
def test_the_motion_says_where_content_goes(seed, first, second):
    film = GlideFilm(seed=seed)
    before, after = film.frame(first), film.frame(second)
    motion = film.motion()
    rows, columns = np.mgrid[60:140:1, 60:140:1]
    world = motion.to_world(first, rows, columns)
    there = motion.to_frame(second, *world)
    assert np.min(there) > 5
    assert np.max(there) < 194
    carried = map_coordinates(after, there, order=3)
    still = after[60:140, 60:140]
    wanted = before[60:140, 60:140]
    assert np.abs(there[0] - rows).max() + np.abs(there[1] - columns).max() > 5
    assert np.sqrt(np.mean((carried - wanted) ** 2)) < 0.25 * np.sqrt(np.mean((still - wanted) ** 2))
    assert np.corrcoef(carried.ravel(), wanted.ravel())[0, 1] > 0.97


def test_a_frame_is_the_world_under_the_camera():
    film = GlideFilm(n_frames=3000, size=60)
    motion = film.motion()
    close = np.flatnonzero((motion.zoom > 1.05) & (np.abs(motion.angle) > 0.1))
    for index in close[:: len(close) // 4]:
        row, column = motion.to_world(index, *np.mgrid[:60, :60])
        # Spline coefficients of the sharp world, evaluated by somebody else's code.
        coefficients = glide._world()[0]
        expected = map_coordinates(coefficients, [row + glide.MARGIN, column + glide.MARGIN], order=3, prefilter=False)
        assert np.allclose(film.frame(index), np.clip(expected, 0, 1), atol=1e-4)


def test_to_frame_undoes_to_world():
    motion = GlideFilm(n_frames=500).motion(start=200)
    assert motion.start == 200
    assert len(motion) == 300
    row, column = motion.to_frame(7, *motion.to_world(7, [0.0, 99.5, 150.0], [3.0, 99.5, 20.0]))
    assert np.allclose(row, [0.0, 99.5, 150.0])
    assert np.allclose(column, [3.0, 99.5, 20.0])
    assert np.allclose(motion.to_world(7, 99.5, 99.5), (motion.row[7], motion.column[7]))


@pytest.mark.parametrize("seed", range(6))
def test_calm_and_lively_stretches_take_turns(seed):
    speed = GlideFilm(n_frames=2000, seed=seed).motion().speed
    calm = speed < 0.2
    stretches = runs(calm)
    assert np.sum(stretches > 60) >= 2
    assert stretches.max() < 450
    lively = runs(~calm)
    assert np.sum(lively > 60) >= 2
    assert lively.max() < 450
    assert 0.6 < np.median(speed[speed > 0.35]) < 2


@pytest.mark.parametrize("seed", range(6))
def test_the_camera_never_jerks(seed):
    motion = GlideFilm(n_frames=10_000, seed=seed).motion()
    assert motion.speed.max() < 9
    for path in (motion.row, motion.column):
        assert np.abs(np.diff(path, n=2)).max() < 0.4
    assert np.abs(np.diff(motion.angle)).max() < 0.01
    assert np.abs(np.diff(np.log(motion.zoom))).max() < 0.01


def test_speed_is_in_frame_pixels():
    motion = GlideFilm(n_frames=300).motion()
    moved = motion.to_frame(200, motion.row[199], motion.column[199])
    assert motion.speed[200] == pytest.approx(np.hypot(moved[0] - 99.5, moved[1] - 99.5))


@pytest.mark.parametrize("seed", range(4))
def test_the_centre_is_seldom_flat(seed):
    film, cutter = GlideFilm(seed=seed), PatchCutter()
    contrast = np.array([cutter.cut(film.frame(index)).std() for index in range(0, 10_000, 50)])
    assert np.mean(contrast < 0.02) < 0.02


def test_the_whole_view_stays_within_the_mirrored_world():
    farthest = (glide.LARGEST - 1) / 2 * np.exp(glide.ZOOM_RANGE)
    reach = farthest * (np.cos(glide.ANGLE_RANGE) + np.sin(glide.ANGLE_RANGE)) + 4
    column = np.linspace(glide.BAND_COLUMN[0], glide.BAND_COLUMN[-1], 500)
    middle, half = glide._band_middle(column), glide._band_half(column)
    _, height, width = glide._world().shape
    assert (middle - half).min() + glide.MARGIN - reach > 0
    assert (middle + half).max() + glide.MARGIN + reach < height
    assert column[0] + glide.MARGIN - reach > 0
    assert column[-1] + glide.MARGIN + reach < width


def test_zooming_out_does_not_alias():
    """Stripes finer than the pixels of a distant camera fade; stripes that it can show stay."""

    def kept(period):
        stripes = 0.5 + 0.5 * np.sin(2 * np.pi * np.arange(300) / period) * np.ones((300, 1))
        strength = glide._levels(stripes)[:, 50:250, 50:250].std(axis=(1, 2))
        return strength / strength[0]

    fine, coarse = kept(2.2), kept(8.0)
    assert np.all(np.diff(fine) < -0.1)
    assert fine[-1] < 0.35
    assert coarse[-1] > 0.85
    # The level is chosen by zoom: the farther the camera, the softer the world that it looks at.
    detail = [np.diff(glide._view(scale, 500, 700, 450, 650)).var() for scale in (0.8, 1.0, 1.1, 1.2, 1.3)]
    assert detail[0] == detail[1]
    assert np.all(np.diff(detail[1:]) < 0)


def test_noise_is_additive_and_gaussian():
    clean, noisy = GlideFilm().frame(40), GlideFilm(noise=0.02).frame(40)
    inside = (clean > 0.1) & (clean < 0.9)
    noise = (noisy - clean)[inside]
    assert noise.std() == pytest.approx(0.02, rel=0.03)
    assert abs(noise.mean()) < 0.001
    assert noisy.min() >= 0
    assert noisy.max() <= 1
    other = GlideFilm(noise=0.02).frame(41) - GlideFilm().frame(41)
    assert abs(np.corrcoef(noise, other[inside])[0, 1]) < 0.05


def test_memory_does_not_grow_with_the_film():
    film = GlideFilm(n_frames=400, size=100)
    film.frame(0)
    tracemalloc.start()
    try:
        n_frames = sum(1 for _ in film)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert n_frames == 400
    assert peak < 40 * film.size**2 * 4


def test_the_query_sets_the_parameters():
    film = open_frames("builtin:glide?frames=2000&seed=1&noise=0.02&size=64", stop=1500)
    assert film == GlideFilm(n_frames=1500, seed=1, noise=0.02, size=64)
    assert open_frames("builtin:glide") == GlideFilm()


def test_the_checksum_names_every_parameter():
    films = [GlideFilm(), GlideFilm(seed=1), GlideFilm(noise=0.1), GlideFilm(size=64), GlideFilm(n_frames=5)]
    assert len({film.checksum() for film in films}) == 5
    assert GlideFilm().checksum() == GlideFilm().checksum()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("builtin:slide", "no built-in film 'slide'.*builtin:glide"),
        ("builtin:", "no built-in film"),
        ("builtin:glide?frame=3", "unknown option 'frame'; use frames, seed, noise, size"),
        ("builtin:glide?frames=-5", "n_frames=-5 is out of range; use an integer of at least 1"),
        ("builtin:glide?frames=0", "n_frames=0"),
        ("builtin:glide?frames=", "frames='' is not an integer"),
        ("builtin:glide?seed=1.5", "seed='1.5' is not an integer"),
        ("builtin:glide?seed=-1", "seed=-1"),
        ("builtin:glide?noise=-0.1", "noise=-0.1 is out of range"),
        ("builtin:glide?noise=nan", "noise=nan is out of range"),
        ("builtin:glide?noise=much", "noise='much' is not a number"),
        ("builtin:glide?size=1000", "size=1000 is out of range; use an integer from 8 to 400"),
    ],
)
def test_bad_queries_name_the_value_and_the_way_out(source, message):
    with pytest.raises(FrameSourceError, match=message):
        open_frames(source)


def test_bad_parameters_are_value_errors():
    with pytest.raises(ValueError, match="n_frames=0"):
        GlideFilm(n_frames=0)
    with pytest.raises(IndexError, match="frame 10 is outside the film; it has the frames 0 to 9"):
        GlideFilm(n_frames=10).frame(10)
    with pytest.raises(ValueError, match="start=5 and stop=5"):
        GlideFilm(n_frames=10).motion(start=5, stop=5)
