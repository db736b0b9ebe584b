"""What can be read again and what cannot, and which of it each opener takes."""

import os

import numpy as np
import pytest

from psmt.data import (
    Film,
    FrameSource,
    FrameStream,
    SeriesSource,
    open_frames,
    open_repeatable,
    open_series,
    open_source,
    open_stream,
    require_film,
)
from psmt.errors import FrameSourceError, MissingSourceError

FRAMES = np.random.default_rng(0).random((6, 8, 10))
SERIES = FRAMES[:, 0]


def test_films_can_be_read_again_and_streams_cannot():
    film, stream = open_frames(FRAMES), open_frames(iter(FRAMES))
    assert isinstance(film, Film) and film.repeatable
    assert isinstance(stream, FrameStream) and not stream.repeatable
    assert not hasattr(stream, "checksum")
    assert np.array_equal(list(film), list(film))
    assert np.array_equal(list(film), list(stream))


def test_a_film_is_what_is_required():
    film = open_frames("builtin:glide?frames=3")
    assert require_film(film, wanted_by="psmt sweep") is film
    with pytest.raises(FrameSourceError, match="camera:0 can be read only once, but psmt sweep"):
        require_film(open_stream(FRAMES, name="camera:0"), wanted_by="psmt sweep")


def test_series_and_films_can_be_opened_for_reading_again():
    assert isinstance(open_repeatable(SERIES, wanted_by="psmt sweep"), SeriesSource)
    film = open_repeatable(FRAMES, wanted_by="psmt sweep", stop=2)
    assert isinstance(film, Film)
    assert film.n_frames == 2
    with pytest.raises(FrameSourceError, match="stream can be read only once, but psmt sweep"):
        open_repeatable(iter(FRAMES), wanted_by="psmt sweep")


@pytest.mark.parametrize(("array", "kind"), [(FRAMES, FrameSource), (SERIES, SeriesSource)])
@pytest.mark.parametrize("suffix", [None, ".npy", ".npz"])
def test_the_number_of_axes_tells_frames_from_series(tmp_path, array, kind, suffix):
    source = array
    if suffix is not None:
        source = tmp_path / f"data{suffix}"
        (np.save if suffix == ".npy" else np.savez)(source, array)
    opened = open_source(source, stop=4)
    assert isinstance(opened, kind)
    assert opened.n_frames == 4
    assert open_source(opened, stop=2).n_frames == 2


def test_each_opener_says_what_it_does_not_take():
    with pytest.raises(FrameSourceError, match=r"array has shape \(6, 10\), which is a series .* open_series"):
        open_frames(SERIES)
    with pytest.raises(FrameSourceError, match=r"array has shape \(6, 10\), which is a series"):
        open_frames(open_series(SERIES))
    with pytest.raises(FrameSourceError, match=r"array has frames of 8 x 10 pixels; a series is .* read_patches"):
        open_series(FRAMES)
    with pytest.raises(FrameSourceError, match="glide has frames of 200 x 200 pixels"):
        open_series("builtin:glide")


@pytest.mark.parametrize("opener", [open_source, open_frames, open_series])
def test_what_is_no_source_is_refused_by_all(tmp_path, opener):
    with pytest.raises(MissingSourceError, match=r"gone\.csv does not exist"):
        opener(tmp_path / "gone.csv")
    with pytest.raises(FrameSourceError, match=r"nosuch://film cannot be opened .*is the address right"):
        opener("nosuch://film")
    with pytest.raises(TypeError, match="source is a int; give a path"):
        opener(5)
    with pytest.raises(TypeError, match="source is a list"):
        opener([FRAMES[0]])
    with pytest.raises(ValueError, match="stop=0"):
        opener(SERIES, stop=0)


def test_a_colon_does_not_make_an_address(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("take:2.npy", FRAMES)
    assert open_frames("take:2.npy").n_frames == 6


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.csv", "a.mat", "a.tif", "a.mp4"])
def test_a_pipe_is_refused_where_reading_would_wait_for_ever(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(FrameSourceError, match=f"{name} is a pipe or a device"):
        open_source(tmp_path / name)


def test_a_pipe_among_images_is_named(tmp_path):
    os.mkfifo(tmp_path / "1.png")
    with pytest.raises(FrameSourceError, match=r"1\.png is a pipe or a device"):
        list(open_source(tmp_path))
