"""`psmt reproduce` and `psmt demo`: what they say of themselves, and their options."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from cyclopts import Parameter

from psmt.experiments.options import (
    AUTO,
    DEFAULT_LAM,
    MODEL_FLAGS,
    ExtrapolationName,
    Horizon,
    ModelDepartures,
    NStarts,
    Out,
    PatchOptions,
    Search,
    Solver,
    Start,
)

HELP = """Carry out every experiment of the paper on your film, and report on its claims.

Writes what sweep, topology, reconstruct and predict write, summary.json with all numbers, and report.html: one page \
that opens with each claim of the paper and whether it holds. What the film is too short for is named. Several films \
get a sub-folder each. Full size on 10,000 frames: seven to twenty minutes on two cores, below 4 GiB of memory."""

DEMO_HELP = """Reproduce the paper, small, on the built-in film: about a minute on two cores, and more the first time, \
when kernels are compiled.

Writes what reproduce writes, report.html above all: one page with verdicts, figures, tables and settings."""

DEMO_FILM = "builtin:glide?frames=6000"


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(PatchOptions):
    """Options of `psmt reproduce`."""

    atoms: Annotated[
        int | None,
        Parameter(
            help="M: atoms in the dictionary, in all experiments. Left out: the paper's, 512 to 2048.",
            metavar="INT",
            show_default=False,
        ),
    ] = None
    window: Annotated[
        int | None,
        Parameter(
            help="H: how many codes the embedding is made from, in topology and prediction. Left out: 3 times M.",
            metavar="INT",
            show_default=False,
        ),
    ] = None
    components: Annotated[
        Literal["auto"] | int,
        Parameter(
            help="f: dimension of the embedding; auto is a quarter of the atoms, and chosen by predicting the end of "
            "the past where there is one.",
            metavar="auto|INT",
            **AUTO,
        ),
    ] = "auto"
    lam: Annotated[
        Literal["auto"] | float,
        Parameter(
            help=f"λ: price of activity in step 7, recovery; auto is {DEFAULT_LAM}, or chosen as above.",
            metavar="auto|FLOAT",
            **AUTO,
        ),
    ] = "auto"
    solver: Solver = "closed"
    extrapolation: ExtrapolationName = "linear"
    start: Start = ()
    starts: NStarts = None
    horizon: Horizon = 30
    departures: ModelDepartures = MODEL_FLAGS
    search: Search = "segment"
    out: Out = Path("psmt-reproduce")

    foretells: ClassVar[bool] = True

    def settings(self) -> dict[str, Any]:
        """As the library takes them, by experiment."""
        from psmt.experiments.reproduce.run import asked_settings

        return asked_settings(self)

    def largest(self, settings: Any) -> int:
        """The largest M of all experiments."""
        return max(int(own.largest) for own in settings.values())


@dataclass(frozen=True, kw_only=True)
class DemoOptions(ReproduceOptions):
    """Options of `psmt demo`, of which the command line offers seed, out and the departures."""

    out: Out = Path("psmt-demo")

    def settings(self) -> dict[str, Any]:
        """For the built-in film."""
        from psmt.experiments.reproduce.run import demo_settings

        return demo_settings(self)
