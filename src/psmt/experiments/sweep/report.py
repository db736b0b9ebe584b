"""The sweep as an experiment, and its report: Fig. 2, and Table 1 beside that of the paper, at each λ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from psmt.experiments.contract import Experiment
from psmt.experiments.sweep.claims import lams_of_paper_size, sweep_claims, verdicts_by_lam
from psmt.experiments.sweep.figure import sweep_figure
from psmt.experiments.sweep.result import SweepResult, SweepRow
from psmt.experiments.sweep.run import sweep
from psmt.experiments.sweep.settings import SweepSettings
from psmt.experiments.table_1 import PAPER, PAPER_SIZE
from psmt.figures import png
from psmt.report import INCONCLUSIVE, Cell, Column, Picture, Section, Table, csv_parts
from psmt.report.numbers import error


def sweep_section(result: SweepResult, pictures: Sequence[bytes]) -> Section:
    """Section with a figure per λ, as PNG files, and Table 1 at each λ."""
    settings = result.settings
    return Section(
        title="More atoms, more frames",
        text=[
            "One dictionary of M atoms is learned from the whole film. Windows of H frames overlap by "
            f"{1 - 1 / settings.steps_per_window:.0%}. The embedding is made from the codes of a window, and each of "
            "its frames is embedded and recovered. Layer 1 alone is coding and decoding without the embedding.",
            "The result depends on λ, which the paper does not give, so there is a table for each λ. An MSE of 1 is "
            "that of an empty picture: nothing is reconstructed.",
        ],
        pictures=[
            Picture(picture, alt=f"Median and quartiles of the MSE of each segment, and Table 1, λ = {lam:g}")
            for lam, picture in zip(settings.lam, pictures, strict=True)
        ],
        tables=[*tables(result), paper_table(), verdicts_table(result), details_table(result)],
    )


def tables(result: SweepResult) -> list[Table]:
    """Table 1 at each λ."""
    entries: dict[float, dict[int, list[tuple[float, float]]]] = {}
    for own in result.table():
        row = entries.setdefault(own.lam, {}).setdefault(own.n_atoms, [])
        row.append((own.trimmed_mean, own.trimmed_std))
    caption = "Table 1 at λ = {:g}: MSE of reconstructed frames, mean ± sd without 25% of the errors at each end"
    return [_grid(caption.format(lam), result.settings.ratios, rows) for lam, rows in entries.items()]


def paper_table() -> Table:
    """Table 1 of the paper."""
    sizes, ratios = sorted({size for size, _ in PAPER}), sorted({ratio for _, ratio in PAPER})
    return _grid(
        "Table 1 of the paper, on its own film; the paper does not give its penalties and embedding dimension",
        ratios,
        {size: [PAPER[size, ratio] for ratio in ratios] for size in sizes},
    )


def _grid(caption: str, ratios: Sequence[float], rows: Mapping[int, Sequence[tuple[float, float]]]) -> Table:
    """Table of means and standard deviations by M and H / M; the lowest mean of each row is marked."""

    def cells(entries: Sequence[tuple[float, float]]) -> list[Cell]:
        best = min((mean for mean, _ in entries if mean == mean), default=None)
        return [
            Cell(f"{mean:.3f} ± {std:.3f}", "best" if mean == best else "")
            if mean == mean
            else Cell("film too short", "missing")
            for mean, std in entries
        ]

    heads = ("M / H", *(f"{ratio:g} × M" for ratio in ratios))
    return Table(caption, heads, [[Cell(f"{size:,}"), *cells(own)] for size, own in rows.items()])


def verdicts_table(result: SweepResult) -> Table:
    """Verdicts on the claims of the paper at each λ, and whether its errors are of the paper's size."""
    atoms, frames = (verdicts_by_lam(result, claim) for claim in ("more_atoms", "more_frames"))
    sized = lams_of_paper_size(result)
    low, high = PAPER_SIZE
    return Table.of(
        "What Table 1 says at each λ",
        result.settings.lam,
        [
            Column("λ", lambda lam: f"{lam:g}"),
            Column("more atoms help", lambda lam: atoms.get(lam, INCONCLUSIVE)),
            Column("more frames help", lambda lam: frames.get(lam, INCONCLUSIVE)),
            Column(f"errors of the paper's size, {low:.2g} to {high:.2g}", lambda lam: "yes" if lam in sized else "no"),
        ],
    )


def details_table(result: SweepResult) -> Table:
    """Numbers that Table 1 does not show: windows, untrimmed means, and the error of layer 1 alone."""
    return Table.of(
        "Behind Table 1: number of windows, untrimmed means, and the error without the embedding",
        [entry for entry in result.table() if not entry.missing],
        [
            Column("λ, M, H", lambda own: f"{own.lam:g}, {own.n_atoms:,}, {own.window:,}"),
            Column("windows", "n_segments"),
            Column("trimmed mean", "trimmed_mean", error),
            Column("untrimmed mean ± sd", lambda own: f"{error(own.mean)} ± {error(own.std)}"),
            Column("layer 1 alone, trimmed", "coding_trimmed_mean", error),
        ],
    )


def _sections(result: SweepResult, _files: Mapping[str, bytes]) -> Sequence[Section]:
    # A picture per λ: one picture of all, as in the file, would be half a metre high.
    return [sweep_section(result, [png(sweep_figure(result, [lam])) for lam in result.settings.lam])]


EXPERIMENT = Experiment[SweepSettings, SweepResult](
    run=lambda values, settings, run, _: sweep(values, settings, run),
    files={
        "sweep.png": lambda result: png(sweep_figure(result, result.settings.lam)),
        "sweep.csv": lambda result: csv_parts(SweepRow._fields, result.rows()),
    },
    shown=lambda result: [*tables(result), verdicts_table(result)],
    claims=sweep_claims,
    sections=_sections,
    summary=lambda result: [row._asdict() for row in result.table()],
)
