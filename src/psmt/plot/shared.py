"""Parts of all plots: axes and labels, models, arrays and tables as arrays, the shape of pictures, and files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from io import BytesIO
from itertools import chain
from math import isqrt
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.utils.validation import check_is_fitted

from psmt.data.speed_and_noise import looks_like_pictures
from psmt.errors import MissingSourceError, PSMTError
from psmt.figures.style import INK, SMALL, TEXT, TITLE, png
from psmt.types import AnyArray, Array
from psmt.utils.files import writing

Shape: TypeAlias = tuple[int, int] | Literal["auto"] | None
"""Height and width of pictures, None for features that are not pixels, or 'auto' to detect it."""

_KINDS = (".pdf", ".png", ".svg")

BESIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
"""Place of a legend to the right of the axes."""


def axes_of(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The given axes, or those of a new figure of `size` inches, which notebooks display."""
    if ax is not None:
        return ax
    # Imported late: pyplot looks for a screen, which is needed only for a new figure.
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def label(ax: Axes, title: str, x: str = "", y: str = "", *, legend: Mapping[str, Any] | None = None) -> Axes:
    """The axes with title, labels, and a legend if options of one are given."""
    ax.set_title(title, fontsize=TITLE, fontweight="bold", color=INK, loc="left")
    ax.set_xlabel(x, fontsize=TEXT, color=INK)
    ax.set_ylabel(y, fontsize=TEXT, color=INK)
    if legend is not None:
        ax.legend(frameon=False, fontsize=SMALL, **legend)
    return ax


def save(drawn: Axes | Figure, path: str | Path, *, dpi: int = 150) -> Path:
    """Write a figure to a PNG, PDF or SVG file and return its path. The file is written whole or not at all.

    `drawn` is what a function of `psmt.plot` returned, or its figure. The path ends in ``.png``, ``.pdf`` or ``.svg``;
    `dpi` are the dots per inch of a PNG. The same figure gives the same bytes: no date is written.
    """
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in _KINDS:
        raise PSMTError(f"the ending of {target} is not a kind of figure; use {', '.join(_KINDS[:-1])} or {_KINDS[-1]}")
    figure = drawn if isinstance(drawn, Figure) else drawn.get_figure(root=True)
    if figure is None:
        raise ValueError("these axes do not belong to a figure any more; draw them again")
    if kind == ".png":
        content = png(figure, dpi=dpi)
    else:
        file = BytesIO()
        date: dict[str, Any] = {"CreationDate" if kind == ".pdf" else "Date": None}
        with mpl.rc_context({"svg.hashsalt": "psmt", "svg.fonttype": "none"}):
            figure.savefig(file, format=kind[1:], metadata=date, facecolor="white")
        content = file.getvalue()
    with writing(target) as whole:
        whole.write(content)
    return target


# Models and arrays


def fitted(given: Any) -> Any:
    """What was given; a model must be fitted."""
    if hasattr(given, "get_params"):
        check_is_fitted(given)
    return given


def numbers(values: Any, name: str, *, axes: int = 2) -> Array:
    """The values as an array with that many axes."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != axes or array.size == 0:
        form = "(time, n)" if axes == 2 else "(time,)"
        raise ValueError(f"{name} has shape {array.shape}; give a model, or an array {form} that is not empty")
    return array


def shape_of(shape: Shape, values: Array) -> tuple[int, int] | None:
    """Height and width of pictures whose pixels are the features of values (n, n_features); None for other features."""
    n_features = values.shape[1]
    if shape is None:
        return None
    if shape == "auto":
        side = isqrt(n_features)
        if side**2 != n_features or side < 3:
            return None
        return (side, side) if looks_like_pictures(values.reshape(-1, side, side)) else None
    height, width = shape
    if height * width != n_features:
        raise ValueError(
            f"shape={shape} has {height * width} pixels but there are {n_features} features; use None for bars"
        )
    return int(height), int(width)


# Tables


def is_table(given: Any) -> bool:
    """Whether this has named columns, and is not a model or an array."""
    return isinstance(given, str | PathLike | Mapping) or any(
        hasattr(given, name) for name in ("columns", "rows", "phases")
    )


def read_table(table: Any, needed: Iterable[str], *, made_by: str) -> dict[str, AnyArray]:
    """All columns of a table by name, numbers as numbers. Those `needed` must be there; `made_by` names the command."""
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
            raise MissingSourceError(f"{path} is not a file; check the path")
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows: list[Any] = list(reader)
            return {name: [row[name] for row in rows] for name in reader.fieldnames or ()}
    if isinstance(table, Mapping):
        return table
    if hasattr(table, "columns"):
        return {str(name): table[name].to_numpy() for name in table.columns}
    # A result of an experiment. Its rows are named tuples; a prediction has them phase by phase.
    parts = table.phases if hasattr(table, "phases") else [table]
    rows = list(chain.from_iterable(part.rows() for part in parts))
    return {name: [getattr(row, name) for row in rows] for name in (rows[0]._fields if rows else ())}


def _typed(values: Iterable[Any]) -> AnyArray:
    """Numbers if all values are, else texts."""
    array = np.asarray(list(values))
    if array.dtype.kind in "USO":
        try:
            return array.astype(np.float64)
        except ValueError:
            return array.astype(str)
    return array
