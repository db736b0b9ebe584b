"""What is printed at the end: verdicts and tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psmt.experiments.contract import Shown
    from psmt.report import Claim, Table


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
    """Print a table of a report."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable

    shown = RichTable(
        title=table.caption, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    for i, column in enumerate(table.columns):
        shown.add_column(column.replace(" vs", "\nvs"), justify="left" if i == 0 else "right", no_wrap=True)
    for row in table.rows:
        shown.add_row(*(_marked(cell.text, cell.mark) for cell in row))
    Console().print(shown)


def show_claim(claim: Claim) -> None:
    """Print a claim in one line, with the size of its effect."""
    from rich.console import Console

    colour = {"holds": "green", "does not hold": "red"}.get(claim.outcome, "yellow")
    size = f" [dim]({claim.size})[/]" if claim.size else ""
    Console(highlight=False, soft_wrap=True).print(f"  [{colour}]{claim.outcome:15}[/] {claim.text}{size}")


def _marked(text: str, mark: str) -> str:
    return {"best": f"[bold]{text}[/]", "loses": f"[red]{text} loses[/]"}.get(mark, text)
