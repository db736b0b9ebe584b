"""The parameters and options of `python -m studies.regimes`, and its help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from psmt.errors import PSMTError
from psmt.experiments.contract import Command
from psmt.experiments.options import parameters as shared
from psmt.experiments.options.declaration import RATIO, Derived, Option, Presets, Settings
from psmt.experiments.options.sources import PatchOptions
from psmt.utils.constraints import count, real

if TYPE_CHECKING:
    from psmt.data import Film, GlideFilm, SeriesSource
    from psmt.types import Progress

PAST = 400
_WINDOW = Derived("n_atoms", lambda n_atoms: RATIO * n_atoms)
_PAST = Derived("n_atoms", lambda n_atoms: max(PAST, RATIO * n_atoms))


@dataclass(frozen=True, kw_only=True)
class RegimesSettings(Settings):
    """Speeds and noises of the films that are made, and the size of the models."""

    speeds: Annotated[
        tuple[float, ...], Option("--speed", "Pixels per frame; may be repeated."), real(open_bound=True)
    ] = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
    noises: Annotated[
        tuple[float, ...],
        Option("--noise", "Standard deviation of the noise, as a fraction of the patch's contrast; may be repeated."),
    ] = (0.0, 0.03, 0.1, 0.3)
    n_starts: Annotated[int, Option("--n-starts", "Number of films at each speed and noise."), count(6)] = 6
    n_atoms: shared.Atoms = 96
    window: Annotated[int, _WINDOW, count(3)] = 288
    past: Annotated[int, _PAST] = PAST
    """Number of frames before each start. The dictionary is learned from them."""
    horizon: int = 12
    n_components: int | Literal["auto"] = "auto"
    alpha: shared.Alpha = 1.0
    lam: float | Literal["auto"] = "auto"
    patch_size: Annotated[shared.PatchSize, count(8)] = 16
    seed: shared.Seed = 0
    departures: shared.Departed = field(default_factory=shared.make_departures)

    PRESETS: ClassVar[Presets] = {"quick": {"speeds": (0.05, 0.5, 4.0), "noises": (0.0, 0.1), "n_starts": 6}}

    @classmethod
    def make(cls, given: Mapping[str, Any] | None = None, *, preset: str = "", **fallbacks: Any) -> RegimesSettings:
        """Make settings as for every command, and sort the speeds and noises."""
        values = dict(given or {})
        values |= {name: tuple(sorted(set(values[name]))) for name in ("speeds", "noises") if name in values}
        return super().make(values, preset=preset, **fallbacks)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("speeds", "noises"):
            values = getattr(self, name)
            if not values or list(values) != sorted(set(values)):
                raise ValueError(
                    f"{name}={values} is not an axis of a map; give at least one value, in ascending order"
                )
        if self.past < self.window:
            raise ValueError(f"past={self.past} is shorter than window={self.window}; use past >= {self.window}")


@dataclass(frozen=True, kw_only=True)
class RegimesOptions(PatchOptions):
    """Options of the study. It makes its films itself."""

    SOURCE_HELP: ClassVar[str] = "The built-in film and its first seed: builtin:glide?seed=100. --speed sets the speed."
    DEFAULT_SOURCE: ClassVar[Any] = "builtin:glide"

    def open(self, spec: str, /) -> Film | SeriesSource:
        """Open the built-in film. Other films are refused, because they cannot be made faster or slower."""
        from psmt.data import GlideFilm

        opened = super().open(spec)
        if not isinstance(opened, GlideFilm):
            raise PSMTError(f"{spec} cannot be made faster or noisier; leave it out, or give builtin:glide with a seed")
        return opened

    def read(self, source: GlideFilm, _progress: Progress, /) -> GlideFilm:  # type: ignore[override]
        """Return the film itself. Each task makes its own frames."""
        return source


COMMAND = Command(
    name="regimes",
    help="""Measure at which speed and noise PSMT predicts better than simple methods, on the built-in film.

Compares every extrapolation and every baseline with copying, and PSMT with the best method without an embedding, vs \
code and vs frame, in films of known speed and noise. Writes regimes.csv, regimes.png (the map) and \
report.html. Prints four tables. Takes minutes on two cores, a minute with --quick.""",
    settings=RegimesSettings,
    options=RegimesOptions,
)
