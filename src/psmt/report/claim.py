"""Claims: a statement, the evidence that decides it, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from psmt.evaluation import Interval, difference_interval
from psmt.report.numbers import log_ratio, signed

TIE = 1e-3
"""Errors that differ by less than this fraction are called equal."""

Verdict = Literal["holds", "does not hold", "inconclusive"]
INCONCLUSIVE: Verdict = "inconclusive"
"""The sample is too small, or the difference is a tie."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A statistic with its interval, the same statistic under null models, and the sample size.

    The statistic supports a claim if its whole interval lies above ``threshold + margin``, and contradicts it if the
    whole interval lies below ``threshold - margin``. If `lower_is_better`, above and below change places. Where null
    models are given, the statistic must also exceed that of each null model by more than the margin.
    """

    name: str
    """What was measured, as the beginning of a sentence."""
    statistic: Interval
    nulls: Mapping[str, Interval] = field(default_factory=dict)
    """The same statistic under each null model, by the model's name in a sentence."""
    n: int = 0
    """Sample size; 0 if it has no meaning."""
    threshold: float = 0.0
    margin: float = 0.0
    lower_is_better: bool = False
    write: Callable[[float], str] = signed
    """How a value of the statistic is written, for example as a ratio."""
    unit: str = ""
    too_few: str = ""
    """Why there can be no verdict, such as a small sample; empty if there can be one."""
    details: str = ""
    """Text at the end of the sentence."""
    values: ArrayLike = field(default=(), repr=False, compare=False)
    """The values (n,) behind the statistic, for figures."""
    null_values: Mapping[str, ArrayLike] = field(default_factory=dict, repr=False, compare=False)

    @property
    def as_measured(self) -> Verdict:
        """Verdict without the null models."""
        return INCONCLUSIVE if self.too_few else self._judge(self.statistic, self.threshold)

    def beyond(self, null: str) -> Verdict:
        """Whether the effect exceeds that of a null model."""
        return self._judge(difference_interval(self.statistic, self.nulls[null]), 0.0)

    @property
    def verdict(self) -> Verdict:
        """Verdict with the null models."""
        if self.as_measured != "holds":
            return self.as_measured
        return all_hold(["holds", *map(self.beyond, self.nulls)])

    @property
    def strength(self) -> float:
        """Distance of the estimate from the threshold, positive in favour of the claim."""
        distance = self.statistic.mean - self.threshold
        return -distance if self.lower_is_better else distance

    @property
    def estimate(self) -> str:
        """The estimate with its unit."""
        return f"{self.write(self.statistic.mean)}{self.unit}"

    @property
    def sentence(self) -> str:
        """The estimate, its interval, the null models, and the reason for the verdict."""
        text = f"{self.name}: {self.estimate} {write_interval(self.statistic, self.write)}{self.details}"
        nulls = [
            f"{self.write(own.mean)} {write_interval(own, self.write)} on {null}" for null, own in self.nulls.items()
        ]
        text = "; ".join([text, *nulls])
        if self.too_few:
            return f"{text} ({self.too_few})"
        if self.as_measured == "holds" != self.verdict:
            return f"{text} (not clearly better than on the null models)"
        return f"{text} (too close to call)" if self.as_measured == INCONCLUSIVE else text

    def summary(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "n": self.n,
            "estimate": self.statistic._asdict(),
            "as_measured": self.as_measured,
            "nulls": {
                null: {"estimate": own._asdict(), "beyond": self.beyond(null)} for null, own in self.nulls.items()
            },
            "verdict": self.verdict,
        }

    def _judge(self, interval: Interval, threshold: float) -> Verdict:
        low, high = interval.low - threshold, interval.high - threshold
        if self.lower_is_better:
            low, high = -high, -low
        if low > self.margin:
            return "holds"
        return "does not hold" if high < -self.margin else INCONCLUSIVE


error_ratio_evidence = partial(Evidence, lower_is_better=True, write=log_ratio, unit=" × the error")
"""Evidence whose statistic is the logarithm of a ratio of errors."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement with its verdict and the figures behind it."""

    key: str
    text: str
    rule: str
    """When the claim holds."""
    verdict: Verdict
    paper: bool = True
    """Whether the paper makes the claim."""
    size: str = ""
    """Size of the effect in a few words; empty if it was not measured."""
    support: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What is neither for nor against the claim, and why it is inconclusive."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """The numbers, for programs."""

    @classmethod
    def from_evidence(
        cls,
        key: str,
        text: str,
        rule: str,
        evidence: Sequence[Evidence],
        *,
        paper: bool = True,
        verdict: Verdict | None = None,
        size: str | None = None,
        notes: Sequence[str] = (),
        figures: Mapping[str, Any] | None = None,
    ) -> Claim:
        """Claim that holds if all its evidence does; each piece of evidence is listed for or against it.

        The size is by default that of the weakest evidence. Empty notes are left out. A given `verdict` decides in
        place of all evidence together.
        """
        weakest = min((e for e in evidence if np.isfinite(e.strength)), key=lambda e: e.strength, default=None)

        def sentences(verdict: Verdict) -> list[str]:
            return [own.sentence for own in evidence if own.verdict == verdict]

        return cls(
            key=key,
            text=text,
            rule=rule,
            verdict=all_hold([own.verdict for own in evidence]) if verdict is None else verdict,
            paper=paper,
            size=size if size is not None else f"{weakest.estimate}, {weakest.name}" if weakest else "",
            support=tuple(sentences("holds")),
            against=tuple(sentences("does not hold")),
            notes=tuple(filter(None, [*sentences(INCONCLUSIVE), *notes])),
            figures={own.name: own.summary() for own in evidence} if figures is None else figures,
        )

    def summary(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "claim": self.text,
            "of": "the paper" if self.paper else "ours",
            "verdict": self.verdict,
            "size": self.size,
            "rule": self.rule,
            "for": list(self.support),
            "against": list(self.against),
            "notes": list(self.notes),
            "figures": self.figures,
        }


def all_hold(verdicts: Sequence[Verdict]) -> Verdict:
    """'holds' if all verdicts do, 'does not hold' if one does not; inconclusive otherwise, and without any verdict."""
    if "does not hold" in verdicts:
        return "does not hold"
    return INCONCLUSIVE if not verdicts or INCONCLUSIVE in verdicts else "holds"


def write_interval(interval: Interval, write: Callable[[float], str] = signed) -> str:
    """The bounds of an interval in brackets.

    >>> write_interval(Interval(0.5, 0.25, 0.75)), write_interval(Interval(0.5, -float("inf"), float("inf")))
    ('(0.25 to 0.75)', '(no interval)')
    """
    if not interval.is_finite:
        return "(no interval)"
    return f"({write(interval.low)} to {write(interval.high)})"
