"""Predictive Sparse Manifold Transform: learn the dynamics of natural scenes, predict what comes next.

    frames -> patches -> codes -> moments -> embedding -> extrapolation -> recovery -> predicted patch

`PSMT` is Algorithm 1 of the paper. `SparseCoder` and `TemporalEmbedding` are its two layers; each works alone on a
plain (time, features) array. `open_frames` and `read_patches` turn films into such arrays.
"""

from psmt.coding import SparseCoder
from psmt.embedding import TemporalEmbedding
from psmt.frames import open_frames
from psmt.model import PSMT
from psmt.patches import read_patches

__all__ = ["PSMT", "SparseCoder", "TemporalEmbedding", "open_frames", "read_patches"]

__version__ = "0.1.0"
