"""Command lines of brains, priors and the live page, healthy and odd."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from fuzz import corpus
from fuzz.damage import damaged, odd_archive
from fuzz.saved_models import KINDS, saved, write
from psmt.experiments.brain import reproducibility

_COMMON = {
    "--seed": ("0", "-1", "x"),
    "--frames": ("30", "10", "1", "0", "x"),
    "--alpha": ("0.3", "0", "nan", "x"),
    "--workers": ("1", "0", "x"),
}
_ODD = {
    "brain": _COMMON
    | {
        "--atoms": ("4", "0", "x"),
        "--window": ("16", "9", "0", "99"),
        "--states": ("2", "auto", "0", "99", "x"),
        "--surrogates": ("19", "2", "0", "-1", "x"),
        "--tr": ("2", "0", "-1", "nan", "x"),
        "--high-pass": ("none", "0.01", "9", "-1", "x"),
        "--low-pass": ("0.1", "0", "x"),
        "--smoothing": ("4", "-1", "x"),
        "--confounds": ("simple", "none", "x"),
        "--atlas": ("no-such.nii", ".", "", "{scan}"),
        "--mask": ("no-such.nii", "{scan}"),
        "--labels": ("no-such.tsv", ".", "{scan}", "{model}"),
        "--model": ("{model}", "no-such.psmt", "."),
    },
    "predict": _COMMON | {"--start": ("20", "0", "99"), "--horizon": ("3", "0"), "--atoms": ("4",), "--window": ("9",)},
    "learn": {"--size": ("16", "0", "x"), "--frames": ("12", "0", "1", "x")},
    "predict-video": {
        "--prior": ("{model}", "no-such.psmt", "none", ".", ""),
        "--size": ("16", "0"),
        "--start": ("6",),
    },
    "live": {
        "--port": ("0", "-1", "70000", "x"),
        "--host": ("127.0.0.1", "0.0.0.0", "x y", ""),
        "--horizon": ("1", "0", "99", "x"),
        "--size": ("32", "0", "x"),
        "--model": ("{model}", "no-such.psmt", "."),
        "--save": ("/no/such/folder/m.psmt", "."),
        "--device": ("cpu", "tpu"),
    },
}
_SMALL = {
    "brain": ("--atoms", "4", "--window", "16", "--states", "2", "--surrogates", "19", "--workers", "1"),
    "predict": ("--atoms", "4", "--window", "9", "--workers", "1", "--start", "20", "--horizon", "3"),
    "predict-video": ("--size", "16", "--start", "6"),
}


_compare_halves = reproducibility.compare_halves
one_surrogate: list[dict[str, Any]] = []
"""The comparison of the first surrogate of a study, which the others share."""


def compare_halves(**inputs: Any) -> dict[str, Any]:
    """Compare halves; surrogates after the first one are as the first."""
    if inputs["draw"] is None:
        return _compare_halves(**inputs)
    if not one_surrogate:
        one_surrogate.append(_compare_halves(**inputs))
    return one_surrogate[0]


def study_line(rng: np.random.Generator, folder: Path) -> list[str]:
    """A command, its sources and up to two odd options; the results go into a folder of their own."""
    command = list(_ODD)[rng.integers(len(_ODD))]
    arguments = [command, *_sources(command, rng, folder)]
    for name in rng.choice(list(_ODD[command]), size=int(rng.integers(0, 3)), replace=False):
        values = _ODD[command][str(name)]
        value = values[rng.integers(len(values))]
        arguments += [
            str(name),
            value.format(model=_model(rng, folder), scan=_file(folder, "atlas.nii", corpus.scan(), rng)),
        ]
    small = _SMALL.get(command, ())
    for name, value in zip(small[::2], small[1::2], strict=True):
        if name not in arguments:
            arguments += [name, value]
    if command == "live":
        return [*arguments, "--no-browser"]
    return [*arguments, "--out", str(folder / "out")]


def _sources(command: str, rng: np.random.Generator, folder: Path) -> list[str]:
    if command == "live":  # a page that is served would be served for ever
        return [["no/such/film.mp4", "camera:x", "builtin:nothing", "", "."][rng.integers(5)]]
    if command in ("learn", "predict-video"):
        kinds = ["mp4", "mkv", "gif"]
        return [
            _file(folder, f"{i}.{kind}", corpus.film(str(kind)), rng)
            for i, kind in enumerate(
                rng.choice(kinds, size=1 if command == "predict-video" else int(rng.integers(1, 3)))
            )
        ]
    made = {
        "csv": lambda: corpus.table("csv"),
        "tsv": lambda: corpus.table("tsv"),
        "mat": corpus.matlab,
        "npy": lambda: corpus.array("npy", "series"),
        "npz": lambda: corpus.array("npz", "series"),
        "nii": corpus.scan,
    }
    # Two at the most: three people are halved in three ways, and take three times as long.
    several = int(rng.integers(1, 3)) if command == "brain" else 1
    kind = list(made)[rng.integers(len(made))]
    return [_file(folder, f"{i}.{kind}", made[kind](), rng) for i in range(several)]


def _file(folder: Path, name: str, content: bytes, rng: np.random.Generator) -> str:
    """The name of a file with this content, which in two of three cases is whole."""
    path = folder / name
    path.write_bytes(content if rng.integers(3) else damaged(content, rng))
    return str(path)


def _model(rng: np.random.Generator, folder: Path) -> str:
    """A saved model of some kind, healthy or not: no prior, and no model of every command."""
    kind = list(KINDS)[rng.integers(len(KINDS))]
    _, header, parts = saved(kind)
    path = folder / "model.psmt"
    write(path, json.dumps(header), parts)
    if rng.integers(2):
        content = path.read_bytes()
        path.write_bytes(odd_archive(content, rng) if rng.integers(2) else damaged(content, rng))
    return str(path)
