"""`python -m studies.changes`: the command and its parameters."""

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
"""What is put into the film; the last is the control."""

CHANGES = tuple(kind for kind in KINDS if kind != "none")


@dataclass(frozen=True, kw_only=True)
class ChangesSettings(WindowSettings):
    """Size of the model, as in the paper, and which changes are made where."""

    n_atoms: shared.Atoms = 512
    window: shared.Window = 1536
    n_components: shared.ChosenComponents = "auto"
    alpha: shared.Alpha = 1.0
    lam: shared.ChosenLam = "auto"
    before: int = 30
    """Frames before the change that are scored, for the usual error."""
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
    departures: shared.ModelDepartures = field(default_factory=shared.our_departures)
    series: bool = False
    """Whether the values are a series, not patches: each place's past then standardises the features."""

    PRESETS: ClassVar[Presets] = {"quick": {"n_atoms": 64, "window": 192, "places": 8}}

    def bounds(self, n_frames: int) -> tuple[int, int]:
        """First and last possible frame of a change: a window must fit before it, and the target of a cut after it."""
        return self.window + self.before, n_frames - self.horizon - max(self.horizon, self.jump)

    def chosen_places(self, n_frames: int) -> tuple[int, ...]:
        """Frames of the changes: those given, or evenly spaced ones."""
        if self.at:
            return tuple(dict.fromkeys(self.at))
        return tuple(dict.fromkeys(np.linspace(*self.bounds(n_frames), self.places).astype(int).tolist()))

    def needed(self) -> int:
        """Number of frames that one change needs."""
        return self.window + self.before + self.horizon + max(self.horizon, self.jump)

    def check(self, n_frames: int, /) -> None:
        """Raise unless the film has room for a change, and for each given one."""
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
