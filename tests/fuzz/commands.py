"""Command lines that people mistype, and what may come of them: success, or exit code 2 and one line on stderr."""

from __future__ import annotations

import io
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from studies.run import run_study

from fuzz import corpus
from fuzz.damage import damaged
from psmt.cli import main
from psmt.errors import PSMTError

COMMANDS = ("sweep", "topology", "reconstruct", "predict", "predict-video")
"""Those that need a film; on one of a few frames none of them takes long."""

OPTIONS = {
    "--alpha": ("0.3", "0", "-1", "nan", "inf", "1e400", "x", ""),
    "--seed": ("0", "-1", "4294967296", "1.5", "x"),
    "--frames": ("10", "1", "0", "-3", "99999999999999999999", "x"),
    "--size": ("16", "1", "0", "-5", "100000", "x"),
    "--patch": ("4", "1", "0", "17", "x"),
    "--position": ("0,0", "1,2", "-1,0", "99,99", "1", "a,b", ","),
    "--atoms": ("6", "1", "0", "-2", "x"),
    "--window": ("8", "3", "0", "99999", "x"),
    "--components": ("2", "auto", "0", "999", "x"),
    "--lam": ("0.1", "-1", "nan", "auto", "x"),
    "--workers": ("1", "0", "-1", "x"),
    "--device": ("cpu", "cuda:99", "tpu"),
    "--dtype": ("float64", "float32", "int8"),
    "--horizon": ("2", "0", "-1", "x"),
    "--start": ("8", "-1", "999", "x"),
    "--colour": (),
    "--literal": (),
    "--quick": (),
    "--no-such-option": ("1",),
}

SMALL = ("--atoms", "6", "--window", "8", "--workers", "1")


def command_line(rng: np.random.Generator, folder: Path) -> list[str]:
    """A command, a source and up to three odd options; the results go into a folder of their own."""
    command = COMMANDS[rng.integers(len(COMMANDS))] if rng.integers(20) else ["", "swep", "-h?", "\0"][rng.integers(4)]
    arguments = [command, _source(rng, folder)] if rng.integers(20) else [command]
    names = list(OPTIONS)
    for name in rng.choice(names, size=int(rng.integers(1, 4)), replace=False):
        values = OPTIONS[str(name)]
        arguments += [str(name)] + ([values[rng.integers(len(values))]] if values else [])
    for name, value in zip(SMALL[::2], SMALL[1::2], strict=True):
        # predict-video has one model of its own size.
        if name not in arguments and command != "predict-video":
            arguments += [name, value]
    return [*arguments, "--out", str(folder / "out")]


def _source(rng: np.random.Generator, folder: Path) -> str:
    odd = (
        "builtin:glide?frames=0",
        "builtin:glide?frames=-1",
        "builtin:glide?frames=x",
        "builtin:glide?colour=1",
        "builtin:glide?size=0&frames=9",
        "builtin:nothing",
        "camera:x",
        "camera:99",
        "no/such/film.mp4",
        "http://127.0.0.1:9/film.mp4",
        "",
        ".",
        str(folder),
        "/dev/null",
        "a\0b",
        "x" * 5000,
    )
    if not rng.integers(3):
        return odd[rng.integers(len(odd))]
    makers = (
        lambda: ("a.npy", corpus.array("npy", ["frames", "series", "float"][rng.integers(3)])),
        lambda: ("a.npz", corpus.array("npz", ["frames", "series", "colour"][rng.integers(3)])),
        lambda: ("a.csv", corpus.table("csv")),
        lambda: ("a.tsv", corpus.table("tsv")),
        lambda: ("a.tif", corpus.image("stack.tif")),
        lambda: ("a.mp4", corpus.film("mp4")),
        lambda: ("a.mkv", corpus.film("mkv")),
    )
    name, content = makers[rng.integers(len(makers))]()
    path = folder / name
    path.write_bytes(damaged(content, rng) if rng.integers(2) else content)
    return str(path)


def _blank(_figure: Figure, file: io.BytesIO, **_options: object) -> None:
    """Save one pixel in the place of a figure."""
    Image.new("RGB", (1, 1)).save(file, format="png")


def carry_out(arguments: list[str], *, drawn: bool) -> None:
    """Run a command; raise `PSMTError` where it says what is wrong, AssertionError unless it ends as promised.

    Figures, which take most of the time, are drawn if `drawn` is True.
    """
    figures = nullcontext() if drawn else patch.object(Figure, "savefig", _blank)
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as stderr, figures:
        code = run_study("studies.changes", arguments[1:]) if arguments[0] == "changes" else main(arguments)
    said = stderr.getvalue()
    assert code in (0, 2), f"exit code {code}: {said}"
    if code == 2:
        lines = [line for line in said.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("psmt: error: ")]
        assert len(errors) == 1 and lines[-1] == errors[0] and "Traceback" not in said, f"not one line: {said}"
        raise PSMTError(errors[0])
