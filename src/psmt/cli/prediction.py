"""`psmt predict`: read, search phases unless starts are given, predict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psmt.cli.options import DEFAULT_LAM, PredictOptions
from psmt.cli.progress import Bars

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from psmt.experiments.prediction import PhaseResult
    from psmt.experiments.reconstruction import Phase


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """What was asked for, and what came out."""

    options: PredictOptions
    results: list[PhaseResult]
    errors: NDArray[Any] | None
    """Reconstruction MSE (time,), where phases were searched."""


def predict_film(source: str, options: PredictOptions) -> Predictions:
    """Predictions of all methods in all phases of a film."""
    options.check()
    from threadpoolctl import threadpool_limits

    from psmt.experiments.prediction import check_start, predict_phase
    from psmt.experiments.reconstruction import Phase, check_length
    from psmt.patches import read_patches
    from psmt.sources import open_frames

    film = open_frames(source, stop=options.frames)
    extent: dict[str, int] = {"window": options.window, "horizon": options.horizon}

    def check(n_frames: int) -> None:
        check_length(n_frames, **extent)
        for start in options.start:
            check_start(start, n_frames, **extent)

    if film.n_frames is not None:
        check(film.n_frames)
    # On matrices of this size a second BLAS thread gains little, and on a busy machine waits far longer than it works.
    with Bars(log=False) as progress, threadpool_limits(1 if options.atoms <= 512 else None, user_api="blas"):
        with progress.stage("read frames") as report:
            patches = read_patches(
                film,
                frame_size=options.size,
                patch_size=options.patch,
                position=options.position,
                progress=report,
            ).values
        check(len(patches))
        errors = None
        if options.start:
            phases = [Phase(f"start-{start}", start) for start in dict.fromkeys(options.start)]
        else:
            phases, errors = _search(patches, options, progress)
        results = [
            predict_phase(
                patches,
                phase,
                n_atoms=options.atoms,
                n_components=options.components,
                alpha=options.alpha,
                lam=options.lam,
                seed=options.seed,
                device=options.engine,
                progress=progress,
                **extent,
            )
            for phase in phases
        ]
    return Predictions(options=options, results=results, errors=errors)


def _search(patches: NDArray[Any], options: PredictOptions, progress: Bars) -> tuple[list[Phase], NDArray[Any]]:
    """Calm and lively phase, and the reconstruction MSE (time,) that they were found by."""
    from psmt.coding import SparseCoder
    from psmt.experiments.reconstruction import components_for, find_phases, reconstruct

    with progress.stage("learn dictionary"):
        coder = SparseCoder(
            n_atoms=options.atoms, alpha=options.alpha, random_state=options.seed, device=options.engine
        ).fit(patches)
    with progress.stage("reconstruct") as report:
        errors = reconstruct(
            patches,
            coder,
            n_components=components_for(options.atoms, None if options.components == "auto" else options.components),
            lam=DEFAULT_LAM if options.lam == "auto" else options.lam,
            progress=lambda _, done, total: report(done, total),
        )
    return find_phases(errors, window=options.window, horizon=options.horizon), errors


def prediction_files(run: Predictions) -> dict[str, bytes]:
    """Files by name."""
    from psmt.experiments.tables import prediction_csv, reconstruction_csv
    from psmt.figures import png, prediction_figure, reconstruction_figure

    files = {
        "prediction.csv": prediction_csv(run.results, "scores"),
        "rollout.csv": prediction_csv(run.results, "rollouts"),
        "prediction.png": png(prediction_figure(run.results)),
    }
    if run.errors is not None:
        phases = [result.phase for result in run.results]
        figure = reconstruction_figure(run.errors, phases, window=run.options.window, horizon=run.options.horizon)
        files |= {"reconstruction.csv": reconstruction_csv(run.errors), "reconstruction.png": png(figure)}
    return files
