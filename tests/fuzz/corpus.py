"""Small healthy files of every kind that psmt reads, to be damaged."""

from __future__ import annotations

import io
from fractions import Fraction
from functools import cache

import av
import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from fuzz.saved_models import pictures, series

ENCODINGS = {
    "mp4": ("mpeg4", "yuv420p"),
    "avi": ("mjpeg", "yuvj420p"),
    "mkv": ("ffv1", "gray"),
    "mov": ("mpeg4", "yuv420p"),
    "ts": ("mpeg2video", "yuv420p"),
    "gif": ("gif", "gray"),
}
FORMATS = {"mkv": "matroska", "ts": "mpegts"}


def levels(n_frames: int = 12) -> np.ndarray:
    """Grey frames (n_frames, 16, 24) in bytes."""
    return (255 * np.clip(pictures(n_frames)[:, :16, :24], 0, 1)).astype(np.uint8)


@cache
def film(suffix: str) -> bytes:
    """A film of twelve small frames."""
    codec, layout = ENCODINGS[suffix]
    content = io.BytesIO()
    with av.open(content, "w", format=FORMATS.get(suffix, suffix)) as container:
        stream = container.add_stream(codec, rate=Fraction(12))
        stream.height, stream.width, stream.pix_fmt = 16, 24, layout
        for frame in levels():
            picture = av.VideoFrame.from_ndarray(frame, format="gray").reformat(format=layout)
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
    return content.getvalue()


@cache
def array(suffix: str, kind: str) -> bytes:
    """An array of frames, of colour frames, of numbers or of a series."""
    values = {
        "frames": levels(),
        "colour": np.stack([levels()] * 3, axis=-1),
        "float": pictures(6),
        "series": series(30, 4),
    }[kind]
    content = io.BytesIO()
    if suffix == "npy":
        np.save(content, values)
    elif suffix == "npz":
        np.savez_compressed(content, frames=values)
    else:
        np.savez(content, other=values[:2], frames=values)
    return content.getvalue()


@cache
def table(suffix: str) -> bytes:
    """A series as text, with names."""
    mark = "\t" if suffix == "tsv" else ","
    lines = [mark.join(["left", "right", "far", "near"])]
    lines += [mark.join(f"{value:.6g}" for value in row) for row in series(40, 4)]
    return "\n".join(lines).encode()


@cache
def matlab() -> bytes:
    """A series in a .mat file, as MATLAB 5 to 7 write it."""
    content = io.BytesIO()
    savemat(content, {"X": series(40, 4)})
    return content.getvalue()


@cache
def scan() -> bytes:
    """A NIfTI image (6, 5, 4, 30): a small brain for thirty volumes."""
    nibabel = pytest.importorskip("nibabel")
    values = series(30, 120).T.reshape(6, 5, 4, 30).astype(np.float32)
    return nibabel.Nifti1Image(values, np.eye(4)).to_bytes()


@cache
def image(suffix: str, index: int = 0) -> bytes:
    """One picture; ``deep.tif`` has 16 bits, ``stack.tif`` has pages."""
    content = io.BytesIO()
    if suffix == "stack.tif":
        first, *rest = (Image.fromarray(frame) for frame in levels())
        first.save(content, format="TIFF", save_all=True, append_images=rest)
    elif suffix == "packed.tif":
        Image.fromarray(levels()[index]).save(content, format="TIFF", compression="tiff_lzw")
    elif suffix == "deep.tif":
        Image.fromarray(levels()[index].astype(np.uint16) * 257).save(content, format="TIFF")
    elif suffix == "colour.png":
        Image.fromarray(np.stack([levels()[index]] * 3, axis=-1)).save(content, format="PNG")
    else:
        kind = {"jpg": "JPEG", "pgm": "PPM"}.get(suffix, suffix.upper())
        Image.fromarray(levels()[index]).save(content, format=kind)
    return content.getvalue()
