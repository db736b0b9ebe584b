"""The page of `psmt readings`: what each reading gives, and which give what the paper has."""

from __future__ import annotations

from psmt.experiments.table_1 import PAPER_SIZE
from psmt.report import INCONCLUSIVE, Cell, Fact, Page, Picture, Section, Table, Verdict
from psmt.report.numbers import error, listed, signed
from studies.readings.claims import readings_claims
from studies.readings.result import PAPER_LOGS, Found, ReadingsResult

_WORD: dict[Verdict, str] = {"holds": "yes", "does not hold": "no", INCONCLUSIVE: "?"}


def readings_page(result: ReadingsResult, picture: bytes) -> Page:
    """Page with the figure as a PNG file."""
    settings = result.settings
    return Page(
        title="Reading the paper",
        lead=(
            "The paper does not say at which λ and f it recovers codes, what its dictionary is learned from, what "
            "stands at the ends of D, whether V is centred, or whether Table 1 is of frames inside the window. Each "
            f"way to fill that in is a reading. This is what {len(result.found)} of them give on {result.n_frames:,} "
            "frames. An MSE of 1 is that of a grey patch."
        ),
        claims=readings_claims(result),
        sections=[
            Section(
                title="All readings",
                text=[
                    "Table 1: for each M and H, windows that end at the same frames; the last "
                    f"{settings.n_inside:,} of each are scored, which all hold, each frame against itself. "
                    "Fig. 4: one-step predictions vs code after starts that are spread over the film; copying "
                    "and the mean are of codes there. Every λ is tried with few and with all components and with the "
                    "paper's whole D; all else is changed one thing at a time around two readings, and two things at "
                    "once only in the last of each: the letter of Algorithm 1.",
                    "A dictionary per film has seen the frames that Fig. 4 predicts, in layer 1 alone: such a reading "
                    "is no prediction, and is here because the paper can be read so.",
                ],
                pictures=[Picture(picture, alt="Ratios and differences with their intervals, by reading")],
                tables=[table_1_table(result), fig_4_table(result)],
            )
        ],
        facts=[
            Fact("Table 1", f"M = {_list(settings.n_atoms)}; H = {_list(settings.ratios)} M; {_windows(result)}"),
            Fact(
                "Fig. 4",
                f"M = {settings.n_atoms[0]:,}, H = {settings.window:,}, K = {settings.horizon}; {_starts(result)}",
            ),
            Fact("Layer 1", f"α = {settings.alpha:g}, at most {settings.max_epochs} epochs, seed {settings.seed}"),
            Fact("Departures from the paper, in every reading", settings.told_departures),
        ],
    )


def verdicts_table(result: ReadingsResult) -> Table:
    """What each reading gives of the paper, narrow enough for a screen."""
    return Table(
        "What of the paper each reading gives",
        ("reading", "atoms", "frames", "size", "order", "size"),
        [
            [
                Cell(found.reading.name),
                _verdict(found.more_atoms),
                _verdict(found.more_frames),
                Cell("yes" if found.table_size else "no"),
                _verdict(found.order),
                Cell("yes" if found.prediction_size else "no"),
            ]
            for found in result.found
        ],
    )


def table_1_table(result: ReadingsResult) -> Table:
    """Table 1 under each reading."""
    sizes = list(result.found[0].means)
    low, high = PAPER_SIZE
    return Table(
        f"Table 1 under each reading: trimmed mean MSE by M, H; the paper has {low:.2g} to {high:.2g}",
        (
            "reading",
            *(f"{size:,}, {window:,}" for size, window in sizes),
            "more atoms help",
            "more frames help",
            "size",
        ),
        [
            [
                Cell(found.reading.name),
                *(Cell(error(mean)) for mean in found.means.values()),
                _verdict(found.more_atoms),
                _verdict(found.more_frames),
                Cell("yes" if found.table_size else "no"),
            ]
            for found in result.found
        ],
    )


def fig_4_table(result: ReadingsResult) -> Table:
    """Fig. 4 under each reading."""
    low, high = (signed(value) for value in PAPER_LOGS)
    return Table(
        f"Fig. 4 under each reading: mean log MSE vs code; the paper has {low} and {high}",
        (
            "reading",
            "PSMT",
            "Baseline 2",
            "Baseline 1",
            "copying",
            "the mean",
            "PSMT < B 2",
            "B 2 < B 1",
            "PSMT < copying",
            "PSMT < mean",
            "size",
        ),
        [_fig_4_row(found) for found in result.found],
    )


def _fig_4_row(found: Found) -> list[Cell]:
    least = min(found.logs.values())
    return [
        Cell(found.reading.name),
        *(Cell(signed(value), "best" if value == least else "") for value in found.logs.values()),
        *(_verdict(found.smaller(pair)) for pair in found.differences),
        Cell("yes" if found.prediction_size else "no"),
    ]


def _verdict(outcome: Verdict) -> Cell:
    return Cell(_WORD[outcome])


def _list(values: tuple[float, ...]) -> str:
    return listed([f"{value:,g}" for value in values])


def _windows(result: ReadingsResult) -> str:
    ends = result.settings.ends(result.n_frames)
    return f"windows that end at frames {listed([f'{end:,}' for end in ends])}"


def _starts(result: ReadingsResult) -> str:
    return f"starts {listed([f'{start:,}' for start in result.settings.starts(result.n_frames)])}"
