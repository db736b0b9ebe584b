"""Readers of series ``(time, features)``: arrays, data frames, ``.csv`` and ``.tsv`` files, and MATLAB files."""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from psmt.data.contract import array_checksum, check_stop, file_checksum, smaller
from psmt.errors import FrameSourceError
from psmt.persistence.zip_archive import trouble_named
from psmt.types import Array, Ints
from psmt.utils.constraints import near_miss
from psmt.utils.files import reading, shown, shown_names
from psmt.utils.validation import check_series, is_number, to_number, warn, warn_of_times


@dataclass(frozen=True, kw_only=True, eq=False)
class SeriesSource:
    """Series ``(time, features)`` whose values are not scaled. In code shared with films, each row counts as a frame.

    Attributes
    ----------
    name : str
        Name in messages and reports.
    array : ndarray (time, features)
        The numbers as given.
    feature_names : tuple of str, or None
        Names of the features, if the source has them.
    path : Path or None
        The file that was read.
    stop : int or None
        Number of rows that are used; None for all.
    index_name : str or None
        Name of the column that holds the time of each row. It is not a feature.
    times : tuple of str, or None
        The time of each row, as it is written in the file.
    truth : ndarray (time,), or None
        True state at each row, if the series is simulated and has states.
    values : ndarray (n_frames, n_features)
        The rows that are used, float64 and finite.
    repeatable : bool
        Always True: a series can be read again.
    """

    name: str
    array: NDArray[Any] = field(repr=False)
    feature_names: tuple[str, ...] | None = None
    path: Path | None = None
    stop: int | None = None
    index_name: str | None = field(default=None, repr=False)
    times: tuple[str, ...] | None = field(default=None, repr=False)
    truth: Ints | None = field(default=None, repr=False)
    values: Array = field(init=False, repr=False)
    repeatable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        try:
            values = check_series(self.array[: self.stop], name=self.name, columns=self.feature_names)
        except (TypeError, ValueError) as error:
            raise FrameSourceError(str(error)) from None
        # One memory layout for all sources, so that results agree to the last digit.
        object.__setattr__(self, "values", np.ascontiguousarray(values))

    @property
    def n_frames(self) -> int:
        """Return the number of rows that are used."""
        return len(self.values)

    @property
    def n_features(self) -> int:
        """Return the number of features."""
        return int(self.values.shape[1])

    def __len__(self) -> int:
        return self.n_frames

    def __getitem__(self, key: Any) -> Any:
        """Return ``values[key]``."""
        return self.values[key]

    def head(self, stop: int | None) -> Self:
        """Return a series with only the first ``stop`` rows of this one. None keeps all rows."""
        check_stop(stop)
        return replace(self, stop=smaller(self.stop, stop), truth=None if self.truth is None else self.truth[:stop])

    def select(self, columns: Sequence[str]) -> Self:
        """Return a series with only these features. If the features have no names, they are called '0', '1', '2', .."""
        known = self.feature_names or tuple(map(str, range(self.n_features)))
        for name in columns:
            if name not in known:
                why = "is the index" if name == self.index_name else "is not a column"
                raise FrameSourceError(
                    f"{shown(name)!r} {why} of {self.name}; choose from {shown_names(known)}{near_miss(name, known)}"
                )
        places = [known.index(name) for name in columns]
        return replace(self, array=self.array[:, places], feature_names=tuple(columns))

    def checksum(self) -> str:
        """Return the sha256 of the file or, without a file, of the whole array, independent of ``stop``."""
        return array_checksum(self.array) if self.path is None else file_checksum(self.path)


def open_text(path: Path, stop: int | None = None) -> SeriesSource:
    """Open the series in a ``.csv`` or ``.tsv`` file, with one line per time point and one column per feature.

    Columns are separated by commas in ``.csv`` and by tabs in ``.tsv``. If the first line has no number, it holds the
    names of the features. Empty lines are skipped. A column with the time of each row is not a feature. Such a column
    holds ISO dates, or it has a name such as ``time`` or ``index`` and numbers that never decrease. A column of words
    is left out with a `SeriesWarning`. Gaps and repeated times also cause a `SeriesWarning`.
    """
    what = trouble_named(f"{shown(path)} cannot be read as a table of numbers", FrameSourceError)
    # utf-8-sig removes the byte order mark that spreadsheets write.
    with what, reading(path) as file, TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        whole = iter(lambda: text.readline(_LONGEST_LINE), "")
        reader = csv.reader(whole, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
        lines = ((reader.line_num, fields) for fields in reader if fields)
        first = next(lines, None)
        if first is None:
            raise FrameSourceError(f"{shown(path)} is empty; write a line of numbers per time point")
        n_columns = len(first[1])
        names = _names(first[1])
        rows = list(islice(lines if names else chain([first], lines), stop))
    for line, fields in rows:
        if len(fields) != n_columns:
            why = f"line {line} has {len(fields)} columns but the first line has {n_columns}"
            raise FrameSourceError(f"{shown(path)}: {why}; all lines need as many, with commas between (.tsv: tabs)")
    index = _index(path, names, rows)
    label = [(names and names[i]) or f"column {i + 1}" for i in range(n_columns)]
    values = [i for i in range(n_columns) if i != index]
    kept = [i for i in values if not _is_words(rows, i)] or values
    if len(kept) < len(values):
        left = shown_names(repr(label[i]) for i in values if i not in kept)
        warn(f"{shown(path)}: {left} has words in the place of numbers and is left out")
    numbers = [_numbers(fields, kept, names, where=f"{shown(path)}: line {line}") for line, fields in rows]
    return SeriesSource(
        name=shown(path.name),
        array=np.array(numbers, dtype=np.float64).reshape(-1, len(kept)),
        feature_names=names and tuple(names[i] for i in kept),
        path=path,
        stop=stop,
        index_name=None if index is None else label[index],
        times=None if index is None else tuple(shown(fields[index]) for _, fields in rows),
    )


_LONGEST_LINE = 1 << 24
"""Number of characters after which a line is cut, so that a file without line breaks is not read in one piece."""

_INDEX_NAME = re.compile(r"(index|(date)?time(stamp)?|date|t|seconds|row|frame|id|step|sample|year|unnamed: 0)?")
"""Names, in lower case, of columns that are the index of the rows if their numbers increase."""


def _index(path: Path, names: tuple[str, ...] | None, rows: Sequence[tuple[int, list[str]]]) -> int | None:
    """Return the number of the column that holds the time of each row, or None if there is none."""
    first = rows[0][1] if rows else []
    for i, text in enumerate(first):
        if is_number(text) or _date(text) is None:
            continue
        texts = [fields[i] for _, fields in rows]
        if not all(map(_date, texts)):
            continue  # reported as a value that is not a number
        times = np.array(list(map(_date, texts)), dtype="datetime64[us]").astype(np.int64)
        steps = np.diff(times)
        backwards = np.flatnonzero(steps < 0)
        if len(backwards):
            at = int(backwards[0])
            raise FrameSourceError(
                f"{shown(path)}: line {rows[at + 1][0]}, column {i + 1}: {shown(texts[at + 1])} comes after "
                f"{shown(texts[at])}; rows must be in order of time: sort the lines"
            )
        warn_of_times(list(map(shown, texts)), steps)
        return i
    for i, name in enumerate(names or ()):
        if _INDEX_NAME.fullmatch(name.lower()) and len(first) > 1 and all(is_number(fields[i]) for _, fields in rows):
            steps = np.diff([float(fields[i]) for _, fields in rows])
            if (steps >= 0).all() and (steps > 0).any():
                warn_of_times([shown(fields[i]) for _, fields in rows], steps)
                return i
    return None


def _is_words(rows: Sequence[tuple[int, list[str]]], column: int) -> bool:
    """Return whether a column holds only words, that is, fields that are not empty and do not begin with a digit."""
    texts = (fields[column] for _, fields in rows)
    return not any(not text.strip() or is_number(text) or re.match(r"\s*[-+.,]?\d", text) for text in texts)


def _date(text: str) -> datetime | None:
    """Return the date and time in a text in ISO 8601, or None for any other text. The time zone is dropped."""
    try:
        return datetime.fromisoformat(text.strip()).replace(tzinfo=None)
    except ValueError:
        return None


def open_data_frame(table: Any, stop: int | None = None) -> SeriesSource:
    """Open the series in a pandas or polars data frame, with one row per time point and one column per feature."""
    names = tuple(map(shown, table.columns))
    return SeriesSource(name="the data frame", array=table.to_numpy(), feature_names=names, stop=stop)


def _names(fields: list[str]) -> tuple[str, ...] | None:
    """Return the fields of the first line as feature names, or None if the line is empty or contains a number."""
    if any(map(is_number, fields)) or not any(fields):
        return None
    # numpy.savetxt writes its header as a comment.
    return tuple(shown(field.lstrip("#").strip()) for field in fields)


def _numbers(fields: list[str], kept: Sequence[int], names: Sequence[str] | None, *, where: str) -> Array:
    try:
        return np.array([to_number(fields[i]) for i in kept])
    except ValueError:
        column = next(i for i in kept if not is_number(fields[i]))
        what = f"{shown(repr(fields[column]))} is not a number" if fields[column].strip() else "the value is missing"
        raise FrameSourceError(
            f"{where}, column {column + 1}{f' ({names[column]!r})' if names else ''}: {what}; write numbers as 1.5, "
            "with commas between them (tabs in .tsv), dates as 2026-01-31, or remove that line or column"
        ) from None


_MATRIX_NAMES = ("series", "frames", "X", "tc")
"""Names by which the matrix to read is found in a file with several matrices. GIFT calls time courses ``tc``."""

_NUMBERS = ("double", "single", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))
"""MATLAB's classes of plain numbers."""


def open_mat(path: Path, stop: int | None = None) -> SeriesSource:
    """Open a ``.mat`` file (up to version 7.2): its only numeric matrix, or the one named in `_MATRIX_NAMES`."""
    from scipy.io import loadmat, whosmat

    with reading(path) as file:
        if b"MATLAB 7.3" in file.read(128):  # which is HDF5 behind this header
            raise FrameSourceError(f"{shown(path)} is a MATLAB 7.3 file; save it with save(name, 'series', '-v7')")
        # scipy raises many kinds of errors for damaged files.
        with trouble_named(f"{shown(path)} cannot be read as a MATLAB file; save it again", FrameSourceError):
            file.seek(0)
            name = _matrix(path, whosmat(file))
            array = loadmat(file, variable_names=[name])[name]
    return SeriesSource(name=shown(path.name), array=np.asarray(array), path=path, stop=stop)


def _matrix(path: Path, found: list[tuple[str, tuple[int, ...], str]]) -> str:
    matrices = [name for name, shape, kind in found if kind in _NUMBERS and len(shape) == 2 and min(shape) > 1]
    called = matrices if len(matrices) == 1 else [name for name in _MATRIX_NAMES if name in matrices]
    if not called:
        raise FrameSourceError(
            f"{shown(path)} has {len(matrices)} matrices ({shown_names(matrices)}) and none is called 'series'; "
            "save the one to read, (time, features), under that name"
        )
    return called[0]
