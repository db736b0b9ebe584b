"""Series ``(time, features)``: arrays, data frames, ``.csv`` and ``.tsv`` files, and MATLAB's ``.mat`` files."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from psmt.data.contract import array_checksum, check_stop, file_checksum, smaller
from psmt.errors import FrameSourceError
from psmt.persistence.zip_archive import trouble_named
from psmt.types import Array
from psmt.utils.validation import check_series


@dataclass(frozen=True, kw_only=True, eq=False)
class SeriesSource:
    """A series ``(time, features)``, not scaled. Each row is what a film calls a frame.

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
    values : ndarray (n_frames, n_features)
        The rows that are used, float64 and finite.
    repeatable : bool
        True.
    """

    name: str
    array: NDArray[Any] = field(repr=False)
    feature_names: tuple[str, ...] | None = None
    path: Path | None = None
    stop: int | None = None
    values: Array = field(init=False, repr=False)
    repeatable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        try:
            values = check_series(self.array[: self.stop], name=self.name)
        except ValueError as error:
            raise FrameSourceError(str(error)) from None
        # One memory layout for all sources, so that results agree to the last digit.
        object.__setattr__(self, "values", np.ascontiguousarray(values))

    @property
    def n_frames(self) -> int:
        """Number of rows."""
        return len(self.values)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.values.shape[1])

    def __len__(self) -> int:
        return self.n_frames

    def __getitem__(self, key: Any) -> Any:
        """Return rows as an array, indexed as in NumPy."""
        return self.values[key]

    def head(self, stop: int | None) -> SeriesSource:
        """Return the first ``stop`` rows of this series; None returns all of it."""
        check_stop(stop)
        return replace(self, stop=smaller(self.stop, stop))

    def checksum(self) -> str:
        """Return the sha256 of the file, or of the array's dtype, shape and bytes; it does not depend on ``stop``."""
        return array_checksum(self.array) if self.path is None else file_checksum(self.path)


def open_text(path: Path, stop: int | None = None) -> SeriesSource:
    """Return the series in a ``.csv`` or ``.tsv`` file: a line per time point, a column per feature.

    Columns are separated by commas in ``.csv`` and by tabs in ``.tsv``. A first line without any number holds the names
    of the features. Empty lines are skipped.
    """
    try:
        # utf-8-sig removes the byte order mark that spreadsheets write.
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
            lines = ((reader.line_num, fields) for fields in reader if fields)
            first = next(lines, None)
            if first is None:
                raise FrameSourceError(f"{path} is empty; write a line of numbers per time point")
            n_features = len(first[1])
            names = _names(first[1])
            frames = lines if names else chain([first], lines)
            rows = [_numbers(fields, n_features, where=f"{path}: line {line}") for line, fields in islice(frames, stop)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise FrameSourceError(f"{path} cannot be read as a table of numbers: {error}") from error
    array = np.array(rows, dtype=np.float64).reshape(-1, n_features)
    return SeriesSource(name=path.name, array=array, feature_names=names, path=path, stop=stop)


def open_data_frame(table: Any, stop: int | None = None) -> SeriesSource:
    """Return the series in a pandas or polars data frame: a row per time point, a column per feature."""
    array = table.to_numpy()
    if array.dtype.kind not in "buif":
        odd = [name for name, column in zip(table.columns, array.T, strict=True) if not all(map(_is_number, column))]
        raise FrameSourceError(
            f"the data frame has columns that are not numeric ({', '.join(map(repr, odd)) or array.dtype}); "
            "drop or convert them"
        )
    names = tuple(map(str, table.columns))
    return SeriesSource(name="data frame", array=array, feature_names=names, stop=stop)


def _names(fields: list[str]) -> tuple[str, ...] | None:
    """Return the names in a first line; None if it is empty or holds a number."""
    if any(map(_is_number, fields)) or not any(fields):
        return None
    # numpy.savetxt writes its header as a comment.
    return tuple(field.lstrip("#").strip() for field in fields)


def _numbers(fields: list[str], n_features: int, *, where: str) -> Array:
    if len(fields) != n_features:
        raise FrameSourceError(
            f"{where} has {len(fields)} columns but the first line has {n_features}; all lines need the same number"
        )
    try:
        return np.array([float(text) for text in fields])
    except ValueError:
        column = next(index for index, text in enumerate(fields) if not _is_number(text))
        raise FrameSourceError(
            f"{where}, column {column + 1}: {fields[column]!r} is not a number; "
            "write numbers as 1.5, with commas between them (tabs in .tsv), or remove that line or column"
        ) from None


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


_MATRIX_NAMES = ("series", "frames", "X")
"""Names of the matrix to read in a file with several matrices."""

_NUMBERS = ("double", "single", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))
"""MATLAB's classes of plain numbers."""


def open_mat(path: Path, stop: int | None = None) -> SeriesSource:
    """Return the series of a ``.mat`` file (up to version 7.2): its only numeric matrix, or the one called ``series``.

    Scalars and vectors, such as a TR, are skipped.
    """
    from scipy.io import loadmat, whosmat

    with path.open("rb") as file:
        if b"MATLAB 7.3" in file.read(128):  # which is HDF5 behind this header
            raise FrameSourceError(f"{path} is a MATLAB 7.3 file; save it with save(name, 'series', '-v7')")
    # scipy raises many kinds of errors for damaged files.
    with trouble_named(f"{path} cannot be read as a MATLAB file; save it again", FrameSourceError):
        name = _matrix(path, whosmat(path))
        array = loadmat(path, variable_names=[name])[name]
    return SeriesSource(name=path.name, array=np.asarray(array), path=path, stop=stop)


def _matrix(path: Path, found: list[tuple[str, tuple[int, ...], str]]) -> str:
    matrices = [name for name, shape, kind in found if kind in _NUMBERS and len(shape) == 2 and min(shape) > 1]
    called = matrices if len(matrices) == 1 else [name for name in _MATRIX_NAMES if name in matrices]
    if not called:
        raise FrameSourceError(
            f"{path} has {len(matrices)} matrices ({', '.join(matrices) or 'none'}) and none is called 'series'; "
            "save the one to read, (time, features), under that name"
        )
    return called[0]
