"""A claim, and whether it holds on a film: a rule that numbers decide, and what speaks for and against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from psmt.evaluation import Interval

TIE = 1e-3
"""Errors that differ by less than this fraction are called equal."""

LEVEL = 0.05
"""Largest p-value that counts against chance."""

Outcome = Literal["holds", "does not hold", "cannot be told"]
UNTOLD: Outcome = "cannot be told"
"""There is too little to go by, or what there is is a tie."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim, whether it holds, and the figures behind that."""

    key: str
    text: str
    rule: str
    """When it holds."""
    outcome: Outcome
    paper: bool = True
    """Whether the paper makes it."""
    size: str = ""
    """How large the effect is, in a few words; empty where it was not measured."""
    support: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What speaks for neither, and why it cannot be told."""
    figures: dict[str, Any] = field(default_factory=dict)
    """The numbers, for programs."""

    def summary(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "claim": self.text,
            "of": "the paper" if self.paper else "ours",
            "verdict": self.outcome,
            "size": self.size,
            "rule": self.rule,
            "for": list(self.support),
            "against": list(self.against),
            "notes": list(self.notes),
            "figures": self.figures,
        }


def judged(difference: Interval, *, margin: float) -> Outcome:
    """Whether a difference that should be negative is: by more than `margin`, the other way, or it cannot be told."""
    if difference.high < -margin:
        return "holds"
    return "does not hold" if difference.low > margin else UNTOLD


def all_hold(outcomes: Sequence[Outcome]) -> Outcome:
    """Holds where all of them do, does not where one does not; without any nothing can be told."""
    if "does not hold" in outcomes:
        return "does not hold"
    return UNTOLD if not outcomes or UNTOLD in outcomes else "holds"


def decided(support: Sequence[str], against: Sequence[str]) -> Outcome:
    """Holds where nothing speaks against it; cannot be told where nothing speaks at all."""
    if not support and not against:
        return UNTOLD
    return "does not hold" if against else "holds"


def some(*texts: str) -> tuple[str, ...]:
    """The texts that say something."""
    return tuple(text for text in texts if text)
