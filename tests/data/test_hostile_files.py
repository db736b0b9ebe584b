"""Files that a user names and nobody should trust: pipes, links, foreign formats, names that a terminal obeys."""

import errno
import gzip
import os
import socket
import stat
import struct
import warnings

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from psmt.data import open_frames, open_series, open_source
from psmt.data.readers.scans import load_image
from psmt.errors import FrameSourceError, MissingSourceError
from psmt.utils import files

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 24 16\n%%EndComments\nshowpage\n%%EOF\n"


@pytest.fixture
def folder(tmp_path):
    """A folder of six images."""
    target = tmp_path / "images"
    target.mkdir()
    for index in range(6):
        Image.fromarray(np.full((16, 24), 40 * index, np.uint8)).save(target / f"f{index:03}.png")
    return target


def _pipe(path):
    os.mkfifo(path)


def _device(path):
    path.symlink_to("/dev/zero")


def _socket(path):
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket has at most 108 bytes
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _loop(path):
    path.symlink_to(path.name)


def _dangling(path):
    path.symlink_to("no-such-file.png")


@pytest.mark.parametrize("make", [_pipe, _device, _socket, _loop, _dangling])
@pytest.mark.parametrize("use", ["checksum", "frames"])
def test_an_image_that_is_no_file_is_named_and_nobody_waits_for_it(folder, make, use):
    make(folder / "f003a.png")
    film = open_frames(folder)
    with pytest.raises(FrameSourceError, match=r"f003a\.png") as raised:
        film.checksum() if use == "checksum" else list(film)
    assert isinstance(raised.value, MissingSourceError) == (make is _dangling)


def test_a_file_that_becomes_a_pipe_after_it_was_opened(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((5, 3)))
    series = open_series(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(FrameSourceError, match=r"a\.npy is a pipe"):
        series.checksum()


def test_postscript_that_is_called_an_image_starts_no_program(folder, tmp_path, monkeypatch):
    program, mark = tmp_path / "gs", tmp_path / "executed"
    program.write_text(f"#!/bin/sh\ntouch {mark}\nexit 1\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", None)
    (folder / "f000.png").write_bytes(EPS)
    with pytest.raises(FrameSourceError, match=r"f000\.png cannot be read as an image"):
        list(open_frames(folder))
    assert not mark.exists()


@pytest.mark.parametrize("name", ["list.mp4", "list.ffconcat", "list.txt"])
def test_a_text_that_points_to_a_film_is_no_film(tmp_path, moving, write_film, name):
    write_film(tmp_path / "film.mkv", moving, codec="ffv1", pix_fmt="gray")
    (tmp_path / name).write_text("ffconcat version 1.0\nfile film.mkv\n")
    with pytest.raises(FrameSourceError, match=name):
        open_frames(tmp_path / name)


@pytest.mark.parametrize(
    "text",
    [
        "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfilm.ts\n#EXT-X-ENDLIST\n",
        '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"></MPD>',
        "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nm=video 9 RTP/AVP 96\n",
    ],
    ids=["hls", "dash", "sdp"],
)
def test_playlists_open_nothing(tmp_path, moving, write_film, text):
    write_film(tmp_path / "film.ts", moving, codec="mpeg2video", pix_fmt="yuv420p")
    (tmp_path / "list.mp4").write_text(text)
    with pytest.raises(FrameSourceError, match=r"list\.mp4"):
        open_frames(tmp_path / "list.mp4")


def test_a_pattern_of_names_stands_for_no_other_files(folder):
    (folder / "f%03d.mp4").write_bytes(b"nothing")
    with pytest.raises(FrameSourceError, match="f%03d"):
        open_frames(folder / "f%03d.mp4")


def test_superscripts_are_no_numbers(folder):
    (folder / "f000.png").rename(folder / "²1.png")
    (folder / "f001.png").rename(folder / "٣.png")
    assert len(list(open_frames(folder))) == 6


@pytest.mark.parametrize("suffix", ["csv", "npy", "npz", "mat", "tif", "mp4"])
def test_an_error_of_the_disk_names_the_file(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(b"1,2\n3,4\n")

    def broken(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(files, "_without_waiting", broken)
    with pytest.raises(FrameSourceError, match=rf"a\.{suffix}"):
        open_source(path)


def test_a_table_on_a_disk_that_breaks_is_named(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("1,2\n3,4\n")

    def broken(*_, **how):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("psmt.data.readers.tables.csv.reader", broken)
    with pytest.raises(FrameSourceError, match=r"a\.csv cannot be read \(Input/output error\)"):
        open_source(path)


# Names in messages

RED = "\x1b[31mred\x1b[0m\x07"


def refusal(path):
    with pytest.raises(FrameSourceError) as raised:
        open_source(path)
    message = str(raised.value)
    assert message.isprintable(), message
    assert len(message) < 1000
    return message


def test_names_of_files_are_printable_and_short(tmp_path):
    deep = tmp_path.joinpath(*["d" * 200] * 8)
    deep.mkdir(parents=True)
    for name in (f"{RED}.csv", f"{RED}.npy", f"{RED}.mp4", f"{RED}.tif", f"{RED}.mat", f"{RED}.npz"):
        (deep / name).write_bytes(b"no file of this kind, whatever its name says")
        assert r"\x1b[31mred" in refusal(deep / name)
    assert r"\x1b[31mred" in refusal(deep / f"{RED}-missing.csv")
    (deep / RED).mkdir()
    refusal(deep / RED)


def test_names_inside_files_are_printable_and_few(tmp_path):
    np.savez(tmp_path / "many.npz", **{f"array{k}": np.zeros((2, 2)) for k in range(2000)})
    assert "2000 arrays" in refusal(tmp_path / "many.npz")
    savemat(tmp_path / "many.mat", {f"m{k}": np.zeros((2, 2)) for k in range(2000)})
    assert "2000 matrices" in refusal(tmp_path / "many.mat")
    savemat(tmp_path / "two.mat", {"aaaaa": np.eye(2), "bbbbb": np.eye(2)})
    content = (tmp_path / "two.mat").read_bytes().replace(b"aaaaa", b"\x1b[31m")
    (tmp_path / "two.mat").write_bytes(content)
    assert r"\x1b[31m" in refusal(tmp_path / "two.mat")


def test_names_of_features_are_printable_and_short(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"{RED},{'x' * 9000}\n1,2\n3,4\n")
    names = open_series(path).feature_names
    assert all(name.isprintable() and len(name) <= 200 for name in names)


NAMES = {
    "long name": "x" * 5000,
    "long part": "y" * 300 + ".csv",
    "no film": "builtin:" + "x" * 9000,
    "option": f"builtin:glide?{RED}=1",
    "value": "builtin:glide?frames=" + "9" * 5000,
    "size": "builtin:glide?size=1000000000",
    "scan": "builtin:bold?frames=99999999999",
    "camera": f"camera:{RED}",
    "number": "camera:" + "9" * 5000,
    "no address": f"rtsp://{RED}",
    "long address": "http://127.0.0.1:1/" + "x" * 9000,
}


@pytest.mark.parametrize("source", NAMES.values(), ids=list(NAMES))
def test_names_that_stand_for_no_source_are_refused_in_a_line(source):
    refusal(source)


def test_a_column_that_is_none_of_many(tmp_path):
    np.savetxt(tmp_path / "a.csv", np.ones((3, 5000)), header=",".join(f"c{k}" for k in range(5000)), delimiter=",")
    with pytest.raises(FrameSourceError, match="and 4,992 more") as raised:
        open_series(tmp_path / "a.csv").select(["none"])
    assert len(str(raised.value)) < 1000


# Sizes that a file claims


def test_a_table_without_lines_is_not_read_at_once(tmp_path):
    with open(tmp_path / "a.csv", "wb") as file:
        file.truncate(1 << 32)
    with pytest.raises(FrameSourceError, match=r"a\.csv cannot be read as a table"):
        open_source(tmp_path / "a.csv")


def test_an_extension_of_a_packed_header_is_bounded(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    image = nibabel.Nifti1Image(np.zeros((2, 2, 2, 9), np.float32), np.eye(4))
    image.header["vox_offset"] = 1 << 30
    start = image.header.binaryblock + b"\1\0\0\0" + struct.pack("<ii", (1 << 30) - 352, 6)
    (tmp_path / "scan.nii.gz").write_bytes(gzip.compress(start + bytes(1 << 25), 1))
    with pytest.raises(FrameSourceError, match="an extension of its header has 1,073,"):
        load_image(tmp_path / "scan.nii.gz")


# Warnings


def test_libraries_do_not_warn(tmp_path, folder):
    side = 9500  # Pillow warns above 89 million pixels
    Image.fromarray(np.zeros((side, side), bool)).save(tmp_path / "large.tif", compression="group4")
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (4L, 3L), }"  # as Python 2 wrote it
    magic = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    (tmp_path / "old.npy").write_bytes(magic + bytes(96))
    (folder / "f000.png").write_bytes((folder / "f000.png").read_bytes()[:-30])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert open_series(tmp_path / "old.npy").n_features == 3
        for path in (tmp_path / "large.tif", folder):
            with pytest.raises(FrameSourceError):
                open_frames(path)
