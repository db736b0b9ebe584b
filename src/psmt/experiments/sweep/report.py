"""The sweep as an experiment, and its report: Table 1 beside the paper's at each λ, and the paper's claims on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from psmt.experiments.contract import Experiment
from psmt.experiments.sweep.figure import sweep_figure
from psmt.experiments.sweep.run import SweepResult, SweepRow, sweep
from psmt.experiments.sweep.settings import SweepSettings
from psmt.experiments.table_1 import MARGIN, PAPER, PAPER_SIZE
from psmt.figures import png
from psmt.report import INCONCLUSIVE, Cell, Claim, Column, Picture, Section, Table, Verdict, all_hold, csv_parts
from psmt.report.numbers import error, listed, log_ratio


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


_RULE = (
    f"the trimmed mean of the errors is lower by more than {MARGIN:.0%} {{}}, with 95% confidence (bootstrap over "
    "blocks of frames), and by more than on two null models: the film with its frames shuffled, and noise of its "
    "spectrum. The paper does not give its λ. So the λ whose errors are nearest to the paper's decides; a λ at which "
    "nothing is reconstructed does not count"
)

_CLAIMS = {
    "more_atoms": (
        "More atoms help: a larger dictionary reconstructs better",
        _RULE.format("with the largest M than with the smallest, at each H / M"),
    ),
    "more_frames": (
        "More frames help: a longer window reconstructs better",
        _RULE.format("with the largest H than with the smallest, at each M"),
    ),
}


def sweep_claims(result: SweepResult | None, note: str = "") -> list[Claim]:
    """Claims on the columns of Table 1, more atoms, and on its rows, more frames."""
    return [_claim(result, note, key, *about) for key, about in _CLAIMS.items()]


def verdicts_by_lam(result: SweepResult, claim: str) -> dict[float, Verdict]:
    """The verdict on a claim at each λ."""
    return {lam: all_hold([one.verdict for one in own]) for lam, own in result.evidence[claim].items()}


def lams_of_paper_size(result: SweepResult) -> list[float]:
    """The λ at which all errors lie between the smallest and the largest of the paper."""
    low, high = PAPER_SIZE
    return [lam for lam, means in _means(result).items() if low <= min(means) and max(means) <= high]


def headline(verdicts: Mapping[float, Verdict]) -> str:
    """The λ at which a claim has each verdict.

    >>> headline({0.1: "does not hold", 3.0: "holds", 30.0: "holds"})
    'holds at λ = 3 and 30; does not hold at λ = 0.1'
    """
    kinds: tuple[Verdict, ...] = ("holds", "does not hold", INCONCLUSIVE)
    grouped = {kind: [f"{lam:g}" for lam, verdict in verdicts.items() if verdict == kind] for kind in kinds}
    return "; ".join(f"{kind} at λ = {listed(lams)}" for kind, lams in grouped.items() if lams)


def _claim(result: SweepResult | None, note: str, key: str, text: str, rule: str) -> Claim:
    if result is None:
        return Claim.from_evidence(key, text, rule, [], notes=[note])
    evidence, verdicts, decisive = result.evidence[key], verdicts_by_lam(result, key), _decisive_lam(result, key)
    measured = {lam: all_hold([one.as_measured for one in own]) for lam, own in evidence.items()}
    others = [one for lam, own in evidence.items() if lam != decisive for one in own]
    notes = [note, *(f"{one.verdict} at {one.sentence}" for one in others)]
    size = ""
    if decisive is not None:
        how = "of the size of" if decisive in lams_of_paper_size(result) else "nearest to"
        low, high = PAPER_SIZE
        notes.append(f"λ = {decisive:g} decides: its errors are {how} the paper's, {low:.2g} to {high:.2g}")
        change = float(np.mean([one.statistic.mean for one in evidence[decisive]]))
        size = f"{log_ratio(change)} × the error, λ = {decisive:g}"
        if measured[decisive] == "holds" != verdicts[decisive]:
            notes.append("the error falls on the film, but no more than on the null models: this is not about dynamics")
    elif evidence:
        notes.append("nothing is reconstructed at any of these λ")
    else:
        there = {entry.n_atoms: entry.window for entry in result.table() if not entry.missing}
        sizes = "; ".join(f"M = {size:,} with H = {window:,}" for size, window in there.items())
        notes.append(f"nothing to compare (only {sizes})")
    return Claim.from_evidence(
        key,
        f"{text} ({headline(verdicts)})" if verdicts else text,
        rule,
        [] if decisive is None else evidence[decisive],
        size=size,
        notes=notes,
        figures={
            f"{lam:g}": {"verdict": verdicts[lam], "as_measured": measured[lam], "decides": lam == decisive}
            | {one.name: one.summary() for one in own}
            for lam, own in evidence.items()
        },
    )


def _means(result: SweepResult) -> dict[float, list[float]]:
    """Trimmed means of all combinations, by λ."""
    means: dict[float, list[float]] = {}
    for entry in result.table():
        if not entry.missing:
            means.setdefault(entry.lam, []).append(entry.trimmed_mean)
    return means


def _decisive_lam(result: SweepResult, claim: str) -> float | None:
    """The λ whose errors are nearest to the paper's, by geometric means; None if nothing is reconstructed at any λ."""
    paper, means = np.mean(np.log([mean for mean, _ in PAPER.values()])), _means(result)

    def distance(lam: float) -> float:
        return float(abs(np.mean(np.log(np.maximum(means[lam], np.finfo(float).tiny))) - paper))

    known = [lam for lam, own in result.evidence[claim].items() if not all(one.too_few for one in own)]
    return min(known, key=distance, default=None)


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
