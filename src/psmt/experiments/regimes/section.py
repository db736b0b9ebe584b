"""The map as tables: each method, cell by cell, against copying."""

from __future__ import annotations

from psmt.experiments.regime_map import COPIES, METHODS, Against, Ratio
from psmt.experiments.regimes.run import RegimesResult
from psmt.report import Cell, Table
from psmt.report.numbers import ratio


def regime_tables(result: RegimesResult) -> list[Table]:
    """Two tables of all methods, vs code and vs frame: a column for each end of the map, and the films won and lost."""
    known = result.map()
    corners = list(
        dict.fromkeys(
            (speed, noise)
            for speed in (known.speeds[0], known.speeds[-1])
            for noise in (known.noises[0], known.noises[-1])
        )
    )
    tables = []
    for against, copying in COPIES.items():
        rows = []
        for method, by_cell in known.ratios[against].items():
            outcomes = [value.outcome for value in by_cell.values()]
            counts = [outcomes.count("holds"), outcomes.count("cannot be told"), outcomes.count("does not hold")]
            cells = [_cell(by_cell[corner]) for corner in corners]
            name = [Cell(METHODS[method])]
            rows.append(
                [*name, *cells, *(Cell(str(n)) for n in counts)] if method != copying else _reference(method, corners)
            )
        tables.append(
            Table(
                f"MSE vs {against}, divided by that of {_said(against)}; geometric means over "
                f"{result.settings.n_starts} films",
                (
                    "method",
                    *(f"{speed:g} px, noise {noise:g}" for speed, noise in corners),
                    "wins",
                    "ties",
                    "loses",
                ),
                rows,
            )
        )
    return tables


def _cell(value: Ratio) -> Cell:
    return Cell(ratio(value.mean), "loses" if value.outcome == "does not hold" else "")


def _reference(method: str, corners: list[tuple[float, float]]) -> list[Cell]:
    return [Cell(METHODS[method]), *(Cell("1") for _ in corners), Cell("–"), Cell("–"), Cell("–")]


def _said(against: Against) -> str:
    return "copying the last code" if against == "code" else "copying the last patch"
