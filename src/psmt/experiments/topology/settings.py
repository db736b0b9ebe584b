"""What is asked of a film, and the shape of the table that answers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np

from psmt.embedding.atom_graph import THRESHOLD
from psmt.errors import NotEnoughFramesError
from psmt.experiments.film_fit import RATIO, components_for, nothing_fits, smaller_sizes, smaller_was_used
from psmt.experiments.window_graphs import MIN_USES
from psmt.model.paper_options import OURS, Departures
from psmt.types import Ints
from psmt.utils.validation import Constraint, allowing, check_count, check_parameters, choice, count, real, truth

MOST_WINDOWS = 2048
"""Windows in a film: in longer ones they lie further apart, so that memory does not grow. With the paper's sizes that
begins at 202,000 frames."""

N_NULLS = 19
"""Draws of each null: what lies beyond all of them has p <= 1 / 20."""

RULE = (
    "most informative: largest variance over time of the logarithm of the component size, times one less the share "
    "of the windows with links that it spends in the component of an atom chosen before it"
)
"""How atoms are chosen where none are given."""


@dataclass(frozen=True, kw_only=True)
class TopologySettings:
    """What is asked of a film; the defaults are the paper's sizes.

    Parameters
    ----------
    n_atoms, window : int
        M and H.
    overlap : float
        Share of a window that the next one has too.
    n_components : int, optional
        f; None is a quarter of the atoms. Windows of a smaller rank have that many.
    threshold : float
        Cosine similarity above which two atoms are linked.
    min_uses : int
        Frames of a window that an atom is used in, at least, where it has links.
    alpha : float
        Price of activity in layer 1.
    max_epochs : int
        Passes over the film that the dictionary is learned in, at the most.
    chosen : tuple of int, optional
        Atoms to follow; None takes the `n_chosen` most informative, see `RULE`.
    n_permutations : int
        Of atoms, in each test that has them.
    n_nulls : int
        Films without the claimed effect that each claim is held against, >= 19; see `design`.
    seed : int
    departures : Departures
        From the paper.
    solver : {'closed', 'sgd'}
        Of step 5.
    series : bool
        The values are a series, no patches: atoms are drawn as bars, and nothing is shifted to be compared.

    Examples
    --------
    >>> TopologySettings().components
    512
    """

    n_atoms: int = 2048
    window: int = 6144
    overlap: float = 63 / 64
    n_components: int | None = None
    threshold: float = THRESHOLD
    min_uses: int = MIN_USES
    alpha: float = 1.0
    max_epochs: int = 5
    chosen: tuple[int, ...] | None = None
    n_chosen: int = 3
    n_permutations: int = 999
    n_nulls: int = N_NULLS
    seed: int = 0
    departures: Departures = OURS
    solver: str = "closed"
    series: bool = False

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {
        "n_atoms": count(2),
        "window": count(3),
        "overlap": real(),
        "n_components": allowing(None, count()),
        "threshold": real(-1.0),
        "min_uses": count(),
        "alpha": real(open_bound=True),
        "max_epochs": count(),
        "n_chosen": count(),
        "n_permutations": count(),
        "n_nulls": count(N_NULLS),
        "seed": count(0),
        "solver": choice("closed", "sgd"),
        "series": truth(),
    }

    def __post_init__(self) -> None:
        check_parameters(self, self._parameter_constraints)
        if self.overlap >= 1:
            raise ValueError(f"overlap={self.overlap} leaves no step between windows; use 0 <= overlap < 1")
        if self.chosen is not None:
            _check_chosen(self.chosen, self.n_atoms)

    @classmethod
    def quick(cls) -> Self:
        """The small version: a film of a few hundred frames, a few seconds."""
        return cls(n_atoms=128, window=384, overlap=15 / 16)

    @classmethod
    def demo(cls) -> Self:
        """For the built-in film: four parts, and twice as many frames per atom as in the paper, whose film is longer.

        With three, two sets of frames of the same time share next to no links, and nothing can be told of them.
        """
        return cls(n_atoms=128, window=720, overlap=15 / 16, n_nulls=59)

    @property
    def largest(self) -> int:
        """M."""
        return self.n_atoms

    @property
    def components(self) -> int:
        """Dimension f of the embedding."""
        return components_for(self.n_atoms, self.n_components)

    @property
    def step(self) -> int:
        """Frames from one window to the next, but in films of very many windows."""
        return _step(self.window, self.overlap)

    def starts(self, n_frames: int) -> Ints:
        """First frames (n_windows,) of the windows in a film, at least two and at most `MOST_WINDOWS`.

        >>> TopologySettings().starts(10_000)[[0, 1, -1]]
        array([   0,   96, 3840])
        """
        self.check(n_frames)
        room = n_frames - self.window + 1
        return np.arange(0, room, max(self.step, -(-room // MOST_WINDOWS)))

    def check(self, n_frames: int) -> None:
        """Raise unless the film is long enough for two windows."""
        if n_frames < self.window + self.step:
            fits = max((size for size in range(3, n_frames) if size + _step(size, self.overlap) <= n_frames), default=0)
            way_out = (
                f"use window <= {fits}, and with three codes per atom n_atoms <= {fits // 3}"
                if fits >= 6
                else f"use a film of at least {6 + _step(6, self.overlap)} frames"
            )
            raise NotEnoughFramesError(
                f"the film has {n_frames} frames, but two windows of window={self.window} with "
                f"overlap={self.overlap:g} need {self.window + self.step}; {way_out}"
            )

    def fitted(self, n_frames: int) -> tuple[Self | None, str]:
        """With the largest dictionary and window that leave two windows in the film."""
        smaller = [replace(self, n_atoms=m, window=RATIO * m, chosen=None) for m in smaller_sizes(self.n_atoms)]
        for settings in (self, *smaller):
            used = settings.n_atoms, settings.window
            needed = settings.window + settings.step
            if needed <= n_frames:
                note = "" if settings is self else smaller_was_used(n_frames, (self.n_atoms, self.window), used)
                return settings, note
        return None, nothing_fits(n_frames, used, needed)


class Row(NamedTuple):
    """One line of topology.csv."""

    center: int
    atom: int
    component_size: int
    neighbours: int


def _step(window: int, overlap: float) -> int:
    return max(1, round(window * (1 - overlap)))


def _check_chosen(chosen: Sequence[int], n_atoms: int) -> None:
    if len(chosen) == 0:
        raise ValueError("chosen=() names no atom; give at least one, or None for the most informative ones")
    for atom in chosen:
        check_count("chosen atom", atom, minimum=0)
        if atom >= n_atoms:
            raise ValueError(f"chosen atom {atom} is out of range; the dictionary has atoms 0 to {n_atoms - 1}")
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"chosen={tuple(chosen)} names an atom twice; give each once")
