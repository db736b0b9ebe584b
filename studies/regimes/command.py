"""`psmt regimes`: what it says of itself, and its options."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from cyclopts import Parameter

from psmt.errors import PSMTError
from psmt.experiments.contract import Command
from psmt.experiments.options import MODEL_FLAGS, ModelDepartures, Out, PatchOptions

if TYPE_CHECKING:
    from psmt.data import Film, GlideFilm, SeriesSource
    from psmt.types import Progress
    from studies.regimes.settings import RegimesSettings


def _axis(help: str) -> Parameter:
    return Parameter(help=help, metavar="FLOAT", negative=(), show_default=False)


@dataclass(frozen=True, kw_only=True)
class RegimesOptions(PatchOptions):
    """Options of `psmt regimes`."""

    speed: Annotated[
        tuple[float, ...], _axis("Pixels per frame; may be repeated. Left out: seven from 0.05 to 4.")
    ] = ()
    noise: Annotated[
        tuple[float, ...],
        _axis("Noise as a fraction of the patch's contrast; may be repeated. Left out: four from 0 to 0.3."),
    ] = ()
    n_starts: Annotated[
        int | None,
        Parameter(
            name="--n-starts",
            help="Films at each speed and noise, over which intervals are. Left out: 6, 4 with --quick.",
            metavar="INT",
            show_default=False,
        ),
    ] = None
    atoms: Annotated[
        int | None, Parameter(help="M: atoms in the dictionary. Left out: 96.", metavar="INT", show_default=False)
    ] = None
    departures: ModelDepartures = MODEL_FLAGS
    out: Out = Path("psmt-regimes")

    film: ClassVar[str] = "The built-in film, with the seed to begin at: builtin:glide?seed=100. Its speed is set here."
    default_film: ClassVar[str | None] = "builtin:glide"

    def settings(self) -> "RegimesSettings":
        """As the library takes them."""
        from dataclasses import replace

        from studies.regimes.settings import RegimesSettings

        base = RegimesSettings.quick() if self.quick else RegimesSettings()
        atoms = self.atoms or base.n_atoms
        window = 3 * atoms
        return replace(
            base,
            speeds=tuple(sorted(set(self.speed))) or base.speeds,
            noises=tuple(sorted(set(self.noise))) or base.noises,
            n_starts=self.n_starts or base.n_starts,
            n_atoms=atoms,
            window=window,
            past=max(base.past, window),
            alpha=self.price,
            patch_size=self.patch,
            seed=self.seed,
            departures=self.departures.settings(),
        )

    def open(self, spec: str) -> "Film | SeriesSource":
        """The built-in film: no other can be made faster or slower."""
        from psmt.data import GlideFilm

        opened = super().open(spec)
        if not isinstance(opened, GlideFilm):
            raise PSMTError(
                f"{spec} cannot be made faster or noisier; leave it out, or give builtin:glide with a seed "
                "(where a film of your own lies on the map, psmt predict and psmt reproduce say)"
            )
        return opened

    def read(self, source: "GlideFilm", _progress: "Progress", /) -> "GlideFilm":  # type: ignore[override]
        """The film itself: tasks make their own frames."""
        return source


COMMAND = Command(
    name="regimes",
    help="""Find out at which speed and noise PSMT predicts better than copying, on the built-in film.

Every extrapolation and every baseline is held against copying, vs code and vs frame, in films of known speed and \
noise. Writes regimes.csv, regimes.png (the map) and regime_map.json, which reports place films on. \
Ends with two tables. Minutes on two cores, a minute with --quick.""",
    options=RegimesOptions,
)
