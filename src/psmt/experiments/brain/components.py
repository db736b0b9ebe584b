"""Connected components of the graph of linked atoms, followed over time: births, merges, splits, returns and ends."""

from dataclasses import dataclass, replace

import numpy as np

from psmt.experiments.film_tasks import slice_codes
from psmt.experiments.window_graphs import window_graph
from psmt.types import Ints, Result


def person_graphs(*, codes: Result, n_atoms: int, window: int, step: int) -> Result:
    """Return the connected components of the graph of atoms (see `window_graph`) in each window of a person's series.

    `codes` are the person's codes as `pack_codes` stores them. A window has `window` volumes, and the next window
    begins `step` volumes later. The result has ``component`` (n_windows, n_atoms), the label of each atom's component
    or -1 for an atom without links, and ``starts`` (n_windows,), the first volume of each window.
    """
    starts = np.arange(0, len(codes["offsets"]) - window, step)
    labels = np.full((len(starts), n_atoms), -1)
    for row, start in zip(labels, starts.tolist(), strict=True):
        part = slice_codes(codes, start, start + window)
        graph = window_graph(codes=part, n_atoms=n_atoms, n_components=max(1, n_atoms // 4))
        linked = graph["neighbours"] > 0
        row[linked] = graph["component"][linked]
    return {"component": labels, "starts": starts}


@dataclass(frozen=True)
class ComponentStep:
    """One connected component of the graph of atoms in one window, and how it is related to the windows around it."""

    window: int
    component: int
    """Number of the component. A component that continues in the next window, or returns later, keeps its number."""
    size: int
    event: str
    """How the component arose: 'start' (in the first window), 'birth', 'goes on', 'merge', 'split' or 'return'."""
    ends: bool
    """Whether no component of the next window continues this one. It is False in the last window."""


def follow_components(labels: Ints) -> list[ComponentStep]:
    """Return the components of all windows, numbered so that a component keeps its number over time.

    `labels` (n_windows, n_atoms) has the label of each atom's component in each window, or -1 for none.

    A component continues a component of the previous window if they share at least two atoms, and at least half of the
    atoms of the smaller one. A component that continues several components is a 'merge'. It gets the number of the one
    with which it shares most atoms. If several components continue the same component, this is a 'split', and the
    largest gets its number. A component that continues none is a 'return' if it could continue one that ended earlier,
    and a 'birth' otherwise.

    >>> labels = np.array([[0, 0, 1, 1, -1], [0, 0, 0, 0, -1], [-1, -1, -1, -1, -1], [2, 2, 2, 2, -1]])
    >>> [(step.window, step.component, step.event, step.ends) for step in follow_components(labels)]
    [(0, 0, 'start', False), (0, 1, 'start', False), (1, 0, 'merge', True), (3, 0, 'return', False)]
    """
    steps: list[ComponentStep] = []
    last: dict[int, frozenset[int]] = {}  # atoms of each component when it was last seen
    before: dict[int, frozenset[int]] = {}  # atoms of each component of the previous window
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
            ended = [] if own else [n for n in last if n not in before and n not in now and _alike(last[n], group)]
            candidates = free or ended
            number = max(candidates, key=lambda n: (len(last[n] & group), -n)) if candidates else len(last)
            event = "return" if ended else "birth" if window else "start"
            if own:
                event = "merge" if len(own) > 1 else "split" if children[own[0]] > 1 else "goes on"
            now[number] = last[number] = group
            steps.append(ComponentStep(window, number, len(group), event, ends=False))
        before = now
    return steps


def _alike(one: frozenset[int], other: frozenset[int]) -> bool:
    shared = len(one & other)
    return shared >= 2 and shared >= 0.5 * min(len(one), len(other))
