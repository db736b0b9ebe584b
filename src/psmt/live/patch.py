"""The paper's method (`PSMT`) on a patch of the frame: the model, its thread, and the data that the page draws."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from io import BytesIO
from time import monotonic
from typing import Any, NamedTuple

import numba
import numpy as np
from PIL import Image

from psmt.data.contract import grey
from psmt.data.patches import standardise
from psmt.embedding.atom_graph import links, similar_columns
from psmt.engines import engine_for
from psmt.live.messages import pack
from psmt.model import PSMT
from psmt.types import Array, Levels
from psmt.utils.threads import one_blas_thread

SIZES = ((32, 48), (64, 128))
"""(n_atoms, window) of the first and the second model. They are small, so that predictions start soon and run fast."""

VIEW_EVERY = 0.1
"""Seconds between two views. A view for each frame would cost several times more, without a visible difference."""

MAX_WAITING = 50
"""Largest number of waiting tasks, about as many as frames arrive while a dictionary is learned. Others are dropped."""


class PatchModel:
    """`PSMT` for a patch of frames of the given shape (height, width).

    `centre` is the position of the patch (x, y) as fractions of the frame. The first model is fitted when the first
    window of `SIZES` is full. A model with more atoms replaces it when the second window is full. Whenever the number
    of frames has doubled, a new dictionary is learned from at most the last 2048 frames. `version` counts the
    dictionaries, starting from the given number.
    """

    side = 16

    def __init__(
        self,
        shape: tuple[int, int],
        *,
        device: str = "cpu",
        centre: tuple[float, float] = (0.5, 0.5),
        version: int = 0,
    ) -> None:
        self.device = device
        self.model: PSMT | None = None
        self.row, self.column = (
            min(max(round(part * length - self.side / 2), 0), length - self.side)
            for part, length in zip(reversed(centre), shape, strict=True)
        )
        self.version = version  # number of dictionaries so far
        self._past: deque[Array] = deque(maxlen=2048)
        self._n_seen = 0
        self._next_fit = SIZES[0][1]
        self._axes: Array | None = None

    @property
    def n_awaited(self) -> int:
        """Number of frames until the first window is full."""
        return 0 if self.model is not None else SIZES[0][1] - self._n_seen

    def receive(self, frame: Levels) -> None:
        """Learn from the luma of a frame (height, width) or (height, width, 3)."""
        part = frame[self.row : self.row + self.side, self.column : self.column + self.side]
        patch = standardise(grey(part).reshape(1, -1)).values[0]
        self._past.append(patch)
        self._n_seen += 1
        if self.model is not None:
            self.model.update(patch)
        if self._n_seen >= self._next_fit:
            self._learn()
            self._next_fit = max(2 * self._next_fit, SIZES[1][1])

    def _learn(self) -> None:
        n_atoms, window = next(size for size in reversed(SIZES) if size[1] <= len(self._past))
        model = PSMT(n_atoms=n_atoms, window=window, n_components=None, lam=0.1, random_state=0, device=self.device)
        self.model = model.fit(np.stack(self._past))
        self.version += 1
        self._axes = None

    def view(self, horizon: int) -> dict[str, Any] | None:
        """Return what the page draws (active atoms, path, atom graph, patches), or None before the first model."""
        if self.model is None:
            return None
        codes, embedding = self.model.codes_, self.model.embedding_
        predicted = engine_for(self.model.device, self.model.dtype).numpy(self.model.predict_codes(horizon))
        code = codes[-1]
        most_active = np.argsort(-code, kind="stable")[:8]
        most_active = most_active[code[most_active] > 0]
        # Atoms that are active in few codes of the window have no reliable links.
        nodes, similarity = similar_columns(embedding, (codes > 0).sum(axis=0) >= 3, engine_for("cpu"))
        axes = self._straightest(embedding)
        return {
            "version": self.version,
            "side": self.side,
            "active": most_active.tolist(),
            "activity": np.round(code[most_active], 4).tolist(),
            "n_active": int((code > 0).sum()),
            "trail": np.round(codes[-48:] @ axes.T, 4).tolist(),
            "ahead": np.round(predicted @ axes.T, 4).tolist(),
            "nodes": nodes.tolist(),
            "links": links(nodes, similarity, 0.6).tolist(),
            "seen": _grey_bytes(code @ self.model.dictionary_),
            "expected": _grey_bytes(predicted[-1] @ self.model.dictionary_),
        }

    def _straightest(self, embedding: Array) -> Array:
        """Return the first two rows (2, n_atoms) of the embedding, with signs that agree with the previous call."""
        axes = np.zeros((2, embedding.shape[1]))
        axes[: len(embedding)] = embedding[:2]
        if self._axes is not None and self._axes.shape == axes.shape:
            # The sign of a row is arbitrary; a change of sign would make the trajectory jump.
            axes *= np.where((axes * self._axes).sum(1, keepdims=True) < 0, -1.0, 1.0)
        self._axes = axes
        return axes

    def atoms_png(self) -> bytes:
        """Return a PNG picture of all atoms, eight in a row."""
        assert self.model is not None
        atoms = self.model.dictionary_
        side = self.side
        peak = np.abs(atoms).max(axis=1, keepdims=True)
        levels = 127.5 + 127.5 * atoms / np.where(peak > 0, peak, 1.0)
        sheet = levels.reshape(-1, 8, side, side).transpose(0, 2, 1, 3).reshape(-1, 8 * side)
        file = BytesIO()
        Image.fromarray(sheet.round().astype(np.uint8)).save(file, "PNG")
        return file.getvalue()


def _grey_bytes(values: Array) -> list[int]:
    """Return standardised levels as integers from 0 (black, levels up to -2.5) to 255 (white, levels from 2.5 on)."""
    return np.clip(127.5 + 51.0 * values, 0, 255).round().astype(int).tolist()  # type: ignore[no-any-return]


class PatchView(NamedTuple):
    """What pages show of the patch: the data to draw (a packed message), the atoms as PNG, and the atoms' version."""

    message: bytes = b""
    atoms: bytes = b""
    version: int = 0


class PatchWorker:
    """Runs a `PatchModel` in its own thread, so that the prediction of whole frames never waits for it."""

    def __init__(self, model: PatchModel) -> None:
        self.model = model
        self.shown = PatchView()
        # One thread: the other cores are for the model of whole frames.
        self._pool = ThreadPoolExecutor(
            1, thread_name_prefix="psmt-live-patch", initializer=numba.set_num_threads, initargs=(1,)
        )
        self._tasks: deque[Future[None]] = deque()
        self._viewed = 0.0

    def receive(self, frame: Levels, horizon: int, *, wait: bool = False) -> None:
        """Queue a task: learn from a frame and predict `horizon` frames ahead. If `wait`, wait until it is done."""
        if len(self._tasks) < MAX_WAITING:
            self._tasks.append(self._pool.submit(self._process, frame, horizon, wait))
        if wait:
            self._tasks[-1].exception()

    def collect(self) -> bool:
        """Return whether a task has finished since the last call. If a task failed, raise its error."""
        finished = False
        while self._tasks and self._tasks[0].done():
            self._tasks.popleft().result()
            finished = True
        return finished

    def close(self) -> None:
        """Cancel the waiting tasks. The thread ends after its current task."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _process(self, frame: Levels, horizon: int, show_now: bool) -> None:
        with one_blas_thread():
            self.model.receive(frame)
            if not show_now and monotonic() - self._viewed < VIEW_EVERY:
                return
            self._viewed = monotonic()
            view = self.model.view(horizon)
            if view is None:
                return
            known = view["version"] == self.shown.version
            atoms = self.shown.atoms if known else self.model.atoms_png()
            self.shown = PatchView(pack({"kind": "patch", **view}), atoms, view["version"])
