"""Films come back as they were written, whole or with an error that says what is wrong."""

import io
import os
import re
import struct
import sys
from hashlib import sha256

import av
import numpy as np
import pytest
from PIL import Image

from psmt.data import open_frames
from psmt.errors import FrameSourceError, MissingSourceError

CONTAINERS = {
    "mp4": ("libx264", "yuv420p", {"crf": "12"}),
    "mov": ("mpeg4", "yuv420p", {"qscale": "2"}),
    "mkv": ("ffv1", "gray", {}),
    "avi": ("mpeg4", "yuv420p", {"qscale": "2"}),
    "webm": ("libvpx-vp9", "yuv420p", {"crf": "10", "cpu-used": "8", "deadline": "realtime"}),
}


@pytest.fixture(scope="module")
def films(tmp_path_factory, moving, write_film):
    """One healthy film per container, by suffix."""
    folder = tmp_path_factory.mktemp("films")
    return {
        suffix: write_film(folder / f"film.{suffix}", moving, codec=codec, pix_fmt=pix_fmt, options=options)
        for suffix, (codec, pix_fmt, options) in CONTAINERS.items()
    }


@pytest.mark.parametrize("suffix", CONTAINERS)
def test_a_film_comes_back_as_it_was_written(films, moving, suffix):
    film = open_frames(films[suffix])
    frames = np.array(list(film))
    assert frames.dtype == np.float32
    assert frames.shape == moving.shape
    assert film.shape == (48, 64)
    assert film.fps == pytest.approx(25)
    assert film.name == f"film.{suffix}"
    assert film.n_frames in (None, len(moving))
    # The error of the codec, well below the change from one frame to the next.
    error = np.abs(frames - moving / 255).mean(axis=(1, 2))
    assert error.max() < 0.012
    assert np.abs(np.diff(moving / 255, axis=0)).mean() > 0.024


MATRICES = {0: (1, 0, 0, 1), 1: (0, -1, 1, 0), 2: (-1, 0, 0, -1), 3: (0, 1, -1, 0)}
"""Part of the display matrix of an MP4 file, by the number of counterclockwise quarter turns."""


@pytest.mark.parametrize("turns", MATRICES)
def test_a_film_is_read_as_its_file_says_that_it_is_shown(tmp_path, films, moving, turns):
    data = bytearray(films["mp4"].read_bytes())
    at = data.index(b"tkhd") + 44  # after version and flags, times, identifier, duration, layer, group and volume
    a, b, c, d = (part << 16 for part in MATRICES[turns])
    data[at : at + 36] = struct.pack(">9i", a, b, 0, c, d, 0, 0, 0, 1 << 30)
    path = tmp_path / "turned.mp4"
    path.write_bytes(data)
    film = open_frames(path)
    upright = np.rot90(moving[0], turns) / 255
    assert film.shape == upright.shape == next(iter(film)).shape
    assert np.abs(next(iter(film)) - upright).mean() < 0.012
    assert next(iter(film.iter_colour())).shape == (*upright.shape, 3)


def test_a_lossless_film_is_exact(films, moving):
    assert np.array_equal(np.array(list(open_frames(films["mkv"]))), moving.astype(np.float32) / np.float32(255))


def test_sixteen_bits_are_kept(tmp_path, moving, write_film):
    deep = moving[:3].astype(np.uint16) * 257 + np.arange(64, dtype=np.uint16)
    path = write_film(tmp_path / "deep.mkv", deep, codec="ffv1", pix_fmt="gray16le")
    assert np.array_equal(np.array(list(open_frames(path))), deep.astype(np.float32) / np.float32(65535))


def test_colour_is_kept_and_grey_is_its_luma(tmp_path, moving, write_film):
    colour = np.stack([moving[:4], moving[4:8], 255 - moving[8:12]], axis=-1)
    path = write_film(tmp_path / "colour.mkv", colour, codec="ffv1", pix_fmt="bgr0")
    film = open_frames(path)
    assert np.array_equal(np.array(list(film.iter_colour())), colour.astype(np.float32) / np.float32(255))
    assert np.abs(np.array(list(film)) - colour @ [0.299, 0.587, 0.114] / 255).max() < 1.5 / 255


def test_grey_films_repeat_their_channel(films, moving):
    frame = next(open_frames(films["mkv"]).iter_colour())
    assert frame.shape == (48, 64, 3)
    assert np.array_equal(frame[..., 0], frame[..., 2])
    assert np.array_equal(frame[..., 1], moving[0].astype(np.float32) / np.float32(255))


def test_each_iteration_starts_anew(films):
    film = open_frames(films["mp4"])
    first, second = iter(film), iter(film)
    next(first)
    assert np.array_equal(next(first), list(film)[1])
    assert np.array_equal(next(second), next(iter(film)))


def test_stop_ends_the_film(films):
    film = open_frames(films["mp4"], stop=7)
    assert film.n_frames == 7
    assert len(list(film)) == len(list(film.iter_colour())) == 7
    assert open_frames(film, stop=3).n_frames == 3
    assert open_frames(film, stop=30).n_frames == 7
    assert len(list(open_frames(films["mp4"], stop=1000))) == 40


@pytest.mark.parametrize("stop", [0, -3, 2.5, True])
def test_stop_must_be_a_positive_integer(films, stop):
    with pytest.raises(ValueError, match="stop="):
        open_frames(films["mp4"], stop=stop)


def test_the_checksum_is_that_of_the_file(films):
    digest = sha256(films["mp4"].read_bytes()).hexdigest()
    assert open_frames(films["mp4"]).checksum() == open_frames(films["mp4"], stop=2).checksum() == digest


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts open files in /proc")
def test_the_file_is_closed_when_the_reader_walks_away(films):
    def times_open():
        links = (f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd"))
        return sum(os.readlink(link) == str(films["mkv"]) for link in links if os.path.exists(link))

    film = open_frames(films["mkv"])
    assert times_open() == 0
    frames = iter(film)
    next(frames)
    assert times_open() == 1
    frames.close()
    assert times_open() == 0
    for _ in film:
        break
    assert times_open() == 0


def test_memory_does_not_grow_with_the_film(tmp_path, moving, write_film, peak):
    long = np.tile(moving, (15, 2, 2))
    path = write_film(tmp_path / "long.mp4", long, codec="mpeg4", pix_fmt="yuv420p")
    film = open_frames(path)
    n_frames, n_bytes = peak(lambda: sum(1 for _ in film))
    assert n_frames == 600
    assert n_bytes < 20 * long[0].size * 4


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(MissingSourceError, match=r"gone\.mp4 does not exist"):
        open_frames(tmp_path / "gone.mp4")
    with pytest.raises(FileNotFoundError):
        open_frames(str(tmp_path / "gone.mp4"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.mp4", b"", r"empty\.mp4 is empty \(0 bytes\)"),
        ("junk.mp4", bytes(range(256)) * 40, "cannot be opened as a video"),
        ("notes.txt", b"these are notes\n" * 40, "notes.txt cannot be opened as a video.*not in a container of films"),
    ],
)
def test_what_is_no_film_is_refused(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(FrameSourceError, match=message):
        open_frames(path)


@pytest.mark.parametrize(("name", "codec"), [("sound.wav", "pcm_s16le"), ("sound.m4a", "aac")])
def test_sound_alone_is_refused(tmp_path, name, codec):
    path = tmp_path / name
    with av.open(path, "w") as out:
        stream = out.add_stream(codec, rate=8000, layout="mono")
        samples = np.zeros((1, 8000), dtype=np.float32 if codec == "aac" else np.int16)
        sound = av.AudioFrame.from_ndarray(samples, format="fltp" if codec == "aac" else "s16", layout="mono")
        sound.sample_rate = 8000
        out.mux(stream.encode(sound))
        out.mux(stream.encode())
    with pytest.raises(FrameSourceError, match=r"has no video in it \(found: audio\)"):
        open_frames(path)


@pytest.mark.parametrize("suffix", ["mkv", "mp4", "avi"])
def test_a_film_without_frames_is_refused(tmp_path, moving, write_film, suffix):
    path = write_film(tmp_path / f"none.{suffix}", moving[:0], codec="mpeg4", pix_fmt="yuv420p")
    with pytest.raises(FrameSourceError, match=r"ends before its first frame|has 0 frames|has no video"):
        open_frames(path)


def test_a_change_of_size_names_frame_and_sizes(tmp_path, moving):
    path = tmp_path / "change.mjpeg"
    with path.open("wb") as file:
        for frame in [*moving[:5], moving[5, :32, :32]]:
            Image.fromarray(frame).save(file, format="jpeg")
    with pytest.raises(FrameSourceError, match="frame 5 is 32 x 32 pixels, but the first is 48 x 64"):
        list(open_frames(path))
    assert len(list(open_frames(path, stop=5))) == 5


CUT = {
    "fast.mp4": ("libx264", "yuv420p", {"movflags": "faststart"}),
    "fragments.mp4": ("libx264", "yuv420p", {"movflags": "frag_keyframe+empty_moov"}),
    "fast.mov": ("mpeg4", "yuv420p", {"movflags": "faststart"}),
    "lossless.mkv": ("ffv1", "gray", {}),
    "h264.mkv": ("libx264", "yuv420p", {}),
    "film.avi": ("mpeg4", "yuv420p", {}),
    "film.webm": ("libvpx", "yuv420p", {}),
    "film.flv": ("flv1", "yuv420p", {}),
}


@pytest.mark.parametrize("name", CUT)
def test_a_film_cut_in_two_says_how_much_is_left(tmp_path, moving, write_film, name):
    codec, pix_fmt, container_options = CUT[name]
    whole = write_film(tmp_path / name, moving, codec=codec, pix_fmt=pix_fmt, container_options=container_options)
    expected = np.array(list(open_frames(whole)))
    assert len(expected) == 40

    cut = tmp_path / f"cut-{name}"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size * 6 // 10])
    with pytest.raises(FrameSourceError, match="cut short or damaged") as caught:
        list(open_frames(cut))
    readable = int(re.search(r"(\d+) frames could be read", str(caught.value))[1])
    assert f"stop={readable} (--frames {readable})" in str(caught.value)
    assert 2 <= readable < 38

    # What is offered works, and is the film's beginning; only references lost in the cut may spoil its end.
    rest = np.array(list(open_frames(cut, stop=readable)))
    assert len(rest) == readable
    sound = readable - 4 if codec == "libx264" else readable
    assert np.array_equal(rest[:sound], expected[:sound])
    with pytest.raises(FrameSourceError, match=f"{readable} frames could be read"):
        list(open_frames(cut, stop=readable + 1))


def test_no_cut_passes_unseen(tmp_path, films):
    whole = films["mkv"].read_bytes()
    cut = tmp_path / "cut.mkv"
    for share in np.linspace(0.05, 0.99, 12):
        cut.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(FrameSourceError, match="bytes"):
            list(open_frames(cut))


def test_a_film_that_lost_its_index_cannot_be_opened(tmp_path, films):
    cut = tmp_path / "cut.mp4"
    whole = films["mp4"].read_bytes()
    index = whole.index(b"moov") - 4
    assert index > len(whole) // 2
    cut.write_bytes(whole[: index - 100])
    with pytest.raises(FrameSourceError, match="cannot be opened as a video"):
        open_frames(cut)
    cut.write_bytes(whole[: index + 100])
    with pytest.raises(FrameSourceError, match="has no video in it"):
        open_frames(cut)


class Pipe(io.RawIOBase):
    """A file that can only be appended to, as a live recording writes it."""

    def __init__(self):
        self.data = b""

    def writable(self):
        return True

    def write(self, block):
        self.data += bytes(block)
        return len(block)


@pytest.mark.parametrize(("suffix", "container"), [("mkv", "matroska"), ("avi", "avi"), ("ts", "mpegts")])
def test_live_recordings_that_declare_nothing_are_healthy(tmp_path, moving, write_film, suffix, container):
    codec = "ffv1" if suffix == "mkv" else "mpeg4"
    pix_fmt = "gray" if suffix == "mkv" else "yuv420p"
    pipe = write_film(Pipe(), moving, codec=codec, pix_fmt=pix_fmt, container=container)
    path = tmp_path / f"live.{suffix}"
    path.write_bytes(pipe.data)
    assert len(list(open_frames(path))) == 40


@pytest.mark.parametrize("tail", [b"\0\0\0\x10free12345678", b"\0" * 64, b"\xff\xff\xff\xffcamera notes", b"odd"])
def test_what_cameras_append_does_no_harm(tmp_path, films, tail):
    path = tmp_path / "tail.mp4"
    path.write_bytes(films["mp4"].read_bytes() + tail)
    assert len(list(open_frames(path))) == 40


def test_a_wrong_count_in_the_header_is_no_damage(tmp_path, films):
    data = bytearray(films["avi"].read_bytes())
    # strh.dwLength, 32 bytes after the stream's type: say 43 frames where there are 40.
    at = data.index(b"vids") + 32
    assert int.from_bytes(data[at : at + 4], "little") == 40
    data[at : at + 4] = (43).to_bytes(4, "little")
    path = tmp_path / "count.avi"
    path.write_bytes(data)
    assert open_frames(path).n_frames == 43
    assert len(list(open_frames(path))) == 40


def test_a_cover_is_no_film(tmp_path, moving):
    cover = io.BytesIO()
    Image.fromarray(moving[0]).save(cover, format="png")
    path = tmp_path / "song.mkv"
    with av.open(path, "w") as out:
        sound = out.add_stream("pcm_s16le", rate=8000, layout="mono")
        out.add_attachment("cover.png", "image/png", cover.getvalue())
        samples = av.AudioFrame.from_ndarray(np.zeros((1, 8000), dtype=np.int16), format="s16", layout="mono")
        samples.sample_rate = 8000
        out.mux(sound.encode(samples))
        out.mux(sound.encode())
    with pytest.raises(FrameSourceError, match="has no video in it"):
        open_frames(path)


def test_damage_at_the_beginning_or_inside_of_a_film_is_reported(tmp_path, moving, write_film):
    path = write_film(tmp_path / "film.mov", moving, codec="png", pix_fmt="gray")
    whole = path.read_bytes()

    def damage(start):
        at = whole.index(b"\x89PNG", start)
        path.write_bytes(whole[:at] + bytes(200) + whole[at + 200 :])

    damage(0)
    with pytest.raises(FrameSourceError, match="no frame could be decoded"):
        open_frames(path)
    damage(len(whole) // 2)
    with pytest.raises(FrameSourceError, match="cut short or damaged") as caught:
        list(open_frames(path))
    readable = int(re.search(r"(\d+) frames could be read", str(caught.value))[1])
    frames = np.array(list(open_frames(path, stop=readable)))
    assert np.array_equal(frames, moving[:readable].astype(np.float32) / np.float32(255))
