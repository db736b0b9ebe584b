"""The command line: one verb per result, each writing a folder of plain files.

Heavy modules are imported where they are used, so that help and mistakes are answered at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter

from psmt import __version__
from psmt.errors import PSMTError
from psmt.files import writing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from psmt.experiments.prediction import PhaseResult
    from psmt.experiments.reconstruction import Phase
    from psmt.frames import FrameSource
    from psmt.report import Fact

_HELP = """Predictive Sparse Manifold Transform: learn the dynamics of a film, predict what comes next.

frames → patches → codes → embedding → extrapolation → recovery → prediction"""

_EXAMPLES = """Examples:
  psmt demo                            everything, small, on the built-in film
  psmt predict film.mp4                two phases, found by reconstruction error
  psmt predict film.mp4 --start 9048   the 30 frames after frame 9048
  psmt predict builtin:glide --atoms 256 --window 768 --out glide

A film is a video, a folder of images, a .npy or .npz file, or builtin:glide. \
Tables (CSV) and pictures (PNG) go into the folder --out, which is named at the end; nothing else is written. \
Errors are one line on stderr with exit code 2."""

_PREDICT = """Predict frames with PSMT and all it is compared to (Fig. 4 of the paper).

Writes prediction.csv (one step ahead), rollout.csv (left to itself) and prediction.png; where phases are searched, \
reconstruction.csv and reconstruction.png too. Ends with a table per phase that holds every method against copying."""

_DEMO = """Fit, predict and compare on the built-in film, in about a minute.

Writes what predict writes, and report.html: one page with verdicts, figures, tables and settings, for any browser."""

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


def _row_column(type_: Any, tokens: Sequence[Any]) -> tuple[int, int]:
    try:
        row, column = map(int, tokens[0].value.split(","))
    except ValueError:
        raise ValueError(f"{tokens[0].value!r} is not ROW,COLUMN; write two whole numbers, as in 92,92") from None
    return row, column


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of all commands; each means the same everywhere."""

    atoms: Annotated[int, Parameter(help="M: atoms in the dictionary.")] = 512
    window: Annotated[int, Parameter(help="H: how many of the latest codes the embedding is made from.")] = 1536
    components: Annotated[
        Literal["auto"] | int,
        Parameter(
            help="f: dimension of the embedding; auto chooses by predicting the end of the past.",
            metavar="auto|INT",
            show_choices=False,
        ),
    ] = "auto"
    alpha: Annotated[float, Parameter(help="α: price of activity in layer 1, sparse coding.")] = 1.0
    lam: Annotated[
        Literal["auto"] | float,
        Parameter(
            help="λ: price of activity in step 7, recovery; auto as above.", metavar="auto|FLOAT", show_choices=False
        ),
    ] = "auto"
    start: Annotated[
        tuple[int, ...],
        Parameter(
            help="T: frame to start from; may be repeated. Left out: a calm and a lively phase are searched.",
            metavar="INT",
            negative=(),
            show_default=False,
        ),
    ] = ()
    horizon: Annotated[int, Parameter(help="K: how many frames are predicted after each start.")] = 30
    seed: Annotated[int, Parameter(help="Seed of the dictionary's first atoms.")] = 0
    device: Annotated[str, Parameter(help="Where to compute; this version knows cpu.", metavar="cpu")] = "cpu"
    frames: Annotated[int, Parameter(help="Use the first so many frames of the film at the most.")] = 10_000
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
    out: Annotated[Path, Parameter(help="Folder for the files; made if it is not there.")] = Path("psmt-predict")

    def check(self) -> None:
        """Raise for values that no film can make right, before any work is done."""
        from psmt.patches import PatchCutter
        from psmt.validation import check_count, check_real

        if self.device != "cpu":
            raise PSMTError(f"--device {self.device}: the GPU engine is not part of this version; choices: cpu")
        check_count("atoms", self.atoms)
        check_count("window", self.window, minimum=3)
        check_count("horizon", self.horizon)
        check_count("frames", self.frames)
        check_count("seed", self.seed, minimum=0)
        check_real("alpha", self.alpha, open_bound=True)
        if self.components != "auto":
            check_count("components", self.components)
        if self.lam != "auto":
            check_real("lam", self.lam)
        PatchCutter(frame_size=self.size, patch_size=self.patch, position=self.position)


DEMO = Options(atoms=320, window=960)
"""Sizes of the demo: overcomplete for patches of 256 pixels, and three codes per atom, as the paper found best."""


@app.command(help=_PREDICT, help_epilogue="")
def predict(
    film: Annotated[str, Parameter(help="Video, folder of images, .npy, .npz, or builtin:glide.")],
    /,
    *,
    options: Annotated[Options, Parameter(name="*")] = Options(),  # noqa: B008
) -> None:
    """Fig. 4 of the paper."""
    with _folder(options.out) as out:
        run = _run(film, options)
        _write(out, _files(run))
    _show(run.results)
    print(out)


@app.command(help=_DEMO, help_epilogue="")
def demo(
    *,
    seed: Annotated[int, Parameter(help="Seed of the dictionary's first atoms.")] = 0,
    out: Annotated[Path, Parameter(help="Folder for the files; made if it is not there.")] = Path("psmt-demo"),
) -> None:
    """All there is, small."""
    with _folder(out) as folder:
        run = _run(DEMO_FILM, replace(DEMO, seed=seed, out=out))
        _write(folder, _files(run) | {"report.html": _report(run)})
    _show(run.results)
    print(folder / "report.html")


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


# The run


@dataclass(frozen=True, kw_only=True)
class Run:
    """What was asked for, and what came out."""

    film: FrameSource
    n_frames: int
    options: Options
    results: list[PhaseResult]
    errors: NDArray[Any] | None
    """Reconstruction MSE (time,), where phases were searched."""
    seconds: dict[str, float]
    """Durations by stage."""

    @property
    def phases(self) -> list[Phase]:
        return [result.phase for result in self.results]


def _run(source: str, options: Options) -> Run:
    """Read, search phases unless starts are given, and predict."""
    options.check()
    from threadpoolctl import threadpool_limits

    from psmt.experiments.prediction import check_start, predict_phase
    from psmt.experiments.reconstruction import Phase, check_length
    from psmt.frames import open_frames
    from psmt.patches import read_patches

    film = open_frames(source, stop=options.frames)
    extent: dict[str, int] = {"window": options.window, "horizon": options.horizon}

    def check(n_frames: int) -> None:
        check_length(n_frames, **extent)
        for start in options.start:
            check_start(start, n_frames, **extent)

    if film.n_frames is not None:
        check(film.n_frames)
    # On matrices of this size a second BLAS thread gains little, and on a busy machine waits far longer than it works.
    with _Progress() as progress, threadpool_limits(1 if options.atoms <= 512 else None, user_api="blas"):
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
        results = []
        for phase in phases:
            with progress.stage(f"predict {phase.name}") as report:
                results.append(
                    predict_phase(
                        patches,
                        phase,
                        n_atoms=options.atoms,
                        n_components=options.components,
                        alpha=options.alpha,
                        lam=options.lam,
                        seed=options.seed,
                        progress=lambda _, done, total: report(done, total),
                        **extent,
                    )
                )
    return Run(
        film=film,
        n_frames=len(patches),
        options=options,
        results=results,
        errors=errors,
        seconds=progress.seconds,
    )


def _search(patches: NDArray[Any], options: Options, progress: _Progress) -> tuple[list[Phase], NDArray[Any]]:
    """Calm and lively phase, and the reconstruction MSE (time,) that they were found by."""
    from psmt.coding import SparseCoder
    from psmt.experiments.reconstruction import find_phases, reconstruct

    with progress.stage("learn dictionary"):
        coder = SparseCoder(n_atoms=options.atoms, alpha=options.alpha, random_state=options.seed).fit(patches)
    with progress.stage("reconstruct") as report:
        errors = reconstruct(
            patches,
            coder,
            n_components=max(options.atoms // 4, 1) if options.components == "auto" else options.components,
            lam=0.1 if options.lam == "auto" else options.lam,
            progress=lambda _, done, total: report(done, total),
        )
    return find_phases(errors, window=options.window, horizon=options.horizon), errors


class _Progress:
    """Bars on stderr while it is a terminal, and how long each stage took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._stack = ExitStack()
        self._bars: Any = None

    def __enter__(self) -> _Progress:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description:16}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bars = self._stack.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    @contextmanager
    def stage(self, name: str) -> Iterator[Callable[[int, int | None], None]]:
        """A stage of work, which tells how much is done by calling what this yields."""
        began = perf_counter()
        task = self._bars.add_task(name, total=None) if self._bars else None

        def report(done: int, total: int | None) -> None:
            if self._bars:
                self._bars.update(task, completed=done, total=total)

        yield report
        if self._bars:
            total = self._bars.tasks[task].total or 1  # a stage that told nothing is done all the same
            self._bars.update(task, completed=total, total=total)
        self.seconds[name] = perf_counter() - began


# Files


@contextmanager
def _folder(path: Path) -> Iterator[Path]:
    """The folder, made before any work so that a bad one is found early; if the work fails, unmade."""
    if path.exists() and not path.is_dir():
        raise PSMTError(f"--out {path} is a file; give a folder")
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK | os.X_OK):
            raise PSMTError(f"--out {path} may not be written to; give another folder, or check its permissions")
        yield path
    except BaseException:
        for folder in made:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        raise


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write all files, or none."""
    with ExitStack() as stack:
        # Each gets its name when the stack unwinds, after all of them are on disk under temporary ones.
        for name, content in files.items():
            stack.enter_context(writing(folder / name)).write(content)


def _files(run: Run) -> dict[str, bytes]:
    from psmt.experiments.tables import prediction_csv, reconstruction_csv
    from psmt.figures import png, prediction_figure, reconstruction_figure

    files = {
        "prediction.csv": prediction_csv(run.results, "scores"),
        "rollout.csv": prediction_csv(run.results, "rollouts"),
        "prediction.png": png(prediction_figure(run.results)),
    }
    if run.errors is not None:
        figure = reconstruction_figure(run.errors, run.phases, window=run.options.window, horizon=run.options.horizon)
        files |= {"reconstruction.csv": reconstruction_csv(run.errors), "reconstruction.png": png(figure)}
    return files


def _report(run: Run) -> bytes:
    from psmt.figures import png, prediction_figure, reconstruction_figure
    from psmt.report import Page, prediction_sections, prediction_verdicts, render

    options = run.options
    reconstruction = None
    if run.errors is not None:
        reconstruction = png(
            reconstruction_figure(run.errors, run.phases, window=options.window, horizon=options.horizon)
        )
    page = Page(
        title=f"PSMT on the film “{run.film.name}”",
        lead=(
            f"PSMT learned a dictionary from all frames before a start, made its embedding from the {options.window:,} "
            f"latest codes, and predicted the {options.horizon} frames that follow, each one step ahead, in "
            f"{len(run.results)} phases of the film. Seven other methods did the same, among them the paper's two "
            "baselines, and copying."
        ),
        verdicts=prediction_verdicts(run.results),
        sections=prediction_sections(
            run.results, [png(prediction_figure([result]), dpi=150) for result in run.results], reconstruction
        ),
        facts=_facts(run),
    )
    return render(page)


def _facts(run: Run) -> list[Fact]:
    """How it was made: settings, film, versions, durations."""
    import platform
    from importlib.metadata import version

    from psmt.report import Fact

    options = run.options
    chosen = ", ".join(f"{r.phase.name} f = {r.n_components}, λ = {r.lam:g}" for r in run.results)
    packages = ("numpy", "scipy", "scikit-learn", "numba")
    return [
        Fact("Film", f"{run.film.name}, {run.n_frames:,} frames"),
        Fact("Checksum", f"sha256 {run.film.checksum()}"),
        Fact("Patch", f"{options.patch} × {options.patch} of {options.size} × {options.size}, standardised"),
        Fact("Atoms M", f"{options.atoms}"),
        Fact("Window H", f"{options.window}"),
        Fact("Horizon K", f"{options.horizon}"),
        Fact("Price α", f"{options.alpha:g}"),
        Fact("Components f", f"{options.components}"),
        Fact("Price λ", f"{options.lam}"),
        Fact("In use", chosen),
        Fact("Seed", f"{options.seed}"),
        Fact(
            "Versions",
            f"psmt {__version__}, Python {platform.python_version()}, "
            + ", ".join(f"{name} {version(name)}" for name in packages),
        ),
        Fact("Durations", ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in run.seconds.items())),
    ]


# The screen


def _show(results: Sequence[PhaseResult]) -> None:
    """Print a table per phase."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable

    from psmt.report.prediction import methods_table

    console = Console()
    for result in results:
        start, horizon = result.phase.start, len(result.frames)
        caption = (
            f"{result.phase.name}: frames {start + 1} to {start + horizon}, "
            f"f = {result.n_components}, lam = {result.lam:g}"
        )
        table = methods_table(result, "scores", caption)
        shown = RichTable(
            title=table.caption, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0)
        )
        for i, column in enumerate(table.columns):
            shown.add_column(column.replace(" vs", "\nvs"), justify="left" if i == 0 else "right", no_wrap=True)
        for row in table.rows:
            shown.add_row(*(_marked(cell.text, cell.mark) for cell in row))
        console.print(shown)


def _marked(text: str, mark: str) -> str:
    return {"best": f"[bold]{text}[/]", "loses": f"[red]{text} loses[/]"}.get(mark, text)
