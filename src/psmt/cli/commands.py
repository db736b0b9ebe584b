"""The commands: what each is called, what it says of itself, and how it ends."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, CycloptsError, Parameter

from psmt import __version__
from psmt.cli.options import (
    PredictOptions,
    ReconstructOptions,
    ReproduceOptions,
    SweepOptions,
    TopologyOptions,
    VideoOptions,
)
from psmt.errors import PSMTError

if TYPE_CHECKING:
    from psmt.experiments.plan import ReproduceSettings
    from psmt.experiments.reproduce import Reproduction

_HELP = """Predictive Sparse Manifold Transform: learn the dynamics of a film, predict what comes next.

frames → patches → codes → embedding → extrapolation → recovery → prediction"""

_EXAMPLES = """Examples:
  psmt demo                            everything, small, on the built-in film
  psmt reproduce film.mp4              the whole paper on your film, with a report
  psmt reproduce a.mp4 b.mp4 --quick   the same, small, on two films
  psmt predict film.mp4                two phases, found by reconstruction error
  psmt predict film.mp4 --start 9048   the 30 frames after frame 9048
  psmt predict-video film.mp4          whole frames, and a film of the predictions
  psmt sweep film.mp4 --atoms 256      one row of Table 1

A film is a video, a folder of images, a .npy or .npz file, or builtin:glide. \
Tables (CSV) and pictures (PNG) go into the folder --out, which is named at the end; nothing else is written. \
What was interrupted goes on where it was when the same command is given again. \
Errors are one line on stderr with exit code 2."""

_PREDICT = """Predict frames with PSMT and all it is compared to (Fig. 4 of the paper).

Writes prediction.csv (one step ahead), rollout.csv (left to itself) and prediction.png; where phases are searched, \
reconstruction.csv and reconstruction.png too. Ends with a table per phase that holds every method against copying."""

_PREDICT_VIDEO = """Predict whole frames, each from those before it, with PSMT and all it is compared to.

Writes predicted.mp4 (film, prediction and error side by side, with the score so far), scores.csv (one frame ahead), \
rollout.csv (left to itself for 10 frames, again and again) and report.html: one page that opens with whether PSMT \
beat copying on this film, and where it did not. Ends with a table that holds every method against copying."""

_SWEEP = """Reconstruct frames with more and fewer atoms and frames (Table 1 and Fig. 2 of the paper).

Writes sweep.csv and sweep.png. Ends with Table 1; what the film is too short for is named in it."""

_TOPOLOGY = """Follow which atoms move together, window by window (Fig. 3 of the paper).

Writes topology.csv, topology.png and atom_map.png: all atoms, neighbours in the embedding side by side."""

_RECONSTRUCT = """Reconstruct each frame through one embedding of all frames (the original sparse manifold transform).

Writes reconstruction.csv and reconstruction.png, with the segment of least error and the phases for a prediction."""

_REPRODUCE = """Carry out every experiment of the paper on your film, and report on its claims.

Writes what sweep, topology, reconstruct and predict write, summary.json with all numbers, and report.html: one page \
that opens with each claim of the paper and whether it holds. What the film is too short for is named. Several films \
get a sub-folder each. Full size on 10,000 frames: minutes to half an hour on two cores, below 4 GiB of memory."""

_DEMO = """Reproduce the paper, small, on the built-in film, in less than three minutes.

Writes what reproduce writes, report.html above all: one page with verdicts, figures, tables and settings."""

app = App(
    name="psmt",
    help=_HELP,
    help_epilogue=_EXAMPLES,
    help_format="plaintext",
    version=__version__,
    version_flags=["--version"],
    print_error=False,
    exit_on_error=False,
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)
app["--help"].help = "Show this, or with a command its options."
app["--version"].help = "Show the version."

DEMO_FILM = "builtin:glide?frames=3000"

Film = Annotated[str, Parameter(help="Video, folder of images, .npy, .npz, or builtin:glide.")]
Flat = Parameter(name="*")


@app.command(help=_DEMO, help_epilogue="")
def demo(
    *,
    seed: Annotated[int, Parameter(help="Seed of the dictionary's first atoms.")] = 0,
    out: Annotated[Path, Parameter(help="Folder for the files; made if it is not there.")] = Path("psmt-demo"),
) -> None:
    """All there is, small."""
    from psmt.experiments.plan import ReproduceSettings

    _reproduce([DEMO_FILM], ReproduceOptions(seed=seed, out=out), ReproduceSettings.demo().seeded(seed))


@app.command(help=_REPRODUCE, help_epilogue="")
def reproduce(
    films: Annotated[
        tuple[str, ...],
        Parameter(name="FILM", help="Video, folder of images, .npy, .npz, or builtin:glide.", negative=()),
    ],
    /,
    *,
    options: Annotated[ReproduceOptions, Flat] = ReproduceOptions(),
) -> None:
    """The whole paper."""
    options.check()
    _reproduce(films, options, options.settings())


@app.command(help=_SWEEP, help_epilogue="")
def sweep(film: Film, /, *, options: Annotated[SweepOptions, Flat] = SweepOptions()) -> None:
    """Table 1 and Fig. 2 of the paper."""
    options.check()
    from psmt.cli.experiments import for_each_film, run_sweep
    from psmt.cli.screen import show_table
    from psmt.report.sweep import table_1

    settings = options.settings()
    for_each_film(
        [film],
        options,
        options.out,
        largest=max(settings.n_atoms),
        work=lambda task: run_sweep(task, settings),
        show=lambda _, result: show_table(table_1(result)),
    )
    print(options.out)


@app.command(help=_TOPOLOGY, help_epilogue="")
def topology(film: Film, /, *, options: Annotated[TopologyOptions, Flat] = TopologyOptions()) -> None:
    """Fig. 3 of the paper."""
    options.check()
    from psmt.cli.experiments import for_each_film, run_topology
    from psmt.cli.screen import show_claims
    from psmt.report.claims import topology_claims

    settings = options.settings()
    for_each_film(
        [film],
        options,
        options.out,
        largest=settings.n_atoms,
        work=lambda task: run_topology(task, settings),
        show=lambda _, result: show_claims(topology_claims(result)),
    )
    print(options.out)


@app.command(help=_RECONSTRUCT, help_epilogue="")
def reconstruct(
    film: Film,
    /,
    *,
    options: Annotated[ReconstructOptions, Flat] = ReconstructOptions(),
) -> None:
    """The error of each frame with all frames."""
    options.check()
    from psmt.cli.experiments import for_each_film, run_reconstruct
    from psmt.cli.screen import show_reconstruction

    settings = options.settings()
    window = options.window or 3 * settings.n_atoms
    for_each_film(
        [film],
        options,
        options.out,
        largest=settings.n_atoms,
        work=lambda task: run_reconstruct(task, settings, window=window, horizon=options.horizon),
        show=lambda _, errors: show_reconstruction(errors, window),
    )
    print(options.out)


@app.command(help=_PREDICT, help_epilogue="")
def predict(film: Film, /, *, options: Annotated[PredictOptions, Flat] = PredictOptions()) -> None:
    """Fig. 4 of the paper."""
    from psmt.cli import files
    from psmt.cli.prediction import predict_film, prediction_files
    from psmt.cli.screen import show_phases

    with files.folder(options.out) as out:
        run = predict_film(film, options)
        files.write(out, prediction_files(run))
    show_phases(run.results)
    print(out)


@app.command(name="predict-video", help=_PREDICT_VIDEO, help_epilogue="")
def predict_video(film: Film, /, *, options: Annotated[VideoOptions, Flat] = VideoOptions()) -> None:
    """Whole frames."""
    options.check()
    from psmt.cli import files
    from psmt.cli.screen import show_table
    from psmt.cli.video import video_of
    from psmt.report.frames import frames_table, verdict

    with files.folder(options.out) as out:
        result = video_of(film, options, out)
    show_table(frames_table(result))
    print(verdict(result))
    print(out / "report.html")


def _reproduce(films: Sequence[str], options: ReproduceOptions, settings: ReproduceSettings) -> None:
    from psmt.cli.experiments import Job, for_each_film, run_reproduce
    from psmt.cli.screen import show_claims, show_phases
    from psmt.report import all_claims

    def show(task: Job, done: Reproduction) -> None:
        print(f"{task.film.name}, {done.n_frames:,} frames")
        show_phases(done.phases)
        show_claims(all_claims(done))
        print(task.folder / "report.html")

    for_each_film(
        films,
        options,
        options.out,
        largest=settings.largest,
        work=lambda task: run_reproduce(task, settings),
        show=show,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0, or 2 after a line on stderr that says what is wrong, or 130 when interrupted."""
    try:
        app(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        print("psmt: interrupted", file=sys.stderr)
        return 130
    except (CycloptsError, PSMTError, ValueError, TypeError, OSError, MemoryError) as error:
        print(f"psmt: error: {_one_line(error)}", file=sys.stderr)
        return 2
    return 0


def _one_line(error: Exception) -> str:
    if isinstance(error, CycloptsError):
        error.verbose = False
    text = str(error)
    if isinstance(error, OSError) and error.strerror and not isinstance(error, PSMTError):
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(text.split()) or type(error).__name__
