"""The parameters of `python -m studies.changes`, and its help."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from psmt.errors import NotEnoughFramesError
from psmt.experiments.contract import Command
from psmt.experiments.options import parameters as shared
from psmt.experiments.options.declaration import Option, Presets, WindowSettings, anything
from psmt.utils.constraints import count, real

KINDS = {
    "flash": "one frame is brighter",
    "cut": "the film continues elsewhere",
    "jump": "some frames are missing",
    "none": "the film is not changed",
}
"""Kinds of change that are put into the film. The last one is the control."""

CHANGES = tuple(kind for kind in KINDS if kind != "none")


@dataclass(frozen=True, kw_only=True)
class ChangesSettings(WindowSettings):
    """Size of the model, which is the paper's, and the kinds and places of the changes."""

    n_atoms: shared.Atoms = 512
    window: shared.Window = 1536
    n_components: shared.ChosenComponents = "auto"
    alpha: shared.Alpha = 1.0
    lam: shared.ChosenLam = "auto"
    before: int = 30
    """Number of frames before the change that are scored, to measure the usual error."""
    horizon: Annotated[int, Option("--horizon", "Number of frames that are predicted from each change."), count(2)] = 60
    places: Annotated[int, Option("--places", "Number of places, evenly spaced, unless --at is given.")] = 16
    at: Annotated[
        tuple[int, ...],
        Option("--at", "Frame of the change; may be repeated.", default="evenly spaced places"),
        anything,
    ] = ()
    flash: Annotated[
        float, Option("--flash", "Brightness of the flash, in standard deviations of the film."), real(open_bound=True)
    ] = 3.0
    jump: Annotated[int, Option("--jump", "Number of frames that a jump leaves out.")] = 25
    seed: shared.Seed = 0
    departures: shared.Departed = field(default_factory=shared.make_departures)
    series: bool = False
    """Whether the values are a series, not patches. Its features are standardised by the past of each place."""

    PRESETS: ClassVar[Presets] = {"quick": {"n_atoms": 64, "window": 192, "places": 8}}

    def bounds(self, n_frames: int) -> tuple[int, int]:
        """Return the first and last possible frame of a change.

        A window must fit before the change, and the frames that a cut leads to must fit after it.
        """
        return self.window + self.before, n_frames - self.horizon - max(self.horizon, self.jump)

    def chosen_places(self, n_frames: int) -> tuple[int, ...]:
        """Return the frames of the changes: those that were given, or evenly spaced ones."""
        if self.at:
            return tuple(dict.fromkeys(self.at))
        return tuple(dict.fromkeys(np.linspace(*self.bounds(n_frames), self.places).astype(int).tolist()))

    def needed(self) -> int:
        """Return the number of frames that one change needs."""
        return self.window + self.before + self.horizon + max(self.horizon, self.jump)

    def check(self, n_frames: int, /) -> None:
        """Raise if the film is too short for a change, or a given change is outside of the possible frames."""
        first, last = self.bounds(n_frames)
        if last < first:
            raise NotEnoughFramesError(
                f"the film has {n_frames} frames; window={self.window}, before={self.before} and "
                f"horizon={self.horizon} need at least {self.needed()}: use a smaller window or a longer film"
            )
        for place in self.at:
            if not first <= place <= last:
                raise NotEnoughFramesError(
                    f"at={place} leaves no room in a film of {n_frames} frames; use a frame from {first} to {last}"
                )


COMMAND = Command(
    name="changes",
    help="""Measure how each method recovers from a flash, a cut and a jump in a film.

Writes changes.csv (every error), changes.png and report.html. Prints a table per kind of change, whether PSMT detects \
the changes, and whether holding the code after a cut lowers the error.""",
    settings=ChangesSettings,
)
