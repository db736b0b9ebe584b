"""Predictive Sparse Manifold Transform: learn the dynamics of natural scenes, predict what comes next.

    frames -> patches -> codes -> moments -> embedding -> extrapolation -> recovery -> predicted patch

`PSMT` is Algorithm 1 of the paper. `SparseCoder` and `TemporalEmbedding` are its two layers; each works alone on a
plain (time, features) array. `open_frames` and `read_patches` turn films into such arrays.
"""

from __future__ import annotations

from importlib import import_module

# As `typing` has it, which would be the slowest import of all here: who interrupts `psmt` at once would find it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from psmt.coding import SparseCoder
    from psmt.embedding import TemporalEmbedding
    from psmt.live.notebook import live
    from psmt.model import PSMT
    from psmt.patches import read_patches
    from psmt.sources import open_frames
    from psmt.video.model import FramePSMT

__all__ = ["PSMT", "FramePSMT", "SparseCoder", "TemporalEmbedding", "live", "open_frames", "read_patches"]

__version__ = "0.2.0"

_HOMES = {
    "FramePSMT": "psmt.video.model",
    "PSMT": "psmt.model",
    "SparseCoder": "psmt.coding",
    "TemporalEmbedding": "psmt.embedding",
    "open_frames": "psmt.sources",
    "read_patches": "psmt.patches",
}


def __getattr__(name: str) -> Any:
    """Import on first use, so that `psmt --help` need not wait for numba and scikit-learn."""
    if name == "live":
        return import_module("psmt.live")  # a package that can be called
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'psmt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
