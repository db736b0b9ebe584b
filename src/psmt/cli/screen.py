"""What is printed at the end: verdicts and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from psmt.experiments.prediction import PhaseResult
    from psmt.report import Claim, Table


def show_phases(results: Sequence[PhaseResult]) -> None:
    """Print a table per phase."""
    from psmt.report.prediction import methods_table

    for result in results:
        start, horizon = result.phase.start, len(result.frames)
        caption = (
            f"{result.phase.name}: frames {start + 1} to {start + horizon}, "
            f"f = {result.n_components}, lam = {result.lam:g}"
        )
        show_table(methods_table(result, "scores", caption))


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
        shown.add_row(*(_marked(task.text, task.mark) for task in row))
    Console().print(shown)


def show_reconstruction(errors: NDArray[Any], window: int) -> None:
    """Print the mean of the errors (time,), and the segment of `window` frames in which it is least."""
    from psmt.experiments.reconstruction import least_error

    best = least_error(errors, window=window)
    print(f"{len(errors):,} frames: mean MSE {errors.mean():.4g}")
    print(f"least in frames {best.start:,} to {best.stop:,}: mean MSE {best.mse:.4g}")


def show_claims(claims: Sequence[Claim]) -> None:
    """Print a line per claim."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    for claim in claims:
        colour = {"holds": "green", "does not hold": "red"}.get(claim.outcome, "yellow")
        console.print(f"  [{colour}]{claim.outcome:29}[/] {claim.text}")


def _marked(text: str, mark: str) -> str:
    return {"best": f"[bold]{text}[/]", "loses": f"[red]{text} loses[/]"}.get(mark, text)
