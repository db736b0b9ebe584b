"""What a frame costs `psmt live` by part, in processor time of the thread that does it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from math import ceil
from operator import itemgetter

import numpy as np

from benchmarks.page import machine, table
from psmt.data import open_frames
from psmt.live.messages import Mailbox, pack
from psmt.live.patch import VIEW_EVERY, PatchModel, PatchView
from psmt.live.predictions import LivePredictor, Scores
from psmt.live.session import LiveSnapshot, draw_strip
from psmt.utils.threads import one_thread

SIZE, RATE = 200, 25
N_WARM, N_FRAMES = 150, 250


class Bill:
    """Milliseconds of processor time by part."""

    def __init__(self) -> None:
        self.parts: dict[str, float] = defaultdict(float)
        self.counts = False

    @contextmanager
    def of(self, part: str) -> Iterator[None]:
        """Put what the context takes on the bill of a part."""
        began = time.thread_time()
        yield
        if self.counts:
            self.parts[part] += 1000 * (time.thread_time() - began)


def parts_table() -> str:
    """Run all parts one after the other on frames of the built-in film; return what each takes per frame."""
    bill, frames, patch = Bill(), LivePredictor(), PatchModel((SIZE, SIZE))
    scores, mailbox, error, last = Scores(), Mailbox(), np.zeros((SIZE, SIZE), np.float32), None
    shown = PatchView()
    every = ceil(VIEW_EVERY * RATE)
    film = open_frames(f"builtin:glide?frames={N_WARM + N_FRAMES}&size={SIZE}")
    with one_thread():
        for k, pixels in enumerate(islice(film, N_WARM + N_FRAMES)):
            bill.counts = k >= N_WARM
            frame = np.asarray(pixels, np.float32)
            with bill.of("model of whole frames: update and prediction"):
                score = frames.receive(frame)
            with bill.of("patch, beside it: update, and dictionary at times"):
                patch.receive(frame)
            if k % every == 0:
                with bill.of(f"patch, beside it: view, every {every} frames"):
                    view = patch.view(1)
                    if view is not None:
                        atoms = shown.atoms if view["version"] == shown.version else patch.atoms_png()
                        shown = PatchView(pack({"kind": "patch", **view}), atoms, view["version"])
            model = frames.model
            with bill.of("scores and events"):
                if score is not None:
                    error = score.error
                    scores.recent.append((score.mse, score.copy_mse))
                surprise, cut = (np.nan, False) if model is None else (model.surprise_, model.cut_)
                scores.add_frame(k, frame if last is None else last, frame, surprise, cut)
            last, expected = frame, frames.prediction
            with bill.of("pictures as JPEG"):
                strip = draw_strip(frame, None if expected is None else expected.frame, error)
            with bill.of("messages, per client"):
                state = {"epoch": 0, "step": k, "ratio": scores.ratio}
                mailbox.mail(LiveSnapshot(k + 1, state, strip, tuple(scores.points), patch=shown), {})
    frames.close()
    rows = [
        (part, f"{spent / N_FRAMES:.2f}") for part, spent in sorted(bill.parts.items(), key=itemgetter(1), reverse=True)
    ]
    rows.append(("all", f"{sum(bill.parts.values()) / N_FRAMES:.2f}"))
    return (
        "### Live, by part\n\n    python -m benchmarks.live --parts\n\n"
        f"Processor time of a frame of {SIZE} x {SIZE} on one thread, {N_FRAMES} frames after {N_WARM}. The patch "
        "works beside the model of whole frames, which does not wait for it.\n\n"
        f"{table(('part', 'ms a frame'), rows)}\n\n{machine()}"
    )
