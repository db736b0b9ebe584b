"""The page of the documentation with all tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from psmt.evaluation.intervals import FEWEST_SWAPS, FEWEST_VALUES, mean_interval
from psmt.evaluation.null_models import NULL_NAMES
from psmt.experiments.brain.reproducibility import split_interval
from studies.calibration.measure import (
    MARGINS,
    Measured,
    film_coverage,
    mean_coverage,
    null_film_errors,
    ratio_coverage,
    split_coverage,
    split_scores,
    swap_coverage,
)

SIZES = (3, 4, 5, 8, 16, 32, 64)
KNOWN = tuple(n for n in SIZES if n >= FEWEST_VALUES)
SWAPPED = (FEWEST_SWAPS, 8, 12, 16, 20, 32)
AUTOCORRELATIONS = (0.0, 0.3, 0.6)
SPREADS = ((0.5, 0.5), (1.0, 1.0), (1.5, 1.5), (1.5, 0.7))
"""Standard deviations of the logarithm of both errors."""

SAID = {"": False, ", `independent=True`": True}

INTRODUCTION = """\
# Calibration of the intervals

    python -m studies.calibration --out docs/notes/calibration.md

That command writes this page. It shows how often nominal 95% intervals cover the truth, and their power. A cell is
*coverage / power*, both in percent, of {draws:,} samples ({films:,} films or groups of people). Coverage outside 93 to
97% is bold. Power is the share of intervals that find an effect: a mean of one standard deviation, or half the error.
Below 5 values there is no interval, and claims are inconclusive.

By default, values may depend on each other to an unknown degree. This costs power: 5 to 11 values leave one degree of
freedom, and 12 to 20 leave two. Where values are independent by design (people; films with different seeds), callers
say `independent=True`, and power is high from 5 values on. With `block=2, independent=True`, neighbours may be weakly
correlated: this covers 92% at an autocorrelation of 0.3.

The claims of `psmt predict` compare two methods at a few starts of one film, which share no predicted frame, by
`swap_interval`. It needs 6 starts. If starts are independent and both methods have errors with similar tails, it covers
95 to 97%. Where few starts have most of the error (standard deviation 1.5), 8 starts have three times the power of
`ratio_interval`, and 16 starts twice. At an autocorrelation of 0.3 it covers 86 to 91% from 8 starts on. Frames that
follow each other are more dependent than that, so `psmt predict-video` uses `ratio_interval`.

Coverage is 93 to 97% for means of values that are not skewed, from 5 values on, except with 5 or 16 values and an
autocorrelation of 0.6 (92 to 93%). Intervals of the ratio of few errors, or of errors with heavy tails, cover more than
97%, because they are often unbounded on one side.

Two things are covered too rarely. The mean of skewed values is above what few values show: rare large values raise it,
and most samples do not contain them. If one error has much heavier tails than the other, the same happens to the ratio
of their means. If both have the same tails, large errors cancel.
"""


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A markdown table under a heading."""
    lines = [columns, ["---:"] * len(columns), *rows]
    return "\n".join([f"## {title}\n", *(f"| {' | '.join(map(str, line))} |" for line in lines)])


def by_autocorrelation(title: str, coverage: Callable[..., Measured]) -> str:
    """Table of independent values that are said to be so, and of each autocorrelation."""
    columns = ["n", "independent, `independent=True`", *(f"autocorrelation {rho:g}" for rho in AUTOCORRELATIONS)]
    few = [[n, *["too few"] * (len(columns) - 1)] for n in SIZES if n < FEWEST_VALUES]
    known = [[n, coverage(n, 0.0, independent=True), *(coverage(n, rho) for rho in AUTOCORRELATIONS)] for n in KNOWN]
    return table(title, columns, [*few, *known])


def swap_table(rho: float, draws: int) -> str:
    """Table of `swap_interval` on errors with equal, heavy and unequal tails."""
    columns = ["n", *(f"{one:g} and {other:g}" for one, other in SPREADS)]
    few = [[n, *["too few"] * len(SPREADS)] for n in SIZES if FEWEST_VALUES <= n < FEWEST_SWAPS]
    known = ([n, *(swap_coverage(n, rho, draws, spreads=own) for own in SPREADS)] for n in SWAPPED)
    title = f"Ratios by swaps (`swap_interval`): log-normal, autocorrelation {rho:g}, by standard deviations"
    return table(title, columns, [*few, *known])


def page(draws: int, films: int) -> str:
    """The whole page."""
    tables = [
        by_autocorrelation(f"Means: {margin}", partial(mean_coverage, draws=draws, margin=margin)) for margin in MARGINS
    ]
    told = partial(mean_coverage, draws=draws, independent=True)
    tables += [
        table(
            "Means of normal values that are said to be independent",
            ["n", *(f"autocorrelation {rho:g}{by}" for rho in AUTOCORRELATIONS[1:] for by in ("", ", `block=2`"))],
            ([n, *(told(n, rho, block=block) for rho in AUTOCORRELATIONS[1:] for block in (1, 2))] for n in KNOWN[1:]),
        ),
        table(
            "Means of normal values in pairs of equal values",
            ["n", "by default", "`block=2`", "`block=2, independent=True`"],
            (
                [
                    n,
                    mean_coverage(n, 0.0, draws, repeat=2),
                    mean_coverage(n, 0.0, draws, repeat=2, block=2),
                    told(n, 0.0, repeat=2, block=2),
                ]
                for n in KNOWN[1:]
            ),
        ),
    ]
    tables += [
        by_autocorrelation(
            f"Ratios of mean errors: log-normal with standard deviations {one:g} and {other:g}",
            partial(ratio_coverage, draws=draws, spreads=(one, other)),
        )
        for one, other in SPREADS
    ]
    tables += [swap_table(rho, draws) for rho in AUTOCORRELATIONS[:2]]
    null_films = {kind: [null_film_errors(kind, seed) for seed in range(films)] for kind in NULL_NAMES}
    groups = {n: split_scores(n, films) for n in KNOWN[:-2]}
    tables += [
        table(
            "Null films: the error of copying relative to that of the mean",
            ["starts", *(f"{NULL_NAMES[kind]}{said}" for kind in null_films for said in SAID)],
            (
                [n, *(film_coverage(own, n, independent=said) for own in null_films.values() for said in SAID.values())]
                for n in KNOWN[:-1]
            ),
        ),
        table(
            "Splits of the same people into halves (coverage)",
            ["people", "`split_interval`", "splits taken for independent"],
            (
                [
                    n,
                    split_coverage(scores, partial(split_interval, n_people=n)),
                    split_coverage(scores, partial(mean_interval, independent=True)),
                ]
                for n, scores in groups.items()
            ),
        ),
    ]
    return "\n\n".join([INTRODUCTION.format(draws=draws, films=films).rstrip(), *tables]) + "\n"
