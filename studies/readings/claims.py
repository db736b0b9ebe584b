"""Claims about which readings give the paper's results."""

from __future__ import annotations

from collections.abc import Callable

from psmt.experiments.table_1 import MARGIN, PAPER_SIZE
from psmt.report import INCONCLUSIVE, Claim, Judgement, Verdict, all_hold
from psmt.report.numbers import signed
from studies.readings.result import PAPER_LOGS, ReadingResult, ReadingsResult

_SURE = f"by more than {MARGIN:.0%} with 95% confidence"


def readings_claims(result: ReadingsResult) -> list[Claim]:
    """Return the claims on pattern and size of Table 1 and Fig. 4, on all of these together, and on copying."""
    low, high = PAPER_SIZE
    first, last = (signed(value) for value in PAPER_LOGS)
    return [
        _any_reading(
            result,
            "reading_table_1",
            "A reading gives the pattern of Table 1: more atoms help, and more frames do",
            "in at least one reading, errors are lower with the most atoms at each H / M, and with the longest window "
            f"at each M, {_SURE}",
            lambda own: own.table,
        ),
        _any_reading(
            result,
            "reading_table_1_size",
            "A reading gives the pattern of Table 1 and its size",
            f"as above, and all trimmed means lie between the paper's, {low:g} and {high:g}",
            lambda own: _both(own.table, own.table_size),
        ),
        _any_reading(
            result,
            "reading_fig_4",
            "A reading gives the order of Fig. 4: PSMT, then Baseline 2, then Baseline 1",
            f"in at least one reading, mean log MSEs vs code over the starts are in this order, {_SURE}",
            lambda own: own.order,
        ),
        _any_reading(
            result,
            "reading_fig_4_size",
            "A reading gives the order of Fig. 4 and its size",
            f"as above, and PSMT's mean log MSE lies between the paper's, {first} and {last}",
            lambda own: _both(own.order, own.prediction_size),
        ),
        _any_reading(
            result,
            "reading_both",
            "One reading gives all of it: both patterns, and both sizes",
            "all of the above under the same reading",
            lambda own: all_hold([_both(own.table, own.table_size), _both(own.order, own.prediction_size)]),
        ),
        _any_reading(
            result,
            "reading_copying",
            "A reading beats copying the last code and predicting the mean",
            f"in at least one reading, PSMT's mean log MSE vs code is below both, {_SURE}",
            lambda own: all_hold([own.smaller(("psmt", "copy")), own.smaller(("psmt", "mean"))]),
            paper=False,
        ),
    ]


def _both(pattern: Verdict, size: bool) -> Verdict:
    """Verdict on a pattern and on whether it has the paper's size."""
    return all_hold([pattern, "yes" if size else "no"])


def _any_reading(
    result: ReadingsResult,
    key: str,
    text: str,
    rule: str,
    verdict_of: Callable[[ReadingResult], Verdict],
    *,
    paper: bool = True,
) -> Claim:
    """Return a claim that holds if it holds under at least one reading."""
    verdicts = {own.reading.name: verdict_of(own) for own in result.by_reading}
    holds, fails, unclear = (
        [name for name, own in verdicts.items() if own == verdict] for verdict in ("yes", "no", INCONCLUSIVE)
    )
    n = len(verdicts)
    notes = []
    if unclear:
        notes.append(f"inconclusive under {len(unclear)} of {n} readings: {'; '.join(unclear)}")
    if len(holds) == 1:
        notes.append(f"of {n} readings one in forty would hold by chance")
    return Claim(
        key=key,
        text=text,
        rule=rule,
        as_measured=Judgement(
            "yes" if holds else INCONCLUSIVE if unclear else "no",
            why=f"It comes out under {len(holds)} of {n} readings, and is inconclusive under {len(unclear)}.",
        ),
        paper=paper,
        size=f"{len(holds)} of {n} readings",
        support=tuple(holds),
        against=(f"does not hold under {len(fails)} of {n} readings",) if fails else (),
        notes=tuple(notes),
        figures=verdicts,
    )
