"""The paper's machine at the centre of the frame: its atoms, its trajectory, and the graph of its window."""

from __future__ import annotations

from collections import deque
from io import BytesIO
from math import isqrt
from typing import Any

import numpy as np
from PIL import Image

from psmt.data.patches import PatchCutter, standardise
from psmt.embedding.atom_graph import links, similar_columns
from psmt.engines import engine_for
from psmt.errors import PSMTError
from psmt.extrapolation import EXTRAPOLATIONS
from psmt.model import PSMT
from psmt.types import Array, Levels

SIZES = ((32, 48), (64, 128))
"""M and H at first and later: small, so that there is something to see after two seconds, and the frame rate holds."""

LAM = 0.1
"""As the experiments have it."""

PATCH = 16
"""Side of the patch, as in the paper."""

HISTORY = 2048
"""Patches that the dictionary is learned from at the most."""

N_SHOWN = 8
"""Active atoms that are shown."""

TRAIL = 48
"""Points of the trajectory that are shown."""

THRESHOLD = 0.6
"""Cosine between two columns of P from which on atoms are linked."""

_MIN_USES = 3
"""Codes of the window that an atom must be active in to have links."""


class PatchModel:
    """`PSMT` on the patch at the centre of each frame.

    It begins when the first window is full, and with more atoms when a longer one is. Its dictionary is learned again
    from all that came each time that this has doubled: what a patch has shown in five seconds is little.

    Parameters
    ----------
    size : int
        Side of the frames.
    extrapolation : str
        As in `PSMT`; the paper's straight line, until somebody asks for another.
    device : str
        As in `PSMT`.
    model : PSMT, optional
        One that has learned already; its dictionary stays.
    """

    def __init__(
        self, size: int, *, extrapolation: str = "linear", device: str = "cpu", model: PSMT | None = None
    ) -> None:
        self.device = device
        self.model = model
        self._keeps_dictionary = model is not None
        self.extrapolation = extrapolation if model is None else model.extrapolation
        side = PATCH if model is None else _side_of(model)
        self.cutter = PatchCutter(frame_size=size, patch_size=side)
        self.version = 0 if model is None else 1
        """Counts the dictionaries."""
        self._past: deque[Array] = deque(maxlen=HISTORY)
        self._n_seen = 0
        self._due = SIZES[0][1]
        self._axes: Array | None = None

    @property
    def n_awaited(self) -> int:
        """Frames that are still needed before there is a window."""
        return 0 if self.model is not None else SIZES[0][1] - self._n_seen

    def choose(self, extrapolation: str) -> None:
        """Go on by another rule, with what the patches have shown so far."""
        if extrapolation in EXTRAPOLATIONS:
            self.extrapolation = extrapolation
            if self.model is not None and not self._keeps_dictionary:
                self._learn()

    def receive(self, frame: Levels) -> None:
        """Take in a frame (size, size)."""
        patch = standardise(self.cutter.cut(frame)[None]).values[0]
        self._past.append(patch)
        self._n_seen += 1
        if self.model is not None:
            self.model.update(patch)
        if not self._keeps_dictionary and self._n_seen >= self._due:
            self._learn()
            self._due = max(2 * self._due, SIZES[1][1])

    def _learn(self) -> None:
        n_atoms, window = next(size for size in reversed(SIZES) if size[1] <= len(self._past))
        model = PSMT(
            n_atoms=n_atoms,
            window=window,
            n_components=None,
            lam=LAM,
            extrapolation=self.extrapolation,
            random_state=0,
            device=self.device,
        )
        self.model = model.fit(np.stack(self._past))
        self.version += 1
        self._axes = None

    def view(self, horizon: int) -> dict[str, Any] | None:
        """What the page draws, as plain numbers; None before there is a window."""
        if self.model is None:
            return None
        codes, embedding = self.model.codes_, self.model.embedding_
        predicted = engine_for(self.model.device, self.model.dtype).numpy(self.model.predict_codes(horizon))
        return {
            "version": self.version,
            "side": self.cutter.patch_size,
            "rule": self.extrapolation,
            **_active(codes[-1]),
            **self._trajectory(codes[-TRAIL:], predicted, embedding),
            **_graph(codes, embedding),
            "seen": _picture(codes[-1] @ self.model.dictionary_),
            "expected": _picture(predicted[-1] @ self.model.dictionary_),
        }

    def _trajectory(self, codes: Array, predicted: Array, embedding: Array) -> dict[str, Any]:
        """Points of the last codes and of the predicted ones in the two straightest directions."""
        axes = np.zeros((2, embedding.shape[1]))
        axes[: len(embedding)] = embedding[:2]
        if self._axes is not None and self._axes.shape == axes.shape:
            # Directions have no sign of their own: the picture must not jump when theirs changes.
            axes *= np.where((axes * self._axes).sum(1, keepdims=True) < 0, -1.0, 1.0)
        self._axes = axes
        return {"trail": _rounded(codes @ axes.T), "ahead": _rounded(predicted @ axes.T)}

    def atoms_png(self) -> bytes:
        """All atoms as one picture, in rows of eight."""
        assert self.model is not None
        atoms = self.model.dictionary_
        side = self.cutter.patch_size
        peak = np.abs(atoms).max(axis=1, keepdims=True)
        levels = 127.5 + 127.5 * atoms / np.where(peak > 0, peak, 1.0)
        rows = -(-len(atoms) // 8)
        tiles = np.full((rows * 8, side, side), 127.5)
        tiles[: len(atoms)] = levels.reshape(-1, side, side)
        sheet = tiles.reshape(rows, 8, side, side).transpose(0, 2, 1, 3).reshape(rows * side, 8 * side)
        file = BytesIO()
        Image.fromarray(sheet.round().astype(np.uint8)).save(file, "PNG")
        return file.getvalue()


def _side_of(model: PSMT) -> int:
    side = isqrt(model.n_features_in_)
    if side**2 != model.n_features_in_:
        raise PSMTError(
            f"the model has {model.n_features_in_} features, which is no square patch; give one that was fitted to "
            "square patches, or a FramePSMT"
        )
    return side


def _active(code: Array) -> dict[str, Any]:
    """Numbers of the most active atoms of a code (n_atoms,), the most active first, and their activity."""
    order = np.argsort(-code, kind="stable")[:N_SHOWN]
    order = order[code[order] > 0]
    return {"active": order.tolist(), "activity": _rounded(code[order]), "n_active": int((code > 0).sum())}


def _graph(codes: Array, embedding: Array) -> dict[str, Any]:
    """Atoms of a window of codes (window, n_atoms) that may be linked, and the links between them."""
    often = (codes > 0).sum(axis=0) >= _MIN_USES
    atoms, similarity = similar_columns(embedding, often, engine_for("cpu"))
    return {"nodes": atoms.tolist(), "links": links(atoms, similarity, THRESHOLD).tolist()}


def _picture(values: Array) -> list[int]:
    """Standardised grey levels (n_features,) as bytes; two and a half deviations from the mean are black or white."""
    return np.clip(127.5 + 51.0 * values, 0, 255).round().astype(int).tolist()  # type: ignore[no-any-return]


def _rounded(values: Array) -> Any:
    return np.round(values, 4).tolist()
