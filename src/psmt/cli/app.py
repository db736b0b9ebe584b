"""The command-line app: it holds the commands, runs them, and reports each error in one line."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, CycloptsError, Group, Parameter, UnusedCliTokensError

from psmt import __version__
from psmt.cli.commands import CommandLine, of_experiment, of_paper
from psmt.cli.process import settle_environment
from psmt.cli.terminal import LOAD, Bars
from psmt.errors import FrameSourceError, PSMTError
from psmt.experiments import EXPERIMENTS
from psmt.experiments.contract import PAPER, SEE, USE
from psmt.live.command import live
from psmt.utils.files import shown, writing

if TYPE_CHECKING:
    from psmt.types import Levels

_HELP = """Predict what comes next in a film, a series or a brain scan (Predictive Sparse Manifold Transform).

frames → patches → codes → embedding → extrapolation → recovery → prediction"""

_EXAMPLES = """Examples:
  psmt demo                            a small version, on the built-in film
  psmt live camera                     your camera, and what comes next
  psmt predict-video film.mp4          whole frames, and a film of them
  psmt predict series.csv              a table: one row per time
  psmt predict film.mp4 --start 9048   the 30 frames after frame 9048
  psmt brain *.nii.gz --atlas a.nii    networks and states of some people
  psmt reproduce film.mp4              the whole paper on your film
  psmt reproduce film.mp4 --quick      the same, small
  psmt sweep film.mp4 --atoms 256      one row of Table 1

A film is a video, a folder of images, a .tif stack, a .npy or .npz file, or builtin:glide. predict, reproduce, sweep, \
topology and reconstruct also take a series, with one row per time and one column per feature: a .csv, .tsv, .mat, \
.npy or .npz file. The report (report.html), tables (CSV) and pictures (PNG) go into the folder --out, which is named \
at the end; nothing else is written. --json prints all numbers for programs instead. An interrupted command continues \
when it is given again. Errors are one line on stderr with exit code 2."""

_OTHER = "Other"
GROUPS = {name: Group(name, sort_key=place) for place, name in enumerate((SEE, USE, PAPER, _OTHER))}


def new_app(name: str, help: str, epilogue: str = "") -> App:
    """Return a cyclopts app without commands."""
    made = App(
        name=name,
        help=help,
        help_epilogue=epilogue,
        help_format="plaintext",
        version=__version__,
        version_flags=["--version"],
        print_error=False,
        exit_on_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
        group_commands=GROUPS[_OTHER],
    )
    made["--help"].help = "Show this help, or the options of a command."
    made["--version"].help = "Show the version."
    return made


app = new_app("psmt", _HELP, _EXAMPLES)

COMMANDS: dict[str, CommandLine] = {own.name: own for own in (*of_paper(), *map(of_experiment, EXPERIMENTS))}
for _command in COMMANDS.values():
    app.command(_command.function(), _command.name, help=_command.help, help_epilogue="", group=GROUPS[_command.group])
app.command(live, help_epilogue="", group=GROUPS[SEE])


@app.command(help_epilogue="", group=GROUPS[USE])
def learn(
    *films: Annotated[
        str, Parameter(name="FILM", help="Video, folder of images, .tif stack, .npy, .npz, or builtin:glide.")
    ],
    out: Annotated[Path, Parameter(help="File for the prior.")] = Path("prior.psmt"),
    size: Annotated[int, Parameter(help="Side of the frame in pixels, after its centred square is shrunk.")] = 100,
    frames: Annotated[int, Parameter(help="Read at most this many frames of each film.")] = 2000,
) -> None:
    """Learn a prior for FramePredictor from films: the weights of its candidate predictions at the start of a scene.

    Use it as FramePredictor(prior="prior.psmt").
    """
    with writing(out) as file, Bars("learn", {LOAD: 1.0, "films": 9.0}) as progress:  # refused before the work begins
        from psmt.data import open_frames
        from psmt.video import FrameReader, learn_prior, luma

        reader = FrameReader(size)

        def read() -> Iterator[Iterator[Levels]]:
            for done, spec in enumerate(films):
                progress("films", done, len(films))
                yield (luma(frame) for frame in islice(reader.read(open_frames(spec, stop=frames)), frames))
            progress("films", len(films), len(films))

        prior = learn_prior(read())
        prior.write_to(file)
    print(f"{shown(out)}: {len(prior.names)} candidates, learned from {len(films)} films")


def run(arguments: Sequence[str], app: App = app, command: CommandLine | None = None) -> int:
    """Run a command and return its exit code. An error is printed as one line, in terms of the options of `command`."""
    try:
        # Help and version import no library whose environment is checked.
        if arguments and not {"--help", "--version"}.intersection(arguments):
            settle_environment()
        app(arguments)
        # An error of writing must be reported by this command, not at the end of the interpreter.
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("psmt: interrupted", file=sys.stderr)
        return 130
    except (CycloptsError, PSMTError, ValueError, TypeError, OSError, MemoryError) as error:
        command = command or COMMANDS.get(arguments[0] if arguments else "")
        print(f"psmt: error: {one_line(error, command)}", file=sys.stderr)
        return 2
    return 0


def one_line(error: Exception, command: CommandLine | None) -> str:
    """Return an error message in one line. If the command is given, parameter names become its options."""
    if isinstance(error, CycloptsError):
        error.verbose = False
        if isinstance(error, UnusedCliTokensError):
            return f"{shown(' '.join(error.unused_tokens or ()), 200)} is more than this command takes; give one film"
        return _flat(error)
    if isinstance(error, OSError) and error.strerror and not isinstance(error, PSMTError):
        return shown(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
    if isinstance(error, MemoryError) and not str(error):
        return "no memory is left, or this process may not have more; use fewer --workers or a smaller film"
    # Names of files may look like names of parameters.
    literally = command is None or isinstance(error, FrameSourceError)
    return _flat(error) if literally else as_typed(_flat(error), command.names)  # type: ignore[union-attr]


def as_typed(text: str, names: Mapping[str, str]) -> str:
    """Return a message with parameters written as command-line options. `names` maps parameters to options.

    >>> names = {"n_atoms": "--atoms", "window": "--window", "half_stencils": "--half-stencils"}
    >>> as_typed("n_atoms=(64, 128) is too large; use n_atoms <= 40", names)
    '--atoms 64 --atoms 128 is too large; use --atoms <= 40'
    >>> as_typed("half_stencils=True needs window > 3", names)
    '--half-stencils needs --window > 3'
    """
    known = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    given = rf"(?<![\w./-])({known})(?:=(\([^)]*\)|'[^']*'|[^\s,;:()]+)|(?=\s*[<>]))"
    text = re.sub(given, lambda found: _option(names[found[1]], found[2]), text)
    # Names that are also ordinary words, such as window, stay; names that no option has are replaced everywhere.
    others = "|".join(name for name in names if "_" in name and names[name] != "--" + name.replace("_", "-"))
    return re.sub(rf"(?<![\w./-])({others})(?!\w)", lambda found: names[found[1]], text) if others else text


def _option(option: str, value: str | None) -> str:
    """Return an option with its value, as a user types it."""
    if value is None:
        return option
    if value in ("True", "False"):
        return option if value == "True" else f"--no-{option[2:]}"
    items = [item.strip(" '") for item in value.strip("()").split(",")]
    return " ".join(f"{option} {item}" for item in items if item)


def _flat(error: Exception) -> str:
    """Return an error message in one line. If it is longer than 1,000 characters, its middle is left out."""
    return shown(" ".join(str(error).split()), 1000) or type(error).__name__
