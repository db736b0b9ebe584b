"""Section on the sweep: Fig. 2, and Table 1 beside the paper's."""

from __future__ import annotations

from psmt.experiments.sweep.result import Combination, SweepResult
from psmt.report import Cell, Fact, Picture, Section, Table
from psmt.report.numbers import listed

PAPER = {
    (512, 2.0): (0.925, 0.129),
    (512, 2.5): (0.734, 0.125),
    (512, 3.0): (0.425, 0.106),
    (1024, 2.0): (0.484, 0.202),
    (1024, 2.5): (0.474, 0.220),
    (1024, 3.0): (0.316, 0.178),
    (2048, 2.0): (0.195, 0.174),
    (2048, 2.5): (0.309, 0.238),
    (2048, 3.0): (0.190, 0.228),
}
"""Table 1 of the paper, on its own film: mean and standard deviation, trimmed, by M and H / M."""

COLUMNS = (
    "M, H",
    "segments",
    "trimmed mean ± sd",
    "untrimmed mean ± sd",
    "layer 1 alone, trimmed",
    "the paper, trimmed",
)


def sweep_section(result: SweepResult, picture: bytes) -> Section:
    """Section with the figure as a PNG file, and Table 1."""
    settings = result.settings
    return Section(
        title="More atoms, more frames",
        text=[
            "One dictionary of M atoms is learned from the whole film. For each window of H frames, overlapping by "
            f"{1 - 1 / settings.steps_per_window:.0%}, the embedding is made from the window's codes, and each of its "
            "frames goes through it and back. Layer 1 alone is what coding and decoding cost without the embedding.",
            "The paper's figures are of another film, with prices and an embedding dimension that it does not give: "
            "compare the directions, not the values.",
        ],
        pictures=[Picture(picture, alt="Median and quartiles of the MSE at each segment, by M and H; and Table 1")],
        tables=[table_1(result)],
    )


def sweep_facts(result: SweepResult) -> list[Fact]:
    """Sizes and prices."""
    settings = result.settings
    return [
        Fact(
            "Sweep",
            f"M = {listed([f'{size:,}' for size in settings.n_atoms])}; H = "
            f"{listed([f'{ratio:g}' for ratio in settings.ratios])} M; f = "
            f"{settings.n_components or 'M / 4'}, α = {settings.alpha:g}, λ = {settings.lam:g}",
        )
    ]


def table_1(result: SweepResult) -> Table:
    """Table 1, the paper's own figures beside ours; the best of each M is marked."""
    ratios = result.settings.ratios
    rows = result.table()
    best = {
        size: min((row.trimmed_mean for row in rows if row.n_atoms == size and not row.missing), default=0.0)
        for size in result.settings.n_atoms
    }
    return Table(
        "Table 1: MSE of reconstructed frames. Trimmed: without 25% of the errors at each end",
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
        Cell(f"{row.coding_mean:.4f}"),
        paper,
    ]
