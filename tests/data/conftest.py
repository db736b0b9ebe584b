"""Small films with known content, written with PyAV, and a measure of memory."""

import tracemalloc

import av
import numpy as np
import pytest
from scipy.ndimage import gaussian_filter


@pytest.fixture(scope="session")
def moving():
    """A smooth texture that drifts: uint8 ``(40, 48, 64)``."""
    rng = np.random.default_rng(0)
    texture = gaussian_filter(rng.random((48 + 40, 64 + 40)), 2.5)
    texture = (texture - texture.min()) / np.ptp(texture)
    world = np.round(texture * 255).astype(np.uint8)
    return np.stack([world[t // 2 : t // 2 + 48, t : t + 64] for t in range(40)])


@pytest.fixture(scope="session")
def write_film():
    """A function that encodes ``(time, height, width[, 3])`` frames into a file or file object."""

    def write(file, frames, *, codec, pix_fmt, options=None, container_options=None, container=None):
        layout = {(3, "uint8"): "gray", (4, "uint8"): "rgb24", (3, "uint16"): "gray16le"}
        with av.open(file, "w", format=container, options=container_options or {}) as out:
            stream = out.add_stream(codec, rate=25, options=options or {})
            stream.height, stream.width = frames.shape[1:3]
            stream.pix_fmt = pix_fmt
            stream.bit_rate = 4_000_000
            out.start_encoding()
            for frame in frames:
                picture = av.VideoFrame.from_ndarray(
                    np.ascontiguousarray(frame), format=layout[frames.ndim, frames.dtype.name]
                )
                out.mux(stream.encode(picture))
            out.mux(stream.encode())
        return file

    return write


@pytest.fixture
def peak():
    """A function that calls another, and returns its result and the largest memory that it held, in bytes."""

    def measured(call):
        tracemalloc.start()
        try:
            return call(), tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    return measured
