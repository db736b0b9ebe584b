"""What is printed at the end: verdicts, and tables that keep their key columns on a narrow screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psmt.experiments.contract import Shown
    from psmt.report import Cell, Claim, Table

_GAP = 2
"""Spaces between columns."""
_HEAD = 13
"""Letters of a column's name in one line; longer ones have several."""
_MARKS = {"loses": " loses"}
"""What is written behind a cell."""


def show(things: Iterable[Shown]) -> None:
    """Print tables, claims and lines."""
    from psmt.report import Claim, Table

    for thing in things:
        if isinstance(thing, Table):
            show_table(thing)
        elif isinstance(thing, Claim):
            show_claim(thing)
        else:
            print(thing)


def show_table(table: Table) -> None:
    """Print a table of a report: whole, or on a narrow screen the columns that matter most."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable

    console = Console(highlight=False)
    kept = fitting_columns(table, console.width)
    console.print(f"\n[bold]{table.caption}[/]")
    shown = RichTable(box=SIMPLE_HEAD, padding=(0, _GAP - 1, 0, 0), pad_edge=False)
    for i in kept:
        head = "\n".join(_head(table.columns[i]))
        shown.add_column(head, justify="left" if i == 0 else "right", no_wrap=True, overflow="fold")
    for row in table.rows:
        shown.add_row(*(_marked(row[i]) for i in kept))
    console.print(shown)
    left_out = [name for i, name in enumerate(table.columns) if i not in kept]
    if left_out:
        console.print(f"[dim]No room here for: {', '.join(left_out)}. All columns are in report.html.[/]")


def fitting_columns(table: Table, width: int) -> list[int]:
    """Numbers of the columns that fit into so many letters, the most important ones, in their order.

    The first column, which names the rows, is always there.
    """
    room, kept = width - 2, []
    for i in dict.fromkeys([0, *table.key, *range(len(table.columns))]):
        needed = _width(table.columns[i], [row[i] for row in table.rows]) + _GAP
        if i == 0 or needed <= room:
            kept.append(i)
            room -= needed
        elif i in table.key:
            # What is less important does not take the place of what is more.
            break
    return sorted(kept)


def show_claim(claim: Claim) -> None:
    """Print a claim in one line, with the size of its effect."""
    from rich.console import Console

    colour = {"holds": "green", "does not hold": "red"}.get(claim.verdict, "yellow")
    size = f" [dim]({claim.size})[/]" if claim.size else ""
    Console(highlight=False, soft_wrap=True).print(f"  [{colour}]{claim.verdict:15}[/] {claim.text}{size}")


def _head(name: str) -> list[str]:
    """The name of a column in lines."""
    return wrap(name, _HEAD, break_long_words=False) or [""]


def _width(name: str, cells: Sequence[Cell]) -> int:
    from rich.cells import cell_len

    texts = [*_head(name), *(cell.text + _MARKS.get(cell.mark, "") for cell in cells)]
    return max(cell_len(text) for text in texts)


def _marked(cell: Cell) -> str:
    return {"best": f"[bold]{cell.text}[/]", "loses": f"[red]{cell.text}{_MARKS['loses']}[/]"}.get(cell.mark, cell.text)
