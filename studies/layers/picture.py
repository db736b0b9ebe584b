"""A moving picture of the atoms of space-time: each tile is an atom, played as a small film."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
from PIL import Image

from psmt import SparseCoder
from psmt.data import open_frames
from psmt.data.patches import standardise
from studies.layers.stretches import BLOCK

N_FRAMES, GRID, ZOOM, GAP = 4, (5, 10), 4, 2
MOST_FRAMES, MOST_BLOCKS = 300, 12_000
"""Frames of the film, and blocks of four successive frames, that the atoms are learned from."""


def save_space_time(film: str, path: Path) -> None:
    """Learn atoms of four successive frames from a film, and write the most active ones as an animated GIF."""
    frames = np.array(list(islice(open_frames(film), MOST_FRAMES)))
    n = len(frames)
    corners = [
        (i, j)
        for i in range(0, frames.shape[1] - BLOCK + 1, BLOCK)
        for j in range(0, frames.shape[2] - BLOCK + 1, BLOCK)
    ]
    blocks = np.array([frames[:, i : i + BLOCK, j : j + BLOCK] for i, j in corners])
    stacks = np.stack([blocks[:, k : n - N_FRAMES + 1 + k] for k in range(N_FRAMES)], axis=2)
    samples = stacks.reshape(-1, N_FRAMES * BLOCK**2)
    step = max(len(samples) // MOST_BLOCKS, 1)
    X = standardise(samples[::step]).values
    coder = SparseCoder(n_atoms=96, alpha=1.0, random_state=0).fit(X)
    order = np.argsort(-coder.transform(X).sum(axis=0))[: GRID[0] * GRID[1]]
    tiles = coder.dictionary_[order].reshape(*GRID, N_FRAMES, BLOCK, BLOCK)
    tiles = tiles / abs(tiles).max(axis=(2, 3, 4), keepdims=True)
    large = np.repeat(np.repeat(tiles, ZOOM, axis=3), ZOOM, axis=4)
    padded = np.pad(large, [(0, 0)] * 3 + [(GAP, GAP)] * 2, constant_values=1.0)
    sheets = padded.transpose(2, 0, 3, 1, 4).reshape(N_FRAMES, GRID[0] * padded.shape[3], -1)
    # There and back, so that the loop has no jump.
    grey = (127.5 * (sheets[[0, 1, 2, 3, 2, 1]] + 1)).astype(np.uint8)
    first, *others = (Image.fromarray(sheet) for sheet in grey)
    path.parent.mkdir(parents=True, exist_ok=True)
    first.save(path, save_all=True, append_images=others, duration=160, loop=0, optimize=True)
