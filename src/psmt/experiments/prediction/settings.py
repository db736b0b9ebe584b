"""The parameters of `psmt predict`, and its help."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Self

from psmt.errors import NotEnoughFramesError
from psmt.experiments.contract import USE, Command
from psmt.experiments.options import parameters as shared
from psmt.experiments.options.declaration import Option, Presets, WindowSettings, check_length
from psmt.utils.constraints import count


@dataclass(frozen=True, kw_only=True)
class PredictionSettings(WindowSettings):
    """Parameters of `psmt predict`. By default, the numbers of atoms and frames are the paper's."""

    n_atoms: shared.Atoms = 512
    window: shared.Window = 1536
    horizon: shared.Horizon = 30
    n_components: shared.ChosenComponents = "auto"
    alpha: shared.Alpha = 1.0
    lam: shared.ChosenLam = "auto"
    seed: shared.Seed = 0
    departures: shared.Departed = field(default_factory=shared.make_departures)
    starts: shared.Starts = ()
    extrapolation: shared.Extrapolation = "linear"
    """How PSMT itself extrapolates. The baselines always use the paper's straight line."""
    series: bool = False
    """Whether the values are a series, not patches. Features are then standardised by the past of each start."""
    n_starts: Annotated[
        int,
        Option(
            "--starts", "Largest number of starts that decide the claims, including the phases; a short film has fewer."
        ),
        count(0),
    ] = 20
    """Largest number of starts. They are the given starts, and further starts at even distances."""
    n_null: Annotated[int, count(0)] = 6
    """Number of starts at which each null model (the film without its order in time) is predicted."""
    search: shared.Search = "segment"

    PRESETS: ClassVar[Presets] = {
        "quick": {"n_atoms": 128, "window": 384, "n_starts": 12, "n_null": 6},
        # A small model, so that there is time for many starts. A segment of its window's length is either calm or
        # lively, so phases are searched in the whole film.
        "demo": {"n_atoms": 128, "window": 384, "n_starts": 18, "n_null": 6, "search": "film"},
    }

    @classmethod
    def make(cls, given: Mapping[str, Any] | None = None, *, preset: str = "", **fallbacks: Any) -> Self:
        """Return settings as `Settings.make` does. For a series (`n_rows` in `fallbacks`), they are like those of
        `PSMT.for_series`, unless --literal is given.
        """
        n_rows, given = fallbacks.pop("n_rows", 0), dict(given or {})
        if n_rows and "departures" not in given:
            # Half of the series is the past of the first start.
            window = max(min(n_rows // 2, n_rows - given.get("horizon", cls.horizon) - 1, 4096), 3)
            fallbacks |= {"window": window, "n_atoms": min(max(window // 7, 16), 512), "extrapolation": "dynamics"}
            given["departures"] = replace(shared.make_departures(), on_cut="ignore")
        return super().make(given, preset=preset, **fallbacks)

    def needed(self) -> int:
        """Return the smallest number of frames that a film must have: a window, the start, and the horizon."""
        return self.window + self.horizon + 1

    def check(self, n_frames: int, /) -> None:
        """Raise if a start has fewer than `window` frames before it, or fewer than `horizon` frames after it.

        >>> PredictionSettings().fitted(100)[1]
        'the film has 100 frames; M = 32 with H = 96, the smallest that is tried, needs 127'
        """
        for start in self.starts or (self.window,):
            check_start(start, n_frames, window=self.window, horizon=self.horizon)


def check_start(start: int, n_frames: int, *, window: int, horizon: int) -> None:
    """Raise if fewer than `window` frames lie before `start`, or fewer than `horizon` frames after it."""
    check_length(n_frames, window=window, horizon=horizon)
    last = n_frames - horizon - 1
    if not window <= start <= last:
        raise NotEnoughFramesError(
            f"start={start} with window={window} and horizon={horizon} needs frames "
            f"{start - window} to {start + horizon}, but the film has frames 0 to {n_frames - 1}; "
            f"use a start from {window} to {last}"
        )


COMMAND = Command(
    name="predict",
    help="""Predict what comes next in a film or a table, and compare PSMT with simple methods (Fig. 4 of the paper).

Writes report.html; prediction.csv (one step ahead), rollout.csv (many steps ahead) and prediction.png; forecast.csv, \
the predicted values with 90% intervals; starts.csv, errors at many starts and on two null models, which decide \
the claims; methods.png, every method compared with copying; pipeline.png, one step of PSMT from frame to \
prediction; if phases are searched, reconstruction.csv and reconstruction.png too. Ends with a table that compares \
every method with copying, and with the claims. A film that is too short for 512 atoms gets fewer, unless --atoms or \
--window are given. A series (.csv, .tsv, .mat, .npy) is predicted as PSMT.for_series does, unless --literal is given: \
its window is half of the rows, with an atom for every seven of them.""",
    settings=PredictionSettings,
    group=USE,
    chapter=True,
)
