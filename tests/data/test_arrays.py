"""Arrays in memory and in files: the same frames, the same errors."""

import struct
import zipfile

import numpy as np
import pytest

from psmt.data import open_frames
from psmt.errors import FrameSourceError


def in_memory(array, folder):
    return array


def in_npy(array, folder):
    np.save(folder / "film.npy", array)
    return folder / "film.npy"


def in_npz(array, folder):
    np.savez(folder / "film.npz", array)
    return folder / "film.npz"


def in_packed_npz(array, folder):
    np.savez_compressed(folder / "film.npz", other=np.zeros(3), frames=array)
    return folder / "film.npz"


everywhere = pytest.mark.parametrize("put", [in_memory, in_npy, in_npz, in_packed_npz])


@everywhere
@pytest.mark.parametrize(
    ("dtype", "white"),
    [("uint8", 255), ("uint16", 65535), (">u2", 65535), ("bool", 1), ("float64", 1), ("float32", 1)],
)
def test_integers_are_scaled_and_floats_are_not(tmp_path, moving, put, dtype, white):
    array = moving.astype(dtype)
    source = open_frames(put(array, tmp_path))
    frames = np.array(list(source))
    assert frames.dtype == np.float32
    assert source.n_frames == 40
    assert source.shape == (48, 64)
    assert np.allclose(frames, array.astype(float) / white, rtol=1e-6, atol=0)


@everywhere
def test_colour_and_stop(tmp_path, moving, put):
    colour = np.stack([moving, moving // 2, 255 - moving], axis=-1)
    source = open_frames(put(colour, tmp_path), stop=5)
    assert source.n_frames == 5
    assert np.allclose(list(source.iter_colour()), colour[:5] / 255, atol=1e-6)
    assert np.allclose(list(source), colour[:5] @ [0.299, 0.587, 0.114] / 255, atol=1e-6)


def test_grey_arrays_repeat_their_channel(moving):
    frame = next(open_frames(moving).iter_colour())
    assert frame.shape == (48, 64, 3)
    assert np.array_equal(frame[..., 0], frame[..., 2])


@everywhere
@pytest.mark.parametrize("shape", [(5,), (5, 4), (5, 4, 4, 2), (5, 4, 4, 4, 3)])
def test_wrong_rank_names_the_shape(tmp_path, put, shape):
    with pytest.raises(FrameSourceError, match=r"has shape \(5,.*frames are \(time, height, width\)"):
        open_frames(put(np.zeros(shape), tmp_path))


@everywhere
@pytest.mark.parametrize("shape", [(0, 4, 4), (5, 0, 4)])
def test_empty_arrays_are_refused(tmp_path, put, shape):
    with pytest.raises(FrameSourceError, match="no pixels"):
        open_frames(put(np.zeros(shape), tmp_path))


@everywhere
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_the_first_frame_that_is_not_finite_is_named(tmp_path, put, bad):
    array = np.zeros((6, 4, 4))
    array[3, 1, 2] = array[5, 0, 0] = bad
    source = open_frames(put(array, tmp_path))
    with pytest.raises(FrameSourceError, match="frame 3 holds NaN or infinite"):
        list(source)
    assert len(list(open_frames(source, stop=3))) == 3


@pytest.mark.parametrize("dtype", ["int64", "int16", "uint32", "complex128", "U3", object])
def test_kinds_without_an_agreed_white_are_refused(dtype):
    with pytest.raises(FrameSourceError, match=r"has dtype .*give bool, uint8, uint16"):
        open_frames(np.zeros((2, 3, 3)).astype(dtype))


@pytest.mark.parametrize("put", [in_npy, in_npz, in_packed_npz])
def test_pickled_objects_are_never_loaded(tmp_path, put):
    array = np.empty((2, 3, 3), dtype=object)
    with pytest.raises(FrameSourceError, match=r"film\.np"):
        open_frames(put(array, tmp_path))


def test_several_arrays_need_one_called_frames(tmp_path):
    np.savez(tmp_path / "two.npz", a=np.zeros((2, 3, 3)), b=np.zeros((2, 3, 3)))
    with pytest.raises(FrameSourceError, match=r"two\.npz has 2 arrays \(a, b\) and none is called 'frames'"):
        open_frames(tmp_path / "two.npz")


@pytest.mark.parametrize("name", ["bad.npy", "bad.npz"])
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 but no archive", b"\x93NUMPY\x01\x00 but no array"])
def test_damaged_files_are_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FrameSourceError, match=r"bad\.np. cannot be read"):
        open_frames(tmp_path / name)


def test_cut_files_are_refused(tmp_path, moving):
    whole = in_npy(moving, tmp_path).read_bytes()
    (tmp_path / "cut.npy").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FrameSourceError, match=r"cut\.npy cannot be read"):
        open_frames(tmp_path / "cut.npy")
    with zipfile.ZipFile(tmp_path / "cut.npz", "w") as archive:
        archive.writestr("frames.npy", whole[: len(whole) // 2])
    with pytest.raises(FrameSourceError, match=r"cut\.npz cannot be read .* cannot hold more than 61,504 of it"):
        list(open_frames(tmp_path / "cut.npz"))


@everywhere
def test_fortran_order_is_read(tmp_path, put, moving):
    frames = np.array(list(open_frames(put(np.asfortranarray(moving), tmp_path))))
    assert np.array_equal(frames, np.array(list(open_frames(moving))))


@pytest.mark.parametrize("put", [in_memory, in_npy])
def test_memory_does_not_grow_with_the_film(tmp_path, put, peak):
    long = np.zeros((300, 100, 100), dtype=np.uint8)
    source = open_frames(put(long, tmp_path))
    n_frames, n_bytes = peak(lambda: sum(1 for _ in source))
    assert n_frames == 300
    assert n_bytes < 20 * long[0].size * 4


def test_checksums_tell_arrays_apart(tmp_path, moving):
    digest = open_frames(moving).checksum()
    assert open_frames(moving.copy()).checksum() == digest
    assert open_frames(np.asfortranarray(moving)).checksum() == digest
    changed = moving.copy()
    changed[-1, -1, -1] ^= 1
    others = [changed, moving.reshape(40, 64, 48), moving.astype(np.uint16)]
    assert len({digest, *(open_frames(other).checksum() for other in others)}) == 4
    assert open_frames(in_npy(moving, tmp_path)).checksum() != open_frames(in_npy(changed, tmp_path)).checksum()


# Files that say more than is there


def as_npy(header, numbers=bytes(64)):
    text = header.encode("latin1")
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + numbers


HEADERS = {
    "20000 x 20000": "{'descr': '<f4', 'fortran_order': False, 'shape': (9, 20000, 20000), }",
    "negative": "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 4, 4), }",
    "beyond numbers": "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4, 4), }",
    "no literal": "__import__('os').abort()",
    "nested": "(" * 5000,
    "unfinished": "'''",
    "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (2, 2, 2), }",
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
@pytest.mark.parametrize("packed", [None, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_headers_are_compared_with_the_bytes(tmp_path, header, packed, peak):
    if packed is None:
        path = tmp_path / "a.npy"
        path.write_bytes(as_npy(header))
    else:
        path = tmp_path / "a.npz"
        with zipfile.ZipFile(path, "w", packed) as archive:
            archive.writestr("frames.npy", as_npy(header))

    def refuse():
        with pytest.raises(FrameSourceError, match=r"a\.np. cannot be read") as caught:
            list(open_frames(path))
        return str(caught.value)

    message, n_bytes = peak(refuse)
    assert n_bytes < 1 << 25
    assert "\n" not in message


def test_a_directory_that_lies_about_sizes_is_refused(tmp_path):
    """Deflate makes at most 1032 bytes of one: 64 of them are no ten gigabytes."""
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("frames.npy", as_npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 65536, 60000), }"))
    content = bytearray(path.read_bytes())
    at = content.find(b"PK\x01\x02")
    content[at + 24 : at + 28] = struct.pack("<I", 0xFFFFFFF0)
    path.write_bytes(content)
    with pytest.raises(FrameSourceError, match="cannot hold more than"):
        open_frames(path)


@pytest.mark.parametrize("change", ["password", "unknown", "lzma", "bzip2", "deflate"])
def test_members_that_cannot_be_unpacked_are_named(tmp_path, moving, change):
    path = tmp_path / "a.npz"
    method = {"lzma": zipfile.ZIP_LZMA, "bzip2": zipfile.ZIP_BZIP2, "deflate": zipfile.ZIP_DEFLATED}.get(change, 0)
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("frames.npy", in_npy(moving, tmp_path).read_bytes())
    content = bytearray(path.read_bytes())
    local, central = content.find(b"PK\x03\x04"), content.find(b"PK\x01\x02")
    if change == "password":
        content[local + 6] |= 1
        content[central + 8] |= 1
    elif change == "unknown":
        content[local + 8] = content[central + 10] = 99
    else:
        content[1000:1100] = bytes(100)
    path.write_bytes(content)
    with pytest.raises(FrameSourceError, match=r"a\.npz"):
        list(open_frames(path))
