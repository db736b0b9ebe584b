"""Sections on the sweep: Fig. 2, and Table 1 beside the paper's, at each λ."""

from __future__ import annotations

from collections.abc import Sequence

from psmt.experiments.sweep.claims import atom_lines, by_price, frame_lines, of_paper_size
from psmt.experiments.sweep.result import Combination, SweepResult
from psmt.experiments.table_1 import PAPER, PAPER_SIZE
from psmt.report import INCONCLUSIVE, Cell, Fact, Picture, Section, Table
from psmt.report.numbers import error, listed

DETAILS = ("λ, M, H", "windows", "trimmed mean", "untrimmed mean ± sd", "layer 1 alone, trimmed")
"""Heads of the table behind Table 1."""


def sweep_section(result: SweepResult, pictures: Sequence[bytes]) -> Section:
    """Section with a figure per λ as PNG files, and Table 1 for each."""
    settings = result.settings
    return Section(
        title="More atoms, more frames",
        text=[
            "One dictionary of M atoms is learned from the whole film. For each window of H frames, overlapping by "
            f"{1 - 1 / settings.steps_per_window:.0%}, the embedding is made from the window's codes, and each of its "
            "frames goes through it and back. Layer 1 alone is what coding and decoding cost without the embedding.",
            "What the table says depends on λ, which the paper does not give, so each has its own; psmt readings "
            "goes through what else is open. An MSE of 1 is that of an empty picture: nothing came back.",
        ],
        pictures=[
            Picture(
                picture, alt=f"Median and quartiles of the MSE at each segment, by M and H; and Table 1; λ = {lam:g}"
            )
            for lam, picture in zip(settings.lam, pictures, strict=True)
        ],
        tables=[*tables(result), paper_table(), verdicts_table(result), details_table(result)],
    )


def sweep_facts(result: SweepResult) -> list[Fact]:
    """Sizes and prices."""
    settings = result.settings
    return [
        Fact(
            "Sweep",
            f"M = {listed([f'{size:,}' for size in settings.n_atoms])}; H = "
            f"{listed([f'{ratio:g}' for ratio in settings.ratios])} M; f = "
            f"{settings.n_components or 'M / 4'}, α = {settings.alpha:g}, "
            f"λ = {listed([f'{lam:g}' for lam in settings.lam])}",
        )
    ]


def tables(result: SweepResult) -> list[Table]:
    """Table 1 at each λ."""
    return [table_1(result, lam) for lam in result.settings.lam]


def verdicts_table(result: SweepResult) -> Table:
    """At which λ the paper's claims hold, and whether errors are of the size of the paper's."""
    atoms, frames = by_price(atom_lines(result)), by_price(frame_lines(result))
    sized = of_paper_size(result)
    low, high = PAPER_SIZE
    return Table(
        "What Table 1 says at each λ",
        ("λ", "more atoms help", "more frames help", f"errors of the paper's size, {low:.2g} to {high:.2g}"),
        [
            [
                Cell(f"{lam:g}"),
                Cell(atoms.get(lam, INCONCLUSIVE)),
                Cell(frames.get(lam, INCONCLUSIVE)),
                Cell("yes" if lam in sized else "no"),
            ]
            for lam in result.settings.lam
        ],
    )


def table_1(result: SweepResult, lam: float) -> Table:
    """Table 1 at one λ, as the paper has it: a row per M, a column per H; the best of each row is marked."""
    rows = [row for row in result.table() if row.lam == lam]
    return Table(
        f"Table 1 at λ = {lam:g}: MSE of reconstructed frames, mean ± sd without 25% of the errors at each end",
        _grid_heads(result.settings.ratios),
        [
            [Cell(f"{size:,}"), *_grid_row([row for row in rows if row.n_atoms == size])]
            for size in result.settings.n_atoms
        ],
    )


def paper_table() -> Table:
    """The paper's own Table 1."""
    sizes, ratios = sorted({size for size, _ in PAPER}), sorted({ratio for _, ratio in PAPER})
    best = {size: min(PAPER[size, ratio] for ratio in ratios) for size in sizes}
    return Table(
        "The paper's Table 1, of its own film, with prices and an embedding dimension that it does not give",
        _grid_heads(ratios),
        [
            [
                Cell(f"{size:,}"),
                *(
                    Cell(_mean_and_spread(*PAPER[size, ratio]), "best" if PAPER[size, ratio] == best[size] else "")
                    for ratio in ratios
                ),
            ]
            for size in sizes
        ],
    )


def details_table(result: SweepResult) -> Table:
    """What Table 1 does not show: how many windows, untrimmed means, and what layer 1 alone costs."""
    return Table(
        "Behind Table 1: windows, untrimmed means, and what coding costs without the embedding",
        DETAILS,
        [
            [
                Cell(f"{row.lam:g}, {row.n_atoms:,}, {row.window:,}"),
                Cell(f"{row.n_segments}"),
                Cell(error(row.trimmed_mean)),
                Cell(f"{error(row.mean)} ± {error(row.std)}"),
                Cell(error(row.coding_trimmed_mean)),
            ]
            for row in result.table()
            if not row.missing
        ],
    )


def _grid_heads(ratios: Sequence[float]) -> tuple[str, ...]:
    return ("M / H", *(f"{ratio:g} × M" for ratio in ratios))


def _grid_row(rows: Sequence[Combination]) -> list[Cell]:
    """Cells of one M."""
    best = min((row.trimmed_mean for row in rows if not row.missing), default=0.0)
    return [
        Cell("film too short", "missing")
        if row.missing
        else Cell(_mean_and_spread(row.trimmed_mean, row.trimmed_std), "best" if row.trimmed_mean == best else "")
        for row in rows
    ]


def _mean_and_spread(mean: float, spread: float) -> str:
    return f"{mean:.3f} ± {spread:.3f}"
