"""The parameters of `psmt sweep`, and its help."""

from dataclasses import dataclass, field, replace
from math import nextafter
from typing import Annotated, ClassVar, Self

from psmt.errors import NotEnoughFramesError
from psmt.experiments.contract import Command
from psmt.experiments.options import parameters as shared
from psmt.experiments.options.declaration import LADDER, Option, Presets, Settings, quarter, smaller_sizes
from psmt.utils.constraints import check_count, count, real


@dataclass(frozen=True, kw_only=True)
class SweepSettings(Settings):
    """Parameters of `psmt sweep`. By default, the numbers of atoms and frames are the paper's.

    >>> SweepSettings().windows(512)
    (1024, 1280, 1536)
    >>> SweepSettings.make(preset="quick").n_atoms
    (64, 128)
    """

    n_atoms: shared.SeveralAtoms = (512, 1024, 2048)
    ratios: Annotated[tuple[float, ...], real(open_bound=True)] = (2.0, 2.5, 3.0)
    """Window lengths as multiples of the number of atoms."""
    window: Annotated[
        int | None, Option("--window", "H: number of codes of an embedding.", default="2, 2.5 and 3 times M"), count(3)
    ] = None
    """The only window length, which replaces the ratios if it is given. It needs a single number of atoms."""
    steps_per_window: int = 4
    """Number of windows that begin within the length of one window. 4 is the paper's overlap of 3/4."""
    null_windows: Annotated[int, count(0)] = 4
    """Number of evenly spaced windows of each size on each null model of the film. 0 means no null models."""
    n_components: shared.QuarterComponents = None
    """Dimension of the embedding. A window whose rank is smaller uses its rank."""
    alpha: shared.Alpha = 1.0
    lam: shared.SeveralLam = (0.1, 3.0, 30.0)
    """Penalties λ, which the paper does not give. With 0.1 errors are smallest, with 30 they are like the paper's."""
    max_epochs: int = 5
    """Largest number of passes over the film in which the dictionary is learned."""
    seed: shared.Seed = 0
    departures: shared.Departed = field(default_factory=shared.make_departures)

    PRESETS: ClassVar[Presets] = {
        "quick": {"n_atoms": (64, 128)},
        # Short windows, so that there are many; at λ = 30 nothing of the built-in film is recovered.
        "demo": {"n_atoms": (64, 128, 256), "steps_per_window": 2, "lam": (0.1, 3.0)},
    }
    OWN_MEANING: ClassVar[tuple[str, ...]] = ("window",)

    def __post_init__(self) -> None:
        if not self.n_atoms or not self.ratios or not self.lam:
            raise ValueError(f"n_atoms={self.n_atoms}, ratios={self.ratios} and lam={self.lam} need at least one value")
        super().__post_init__()
        if self.window is not None:
            if len(self.n_atoms) != 1:
                raise ValueError(f"window={self.window} belongs to one M; give one n_atoms with it, or leave it out")
            ratio = self.window / self.n_atoms[0]
            # The multiple of M must not fall below H by rounding.
            exact = ratio if int(ratio * self.n_atoms[0]) == self.window else nextafter(ratio, 1e9)
            object.__setattr__(self, "ratios", (exact,))
        check_count("window", self._smallest_window(), minimum=max(3, self.steps_per_window))

    def windows(self, n_atoms: int) -> tuple[int, ...]:
        """Return the window lengths in frames that are tried with `n_atoms` atoms."""
        return tuple(int(ratio * n_atoms) for ratio in self.ratios)

    def segments(self, window: int, n_frames: int) -> list[tuple[int, int]]:
        """Return the (start, stop) of all windows of the length `window` in a film of `n_frames`."""
        step = window // self.steps_per_window
        return [(start, start + window) for start in range(0, n_frames - window + 1, step)]

    def null_segments(self, window: int, n_frames: int) -> list[tuple[int, int]]:
        """Return the (start, stop) of `null_windows` evenly spaced windows, for null models.

        >>> SweepSettings(n_atoms=(10,), null_windows=3).null_segments(20, 100)
        [(0, 20), (40, 60), (80, 100)]
        """
        import numpy as np

        starts = np.unique(np.linspace(0, n_frames - window, self.null_windows).round().astype(int))
        return [(int(start), int(start) + window) for start in starts]

    def components(self, n_atoms: int) -> int:
        """Return the number of dimensions of the embedding with `n_atoms` atoms."""
        return quarter(n_atoms, self.n_components)

    def check(self, n_frames: int, /) -> None:
        """Raise if a film of `n_frames` is too short for the smallest window."""
        needed = self._smallest_window()
        if n_frames < needed:
            raise NotEnoughFramesError(
                f"the film has {n_frames} frames, but the smallest window of n_atoms={self.n_atoms} needs {needed}; "
                f"use a longer film, or n_atoms <= {int(n_frames / min(self.ratios))}"
            )

    def fitted(self, n_frames: int) -> tuple[Self | None, str]:
        """Return settings and a note as `Settings.fitted` does. Smaller numbers of atoms are added if too few fit."""
        whole = [size for size in self.n_atoms if max(self.windows(size)) <= n_frames]
        if len(whole) >= min(2, len(self.n_atoms)):
            return self, ""
        smaller = [size for size in smaller_sizes(min(self.n_atoms)) if max(self.windows(size)) <= n_frames]
        added = tuple(sorted(smaller[: 3 - len(whole)]))
        if not added and n_frames < self._smallest_window():
            needed = min(self._smallest_window(), max(self.windows(LADDER[-1])))
            return None, f"the film has {n_frames:,} frames; the smallest window that is tried needs {needed:,}"
        note = ""
        if added:
            note = (
                f"the film has {n_frames:,} frames, too few to compare the given sizes; "
                f"M = {', '.join(map(str, added))} was added, and what does not fit is listed"
            )
        return replace(self, n_atoms=added + self.n_atoms, window=None), note

    def _smallest_window(self) -> int:
        return min(window for size in self.n_atoms for window in self.windows(size))


COMMAND = Command(
    name="sweep",
    help="""Reconstruct frames with more and fewer atoms and frames (Table 1 and Fig. 2 of the paper).

Writes sweep.csv and sweep.png. Ends with Table 1 and the verdicts on it at each λ, and names the sizes that the film \
is too short for.""",
    settings=SweepSettings,
    chapter=True,
)
