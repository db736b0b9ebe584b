"""Components of the atoms' graph over time: which are born, go on, merge, split, come back and end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from psmt.embedding.atom_graph import THRESHOLD
from psmt.engines import engine_for
from psmt.experiments.coding_tasks import unpack_codes
from psmt.experiments.window_graphs import MIN_USES, embed, often_used, similarity_graph
from psmt.types import AnyArray, Array, Ints, Result

ALIKE = 0.5
"""Share of the atoms of the smaller of two components that both have, at least, where one goes on as the other."""


def person_graphs(
    *, values: Array, columns: AnyArray, offsets: AnyArray, n_atoms: int, window: int, step: int
) -> Result:
    """Components of all windows of a person's packed codes. One task.

    Returns
    -------
    dict
        ``component`` (n_windows, n_atoms): label of the atom's component, -1 for an atom without links; ``starts``
        (n_windows,).
    """
    codes = unpack_codes(values, columns, offsets, n_atoms)
    starts = np.arange(0, codes.shape[0] - window + 1, step)
    engine = engine_for("cpu")
    labels = np.full((len(starts), n_atoms), -1)
    for row, start in zip(labels, starts, strict=True):
        part = codes[start : start + window]
        graph = similarity_graph(
            embed(part, max(1, n_atoms // 4), engine), often_used(part, MIN_USES), threshold=THRESHOLD
        )
        linked = graph["neighbours"] > 0
        row[linked] = graph["component"][linked]
    return {"component": labels, "starts": starts}


@dataclass(frozen=True)
class Step:
    """One component in one window."""

    window: int
    component: int
    """Its number over time: the same while it goes on, and when it comes back."""
    size: int
    event: str
    """How it came: 'start' (in the first window), 'birth', 'goes on', 'merge', 'split' or 'return'."""
    ends: bool
    """Whether nothing of it goes on in the next window; in the last one nobody knows."""


def follow_components(labels: Ints) -> list[Step]:
    """Components over time, from the labels (n_windows, n_atoms) of the atoms, -1 where they have no links.

    One goes on as another where they share half of the atoms of the smaller, two at least. Of several that become one
    (a merge), it has the number of the one that it shares most with; so has of several that one becomes (a split) the
    one that shares most. One that comes from none is a birth, or the return of one that had ended, if they are alike.

    >>> labels = np.array([[0, 0, 1, 1, -1], [0, 0, 0, 0, -1], [-1, -1, -1, -1, -1], [2, 2, 2, 2, -1]])
    >>> [(step.window, step.component, step.event, step.ends) for step in follow_components(labels)]
    [(0, 0, 'start', False), (0, 1, 'start', False), (1, 0, 'merge', True), (3, 0, 'return', False)]
    """
    steps: list[Step] = []
    numbers: dict[int, frozenset[int]] = {}  # as each was when it was last seen
    before: dict[int, frozenset[int]] = {}
    for window, row in enumerate(labels):
        groups = [frozenset(np.flatnonzero(row == label).tolist()) for label in np.unique(row[row >= 0])]
        groups.sort(key=lambda group: (-len(group), min(group)))
        parents = [[number for number, old in before.items() if _alike(old, group)] for group in groups]
        children = {number: sum(number in own for own in parents) for number in before}
        for k in range(len(steps) - len(before), len(steps)):
            if not children[steps[k].component]:
                steps[k] = replace(steps[k], ends=True)
        now: dict[int, frozenset[int]] = {}
        for group, own in zip(groups, parents, strict=True):
            free = [number for number in own if number not in now]
            gone = (
                []
                if own
                else [n for n, old in numbers.items() if n not in before and n not in now and _alike(old, group)]
            )
            candidates = free or gone
            number = max(candidates, key=lambda n: (len(numbers[n] & group), -n)) if candidates else len(numbers)
            event = _event(len(own), max((children[n] for n in own), default=0), bool(gone), window)
            now[number] = numbers[number] = group
            steps.append(Step(window, number, len(group), event, ends=False))
        before = now
    return steps


def _event(n_parents: int, n_siblings: int, returned: bool, window: int) -> str:
    if n_parents > 1:
        return "merge"
    if n_parents == 1:
        return "split" if n_siblings > 1 else "goes on"
    if returned:
        return "return"
    return "start" if window == 0 else "birth"


def _alike(one: frozenset[int], other: frozenset[int]) -> bool:
    shared = len(one & other)
    return shared >= 2 and shared >= ALIKE * min(len(one), len(other))


def lasting(steps: Sequence[Step], n_windows_apart: int) -> tuple[set[int], set[int]]:
    """Components that persist, over windows without a common volume, and those that came back."""
    seen: dict[int, list[int]] = {}
    for step in steps:
        seen.setdefault(step.component, []).append(step.window)
    persistent = {number for number, own in seen.items() if max(own) - min(own) >= n_windows_apart}
    return persistent, {step.component for step in steps if step.event == "return"}
