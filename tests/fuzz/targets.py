"""What is attacked: each target makes the case of a number, and carries it out.

A case is healthy or refused with a `PSMTError`; whatever else comes out of it is a failure. Equal numbers give equal
cases, on every machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np

from fuzz import corpus
from fuzz.alterations import altered_arrays, altered_header
from fuzz.calls import call
from fuzz.commands import carry_out, command_line
from fuzz.damage import NPY_HEADERS, damaged, odd_archive, with_header
from fuzz.saved_models import KINDS, saved, use, write
from fuzz.scans import study
from fuzz.studies import compare_halves, one_surrogate, study_line
from fuzz.zips import odd_zip
from psmt.data import SeriesSource, open_source
from psmt.errors import PSMTError
from psmt.pipeline.tasks import Task, run_tasks

Case = tuple[str, Callable[[], None]]
"""What it is, and how it is done."""


class Skipped(Exception):
    """There is no such case."""


def read(path: Path) -> None:
    """Open a source and read some of it, as every command does."""
    source = open_source(path)
    source.checksum()
    if isinstance(source, SeriesSource):
        assert np.isfinite(source.values).all()
        return
    for frame in islice(source, 40):
        assert frame.shape == source.shape and frame.dtype == np.float32 and np.isfinite(frame).all()


def _in_file(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@cache
def _alterations(kind: str) -> list[tuple[str, Callable[[], tuple[str, dict]]]]:
    _, header, parts = saved(kind)
    text = json.dumps(header)
    arrays = [(told, lambda make=make: (text, make())) for told, make in altered_arrays(parts)]
    return arrays + [(told, lambda text=text: (text, parts)) for told, text in altered_header(header)]


def alterations(number: int, folder: Path) -> Case:
    """Every field of every saved model, altered in every way; checksums are right."""
    kinds = list(KINDS)
    kind, number = kinds[number % len(kinds)], number // len(kinds)
    if number >= len(_alterations(kind)):
        raise Skipped
    told, make = _alterations(kind)[number]
    path = folder / "model.psmt"
    try:
        write(path, *make())
    except (TypeError, ValueError, OverflowError) as error:
        raise Skipped from error
    return f"{kind}: {told}", lambda: use(kind, path)


def all_alterations() -> list[int]:
    """The numbers of `alterations` for which there is a case."""
    return [len(KINDS) * k + i for i, kind in enumerate(KINDS) for k in range(len(_alterations(kind)))]


def models(number: int, folder: Path) -> Case:
    """Model files with damaged bytes and odd archives."""
    rng = np.random.default_rng([1, number])
    kind = list(KINDS)[rng.integers(len(KINDS))]
    _, header, parts = saved(kind)
    path = folder / "model.psmt"
    write(path, json.dumps(header), parts)
    content = path.read_bytes()
    path.write_bytes(odd_archive(content, rng) if rng.integers(2) else damaged(content, rng))
    return f"{kind}, damaged", lambda: use(kind, path)


def zips(number: int, folder: Path) -> Case:
    """Model files whose zip has an odd structure."""
    rng = np.random.default_rng([10, number])
    told, content = odd_zip(list(KINDS)[rng.integers(len(KINDS))], rng)
    path = _in_file(folder / "model.psmt", content)
    return told, lambda: use(told.partition(":")[0], path)


def arrays(number: int, folder: Path) -> Case:
    """``.npy`` and ``.npz`` files."""
    rng = np.random.default_rng([2, number])
    suffix = ["npy", "npz", "several.npz"][rng.integers(3)]
    kind = ["frames", "colour", "float", "series"][rng.integers(4)]
    content = corpus.array(suffix, kind)
    if suffix == "npy" and rng.integers(2):
        content = with_header(content, NPY_HEADERS[rng.integers(len(NPY_HEADERS))], version=int(rng.integers(1, 4)))
    elif suffix != "npy" and rng.integers(2):
        content = odd_archive(content, rng)
    else:
        content = damaged(content, rng)
    path = _in_file(folder / f"a.{suffix}", content)
    return f"{suffix} of {kind}", lambda: read(path)


def tables(number: int, folder: Path) -> Case:
    """``.csv`` and ``.tsv`` files."""
    rng = np.random.default_rng([3, number])
    suffix = ["csv", "tsv"][rng.integers(2)]
    odd = [b"nan", b"inf", b"1e400", b"\xff\xfe", b'"', b",,,", b"\n\n", b"\0", b"1_0", b"\r", "½".encode()]
    odd.append(b"x" * 200_000)
    content = corpus.table(suffix)
    for _ in range(rng.integers(0, 3)):
        at = int(rng.integers(len(content)))
        content = content[:at] + odd[rng.integers(len(odd))] + content[at:]
    path = _in_file(folder / f"a.{suffix}", damaged(content, rng) if rng.integers(2) else content)
    return suffix, lambda: read(path)


def images(number: int, folder: Path) -> Case:
    """Folders of images with a damaged one, and stacks of pages."""
    rng = np.random.default_rng([4, number])
    kinds = ["png", "jpg", "bmp", "pgm", "webp", "packed.tif", "deep.tif", "colour.png", "stack.tif"]
    kind = kinds[rng.integers(len(kinds))]
    target = folder / "images"
    target.mkdir()
    for index in range(4):
        content = corpus.image(kind, index)
        (target / f"{index}.{kind}").write_bytes(damaged(content, rng) if index == number % 4 else content)
    if not rng.integers(8):
        (target / "5.png").mkdir()
    alone = kind.endswith(".tif") and rng.integers(2)
    return f"folder of {kind}", lambda: read(target / f"{number % 4}.{kind}" if alone else target)


def films(number: int, folder: Path) -> Case:
    """Films in several containers."""
    rng = np.random.default_rng([5, number])
    suffix = list(corpus.ENCODINGS)[rng.integers(len(corpus.ENCODINGS))]
    path = _in_file(folder / f"film.{suffix}", damaged(corpus.film(suffix), rng))
    return suffix, lambda: read(path)


def squares(values: np.ndarray) -> dict[str, np.ndarray]:
    """What the task of `cells` computes."""
    return {"squares": values**2, "sum": np.array(values.sum()), "name": np.array(["a", "b"])}


@cache
def _cell() -> tuple[Task, dict[str, np.ndarray], bytes]:
    """A task, its result, and the file of its result."""
    task = Task("fuzz", squares, {"values": np.arange(6.0)})
    with TemporaryDirectory() as folder:
        (result,) = run_tasks([task], Path(folder))
        return task, result, task.path(Path(folder)).read_bytes()


def cells(number: int, folder: Path) -> Case:
    """Results of tasks on disk: what is damaged is computed again, and nothing else comes back than was computed."""
    rng = np.random.default_rng([6, number])
    task, before, content = _cell()
    path = task.path(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(odd_archive(content, rng) if rng.integers(2) else damaged(content, rng))

    def again() -> None:
        (after,) = run_tasks([task], folder)
        assert {name: array.tobytes() for name, array in after.items()} == {
            name: array.tobytes() for name, array in before.items()
        }

    return "cell", again


def commands(number: int, folder: Path) -> Case:
    """Command lines with odd values, on healthy and on damaged sources."""
    rng = np.random.default_rng([7, number])
    arguments = command_line(rng, folder)
    return " ".join(arguments), lambda: carry_out(arguments, drawn=number % 10 == 0)


def studies(number: int, folder: Path) -> Case:
    """Command lines of brains, priors and the page, on series of every kind, scans and damaged models."""
    rng = np.random.default_rng([8, number])
    arguments = study_line(rng, folder)

    def act() -> None:
        # How a study ends is looked at here, not how good its states are; nineteen surrogates are one.
        quick = patch("psmt.experiments.brain.reproducibility.compare_halves", compare_halves)
        one_surrogate.clear()
        with patch("psmt.brain.states.MAX_STEPS", 3), quick:
            carry_out(arguments, drawn=number % 10 == 0)

    return " ".join(arguments), act


def scans(number: int, folder: Path) -> Case:
    """NIfTI files, atlases, masks and BIDS folders."""
    return study(np.random.default_rng([11, number]), folder)


def calls(number: int, folder: Path) -> Case:
    """Public classes and functions with odd arrays and parameters; nothing is read but what is in memory."""
    rng = np.random.default_rng([9, number])
    try:
        return call(rng)
    except (TypeError, ValueError, OverflowError, IndexError, AttributeError, RuntimeError) as error:
        raise Skipped from error


TARGETS: dict[str, Callable[[int, Path], Case]] = {
    target.__name__: target
    for target in (alterations, models, zips, arrays, tables, images, films, scans, cells, commands, studies, calls)
}

REFUSED = PSMTError
