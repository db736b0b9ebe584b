"""What the commands take that look at one patch of each frame, or at a series in its place."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from cyclopts import Parameter

from psmt.experiments.options.parallel import ParallelOptions
from psmt.experiments.options.parameters import AUTO, unless_auto

if TYPE_CHECKING:
    from psmt.data import Film, SeriesSource
    from psmt.data.patches import PatchCutter
    from psmt.data.speed_and_noise import Regime
    from psmt.experiments.provenance import FilmRecord
    from psmt.experiments.still_image import Still
    from psmt.types import Array, Progress

QUICK_FRAMES = 2000
"""Frames that --quick looks at, at the most."""

PATCH_ALPHA, PATCH_SIDE = 1.0, 16
"""α of a standardised patch of 16 x 16, on which a series' own is measured: a frame of n features is as long as √n."""

_reading = count()
"""Tells the films of one command apart."""


def _row_column(_type: Any, tokens: Sequence[Any]) -> tuple[int, int]:
    try:
        row, column = map(int, tokens[0].value.split(","))
    except ValueError:
        raise ValueError(f"{tokens[0].value!r} is not ROW,COLUMN; write two whole numbers, as in 92,92") from None
    return row, column


@dataclass(frozen=True, kw_only=True)
class PatchOptions(ParallelOptions):
    """What the commands take that look at one patch of each frame."""

    alpha: Annotated[
        Literal["auto"] | float,
        Parameter(
            help="α: price of activity in layer 1, sparse coding; auto is 1, and for a series of n features √n / 16.",
            metavar="auto|FLOAT",
            **AUTO,
        ),
    ] = "auto"  # type: ignore[assignment]  # a word is taken too; `price` is the number
    series: Annotated[bool, Parameter(parse=False)] = False
    """Whether what was opened is a series; nobody says so on the command line."""
    size: Annotated[int, Parameter(help="Side of the frame in pixels, after shrinking its centred square.")] = 200
    patch: Annotated[int, Parameter(help="Side of the patch in pixels; N is its square.")] = 16
    position: Annotated[
        tuple[int, int] | None,
        Parameter(
            help="Top left corner ROW,COLUMN of the patch in the frame. Left out: the centre.",
            metavar="ROW,COLUMN",
            negative=(),
            n_tokens=1,
            converter=_row_column,
            show_default=False,
        ),
    ] = None
    quick: Annotated[
        bool,
        Parameter(
            help=f"A small version: at most 128 atoms and the first {QUICK_FRAMES:,} frames.",
            negative=(),
            show_default=False,
        ),
    ] = False

    def check(self) -> None:
        """As for all commands; and a patch that lies in the frame."""
        super().check()
        self.cutter()

    @property
    def price(self) -> float:
        """α as a number."""
        return float(unless_auto(self.alpha, PATCH_ALPHA))

    def suited(self, source: Any, /) -> Self:
        """With the price of activity that fits the size of a series' frames."""
        from psmt.data import SeriesSource

        if not isinstance(source, SeriesSource):
            return self
        alpha = unless_auto(self.alpha, PATCH_ALPHA * source.n_features**0.5 / PATCH_SIDE)
        return replace(self, series=True, alpha=alpha)

    def record(self, source: "Film | SeriesSource", values: "Array", /) -> "FilmRecord":
        """With the place of the patch, or the names of the features; and with speed and noise for a prediction."""
        from psmt.data import SeriesSource

        record = replace(super().record(source, values), n_frames=len(values))
        if isinstance(source, SeriesSource):
            return replace(record, features=source.feature_names or tuple(map(str, range(source.n_features))))
        return replace(
            record,
            patch_size=self.patch,
            frame_size=self.size,
            position=self.position,
            regime=self.regime(source, values) if self.foretells else None,
        )

    def cutter(self) -> "PatchCutter":
        """What cuts the patch out of each frame; raises for one that does not lie in the frame."""
        from psmt.data.patches import PatchCutter

        return PatchCutter(frame_size=self.size, patch_size=self.patch, position=self.position)

    def open(self, spec: str) -> "Film | SeriesSource":
        """A film or a series: what is read once more after an interruption."""
        from psmt.data import open_repeatable

        return open_repeatable(spec, stop=self.n_frames, wanted_by="this command")

    def read(self, source: "Film | SeriesSource", progress: "Progress") -> "Array":
        """Standardised patches of a film, or a series whose features are standardised: (time, n_features).

        Features have any units, and would outweigh each other. Experiments that predict standardise a series once more
        by its past, so that nothing of the future is known. Patches of a long film lie in a file in the folder of
        results until the end.
        """
        from psmt.data.patches import read_values
        from psmt.series import Scaling
        from psmt.utils.files import temporary_name

        values = read_values(
            source,
            frame_size=self.size,
            patch_size=self.patch,
            position=self.position,
            progress=lambda done, total: progress("read frames", done, max(total or 0, done + 1)),
            store=temporary_name(self.out / f"patches-{next(_reading)}") if self.out.is_dir() else None,
        )
        progress("read frames", len(values), len(values))
        return Scaling.of(values).standardise(values) if self.series else values

    def picture_shape(self, source: "Film | SeriesSource", /) -> tuple[int, int] | None:
        """That of the patch; a series has none."""
        from psmt.data import SeriesSource

        return None if isinstance(source, SeriesSource) else (self.patch, self.patch)

    def regime(self, source: "Film | SeriesSource", values: "Array") -> "Regime | None":
        """Speed and noise of what was read; None for a series, and where they cannot be measured."""
        from psmt.data import SeriesSource
        from psmt.data.speed_and_noise import measure_regime

        return None if isinstance(source, SeriesSource) else measure_regime(values)

    def still(self, source: "Film | SeriesSource") -> "Still | None":
        """A frame of the film with the patch's place; a series has none."""
        from psmt.data import SeriesSource
        from psmt.experiments.still_image import read_still

        return None if isinstance(source, SeriesSource) else read_still(source, self.cutter())

    @property
    def n_frames(self) -> int:
        """Frames that are read at the most."""
        return min(self.frames, QUICK_FRAMES) if self.quick else self.frames
