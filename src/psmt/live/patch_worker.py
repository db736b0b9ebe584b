"""The patch model in a thread of its own: whole frames do not wait for it, not even while it learns a dictionary."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic
from typing import NamedTuple

import numba

from psmt.live.messages import pack
from psmt.live.patch_model import PatchModel
from psmt.types import Levels
from psmt.utils.threads import one_blas_thread

VIEW_EVERY = 0.1
"""Seconds between two views: quick enough for the eye, and a fraction of the price of one for each frame."""

MOST_WAITING = 50
"""Things that may wait, about as many frames as come while a dictionary is learned; those beyond are left out."""


class Shown(NamedTuple):
    """What pages show of a patch. One object, so that its parts always belong together."""

    message: bytes = b""
    """The newest view, packed once for all pages; empty before there is a window."""
    atoms: bytes = b""
    """The dictionary as PNG."""
    version: int = 0
    """Counts the dictionaries."""


NOTHING_SHOWN = Shown()
"""Before there is a window."""


class PatchWorker:
    """Has a `PatchModel` receive frames beside the model of whole frames, and keeps what pages show of it.

    Parameters
    ----------
    model : PatchModel
        Belongs to the thread from now on.
    """

    def __init__(self, model: PatchModel) -> None:
        self.model = model
        self.shown = NOTHING_SHOWN
        # One thread: the other cores belong to the model of whole frames.
        self._pool = ThreadPoolExecutor(
            1, thread_name_prefix="psmt-live-patch", initializer=numba.set_num_threads, initargs=(1,)
        )
        self._under_way: deque[Future[None]] = deque()
        self._viewed = 0.0
        self._choice: str | None = None

    def receive(self, frame: Levels, horizon: int, *, wait: bool = False) -> None:
        """Have a frame (size, size) taken in, and looked at `horizon` frames ahead; with `wait` until that is done."""
        if len(self._under_way) < MOST_WAITING:
            self._under_way.append(self._pool.submit(self._take, frame, horizon, wait))
        if wait:
            self._under_way[-1].exception()

    def choose(self, extrapolation: str) -> None:
        """Go on by another rule; the newest counts, where several are asked for."""
        self._choice = extrapolation
        if len(self._under_way) < MOST_WAITING:
            self._under_way.append(self._pool.submit(self._obey))

    def collect(self) -> bool:
        """Return whether anything was finished since the last call; raise what went wrong."""
        news = False
        while self._under_way and self._under_way[0].done():
            self._under_way.popleft().result()
            news = True
        return news

    def close(self) -> None:
        """Let go of what waits, and end the thread when it has done what it is at."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _obey(self) -> None:
        choice, self._choice = self._choice, None
        if choice is not None:
            with one_blas_thread():
                self.model.choose(choice)

    def _take(self, frame: Levels, horizon: int, at_once: bool) -> None:
        self._obey()
        with one_blas_thread():
            self.model.receive(frame)
            if not at_once and monotonic() - self._viewed < VIEW_EVERY:
                return
            self._viewed = monotonic()
            view = self.model.view(horizon)
            if view is None:
                return
            known = view["version"] == self.shown.version
            atoms = self.shown.atoms if known else self.model.atoms_png()
            self.shown = Shown(pack({"kind": "patch", **view}), atoms, view["version"])
