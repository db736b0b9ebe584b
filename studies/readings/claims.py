"""Whether any reading gives what the paper has, and which."""

from __future__ import annotations

from collections.abc import Callable

from psmt.experiments.table_1 import MARGIN, PAPER_SIZE
from psmt.report import INCONCLUSIVE, Claim, Verdict, all_hold
from psmt.report.numbers import signed
from studies.readings.result import PAPER_LOGS, Found, ReadingsResult

_SURE = f"by more than {MARGIN:.0%} with 95% confidence"


def readings_claims(result: ReadingsResult) -> list[Claim]:
    """Table 1 and Fig. 4, their pattern and size; and copying."""
    low, high = PAPER_SIZE
    first, last = (signed(value) for value in PAPER_LOGS)
    return [
        _some(
            result,
            "reading_table_1",
            "A reading gives the pattern of Table 1: more atoms help, and more frames do",
            f"in one reading at least, errors are lower with the most atoms at each H / M, and with the longest window "
            f"at each M, {_SURE}",
            lambda found: found.table,
        ),
        _some(
            result,
            "reading_table_1_size",
            "A reading gives the pattern of Table 1 and its size",
            f"as above, and all trimmed means lie between the paper's, {low:g} and {high:g}",
            lambda found: _with_size(found.table, found.table_size),
        ),
        _some(
            result,
            "reading_fig_4",
            "A reading gives the order of Fig. 4: PSMT, then Baseline 2, then Baseline 1",
            f"in one reading at least, mean log MSEs vs code over the starts are in this order, {_SURE}",
            lambda found: found.order,
        ),
        _some(
            result,
            "reading_fig_4_size",
            "A reading gives the order of Fig. 4 and its size",
            f"as above, and PSMT's mean log MSE lies between the paper's, {first} and {last}",
            lambda found: _with_size(found.order, found.prediction_size),
        ),
        _some(
            result,
            "reading_both",
            "One reading gives all of it: both patterns, and both sizes",
            "all of the above under the same reading",
            lambda found: all_hold(
                [_with_size(found.table, found.table_size), _with_size(found.order, found.prediction_size)]
            ),
        ),
        _some(
            result,
            "reading_copying",
            "A reading beats copying the last code and predicting the mean",
            f"in one reading at least, PSMT's mean log MSE vs code is below both, {_SURE}",
            lambda found: all_hold([found.smaller(("psmt", "copy")), found.smaller(("psmt", "mean"))]),
            paper=False,
        ),
    ]


def _with_size(pattern: Verdict, size: bool) -> Verdict:
    """The verdict on a pattern that must have the paper's size as well."""
    return all_hold([pattern, "holds" if size else "does not hold"])


def _some(
    result: ReadingsResult,
    key: str,
    text: str,
    rule: str,
    outcome_of: Callable[[Found], Verdict],
    *,
    paper: bool = True,
) -> Claim:
    """The claim that one reading has the outcome 'holds'."""
    outcomes = {found.reading.name: outcome_of(found) for found in result.found}
    named = {kind: [name for name, own in outcomes.items() if own == kind] for kind in outcomes.values()}
    holds, fails, open_ = (named.get(kind, []) for kind in ("holds", "does not hold", INCONCLUSIVE))
    n = len(outcomes)
    return Claim(
        key=key,
        text=text,
        rule=rule,
        verdict="holds" if holds else INCONCLUSIVE if open_ else "does not hold",
        paper=paper,
        size=f"{len(holds)} of {n} readings",
        support=tuple(holds),
        against=(f"it does not under {len(fails)} of {n} readings",) if fails else (),
        notes=(
            *([f"it inconclusive under {len(open_)}: {'; '.join(open_)}"] if open_ else []),
            *([f"of {n} readings one in forty would hold by chance"] if len(holds) == 1 else []),
        ),
        figures=dict(outcomes),
    )
