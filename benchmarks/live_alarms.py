"""How often does `psmt live` report an event in films of one take, in which nothing should be reported?

    python -m benchmarks.live_alarms highway.mp4 builtin:glide?frames=9000 --minutes 5

Every film is played twice through the parts of the live session: with all frames, and as on a busy machine, which drops
two thirds of the frames unevenly and at times a whole second. `naive` counts the cuts of the model alone.
"""

from __future__ import annotations

import argparse
import sys
from itertools import count

import numpy as np

from benchmarks.page import machine, table
from psmt.data import FrameSource, open_frames
from psmt.live.messages import ALARMS
from psmt.live.predictions import LivePredictor, Scores
from psmt.surprise import StepClock
from psmt.utils.threads import one_thread
from psmt.video.frames import FrameReader, resized

GAPS, SHARES = (2, 3, 4, 12, 30), (0.3, 0.4, 0.25, 0.04, 0.01)
"""Frames from one frame that a busy machine takes to the next, and how often each occurs."""


def alarms(film: FrameSource, size: int, minutes: float, *, busy: bool) -> tuple[float, int, list[int]]:
    """Return the hours of film, the cuts of the model, and the number of events at each sensitivity of the page."""
    shape = FrameReader(min(size, film.shape[0])).shape(film)
    rate, rng = film.fps or 25.0, np.random.default_rng(0)
    frames, clock, scores = LivePredictor(), StepClock(), [Scores(per_hour) for per_hour in ALARMS]
    events, last, n_cuts, wanted, index = np.zeros(len(ALARMS), int), None, 0, 0, 0
    for index, pixels in zip(count(), film.iter_colour(), strict=False):
        if index > 60 * minutes * rate:
            break
        if index < wanted:
            continue
        wanted = index + (int(rng.choice(GAPS, p=SHARES)) if busy else 1)
        frame = frames.as_seen(resized(pixels, shape))
        score, even, model = frames.receive(frame), clock.is_even(index / rate), frames.model
        surprise, cut = (np.nan, False) if model is None else (model.surprise_, model.cut_)
        n_cuts += cut
        for k, one in enumerate(scores):
            if score is not None and not score.across_cut:
                one.add_score(score)
            events[k] += one.add_frame(index, frame if last is None else last, frame, surprise, cut, even=even) in (
                "cut",
                "surprise",
            )
        last = frame
    frames.close()
    return index / rate / 3600, n_cuts, events.tolist()


def main() -> None:
    """Print a table with a line for each film and machine, and the sums. Print each line at once, too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("films", nargs="+")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=5.0)
    options = parser.parse_args()
    lines, total = [], np.zeros(2 + len(ALARMS))
    with one_thread():
        for name in options.films:
            for busy in (False, True):
                hours, n_cuts, events = alarms(open_frames(name), options.size, options.minutes, busy=busy)
                total += [hours, n_cuts, *events]
                lines.append([name, "busy" if busy else "idle", f"{60 * hours:.1f}", *map(str, (n_cuts, *events))])
                print(*lines[-1], file=sys.stderr, flush=True)
    lines.append(["all", "", f"{60 * total[0]:.1f}", *(f"{number:.0f}" for number in total[1:])])
    heads = ["film", "machine", "minutes", "naive", *(f"at {per_hour:g} per hour" for per_hour in ALARMS)]
    print(machine(), table(heads, lines), sep="\n\n")


if __name__ == "__main__":
    main()
