"""`python -m studies.regimes`: its parameters, its options and its command."""

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
    """Which films are made, and what is compared on each."""

    speeds: Annotated[
        tuple[float, ...], Option("--speed", "Pixels per frame; may be repeated."), real(open_bound=True)
    ] = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
    noises: Annotated[
        tuple[float, ...],
        Option("--noise", "Standard deviation of the noise, as a fraction of the patch's contrast; may be repeated."),
    ] = (0.0, 0.03, 0.1, 0.3)
    n_starts: Annotated[
        int, Option("--n-starts", "Number of films at each speed and noise, over which intervals are."), count(3)
    ] = 6
    n_atoms: shared.Atoms = 96
    window: Annotated[int, _WINDOW, count(3)] = 288
    past: Annotated[int, _PAST] = PAST
    """Frames before each start: the dictionary is learned from all of them."""
    horizon: int = 12
    n_components: int | Literal["auto"] = "auto"
    alpha: shared.Alpha = 1.0
    lam: float | Literal["auto"] = "auto"
    patch_size: Annotated[shared.PatchSize, count(8)] = 16
    seed: shared.Seed = 0
    departures: shared.ModelDepartures = field(default_factory=shared.our_departures)

    PRESETS: ClassVar[Presets] = {"quick": {"speeds": (0.05, 0.5, 4.0), "noises": (0.0, 0.1), "n_starts": 4}}

    @classmethod
    def make(cls, given: Mapping[str, Any] | None = None, *, preset: str = "", **fallbacks: Any) -> RegimesSettings:
        """As always, with axes in order."""
        values = dict(given or {})
        values |= {name: tuple(sorted(set(values[name]))) for name in ("speeds", "noises") if name in values}
        return super().make(values, preset=preset, **fallbacks)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("speeds", "noises"):
            values = getattr(self, name)
            if not values or list(values) != sorted(set(values)):
                raise ValueError(
                    f"{name}={values} is not an axis of a map; give at least one value, each larger than the last"
                )
        if self.past < self.window:
            raise ValueError(f"past={self.past} is shorter than window={self.window}; use past >= {self.window}")


@dataclass(frozen=True, kw_only=True)
class RegimesOptions(PatchOptions):
    """Options of the study, which makes its films itself."""

    SOURCE_HELP: ClassVar[str] = "The built-in film and its first seed: builtin:glide?seed=100. Its speed is set here."
    DEFAULT_SOURCE: ClassVar[Any] = "builtin:glide"

    def open(self, spec: str, /) -> Film | SeriesSource:
        """The built-in film: no other can be made faster or slower."""
        from psmt.data import GlideFilm

        opened = super().open(spec)
        if not isinstance(opened, GlideFilm):
            raise PSMTError(
                f"{spec} cannot be made faster or noisier; leave it out, or give builtin:glide with a seed "
                "(psmt predict and psmt reproduce show where your own film lies on the map)"
            )
        return opened

    def read(self, source: GlideFilm, _progress: Progress, /) -> GlideFilm:  # type: ignore[override]
        """The film itself: tasks make their own frames."""
        return source


COMMAND = Command(
    name="regimes",
    help="""Find out at which speed and noise PSMT predicts better than copying, on the built-in film.

Compares every extrapolation and every baseline with copying, vs code and vs frame, in films of known speed and noise. \
Writes regimes.csv, regimes.png (the map) and expectation_map.json, with which reports say what to expect of a film. \
Ends with two tables. Minutes on two cores, a minute with --quick.""",
    settings=RegimesSettings,
    options=RegimesOptions,
)
