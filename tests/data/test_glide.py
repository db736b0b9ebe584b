"""The built-in film: deterministic, smooth, textured, and true to the motion it reports."""

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

from psmt.coding import SparseCoder
from psmt.data import GlideFilm, open_frames
from psmt.data.patches import PatchCutter, read_patches
from psmt.data.synthetic import glide
from psmt.errors import FrameSourceError


def to_world(motion, index, row, column):
    """World row and column of pixels of the frame ``motion.start + index``."""
    cos, sin, centre = np.cos(motion.angle[index]), np.sin(motion.angle[index]), (motion.size - 1) / 2
    y, x = ((np.asarray(part, dtype=float) - centre) / motion.zoom[index] for part in (row, column))
    return motion.row[index] + cos * y + sin * x, motion.column[index] - sin * y + cos * x


def to_frame(motion, index, row, column):
    """Frame row and column of world pixels: the inverse of `to_world`."""
    cos, sin, centre = np.cos(motion.angle[index]), np.sin(motion.angle[index]), (motion.size - 1) / 2
    down = (np.asarray(row, dtype=float) - motion.row[index]) * motion.zoom[index]
    right = (np.asarray(column, dtype=float) - motion.column[index]) * motion.zoom[index]
    return cos * down - sin * right + centre, sin * down + cos * right + centre


def runs(mask):
    """Return the lengths of the runs of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(int), [0]])))
    return edges[1::2] - edges[::2]


def test_a_frame_depends_on_seed_and_time_alone():
    short, long = (
        GlideFilm(n_frames=60, seed=3, noise=0.3, size=64),
        GlideFilm(n_frames=9000, seed=3, noise=0.3, size=64),
    )
    frames = list(short)
    assert len(frames) == 60
    assert np.array_equal(frames[59], long[59])
    assert np.array_equal(frames[17], short[17])
    assert np.allclose(long.motion(start=40, stop=45).row, short.motion().row[40:45], rtol=0, atol=1e-9)
    assert not np.allclose(frames[17], GlideFilm(seed=1, noise=0.3, size=64)[17], atol=0.1)


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
    small, large = GlideFilm(size=80)[700], GlideFilm(size=200)[700]
    assert np.allclose(small, large[60:140, 60:140], atol=1e-4)


@pytest.mark.parametrize(("seed", "first", "second"), [(0, 100, 112), (3, 5200, 5150)])
def test_the_motion_says_where_content_goes(seed, first, second):
    film = GlideFilm(seed=seed)
    before, after = film[first], film[second]
    motion = film.motion()
    rows, columns = np.mgrid[60:140:1, 60:140:1]
    world = to_world(motion, first, rows, columns)
    there = to_frame(motion, second, *world)
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
    turned = np.flatnonzero(np.abs(motion.angle) > 0.1)
    for index in turned[:: len(turned) // 4]:
        # Spline coefficients of the world, evaluated by somebody else's code.
        there = np.stack(to_world(motion, index, *np.mgrid[:60, :60])) % glide.WORLD
        coefficients = glide._world(0).coefficients
        expected = map_coordinates(coefficients, there, order=3, prefilter=False, mode="grid-wrap")
        assert np.allclose(film[index], np.clip(expected, 0, 1), atol=1e-4)


def test_to_frame_undoes_to_world():
    motion = GlideFilm(n_frames=500).motion(start=200)
    assert motion.start == 200
    assert len(motion) == 300
    row, column = to_frame(motion, 7, *to_world(motion, 7, [0.0, 99.5, 150.0], [3.0, 99.5, 20.0]))
    assert np.allclose(row, [0.0, 99.5, 150.0])
    assert np.allclose(column, [3.0, 99.5, 20.0])
    assert np.allclose(to_world(motion, 7, 99.5, 99.5), (motion.row[7], motion.column[7]))


@pytest.mark.parametrize("seed", range(6))
def test_calm_and_lively_stretches_take_turns_and_none_stands_still(seed):
    speed = GlideFilm(n_frames=2000, seed=seed).motion().speed
    calm = speed < 0.3
    stretches = runs(calm)
    assert np.sum(stretches > 60) >= 2
    assert stretches.max() < 450
    lively = runs(~calm)
    assert np.sum(lively > 60) >= 2
    assert lively.max() < 450
    assert 0.6 < np.median(speed[~calm]) < 1.5
    assert 0.07 < speed.min() < 0.2


@pytest.mark.parametrize("speed", [0.05, 0.7, 4.0])
def test_a_speed_is_kept_all_the_way(speed):
    motion = GlideFilm(n_frames=2000, seed=3, speed=speed).motion()
    assert np.allclose(motion.speed, speed, rtol=0.01)
    assert np.ptp(motion.zoom) > 0 < np.ptp(motion.angle)


def test_a_slow_film_shows_what_a_fast_one_does_later():
    slow, fast = GlideFilm(speed=0.5, size=64), GlideFilm(speed=2.0, size=64)
    assert np.allclose(slow[400], fast[100], atol=1e-5)


def test_without_speed_every_frame_is_the_same():
    film = GlideFilm(n_frames=900, speed=0, size=32)
    assert np.array_equal(film[0], film[899])


@pytest.mark.parametrize("seed", range(6))
def test_the_camera_never_jerks(seed):
    motion = GlideFilm(n_frames=10_000, seed=seed).motion()
    assert motion.speed.max() < 2
    for path in (motion.row, motion.column):
        assert np.abs(np.diff(path, n=2)).max() < 0.1
    assert np.abs(np.diff(motion.angle)).max() < 0.01
    assert np.abs(np.diff(np.log(motion.zoom))).max() < 0.01


def test_speed_is_in_frame_pixels():
    motion = GlideFilm(n_frames=300).motion()
    moved = to_frame(motion, 200, motion.row[199], motion.column[199])
    assert motion.speed[200] == pytest.approx(np.hypot(moved[0] - 99.5, moved[1] - 99.5))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 3))])
def test_the_centre_is_seldom_flat(seed):
    film, cutter = GlideFilm(seed=seed), PatchCutter()
    contrast = np.array([cutter.cut(film[index]).std() for index in range(0, 10_000, 50)])
    assert np.mean(contrast < 0.02) < 0.02


def test_the_world_has_no_end():
    """Far from its middle, beyond its first copy, the camera still sees leaves: the world is a torus."""
    film = GlideFilm(n_frames=10_000, speed=4, seed=3)
    motion = film.motion()
    outside = np.flatnonzero((motion.row < -200) | (motion.column > glide.WORLD + 200))
    assert film[int(outside[0])].std() > 0.05


def test_nothing_in_the_world_is_too_fine_for_a_frame():
    """The camera never sees less than a frame pixel per world pixel, so zooming out cannot alias."""
    assert all(GlideFilm(seed=seed).motion().zoom.min() > 1 for seed in range(4))


def test_the_world_is_like_natural_scenes():
    """Amplitude falls about as 1/f, and differences of neighbours are mostly small, seldom large: edges."""
    picture = np.concatenate([GlideFilm(seed=seed)[100 * k][None] for seed in (0, 1, 3) for k in range(2)])
    edges = np.diff(picture, axis=1)
    kurtosis = np.mean(edges**4) / np.mean(edges**2) ** 2
    assert kurtosis > 10
    window = np.hanning(200)[:, None] * np.hanning(200)
    power = np.mean(np.abs(np.fft.rfft2((picture - picture.mean()) * window)) ** 2, axis=0)
    frequency = np.hypot(np.fft.fftfreq(200)[:, None], np.fft.rfftfreq(200))
    band = (frequency > 0.02) & (frequency < 0.15)
    slope = np.polyfit(np.log(frequency[band]), np.log(power[band]), 1)[0]
    assert -3.2 < slope < -1.8


def test_atoms_look_like_edges():
    """Most of what a dictionary's atoms hold is one direction: that of the gradient across an edge."""
    patches = read_patches("builtin:glide?frames=1200&size=16", frame_size=16).values
    coder = SparseCoder(n_atoms=64, random_state=0).fit(patches)
    used = coder.dictionary_[(coder.transform(patches) > 0).sum(axis=0) > 12].reshape(-1, 16, 16)
    gradients = [np.stack(np.gradient(atom)).reshape(2, -1) for atom in used]
    # Of noise, half of the gradient's energy is in any direction.
    shares = [np.linalg.eigvalsh(g @ g.T)[-1] / np.sum(g**2) for g in gradients]
    assert np.median(shares) > 0.7
    # An edge is smooth along itself: neighbouring pixels of an atom are alike.
    alike = [np.corrcoef(atom[:, 1:].ravel(), atom[:, :-1].ravel())[0, 1] for atom in used]
    assert np.median(alike) > 0.8


def test_noise_is_additive_and_gaussian():
    film = GlideFilm(noise=0.15)
    clean, noisy = GlideFilm()[40], film[40]
    inside = (clean > 0.1) & (clean < 0.9)
    noise = (noisy - clean)[inside]
    assert noise.std() == pytest.approx(0.15 * film.contrast, rel=0.03)
    assert abs(noise.mean()) < 0.001
    assert noisy.min() >= 0
    assert noisy.max() <= 1
    other = film[41] - GlideFilm()[41]
    assert abs(np.corrcoef(noise, other[inside])[0, 1]) < 0.05


def test_the_contrast_is_that_of_patches():
    film = GlideFilm(seed=1, speed=16, size=16)
    contrast = [film[index].std() for index in range(0, 4000, 10)]
    assert np.median(contrast) == pytest.approx(film.contrast, rel=0.1)


def test_memory_does_not_grow_with_the_film(peak):
    film = GlideFilm(n_frames=400, size=100)
    film[0]
    n_frames, n_bytes = peak(lambda: sum(1 for _ in film))
    assert n_frames == 400
    assert n_bytes < 40 * film.size**2 * 4


def test_the_query_sets_the_parameters():
    film = open_frames("builtin:glide?frames=2000&seed=1&speed=0.5&noise=0.1&size=64", stop=1500)
    assert film == GlideFilm(n_frames=1500, seed=1, speed=0.5, noise=0.1, size=64)
    assert open_frames("builtin:glide") == GlideFilm()


def test_the_checksum_names_every_parameter():
    changes = [{}, {"seed": 1}, {"speed": 0.1}, {"noise": 0.1}, {"size": 64}, {"n_frames": 5}]
    assert len({GlideFilm(**change).checksum() for change in changes}) == 6
    assert GlideFilm(speed=1).checksum() == GlideFilm(speed=1.0).checksum()
    assert GlideFilm().checksum() == GlideFilm().checksum()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("builtin:slide", "no built-in film builtin:slide.*builtin:glide"),
        ("builtin:", "no built-in film"),
        ("builtin:glide?frame=3", "unknown option 'frame'; use frames, seed, speed, noise, size"),
        ("builtin:glide?frames=-5", "n_frames=-5 is too small; use n_frames >= 1"),
        ("builtin:glide?frames=0", "n_frames=0"),
        ("builtin:glide?frames=", "frames='' is not an integer"),
        ("builtin:glide?seed=1.5", "seed='1.5' is not an integer"),
        ("builtin:glide?seed=-1", "seed=-1"),
        ("builtin:glide?speed=-1", "speed=-1.0 is out of range; use pixels per frame from 0 to 16, or leave it out"),
        ("builtin:glide?speed=17", "speed=17.0 is out of range"),
        ("builtin:glide?speed=nan", "speed=nan is out of range"),
        ("builtin:glide?speed=fast", "speed='fast' is not a number"),
        ("builtin:glide?noise=-0.1", "noise=-0.1 is out of range; use 0 to 2, relative to the contrast"),
        ("builtin:glide?noise=nan", "noise=nan is out of range"),
        ("builtin:glide?noise=much", "noise='much' is not a number"),
        ("builtin:glide?size=1000", "size=1000 is too large; use size <= 400"),
    ],
)
def test_bad_queries_name_the_value_and_the_way_out(source, message):
    with pytest.raises(FrameSourceError, match=message):
        open_frames(source)


def test_bad_parameters_are_value_errors():
    with pytest.raises(ValueError, match="n_frames=0"):
        GlideFilm(n_frames=0)
    with pytest.raises(IndexError, match="frame 10 is outside glide; use -10 to 9"):
        GlideFilm(n_frames=10)[10]
    with pytest.raises(ValueError, match="start=5 and stop=5"):
        GlideFilm(n_frames=10).motion(start=5, stop=5)
