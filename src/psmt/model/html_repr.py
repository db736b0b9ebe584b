"""HTML repr of fitted models: a picture and facts, without scripts, in the colours of the page."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from html import escape
from io import BytesIO
from math import isqrt

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from psmt.types import Array

_COLUMNS, N_SHOWN = 8, 24
"""Atoms in a row of the picture, and largest number of atoms."""

_SIDE, _GAP = 40, 4
"""Height and width of an atom, and the gap between two, in pixels of the page."""

_SMALLEST_PATCH = 4
"""Smallest side of a patch in pixels: four or nine features are more likely sensors."""

_BARS = 64
"""Largest number of bars of an atom: neighbouring features share one if there are more."""

_WIDEST = 240
"""Largest height and width of a frame in pixels."""


def card(title: str, facts: Mapping[str, str], picture: str, caption: str) -> str:
    """HTML of a card with a picture (HTML as well) and facts by name."""
    rows = "".join(
        f'<tr><th style="text-align:left;font-weight:600;padding:2px 12px 2px 0;vertical-align:top">{escape(name)}</th>'
        f'<td style="text-align:left;padding:2px 0">{escape(fact)}</td></tr>'
        for name, fact in facts.items()
    )
    return (
        '<div style="display:inline-block;max-width:100%;box-sizing:border-box;border:1px solid rgba(128,128,128,.4);'
        'border-radius:8px;padding:12px 16px;font-size:13px;line-height:1.4">'
        f'<div style="font-weight:700;font-size:15px;margin-bottom:8px">{escape(title)}</div>'
        '<div style="display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start">'
        f'<figure style="margin:0">{picture}'
        f'<figcaption style="opacity:.75;margin-top:4px">{escape(caption)}</figcaption></figure>'
        '<table style="border-collapse:collapse;font-size:inherit;color:inherit;background:none;margin:0">'
        f"{rows}</table></div></div>"
    )


def atoms_picture(atoms: Array, *, series: bool) -> str:
    """HTML of the first atoms (n, n_features): bars for a `series`, pictures if they may be square patches."""
    side = isqrt(atoms.shape[1])
    is_patch = not series and side >= _SMALLEST_PATCH and side**2 == atoms.shape[1]
    shown = atoms[:N_SHOWN]
    # Each atom is scaled by its own largest value.
    shown = shown / np.maximum(np.abs(shown).max(axis=1, keepdims=True), np.finfo(float).tiny)
    return _tiles(shown) if is_patch else _bars(shown)


def frame_picture(frame: NDArray[np.floating]) -> str:
    """HTML of one frame (height, width), from black at its lowest level to white at its highest."""
    step = -(-max(frame.shape) // _WIDEST)
    small = np.asarray(frame, np.float64)[::step, ::step]
    low, high = float(small.min()), float(small.max())
    levels = np.round(255 * (small - low) / max(high - low, np.finfo(float).tiny)).astype(np.uint8)
    scale = max(_WIDEST // max(small.shape), 1)
    return _image(Image.fromarray(levels), scale, "the frame that is expected next")


def _tiles(atoms: Array) -> str:
    """Image of atoms (n, side * side) with values from -1 to 1, on a grid with transparent gaps."""
    side = isqrt(atoms.shape[1])
    columns, rows = min(len(atoms), _COLUMNS), -(-len(atoms) // _COLUMNS)
    scale = max(_SIDE // side, 1)
    pitch = side * scale + _GAP
    pixels = np.zeros((rows * pitch - _GAP, columns * pitch - _GAP, 2), np.uint8)
    for i, atom in enumerate(atoms):
        top, left = pitch * (i // _COLUMNS), pitch * (i % _COLUMNS)
        grey = np.round(127.5 * (1 + atom.reshape(side, side))).astype(np.uint8)
        tile = pixels[top : top + side * scale, left : left + side * scale]
        tile[..., 0] = np.kron(grey, np.ones((scale, scale), np.uint8))
        tile[..., 1] = 255
    return _image(Image.fromarray(pixels), 1, f"{len(atoms)} atoms")


def _image(image: Image.Image, scale: int, text: str) -> str:
    file = BytesIO()
    image.save(file, format="png", optimize=True)
    return (
        f'<img alt="{escape(text)}" width="{scale * image.width}" height="{scale * image.height}" '
        'style="max-width:100%;height:auto;image-rendering:pixelated;margin:0" '
        f'src="data:image/png;base64,{b64encode(file.getvalue()).decode()}">'
    )


def _bars(atoms: Array) -> str:
    """Bars from a middle line for each of the atoms (n, n_features), in the colour of the page's text."""
    pitch = _SIDE + _GAP
    columns, rows = min(len(atoms), _COLUMNS), -(-len(atoms) // _COLUMNS)
    paths = []
    for i, atom in enumerate(atoms):
        heights = [part.mean() for part in np.array_split(atom, min(len(atom), _BARS))]
        width, top, left = _SIDE / len(heights), pitch * (i // _COLUMNS), pitch * (i % _COLUMNS)
        middle = top + _SIDE / 2
        bars = "".join(
            f"M{left + k * width:.1f} {middle:g}v{-height * _SIDE / 2:.1f}h{0.8 * width:.2f}V{middle:g}z"
            for k, height in enumerate(heights)
        )
        paths.append(f'<path d="{bars}M{left} {middle:g}h{_SIDE}v.5h-{_SIDE}z"/>')
    return (
        f'<svg role="img" aria-label="{len(atoms)} atoms" fill="currentColor" style="max-width:100%;height:auto" '
        f'width="{columns * pitch - _GAP}" height="{rows * pitch - _GAP}" '
        f'viewBox="0 0 {columns * pitch - _GAP} {rows * pitch - _GAP}">{"".join(paths)}</svg>'
    )
