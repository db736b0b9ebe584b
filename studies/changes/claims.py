"""Two claims: PSMT detects sharp changes, and holding the code after a cut lowers the error."""

from __future__ import annotations

import numpy as np

from psmt.evaluation import mean_interval
from psmt.report.claim import INCONCLUSIVE, Claim, Judgement, error_ratio_evidence
from psmt.report.numbers import percent, signed
from studies.changes.result import ChangesResult
from studies.changes.settings import CHANGES

MARGIN = 0.02
"""Mean log10 ratio of errors, about 5 percent, below which two methods are tied."""

DETECTED, FALSE_ALARMS = 0.9, 0.01
"""Smallest share of changes that must be detected, and largest share of other frames that may count as cuts."""

FEWEST = 6
"""Number of places that a verdict needs."""


def changes_claims(result: ChangesResult) -> list[Claim]:
    """Return both claims. The paper makes neither of them."""
    return [changes_detected(result), holding_helps(result)]


def changes_detected(result: ChangesResult) -> Claim:
    """Compare the shares of flashes, cuts and other frames for which `cut_` is true with their limits."""
    detected, false = {kind: result.detected(kind) for kind in CHANGES}, result.false_alarms()
    criteria = {
        f"{percent(detected['flash'])} of the flashes were detected": detected["flash"] >= DETECTED,
        f"{percent(detected['cut'])} of the cuts were detected": detected["cut"] >= DETECTED,
        f"{percent(false)} of the frames without a change were taken for a cut": false <= FALSE_ALARMS,
    }
    few = _too_few(result)
    return Claim(
        key="cuts_found",
        text="PSMT detects sharp changes",
        rule=f"at least {percent(DETECTED)} of the flashes and of the cuts are detected at the frame of the change, "
        f"and at most {percent(FALSE_ALARMS)} of the frames of the unchanged film are taken for a cut",
        as_measured=Judgement(
            INCONCLUSIVE if few else "yes" if all(criteria.values()) else "no", why=f"{'; '.join([*criteria, few])}."
        ),
        paper=False,
        size=f"{percent(min(detected['flash'], detected['cut']))} detected, {percent(false)} false alarms",
        support=tuple(text for text, met in criteria.items() if met),
        against=tuple(text for text, met in criteria.items() if not met),
        notes=(
            f"{percent(detected['jump'])} of the jumps were detected; how sharp a jump is depends on the film",
            *filter(None, [few]),
        ),
        figures={"found": detected, "false_alarms": false},
    )


def holding_helps(result: ChangesResult) -> Claim:
    """Compare PSMT with PSMT that ignores cuts, paired by place. Only the errors after cuts decide the verdict."""
    evidence = {
        kind: error_ratio_evidence(
            name=f"after each {kind}",
            statistic=mean_interval(np.log10(result.after(kind, "psmt") / result.after(kind, "psmt_ignore"))),
            n=len(result.places),
            margin=MARGIN,
            to_ratio=lambda value: 10**value,
            too_few=_too_few(result),
        )
        for kind in CHANGES
    }
    after_cuts = evidence.pop("cut")
    return Claim.from_evidence(
        "holding_pays",
        "Holding the code after a cut lowers the error",
        "after cuts, the mean log₁₀ ratio of PSMT's error to that of PSMT that ignores cuts is below "
        f"{signed(-MARGIN)}, with its whole 95% interval over the places",
        [after_cuts],
        more=list(evidence.values()),
        paper=False,
    )


def _too_few(result: ChangesResult) -> str:
    """Return the reason why there is no verdict, or an empty string if there are enough places."""
    n = len(result.places)
    return f"{n} places, fewer than {FEWEST}" if n < FEWEST else ""
