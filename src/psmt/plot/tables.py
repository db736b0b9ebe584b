"""Tables of any origin as columns: CSV files, data frames, mappings, and results of experiments."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.errors import MissingSourceError, PSMTError

Columns = dict[str, NDArray[Any]]
"""Columns by name, all of one length."""


def is_table(given: Any) -> bool:
    """Whether this is no model and no plain array, but something with named columns."""
    return isinstance(given, str | PathLike | Mapping) or any(
        hasattr(given, name) for name in ("columns", "rows", "phases")
    )


def read_table(table: Any, needed: Iterable[str], *, made_by: str) -> Columns:
    """The columns that are needed of a table, and all others; numbers as numbers. `made_by` is the command's name."""
    columns = {name: _typed(values) for name, values in _columns(table).items()}
    missing = [name for name in needed if name not in columns]
    if missing:
        raise PSMTError(
            f"the table has no column {', '.join(map(repr, missing))} but {', '.join(map(repr, columns)) or 'none'}; "
            f"give what {made_by} writes"
        )
    if not len(next(iter(columns.values()))):
        raise PSMTError(f"the table is empty; give what {made_by} writes")
    return columns


def _columns(table: Any) -> Mapping[str, Iterable[Any]]:
    if isinstance(table, str | PathLike):
        path = Path(table)
        if not path.is_file():
            raise MissingSourceError(f"{path} is no file; check the path")
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows: list[Any] = list(reader)
            return {name: [row[name] for row in rows] for name in reader.fieldnames or ()}
    if isinstance(table, Mapping):
        return table
    if hasattr(table, "columns"):
        return {str(name): table[name].to_numpy() for name in table.columns}
    # A result: its lines are named tuples, those of a prediction phase by phase.
    parts = table.phases if hasattr(table, "phases") else [table]
    rows = list(chain.from_iterable(part.rows() for part in parts))
    return {name: [getattr(row, name) for row in rows] for name in (rows[0]._fields if rows else ())}


def _typed(values: Iterable[Any]) -> NDArray[Any]:
    """Numbers where all are, else texts."""
    array = np.asarray(list(values))
    if array.dtype.kind in "USO":
        try:
            return array.astype(np.float64)
        except ValueError:
            return array.astype(str)
    return array
