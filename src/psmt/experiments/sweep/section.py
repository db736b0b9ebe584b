"""Sections on the sweep: Fig. 2, and Table 1 beside the paper's, at each λ."""

from __future__ import annotations

from collections.abc import Sequence

from psmt.experiments.sweep.claims import atom_lines, by_price, frame_lines, of_paper_size
from psmt.experiments.sweep.result import Combination, SweepResult
from psmt.experiments.table_1 import PAPER, PAPER_SIZE
from psmt.report import UNTOLD, Cell, Fact, Picture, Section, Table
from psmt.report.numbers import listed

COLUMNS = (
    "M, H",
    "segments",
    "trimmed mean ± sd",
    "untrimmed mean ± sd",
    "layer 1 alone, trimmed",
    "the paper, trimmed",
)


def sweep_section(result: SweepResult, pictures: Sequence[bytes]) -> Section:
    """Section with a figure per λ as PNG files, and Table 1 for each."""
    settings = result.settings
    return Section(
        title="More atoms, more frames",
        text=[
            "One dictionary of M atoms is learned from the whole film. For each window of H frames, overlapping by "
            f"{1 - 1 / settings.steps_per_window:.0%}, the embedding is made from the window's codes, and each of its "
            "frames goes through it and back. Layer 1 alone is what coding and decoding cost without the embedding.",
            "The paper's figures are of another film, with prices and an embedding dimension that it does not give. "
            "What the table says depends on λ, so each has its own; `psmt readings` goes through what else is open.",
        ],
        pictures=[
            Picture(
                picture, alt=f"Median and quartiles of the MSE at each segment, by M and H; and Table 1; λ = {lam:g}"
            )
            for lam, picture in zip(settings.lam, pictures, strict=True)
        ],
        tables=[*tables(result), verdicts_table(result)],
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
                Cell(atoms.get(lam, UNTOLD)),
                Cell(frames.get(lam, UNTOLD)),
                Cell("yes" if lam in sized else "no"),
            ]
            for lam in result.settings.lam
        ],
    )


def table_1(result: SweepResult, lam: float) -> Table:
    """Table 1 at one λ, the paper's own figures beside ours; the best of each M is marked."""
    ratios = result.settings.ratios
    rows = [row for row in result.table() if row.lam == lam]
    best = {
        size: min((row.trimmed_mean for row in rows if row.n_atoms == size and not row.missing), default=0.0)
        for size in result.settings.n_atoms
    }
    return Table(
        f"Table 1 at λ = {lam:g}: MSE of reconstructed frames. Trimmed: without 25% of the errors at each end",
        COLUMNS,
        [_row(row, ratios[k % len(ratios)], best[row.n_atoms]) for k, row in enumerate(rows)],
    )


def _row(row: Combination, ratio: float, best: float) -> list[Cell]:
    name = Cell(f"{row.n_atoms:,}, {row.window:,}")
    paper = Cell("{:.3f} ± {:.3f}".format(*PAPER[row.n_atoms, ratio]) if (row.n_atoms, ratio) in PAPER else "–")
    if row.missing:
        return [name, Cell("0"), Cell("film too short", "missing"), Cell("–"), Cell("–"), paper]
    return [
        name,
        Cell(f"{row.n_segments}"),
        Cell(f"{row.trimmed_mean:.4f} ± {row.trimmed_std:.4f}", "best" if row.trimmed_mean == best else ""),
        Cell(f"{row.mean:.4f} ± {row.std:.4f}"),
        Cell(f"{row.coding_trimmed_mean:.4f}"),
        paper,
    ]
