"""What is predicted, and with what."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self, get_args

from psmt.errors import NotEnoughFramesError
from psmt.experiments.film_fit import RATIO, nothing_fits, smaller_sizes, smaller_was_used
from psmt.experiments.phases import Search, check_length
from psmt.extrapolation import EXTRAPOLATIONS
from psmt.model.paper_options import OURS, Departures
from psmt.utils.validation import Constraint, allowing, check_parameters, choice, count, real, truth


@dataclass(frozen=True, kw_only=True)
class PredictionSettings:
    """What is predicted; the defaults are the paper's sizes.

    Parameters
    ----------
    n_atoms, window, horizon : int
        M, H and K.
    n_components : int or "auto"
        f; 'auto' chooses it by predicting the end of the past.
    alpha : float
        Price of activity in layer 1.
    lam : float or "auto"
        Price of activity in step 7; 'auto' as for f.
    seed : int
    departures : Departures
        From the paper.
    starts : tuple of int
        Frames to start from; without any, a calm and a lively phase are searched.
    solver : {'closed', 'sgd'}
        Of step 5.
    extrapolation : str
        Of step 6, of PSMT itself: see `psmt.extrapolation`. The baselines keep the paper's straight line.
    series : bool
        The values are a series, no patches: features are standardised by the past of each start, and drawn as bars.
    n_starts : int
        Starts that claims are judged over, at the most: those above, and more at even distances.
    n_null : int
        Starts at which each null, the film without its order in time, is predicted too.
    search : {'segment', 'film'}
        Where phases are looked for: inside the segment of least error, or in the whole film.
    """

    n_atoms: int = 512
    window: int = 1536
    horizon: int = 30
    n_components: int | Literal["auto"] = "auto"
    alpha: float = 1.0
    lam: float | Literal["auto"] = "auto"
    seed: int = 0
    departures: Departures = OURS
    starts: tuple[int, ...] = ()
    solver: str = "closed"
    extrapolation: str = "linear"
    series: bool = False
    n_starts: int = 20
    n_null: int = 4
    search: Search = "segment"

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {
        "n_atoms": count(),
        "window": count(3),
        "horizon": count(),
        "n_components": allowing("auto", count()),
        "alpha": real(open_bound=True),
        "lam": allowing("auto", real()),
        "seed": count(0),
        "solver": choice("closed", "sgd"),
        "extrapolation": choice(*EXTRAPOLATIONS),
        "series": truth(),
        "n_starts": count(0),
        "n_null": count(0),
        "search": choice(*get_args(Search)),
    }

    def __post_init__(self) -> None:
        check_parameters(self, self._parameter_constraints)

    @classmethod
    def quick(cls) -> Self:
        """The small version: a film of a thousand frames, less than a minute."""
        return cls(n_atoms=128, window=384, n_starts=8, n_null=4)

    @classmethod
    def demo(cls) -> Self:
        """For the built-in film: a small model, so that there is time for many starts.

        A segment of its window's length is either calm or lively, so that phases are looked for in the whole film.
        """
        return cls(n_atoms=128, window=384, n_starts=18, n_null=6, search="film")

    @property
    def largest(self) -> int:
        """M."""
        return self.n_atoms

    def check(self, n_frames: int) -> None:
        """Raise unless the film is long enough, and every start has a window before it and a horizon after it."""
        check_length(n_frames, window=self.window, horizon=self.horizon)
        for start in self.starts:
            check_start(start, n_frames, window=self.window, horizon=self.horizon)

    def fitted(self, n_frames: int) -> tuple[Self | None, str]:
        """With the largest dictionary and window that leave room for a phase.

        >>> PredictionSettings().fitted(100)[1]
        'the film has 100 frames; M = 32 with H = 96, the smallest that is tried, needs 127'
        """
        smaller = [replace(self, n_atoms=m, window=RATIO * m) for m in smaller_sizes(self.n_atoms)]
        for settings in (self, *smaller):
            used = settings.n_atoms, settings.window
            try:
                settings.check(n_frames)
            except NotEnoughFramesError:
                continue
            note = "" if settings is self else smaller_was_used(n_frames, (self.n_atoms, self.window), used)
            return settings, note
        needed = settings.window + settings.horizon + 1
        if n_frames >= needed:
            settings.check(n_frames)  # there is room: it is a start that lies where nothing fits
        return None, nothing_fits(n_frames, used, needed)


def check_start(start: int, n_frames: int, *, window: int, horizon: int) -> None:
    """Raise unless a whole window lies before `start`, and `horizon` frames after it."""
    check_length(n_frames, window=window, horizon=horizon)
    last = n_frames - horizon - 1
    if not window <= start <= last:
        raise NotEnoughFramesError(
            f"start={start} with window={window} and horizon={horizon} needs frames "
            f"{start - window} to {start + horizon}, but the film has frames 0 to {n_frames - 1}; "
            f"use a start from {window} to {last}"
        )
