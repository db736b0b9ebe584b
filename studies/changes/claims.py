"""Two claims: PSMT detects sharp changes, and holding the code after a cut lowers the error."""

from __future__ import annotations

import numpy as np

from psmt.evaluation import mean_interval
from psmt.report import INCONCLUSIVE, Claim, Evidence
from psmt.report.numbers import percent, ratio, signed
from studies.changes.result import ChangesResult
from studies.changes.settings import CHANGES

MARGIN = 0.02
"""A mean log10 ratio of errors below this, 5 percent, is a tie."""

DETECTED, FALSE_ALARMS = 0.9, 0.01
"""Smallest share of the changes that must be detected, and largest share of the other frames taken for a cut."""

FEWEST = 6
"""Number of places that a verdict needs."""


def changes_claims(result: ChangesResult) -> list[Claim]:
    """Return both claims; neither is made in the paper."""
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
        verdict=INCONCLUSIVE if few else "holds" if all(criteria.values()) else "does not hold",
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
    """Compare PSMT with PSMT that ignores cuts, paired by place. Only cuts decide; other changes are listed."""
    evidence = {
        kind: Evidence(
            name=f"after each {kind}",
            statistic=mean_interval(np.log10(result.after(kind, "psmt") / result.after(kind, "psmt_ignore"))),
            n=len(result.places),
            margin=MARGIN,
            lower_is_better=True,
            write=lambda value: ratio(10**value),
            unit=" × the error",
            too_few=_too_few(result),
        )
        for kind in CHANGES
    }
    return Claim.from_evidence(
        "holding_pays",
        "Holding the code after a cut lowers the error",
        "after cuts, the mean log₁₀ ratio of PSMT's error to that of PSMT that ignores cuts is below "
        f"{signed(-MARGIN)}, with its whole 95% interval over the places",
        list(evidence.values()),
        paper=False,
        verdict=evidence["cut"].verdict,
        size=f"{evidence['cut'].estimate}, after cuts",
    )


def _too_few(result: ChangesResult) -> str:
    """Return why there is no verdict; empty if there are enough places."""
    n = len(result.places)
    return f"{n} places, fewer than {FEWEST}" if n < FEWEST else ""
