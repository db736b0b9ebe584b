"""How many frames a second does `FramePredictor` predict and learn from?

    python -m benchmarks.frames_speed [--device cuda] [--sizes 200x200 640x360 1920x1080] [--frames 40] [--runs 3]

Each frame is received and the next one predicted, in grey and in colour, with two threads on a CPU. Copies of the
built-in film are put side by side for frames larger than it. The first frames compile and warm up, and are not counted.
Times are of the wall clock: run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.measure import THREADS, pinned
from benchmarks.page import machine, table, write_section
from psmt import FramePredictor, open_frames
from psmt.types import Levels

LEARN, WARM = 8, 320
"""Frames that are fitted to, and that many more before the clock starts: the pace is that of a film that runs.

All is compiled by then, and rollouts go on record every 80 frames. While they come more often, it is a tenth slower."""
TARGETS: dict[str, dict[str, tuple[int, int | None]]] = {
    "cpu": {"200x200": (30, 22), "640x360": (6, None)},
    "cuda": {"200x200": (200, 200), "640x360": (60, 60), "1920x1080": (15, 15)},
}
"""Frames per second to reach in grey and in colour."""


def film(width: int, height: int, n_frames: int) -> Levels:
    """Frames (n_frames, height, width) of the built-in film, repeated to the size, with a little noise."""
    side = min(max(width, height), 400)
    frames = open_frames(f"builtin:glide?frames={n_frames}&size={side}&noise=0.05")
    times = -(-height // side), -(-width // side)
    return np.array([np.tile(frame, times)[:height, :width] for frame in frames])


def rate(frames: Levels, device: str) -> float:
    """Frames per second of a model on a device."""
    model = FramePredictor(device=device).fit(frames[:LEARN])
    for frame in frames[LEARN : LEARN + WARM]:
        model.update(frame).predict()
    begin = time.perf_counter()
    for frame in frames[LEARN + WARM :]:
        model.update(frame).predict()  # which ends only when the prediction is on the host
    return (len(frames) - LEARN - WARM) / (time.perf_counter() - begin)


def main() -> None:
    """Measure, print, and write the section of benchmarks/README.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sizes", nargs="*", default=None)
    parser.add_argument("--frames", type=int, default=80)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    targets = TARGETS.get(given.device.split(":")[0], {})
    lines = []
    for size in given.sizes or list(targets):
        width, height = map(int, size.split("x"))
        grey = film(width, height, LEARN + WARM + given.frames)
        colour = np.stack([grey, 0.8 * grey + 0.05, 0.6 * grey + 0.1], axis=-1)
        for kind, frames, aim in zip(("grey", "colour"), (grey, colour), targets.get(size, (None, None)), strict=True):
            with pinned(THREADS):
                reached = [rate(frames, given.device) for _ in range(given.runs)]
            mean = float(np.mean(reached))
            held = "" if aim is None else "yes" if mean >= aim else "**no**"
            spread = f"{min(reached):.1f} to {max(reached):.1f}"
            lines.append([size, kind, f"{mean:.1f}", spread, "" if aim is None else f"{aim}", held])
            print(f"{given.device} {size} {kind}: {mean:.1f} frames a second ({spread})", flush=True)
    name = given.device.split(":")[0]
    text = [f"### Frames a second, {name}", "    python -m benchmarks.frames_speed --device " + name]
    text += [table(["size", "frames", "mean", "runs", "target", "held"], lines), machine()]
    write_section(f"frames-speed-{name}", "\n\n".join(text))


if __name__ == "__main__":
    main()
