"""Declaration and report of the study: the results of each reading, and those of the paper."""

from __future__ import annotations

from collections.abc import Sequence

from psmt.experiments.contract import Experiment
from psmt.experiments.table_1 import PAPER_SIZE
from psmt.figures import png
from psmt.report import INCONCLUSIVE, Cell, Column, Fact, Page, Picture, Section, Table, Verdict, to_csv
from psmt.report.numbers import error, listed, signed
from studies.readings.claims import readings_claims
from studies.readings.figure import readings_figure
from studies.readings.result import ORDER, PAPER_LOGS, REFERENCES, SHORT, ReadingResult, ReadingsResult
from studies.readings.run import read_paper
from studies.readings.settings import ReadingsSettings

_WORD: dict[Verdict, str] = {"yes": "yes", "no": "no", INCONCLUSIVE: "?"}
_NAME = Column("reading", "reading.name")


def readings_page(result: ReadingsResult, picture: bytes) -> Page:
    """Return the page of the report. `picture` is the figure as a PNG file."""
    settings = result.settings
    return Page(
        title="Reading the paper",
        lead=(
            "The paper does not say at which λ and f it recovers codes, from which frames its dictionary is learned, "
            "what the ends of D are, whether V is centred, or whether the frames of Table 1 lie inside the window. A "
            f"reading is one way to fill in these details. Below are the results of {len(result.by_reading)} readings "
            f"on {result.n_frames:,} frames. A grey patch has an MSE of 1."
        ),
        claims=readings_claims(result),
        sections=[
            Section(
                title="All readings",
                text=[
                    "Table 1: the windows of all M and H end at the same frames. The last "
                    f"{settings.n_inside:,} frames of each are scored, so that all are scored on the same frames. "
                    "Fig. 4: one-step predictions vs code, after starts that are spread over the film; copying and the "
                    "mean are those of codes. Every λ is tried with a quarter of the components, with all of them, and "
                    "with all of them and the paper's whole D. Every other detail is changed alone, around two "
                    "readings; only the last reading of each follows Algorithm 1 to the letter and changes two.",
                    "A dictionary per film is learned from the frames that Fig. 4 predicts as well. Such a reading is "
                    "not a prediction; it is here because the paper can be read that way.",
                ],
                pictures=[Picture(picture, alt="Ratios and differences with their intervals, by reading")],
                tables=[table_1_table(result), fig_4_table(result)],
            )
        ],
        facts=[
            Fact(
                "Table 1",
                f"M = {_list(settings.n_atoms)}; H = {_list(settings.ratios)} M; "
                f"windows that end at frames {_list(settings.ends(result.n_frames))}",
            ),
            Fact(
                "Fig. 4",
                f"M = {settings.n_atoms[0]:,}, H = {settings.window:,}, K = {settings.horizon}; "
                f"starts {_list(settings.starts(result.n_frames))}",
            ),
            Fact("Layer 1", f"α = {settings.alpha:g}, at most {settings.max_epochs} epochs, seed {settings.seed}"),
            Fact("Departures from the paper, in every reading", settings.common_departures),
        ],
    )


def verdicts_table(result: ReadingsResult) -> Table:
    """Return the table of which results of the paper each reading gives, in at most 80 letters per line."""
    columns = [
        _NAME,
        Column("M", "more_atoms", _WORD.__getitem__),
        Column("H", "more_frames", _WORD.__getitem__),
        Column("T 1", "table_size", _yes_or_no),
        Column("order", "order", _WORD.__getitem__),
        Column("F 4", "prediction_size", _yes_or_no),
    ]
    caption = (
        "Which results of the paper each reading gives: more atoms (M) and more frames (H) help, the size of Table 1 "
        "(T 1), the order of Fig. 4, and its size (F 4)"
    )
    return Table.of(caption, result.by_reading, columns)


def table_1_table(result: ReadingsResult) -> Table:
    """Return Table 1 under each reading."""
    low, high = PAPER_SIZE

    def entry(size: int, window: int) -> Column:
        return Column(f"{size:,}, {window:,}", lambda own: own.means[size, window], error)

    columns = [
        _NAME,
        *(entry(*size) for size in result.by_reading[0].means),
        Column("more atoms help", "more_atoms", _WORD.__getitem__),
        Column("more frames help", "more_frames", _WORD.__getitem__),
        Column("size", "table_size", _yes_or_no),
    ]
    caption = f"Table 1 under each reading: trimmed mean MSE by M, H; {low:.2g} to {high:.2g} in the paper"
    return Table.of(caption, result.by_reading, columns)


def fig_4_table(result: ReadingsResult) -> Table:
    """Return the numbers of Fig. 4 under each reading, as a table."""
    low, high = (signed(value) for value in PAPER_LOGS)

    def log_error(method: str, name: str) -> Column:
        def cell(own: ReadingResult) -> Cell:
            return Cell(signed(own.logs[method]), "best" if own.logs[method] == min(own.logs.values()) else "")

        return Column(name, cell)

    def smaller(pair: tuple[str, str]) -> Column:
        return Column(" < ".join(SHORT[method] for method in pair), lambda own: _WORD[own.smaller(pair)])

    columns = [
        _NAME,
        log_error("psmt", "PSMT"),
        log_error("baseline2", "Baseline 2"),
        log_error("baseline1", "Baseline 1"),
        log_error("copy", "copying"),
        log_error("mean", "the mean"),
        *(smaller(pair) for pair in (*ORDER, *REFERENCES)),
        Column("size", "prediction_size", _yes_or_no),
    ]
    caption = f"Fig. 4 under each reading: mean log MSE vs code; {low} and {high} in the paper"
    return Table.of(caption, result.by_reading, columns)


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def _list(values: Sequence[float]) -> str:
    return listed([f"{value:,g}" for value in values])


def _csv(result: ReadingsResult) -> bytes:
    rows = list(result.rows())
    return to_csv(list(rows[0]), [list(row.values()) for row in rows])


EXPERIMENT = Experiment[ReadingsSettings, ReadingsResult](
    run=lambda values, settings, run, _: read_paper(values, settings, run),
    files={
        "readings.csv": _csv,
        "readings.png": lambda result: png(readings_figure(result)),
    },
    shown=lambda result: [verdicts_table(result), *readings_claims(result)],
    page=lambda result, files: readings_page(result, files["readings.png"]),
    summary=lambda result: list(result.rows()),
)
