"""The app: a command for each registered experiment, `reproduce` and `demo`, and how they end."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from inspect import Parameter as Argument
from inspect import Signature
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter

from psmt import __version__
from psmt.cli.environment import settle_environment
from psmt.cli.wording import one_line
from psmt.errors import PSMTError
from psmt.experiments import EXPERIMENTS, command_of
from psmt.experiments.options import MODEL_FLAGS, FilmOptions, ModelDepartures
from psmt.experiments.reproduce import command as whole_paper
from psmt.live import command as live_page

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
  psmt live camera                     a page in the browser: your camera, and what comes next
  psmt brain a.nii.gz b.nii.gz --atlas atlas.nii.gz   dynamic networks and states of some people
  psmt regimes                         at which speed and noise PSMT wins, on the built-in film

A film is a video, a folder of images, a .tif stack, a .npy or .npz file, or builtin:glide. \
In place of one patch of each frame, all \
but predict-video take a series (time, features) in any units: a .npy, .npz, .csv or .tsv file. \
The report (report.html), tables (CSV) and pictures (PNG) go into the folder --out, which is named at the end; nothing \
else is written. --json prints all numbers for programs instead. \
What was interrupted goes on where it was when the same command is given again. \
Errors are one line on stderr with exit code 2."""

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


@app.command(help=whole_paper.DEMO_HELP, help_epilogue="")
def demo(
    *,
    seed: Annotated[int, Parameter(help="Seed of the dictionary's first atoms.")] = 0,
    out: Annotated[Path, Parameter(help="Folder for the files; made if it is not there.")] = Path("psmt-demo"),
    json: Annotated[
        bool, Parameter(help="Print summary.json in one line, and nothing else on stdout.", negative=())
    ] = False,
    departures: ModelDepartures = MODEL_FLAGS,
) -> None:
    """All there is, small."""
    from psmt.cli.work import reproduce_films

    asked = whole_paper.DemoOptions(seed=seed, out=out, json=json, departures=departures)
    reproduce_films([whole_paper.DEMO_FILM], asked)


_PAPER = whole_paper.ReproduceOptions()


@app.command(help=whole_paper.HELP, help_epilogue="")
def reproduce(
    films: Annotated[tuple[str, ...], Parameter(name="FILM", help=FilmOptions.film, negative=())],
    /,
    *,
    options: Annotated[whole_paper.ReproduceOptions, Parameter(name="*")] = _PAPER,
) -> None:
    """The whole paper."""
    from psmt.cli.work import reproduce_films

    reproduce_films(films, options)


@app.command(help_epilogue="")
def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="Whose.")], /) -> None:
    """Print a script that completes commands and options with the tab key in your shell.

    bash: psmt completion bash > ~/.local/share/bash-completion/completions/psmt

    zsh: psmt completion zsh > ~/.zfunc/_psmt, with fpath+=~/.zfunc before compinit in ~/.zshrc

    fish: psmt completion fish > ~/.config/fish/completions/psmt.fish
    """
    print(app.generate_completion(prog_name="psmt", shell=shell))


_LIVE = live_page.LiveOptions()


@app.command(help=live_page.HELP, help_epilogue="")
def live(
    source: Annotated[str, Parameter(help=live_page.SOURCE)] = live_page.DEFAULT_SOURCE,
    /,
    *,
    options: Annotated[live_page.LiveOptions, Parameter(name="*")] = _LIVE,
) -> None:
    """The page in a browser."""
    live_page.run_live(source, options)


@app.command(help_epilogue="")
def learn(
    *films: Annotated[str, Parameter(name="FILM", help=FilmOptions.film)],
    out: Annotated[Path, Parameter(help="File for the prior.")] = Path("prior.psmt"),
    size: Annotated[int, Parameter(help="Side of the frame in pixels, after shrinking its centred square.")] = 100,
    frames: Annotated[int, Parameter(help="Use the first so many frames of each film at the most.")] = 2000,
) -> None:
    """Learn a prior for whole frames from films: what each candidate is worth when a scene has just begun.

    FramePSMT(prior="prior.psmt") takes it. Without a film the prior of the package is made again, from built-in films.
    """
    from psmt.experiments.learn.run import learn_from

    prior = learn_from(films, out, size=size, frames=frames)
    print(f"{out}: {len(prior.names)} candidates, learned from {len(films) or 'built-in'} films")


def _command(name: str, options: type[FilmOptions]) -> Callable[..., None]:
    """The function that cyclopts calls for an experiment: a film and its options."""
    without_any = options()

    def carry_out(film: Any = options.default_film or "", /, *, given: FilmOptions = without_any) -> None:
        from psmt.cli.work import run_alone

        run_alone(name, film, given)

    parts = [
        Argument(
            "film",
            Argument.POSITIONAL_ONLY,
            default=Argument.empty if options.default_film is None else options.default_film,
            annotation=Annotated[options.film_type, Parameter(name=options.film_name, help=options.film, negative=())],
        ),
        Argument(
            "given", Argument.KEYWORD_ONLY, default=without_any, annotation=Annotated[options, Parameter(name="*")]
        ),
    ]
    carry_out.__annotations__ = {part.name: part.annotation for part in parts}
    carry_out.__signature__ = Signature(parts)  # type: ignore[attr-defined]
    return carry_out


for _name in EXPERIMENTS:
    _known = command_of(_name)
    app.command(_command(_name, _known.options), name=_known.name, help=_known.help, help_epilogue="")


_ANSWERED_AT_ONCE = {"--help", "--version", "completion"}
"""What needs none of the libraries that the environment could be in the way of."""


def run(arguments: Sequence[str]) -> int:
    """Run a command; return 0, or after a line on stderr that says what is wrong another exit code."""
    # What Pillow thinks of damaged metadata is no line of ours; whether the image can be read is told below.
    warnings.filterwarnings("ignore", category=UserWarning, module="PIL")
    try:
        if arguments and not _ANSWERED_AT_ONCE.intersection(arguments):
            settle_environment()
        app(arguments)
        # What could not be written is an error of this command, not of the interpreter's end.
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("psmt: interrupted", file=sys.stderr)
        return 130
    except (CycloptsError, PSMTError, ValueError, TypeError, OSError, MemoryError) as error:
        print(f"psmt: error: {one_line(error, arguments)}", file=sys.stderr)
        return 2
    return 0
