"""The experiment `psmt sweep`: its files, and its report with claims, Table 1 at each λ, and Table 1 of the paper."""

from collections.abc import Mapping, Sequence

from psmt.experiments.contract import Experiment
from psmt.experiments.sweep.figure import sweep_figure
from psmt.experiments.sweep.run import COLUMNS, SweepResult, sweep
from psmt.experiments.sweep.settings import SweepSettings
from psmt.experiments.table_1 import MARGIN, PAPER, PAPER_SIZE
from psmt.figures import png
from psmt.report import Cell, Claim, Column, Judgement, Picture, Section, Table, csv_parts


def sweep_section(result: SweepResult) -> Section:
    """Return the section with Table 1 and Fig. 2 at the λ that decides the claims. Other λ are folded away."""
    settings, decides = result.settings, result.decisive_lam
    by_lam = dict(zip(settings.lam, tables(result), strict=True))
    shown = list(settings.lam) if decides is None else [decides]

    def drawn(lams: Sequence[float]) -> list[Picture]:
        # A picture per λ: one picture of all, as in the file, would be half a metre high.
        alt = "Median and quartiles of the MSE of each segment, λ = {:g}"
        return [Picture(png(sweep_figure(result, [lam])), alt=alt.format(lam)) for lam in lams]

    return Section(
        title="More atoms, more frames",
        text=[
            "One dictionary of M atoms is learned from the whole film. Windows of H frames overlap by "
            f"{1 - 1 / settings.steps_per_window:.0%}. The embedding is made from the codes of a window, and each of "
            "its frames is embedded and recovered. An MSE of 1 is that of an empty picture: nothing is reconstructed.",
            f"The result depends on λ, which the paper does not give: {_choice(result)}.",
        ],
        pictures=drawn(shown),
        tables=[*(by_lam[lam] for lam in shown), paper_table(), verdicts_table(result)],
        folded=[
            Section(title=f"Table 1 at λ = {lam:g}", pictures=drawn([lam]), tables=[by_lam[lam]])
            for lam in settings.lam
            if lam not in shown
        ],
    )


def _choice(result: SweepResult) -> str:
    """Return a clause that says which penalty λ decides the claims, and why."""
    if result.decisive_lam is None:
        return "nothing is reconstructed at any of these λ, so there is nothing to compare"
    low, high = PAPER_SIZE
    return (
        f"both claims are judged at λ = {result.decisive_lam:g}: there the errors are nearest to those of the paper, "
        f"{low:.2g} to {high:.2g}"
    )


def tables(result: SweepResult) -> list[Table]:
    """Return Table 1 as measured on this film, one table for each penalty λ."""
    entries: dict[float, dict[int, list[tuple[float, float]]]] = {}
    for own in result.table():
        row = entries.setdefault(own.lam, {}).setdefault(own.n_atoms, [])
        row.append((own.trimmed_mean, own.trimmed_std))
    caption = "Table 1 at λ = {:g}: MSE of reconstructed frames, mean ± sd without 25% of the errors at each end"
    return [_grid(caption.format(lam), result.settings.ratios, rows) for lam, rows in entries.items()]


def paper_table() -> Table:
    """Return Table 1 as the paper has it."""
    sizes, ratios = sorted({size for size, _ in PAPER}), sorted({ratio for _, ratio in PAPER})
    return _grid(
        "Table 1 of the paper, on its own film; the paper does not give its penalties and embedding dimension",
        ratios,
        {size: [PAPER[size, ratio] for ratio in ratios] for size in sizes},
    )


def _grid(caption: str, ratios: Sequence[float], rows: Mapping[int, Sequence[tuple[float, float]]]) -> Table:
    """Return a table of mean ± sd, with a row for each number of atoms M, and columns for window lengths ÷ M."""

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
    """Return a table of the verdicts on both claims at each λ: more atoms help, and more frames help.

    The last column says whether the errors are in the range of the paper's Table 1.
    """
    low, high = PAPER_SIZE

    def verdict(key: str, lam: float, kind: str) -> str:
        own: Judgement = getattr(Claim.from_evidence("", "", "", result.evidence[key].get(lam, [])), kind)
        return f"{own.verdict}, {own.effect}" if own.effect else own.verdict

    def columns(key: str, name: str) -> list[Column]:
        return [
            Column(f"{name}: as measured", lambda lam: verdict(key, lam, "as_measured")),
            Column("beyond controls", lambda lam: verdict(key, lam, "beyond_controls")),
        ]

    def is_sized(lam: float) -> str:
        means = result.means[lam]
        return "yes" if means and low <= min(means) and max(means) <= high else "no"

    return Table.of(
        "Does the error fall? Ratio of trimmed means, weakest row or column of Table 1, at each λ",
        result.settings.lam,
        [
            Column("λ", lambda lam: f"{lam:g}{', decides' if lam == result.decisive_lam else ''}"),
            *columns("more_atoms", "more atoms"),
            *columns("more_frames", "more frames"),
            Column(f"errors of the paper's size, {low:.2g} to {high:.2g}", is_sized),
        ],
    )


_RULE = (
    f"the trimmed mean of the errors is lower by more than {MARGIN:.0%} {{}}, with 95% confidence. Beyond controls, it "
    "must fall by more than on the film with its frames shuffled and on noise of its spectrum. The paper does not give "
    "its λ: the λ whose errors are nearest to the paper's decides both claims on Table 1"
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
    """Return the claims that more atoms and more frames reduce the error. Without a result, both are inconclusive."""
    return [_claim(result, note, key, *about) for key, about in _CLAIMS.items()]


def _claim(result: SweepResult | None, note: str, key: str, text: str, rule: str) -> Claim:
    if result is None:
        return Claim.from_evidence(key, text, rule, [], notes=[note])
    by_lam, decides, notes = result.evidence[key], result.decisive_lam, [note, _choice(result)]
    if not by_lam:
        there = {entry.n_atoms: entry.window for entry in result.table() if not entry.missing}
        sizes = "; ".join(f"M = {size:,} with H = {window:,}" for size, window in there.items())
        notes.append(f"nothing to compare (only {sizes})")
    return Claim.from_evidence(
        key,
        text,
        rule,
        [] if decides is None else by_lam.get(decides, []),
        more=[one for lam, own in by_lam.items() if lam != decides for one in own],
        notes=notes,
        figures={
            f"{lam:g}": {"decides": lam == decides} | {one.name: one.summary() for one in own}
            for lam, own in by_lam.items()
        },
    )


EXPERIMENT = Experiment[SweepSettings, SweepResult](
    run=lambda values, settings, run, _: sweep(values, settings, run),
    files={
        "sweep.png": lambda result: png(sweep_figure(result, result.settings.lam)),
        "sweep.csv": lambda result: csv_parts(COLUMNS, result.rows()),
    },
    shown=lambda result: [*tables(result), verdicts_table(result), *sweep_claims(result)],
    claims=sweep_claims,
    sections=lambda result, _: [sweep_section(result)],
    summary=lambda result: [row._asdict() for row in result.table()],
)
