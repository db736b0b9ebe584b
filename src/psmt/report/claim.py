"""Claims: statements with evidence and two verdicts, *as measured* and *beyond controls* (more than in null models)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import exp, inf, isfinite, nan
from typing import Any, Literal, NamedTuple, Self

from psmt.evaluation import Interval, difference_interval
from psmt.evaluation.null_models import NullTest
from psmt.report.numbers import ratio, signed

TIE = 1e-3
"""Errors that differ by less than this fraction count as equal."""

Verdict = Literal["yes", "no", "inconclusive"]
INCONCLUSIVE: Verdict = "inconclusive"
"""Verdict if the sample is too small, or the difference is too small to count."""


class Judgement(NamedTuple):
    """A verdict on a claim, and the comparison that decided it."""

    verdict: Verdict = INCONCLUSIVE
    ratio: float = nan
    """Ratio of errors, or of another measure. It is NaN if the claim is not about a ratio."""
    low: float = nan
    high: float = nan
    """Bounds of the ratio's interval."""
    why: str = ""
    """Sentence that says which comparison or which control decided."""

    @property
    def effect(self) -> str:
        """The ratio and its interval as text, or '' if the claim is not about a ratio."""
        if not isfinite(self.ratio):
            return ""
        # An infinite interval of a logarithm begins at a ratio of 0.
        bounds = Interval(self.ratio, self.low or -inf, self.high)
        return f"{ratio(self.ratio)} {write_interval(bounds, ratio)}".strip()


NO_CONTROLS = Judgement(why="This claim has no controls.")
"""The verdict beyond controls on a claim that has no controls."""

Weighed = tuple[float, Judgement]
"""Strength and judgement. The strength is the distance of the estimate from the threshold, positive for the claim."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A statistic with its interval, the same statistic under null models, and the sample size.

    *As measured*, the statistic supports a claim if its whole interval lies above ``threshold + margin``, and
    contradicts it if the whole interval lies below ``threshold - margin``. *Beyond controls*, the same rule is applied
    to the statistic minus its value under each null model. If `lower_is_better`, above and below are exchanged.
    """

    name: str
    """Description of what was measured, as the beginning of a sentence."""
    statistic: Interval
    nulls: Mapping[str, Interval] = field(default_factory=dict)
    """The same statistic under each null model, by the model's name in a sentence."""
    n: int = 0
    """Sample size, or 0 if it has no meaning."""
    threshold: float = 0.0
    margin: float = 0.0
    lower_is_better: bool = False
    to_ratio: Callable[[float], float] | None = None
    """Converts a value of the statistic to a ratio, such as `exp` for a logarithm. It is None if there is no ratio."""
    write: Callable[[float], str] = signed
    """Writes a value of the statistic as text, if the value does not stand for a ratio."""
    unit: str = ""
    too_few: str = ""
    """Reason why there can be no verdict, such as a small sample. It is empty if there can be a verdict."""
    details: str = ""
    """Text at the end of the sentence."""
    is_control: bool = False
    """Whether the comparison is only a control. It then counts for the verdict beyond controls, but not as measured."""

    @classmethod
    def of_draws(cls, name: str, tests: Mapping[str, NullTest], **how: Any) -> Self:
        """Return evidence from tests of one number against draws of each null model. `how` are the other fields."""
        value = next(iter(tests.values())).value
        excess = {null: test.excess for null, test in tests.items()}
        nulls = {null: Interval(value - own.mean, value - own.high, value - own.low) for null, own in excess.items()}
        return cls(name=name, statistic=Interval(value, value, value), nulls=nulls, **how)

    @property
    def as_measured(self) -> Judgement:
        """The verdict from the statistic alone, without null models."""
        return self.measured[1]

    @property
    def beyond_controls(self) -> Judgement:
        """The verdict from the statistic minus its value under each null model."""
        return decide(self.controlled)

    @property
    def measured(self) -> Weighed:
        """Strength and judgement from the statistic alone, see `Weighed`."""
        return self._judge(self.statistic, lambda verdict: f"{self._measurement}{self._reason(verdict)}.")

    @property
    def controlled(self) -> list[Weighed]:
        """Strength and judgement from the statistic minus its value under each null model.

        Null models are ignored if the evidence is a control, or if the statistic alone does not support the claim. Then
        the list has one entry, from the statistic alone.
        """
        own, there = self.estimate, {null: self.written(value.mean) for null, value in self.nulls.items()}

        def why(verdict: Verdict, null: str) -> str:
            values = f"{self.name}, {own} on the film, {there[null]} there"
            if verdict == "yes":
                return f"The film exceeds every control; the closest is {null}: {values}."
            clearly = "" if verdict == "no" else " clearly"
            return f"The control “{null}” decided: {values}, which the film does not{clearly} exceed."

        if self.is_control or self.as_measured.verdict != "yes":
            strength, measured = self.measured
            clear = "" if measured.verdict == "no" else "clear "
            text = "This control decided" if self.is_control else f"There is no {clear}effect to compare with controls"
            return [(strength, measured._replace(why=f"{text}: {measured.why}"))]
        found, nulls = self.statistic, self.nulls.items()
        return [self._judge(difference_interval(found, value), partial(why, null=null)) for null, value in nulls]

    @property
    def estimate(self) -> str:
        """The value of the statistic as text, with its unit."""
        return f"{self.written(self.statistic.mean)}{self.unit}"

    @property
    def sentence(self) -> str:
        """A sentence with the statistic, its interval, the null models and, if inconclusive, the reason."""
        nulls = [
            f"{self.written(own.mean)} {write_interval(own, self.written)}".rstrip() + f" on {null}"
            for null, own in self.nulls.items()
        ]
        return "; ".join([self._measurement + self.details, *nulls]) + self._reason(self.as_measured.verdict)

    def written(self, value: float) -> str:
        """Return a value of the statistic as text."""
        return self.write(value) if self.to_ratio is None else ratio(self.to_ratio(value))

    def summary(self) -> dict[str, Any]:
        """Return the values for summary.json."""
        return {
            "n": self.n,
            "estimate": self.statistic._asdict(),
            "nulls": {null: own._asdict() for null, own in self.nulls.items()},
            "as_measured": self.as_measured._asdict(),
            "beyond_controls": self.beyond_controls._asdict(),
        }

    @property
    def _measurement(self) -> str:
        return f"{self.name}: {self.estimate} {write_interval(self.statistic, self.written)}".rstrip()

    def _reason(self, verdict: Verdict) -> str:
        return f" ({self.too_few or 'too close to call'})" if verdict == INCONCLUSIVE else ""

    def _judge(self, interval: Interval, why: Callable[[Verdict], str]) -> Weighed:
        sign = -1.0 if self.lower_is_better else 1.0
        strength, *bounds = (sign * (value - self.threshold) for value in interval)
        verdict: Verdict = "yes" if min(bounds) > self.margin else "no" if max(bounds) < -self.margin else INCONCLUSIVE
        if self.too_few:
            verdict = INCONCLUSIVE
        estimate, low, high = (nan if self.to_ratio is None else self.to_ratio(value) for value in interval)
        return strength, Judgement(verdict, estimate, low, high, why(verdict))


error_ratio_evidence = partial(
    Evidence, lower_is_better=True, to_ratio=lambda log: exp(log) if log < 700 else inf, unit=" × the error"
)
"""Evidence whose statistic is the logarithm of a ratio of errors."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement with its two verdicts, the evidence in sentences, and the numbers behind them."""

    key: str
    text: str
    rule: str
    """Condition under which the verdict is 'yes'."""
    as_measured: Judgement
    """Verdict from the comparison on the film, without null models."""
    beyond_controls: Judgement = NO_CONTROLS
    """Verdict with all controls: whether the effect is larger than in null models, which should not have it."""
    paper: bool = True
    """Whether the paper makes the claim."""
    size: str = ""
    """Size of the effect in a few words, or '' if it was not measured."""
    support: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Remarks that are neither for nor against the claim, and reasons for an inconclusive verdict."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """The numbers behind the claim, for programs that read the summary."""

    @classmethod
    def from_evidence(
        cls,
        key: str,
        text: str,
        rule: str,
        evidence: Sequence[Evidence],
        *,
        paper: bool = True,
        more: Sequence[Evidence] = (),
        size: str | None = None,
        notes: Sequence[str] = (),
        figures: Mapping[str, Any] | None = None,
    ) -> Self:
        """Return a claim with the verdict 'yes' if all `evidence` supports it, and 'no' if any contradicts it.

        The evidence in `more` is listed in the notes, but does not affect the verdict. `size` is the effect in words,
        by default the estimate of the weakest evidence. Empty notes are left out.
        """
        weakest = min((e for e in evidence if isfinite(e.measured[0])), key=lambda e: e.measured[0], default=None)
        notes = list(filter(None, notes))

        def sentences(verdict: Verdict) -> list[str]:
            return [own.sentence for own in evidence if own.as_measured.verdict == verdict]

        without = Judgement(why="; ".join(notes) or "There is nothing to compare.")
        controls = [weighed for own in evidence for weighed in own.controlled]
        has_controls = any(own.nulls or own.is_control for own in evidence)
        return cls(
            key=key,
            text=text,
            rule=rule,
            as_measured=decide([own.measured for own in evidence if not own.is_control], without),
            beyond_controls=NO_CONTROLS if evidence and not has_controls else decide(controls, without),
            paper=paper,
            size=size if size is not None else f"{weakest.estimate}, {weakest.name}" if weakest else "",
            support=tuple(sentences("yes")),
            against=tuple(sentences("no")),
            notes=(*sentences(INCONCLUSIVE), *(f"{own.as_measured.verdict}: {own.sentence}" for own in more), *notes),
            figures={own.name: own.summary() for own in evidence} if figures is None else figures,
        )

    @property
    def verdicts(self) -> dict[str, Judgement]:
        """The verdicts 'as measured' and, if there are controls, 'beyond controls', by name."""
        controlled = {} if self.beyond_controls == NO_CONTROLS else {"beyond controls": self.beyond_controls}
        return {"as measured": self.as_measured} | controlled

    def summary(self) -> dict[str, Any]:
        """Return the values for summary.json."""
        return {
            "claim": self.text,
            "of": "the paper" if self.paper else "ours",
            "as_measured": self.as_measured._asdict(),
            "beyond_controls": self.beyond_controls._asdict(),
            "size": self.size,
            "rule": self.rule,
            "for": list(self.support),
            "against": list(self.against),
            "notes": list(self.notes),
            "figures": self.figures,
        }


def all_hold(verdicts: Sequence[Verdict]) -> Verdict:
    """Return 'no' if any verdict is 'no', 'yes' if all are 'yes', else 'inconclusive' (also without verdicts)."""
    if "no" in verdicts:
        return "no"
    return INCONCLUSIVE if not verdicts or INCONCLUSIVE in verdicts else "yes"


def decide(found: Sequence[Weighed], otherwise: Judgement = NO_CONTROLS) -> Judgement:
    """Return the judgement that decides a claim. If the list `found` is empty, return the parameter `otherwise`.

    `all_hold` combines the verdicts. The result is the judgement of least strength among those with that verdict.
    """
    verdict = all_hold([own.verdict for _, own in found])
    deciding = [weighed for weighed in found if weighed[1].verdict == verdict]
    return min(deciding, key=lambda weighed: weighed[0])[1] if deciding else otherwise


def write_interval(interval: Interval, write: Callable[[float], str] = signed) -> str:
    """Return the bounds of an interval as text in brackets, or '' if they are equal.

    >>> [write_interval(Interval(0.5, *bounds)) for bounds in ((0.25, 0.75), (0.5, 0.5), (-inf, inf), (0.25, inf))]
    ['(0.25 to 0.75)', '', '(no interval)', '(0.25 or more)']
    """
    low, high = (write(bound) if isfinite(bound) else "" for bound in interval[1:])
    if interval.low == interval.high:
        return ""
    if low and high:
        return f"({low} to {high})"
    return f"({low} or more)" if low else f"({high} or less)" if high else "(no interval)"
