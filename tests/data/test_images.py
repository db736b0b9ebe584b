"""A folder of images is a film in the natural order of its names."""

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from psmt.data import open_frames
from psmt.errors import FrameSourceError


@pytest.fixture
def folder(tmp_path, moving):
    """Twelve numbered images, whose order by letters is not their order by number."""
    for index, frame in enumerate(moving[:12]):
        Image.fromarray(frame).save(tmp_path / f"img{index}.png")
    return tmp_path


def test_numbers_in_names_order_the_frames(folder, moving):
    source = open_frames(folder)
    assert source.n_frames == 12
    assert source.shape == (48, 64)
    assert source.fps is None
    assert np.array_equal(np.array(list(source)), moving[:12].astype(np.float32) / np.float32(255))
    assert len(list(open_frames(str(folder), stop=3))) == 3


def test_hidden_and_other_files_are_passed_over(folder):
    (folder / ".img3.png").write_bytes(b"thumbnail")
    (folder / "notes.txt").write_text("not an image")
    assert open_frames(folder).n_frames == 12


@pytest.mark.parametrize("suffix", ["png", "bmp", "tif", "tiff", "pgm"])
def test_lossless_kinds_are_exact(tmp_path, moving, suffix):
    Image.fromarray(moving[0]).save(tmp_path / f"a.{suffix}")
    assert np.array_equal(next(iter(open_frames(tmp_path))), moving[0].astype(np.float32) / np.float32(255))


@pytest.mark.parametrize("suffix", ["jpg", "jpeg", "webp", "PNG"])
def test_lossy_kinds_are_close(tmp_path, moving, suffix):
    Image.fromarray(moving[0]).save(tmp_path / f"a.{suffix}")
    assert np.abs(next(iter(open_frames(tmp_path))) - moving[0] / 255).mean() < 0.02


@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_sixteen_bits_are_kept(tmp_path, moving, suffix):
    deep = moving[0].astype(np.uint16) * 257 + np.arange(64, dtype=np.uint16)
    Image.fromarray(deep).save(tmp_path / f"a.{suffix}")
    assert np.array_equal(next(iter(open_frames(tmp_path))), deep.astype(np.float32) / np.float32(65535))


def test_colour_is_kept_and_grey_is_its_luma(tmp_path, moving):
    colour = np.stack([moving[0], moving[9], 255 - moving[20]], axis=-1)
    Image.fromarray(colour).save(tmp_path / "a.png")
    source = open_frames(tmp_path)
    assert np.allclose(next(source.iter_colour()), colour / 255, atol=1e-6)
    assert np.allclose(next(iter(source)), colour @ [0.299, 0.587, 0.114] / 255, atol=1e-6)


def test_palettes_transparency_and_black_and_white_are_read(tmp_path):
    Image.new("RGBA", (8, 8), (255, 0, 0, 128)).save(tmp_path / "1.png")
    Image.new("RGB", (8, 8), (255, 0, 0)).convert("P").save(tmp_path / "2.png")
    Image.new("1", (8, 8), 1).save(tmp_path / "3.png")
    first, second, third = open_frames(tmp_path)
    assert np.allclose(first, 0.299)
    assert np.allclose(second, 0.299)
    assert np.allclose(third, 1.0)


def test_the_checksum_changes_with_names_order_and_bytes(folder):
    before = open_frames(folder).checksum()
    assert open_frames(folder).checksum() == before
    (folder / "img3.png").rename(folder / "img30.png")
    renamed = open_frames(folder).checksum()
    assert renamed != before
    data = bytearray((folder / "img30.png").read_bytes())
    data[-20] ^= 1
    (folder / "img30.png").write_bytes(data)
    assert open_frames(folder).checksum() not in (before, renamed)


def test_a_folder_without_images_is_refused(tmp_path):
    with pytest.raises(FrameSourceError, match="folder without images"):
        open_frames(tmp_path)
    (tmp_path / "notes.txt").write_text("nothing to see")
    with pytest.raises(FrameSourceError, match="folder without images"):
        open_frames(tmp_path)


def test_an_image_of_another_size_is_named(folder):
    Image.new("L", (10, 20)).save(folder / "img5.png")
    with pytest.raises(FrameSourceError, match=r"img5\.png is 20 x 10 pixels, but the first is 48 x 64"):
        list(open_frames(folder))


def test_an_unreadable_image_is_named(folder):
    (folder / "img4.png").write_bytes((folder / "img4.png").read_bytes()[:200])
    with pytest.raises(FrameSourceError, match=r"img4\.png cannot be read as an image"):
        list(open_frames(folder))
    (folder / "img0.png").write_bytes(b"no image at all")
    with pytest.raises(FrameSourceError, match=r"img0\.png cannot be read as an image"):
        open_frames(folder)


def test_folders_that_are_called_like_images_are_passed_over(folder):
    (folder / "img3b.png").mkdir()
    assert len(list(open_frames(folder))) == 12


def bomb(path, side=100_000):
    """A PNG of 80 bytes that says it has ten billion pixels."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b""))


@pytest.mark.parametrize("side", [9_000, 12_000, 100_000])
def test_an_image_of_billions_of_pixels_is_refused_before_it_is_decoded(tmp_path, side, peak):
    bomb(tmp_path / "a.png", side)

    def refuse():
        with pytest.raises(FrameSourceError, match=r"a\.png .*pixels"):
            open_frames(tmp_path)

    assert peak(refuse)[1] < 1 << 20


# Pages


def stack(path, frames, **options):
    first, *rest = map(Image.fromarray, frames)
    first.save(path, save_all=True, append_images=rest, **options)
    return path


@pytest.mark.parametrize("compression", [None, "tiff_lzw", "tiff_adobe_deflate"])
def test_pages_of_a_tiff_are_frames(tmp_path, moving, compression):
    path = stack(tmp_path / "stack.tif", moving[:12], compression=compression)
    source = open_frames(path)
    assert (source.n_frames, source.shape, source.repeatable) == (12, (48, 64), True)
    for _ in range(2):
        assert np.array_equal(np.array(list(source)), moving[:12].astype(np.float32) / np.float32(255))
    assert np.array_equal(next(source.iter_colour())[..., 1], next(iter(source)))
    assert len(list(open_frames(path, stop=5))) == 5
    assert source.checksum() != open_frames(stack(tmp_path / "other.tiff", moving[1:13])).checksum()


def test_pages_of_sixteen_bits_and_one_page_alone(tmp_path, moving):
    deep = moving[:3].astype(np.uint16) * 257
    frames = list(open_frames(stack(tmp_path / "deep.TIF", deep)))
    assert np.array_equal(np.array(frames), deep.astype(np.float32) / np.float32(65535))
    assert open_frames(stack(tmp_path / "one.tif", deep[:1])).n_frames == 1


def test_a_folder_with_a_stack_in_it_says_what_to_do(folder, moving):
    stack(folder / "img4.tif", moving[:5])
    with pytest.raises(FrameSourceError, match=r"img4\.tif has 5 pages, .* give the file itself"):
        list(open_frames(folder))


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_pages_of_other_sizes_and_cut_stacks_are_named(tmp_path, moving):
    pages = [moving[0], moving[1], moving[2][:20]]
    with pytest.raises(FrameSourceError, match=r"page 2 is 20 x 64 pixels, but the first is 48 x 64"):
        list(open_frames(stack(tmp_path / "odd.tif", pages)))
    whole = stack(tmp_path / "cut.tif", moving[:12]).read_bytes()
    (tmp_path / "cut.tif").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FrameSourceError, match=r"cut\.tif.* cannot be read as an image"):
        list(open_frames(tmp_path / "cut.tif"))


def test_memory_does_not_grow_with_the_stack(tmp_path, peak):
    path = stack(tmp_path / "long.tif", np.zeros((60, 200, 200), np.uint8))
    source = open_frames(path)
    n_frames, n_bytes = peak(lambda: sum(1 for _ in source))
    assert n_frames == 60
    assert n_bytes < 10 * 200 * 200 * 4


def test_libtiff_says_nothing_of_its_own(tmp_path, moving, capfd):
    """What is wrong is in the error; the library would write lines past Python."""
    path = stack(tmp_path / "stack.tif", moving[:2], compression="tiff_lzw")
    content = bytearray(path.read_bytes())
    content[8:200] = bytes(192)  # codes that LZW cannot begin with
    path.write_bytes(content)
    with pytest.raises(FrameSourceError, match=r"stack\.tif"):
        list(open_frames(path))
    assert capfd.readouterr() == ("", "")
