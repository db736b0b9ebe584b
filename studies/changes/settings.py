"""`python -m studies.changes`: its parameters and its command."""

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
    "cut": "the film goes on elsewhere",
    "jump": "some frames are missing",
    "none": "nothing happens",
}
"""What is put into the film, by name; the last is the control."""


@dataclass(frozen=True, kw_only=True)
class ChangesSettings(WindowSettings):
    """Which changes are put where; the sizes are the paper's."""

    n_atoms: shared.Atoms = 512
    window: shared.Window = 1536
    n_components: shared.ChosenComponents = "auto"
    alpha: shared.Alpha = 1.0
    lam: shared.ChosenLam = "auto"
    before: int = 30
    """Frames before the change, which give the usual error."""
    horizon: Annotated[int, Option("--horizon", "Number of frames that are predicted from each change."), count(2)] = 60
    places: Annotated[int, Option("--places", "Number of places, evenly spaced, if none are given.")] = 16
    at: Annotated[
        tuple[int, ...],
        Option("--at", "Frame that a change comes with; may be repeated.", default="places all over the film"),
        anything,
    ] = ()
    flash: Annotated[
        float, Option("--flash", "Brightness of the flash, in standard deviations of the film."), real(open_bound=True)
    ] = 3.0
    jump: Annotated[int, Option("--jump", "Number of frames that the jump leaves out.")] = 25
    seed: shared.Seed = 0
    departures: shared.ModelDepartures = field(default_factory=shared.our_departures)
    series: bool = False
    """The values are a series, not patches: features are standardised by the past of each place."""

    PRESETS: ClassVar[Presets] = {"quick": {"n_atoms": 64, "window": 192, "places": 8}}

    def bounds(self, n_frames: int) -> tuple[int, int]:
        """First and last frame that a change may come with: room for a window, and for what a cut leads to."""
        return self.window + self.before, n_frames - self.horizon - max(self.horizon, self.jump)

    def chosen_places(self, n_frames: int) -> tuple[int, ...]:
        """Frames that the changes come with, as given or evenly spread over a film."""
        if self.at:
            return tuple(dict.fromkeys(self.at))
        return tuple(dict.fromkeys(np.linspace(*self.bounds(n_frames), self.places).astype(int).tolist()))

    def needed(self) -> int:
        """Frames of a window, a change and what follows it."""
        return self.window + self.before + self.horizon + max(self.horizon, self.jump)

    def check(self, n_frames: int, /) -> None:
        """Raise unless there is room for a change, and for each of those given."""
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
    help="""Put a flash, a cut and a jump into a film, and see how every method recovers.

Writes changes.csv (each error), changes.png and report.html. Ends with a table per kind of change, and with whether \
PSMT detects the changes and whether its response to them pays.""",
    settings=ChangesSettings,
)
