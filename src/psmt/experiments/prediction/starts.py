"""Where claims are tested: many starts of the film, and some of them on its nulls."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psmt.experiments.phases import Phase


def choose_starts(phases: Sequence[Phase], n_frames: int, *, window: int, horizon: int, n_starts: int) -> list[Phase]:
    """The phases and, at even distances, more starts: `n_starts` at the most, in order, no two with a common frame.

    >>> [start.start for start in choose_starts([Phase("calm", 14)], 41, window=10, horizon=4, n_starts=4)]
    [14, 23, 36]
    """
    length = horizon + 1
    first, last = window, n_frames - length
    count = min(n_starts - len(phases), (last - first) // length + 1)
    places = [first + i * (last - first) // max(count - 1, 1) for i in range(count)]
    more = [place for place in places if all(abs(place - phase.start) >= length for phase in phases)]
    return sorted([*phases, *(Phase(f"start-{place}", place) for place in more)], key=lambda start: start.start)


def choose_null_starts(starts: Sequence[Phase], n_null: int) -> list[Phase]:
    """Of the starts, `n_null` at even distances, or all of them where there are fewer."""
    places = np.linspace(0, len(starts) - 1, min(n_null, len(starts))).round().astype(int)
    return [starts[place] for place in places]
