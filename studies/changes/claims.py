"""What is said of sharp changes, and whether it holds: that cuts are found, and that the response to them pays."""

from __future__ import annotations

import numpy as np

from psmt.evaluation import mean_interval
from psmt.report import INCONCLUSIVE, Claim, judged
from psmt.report.numbers import percent, ratio, signed
from studies.changes.result import ChangesResult
from studies.changes.settings import KINDS

MARGIN = 0.02
"""Mean log10 ratio of errors that is called a tie: 5 percent."""

FOUND, FALSE = 0.9, 0.01
"""Share of the changes that must be found, and of other frames that may be taken for one."""

FEWEST = 6
"""Places below which nothing is told."""


def changes_claims(result: ChangesResult) -> list[Claim]:
    """Both of them; neither is the paper's."""
    return [cuts_found(result), holding_pays(result)]


def cuts_found(result: ChangesResult) -> Claim:
    """Detection: the share of flashes and cuts that `cut_` tells, and of other frames that it tells too."""
    shares = {kind: result.found(kind) for kind in KINDS if kind != "none"}
    false = result.false_alarms()
    told = {
        f"{percent(shares['flash'])} of the flashes were found": shares["flash"] >= FOUND,
        f"{percent(shares['cut'])} of the cuts were found": shares["cut"] >= FOUND,
        f"{percent(false)} of the frames without a change were taken for a cut": false <= FALSE,
    }
    few = len(result.places) < FEWEST
    return Claim(
        key="cuts_found",
        text="Sharp changes are found",
        rule=f"at least {percent(FOUND)} of the flashes and of the cuts are told with the frame that they come with, "
        f"and at most {percent(FALSE)} of the frames of the film as it is",
        verdict=INCONCLUSIVE if few else "holds" if all(told.values()) else "does not hold",
        paper=False,
        size=f"{percent(min(shares['flash'], shares['cut']))} found, {percent(false)} false",
        support=tuple(text for text, holds in told.items() if holds),
        against=tuple(text for text, holds in told.items() if not holds),
        notes=(
            f"{percent(shares['jump'])} of the jumps; how sharp these are depends on the film",
            *((f"{len(result.places)} places, fewer than {FEWEST}",) if few else ()),
        ),
        figures={"found": shares, "false_alarms": false},
    )


def holding_pays(result: ChangesResult) -> Claim:
    """Paired by place: PSMT that holds after a cut, against PSMT that goes on as the paper does."""
    told, outcomes, figures = [], {}, {}
    for kind in (kind for kind in KINDS if kind != "none"):
        ratios = np.log10(result.after(kind, "psmt") / result.after(kind, "psmt_ignore"))
        interval = mean_interval(ratios)
        outcomes[kind] = judged(interval, margin=MARGIN) if len(ratios) >= FEWEST else INCONCLUSIVE
        figures[kind] = interval._asdict()
        ends = f"{signed(interval.low)} to {signed(interval.high)}"
        told.append((kind, f"{kind}: log₁₀ of the errors' ratio {signed(interval.mean)} ({ends})"))
    return Claim(
        key="holding_pays",
        text="Holding the code after a cut pays",
        rule="after cuts the mean log₁₀ ratio of PSMT's error to that of PSMT that ignores cuts lies below "
        f"{signed(-MARGIN)}, with its whole interval, over the places",
        verdict=outcomes["cut"],
        paper=False,
        size=f"{ratio(10 ** figures['cut']['mean'])} × the error, after cuts",
        support=tuple(text for kind, text in told if outcomes[kind] == "holds"),
        against=tuple(text for kind, text in told if outcomes[kind] == "does not hold"),
        notes=tuple(text for kind, text in told if outcomes[kind] == INCONCLUSIVE),
        figures=figures,
    )
