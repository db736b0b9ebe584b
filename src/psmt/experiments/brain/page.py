"""The page of `psmt brain`: claims, networks, components, states, predictions, and how it was made."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import psmt
from psmt.evaluation import Interval, mean_interval
from psmt.experiments.brain.claims import brain_claims
from psmt.experiments.brain.halves import MEASURES, METHODS
from psmt.experiments.brain.prediction import METHODS as PREDICTORS
from psmt.experiments.brain.prediction import SCORED
from psmt.experiments.brain.result import BrainResult
from psmt.experiments.brain.surrogates import SURROGATES
from psmt.report import TIE, Cell, Fact, Page, Picture, Section, Table
from psmt.report.numbers import percent, signed

MOST_ROWS = 20
"""People in a table of the page; all are in the files."""


def brain_page(result: BrainResult, pictures: Mapping[str, bytes]) -> Page:
    """Page with PNG files by name."""
    study, settings = result.study, result.settings
    prediction, found, *agreement = brain_tables(result)
    return Page(
        title="Dynamic networks of the brain",
        lead=_lead(result),
        claims=brain_claims(result),
        sections=[
            Section(
                title="Networks",
                text=[
                    f"One dictionary of {settings.n_atoms} atoms serves all people: each atom is a pattern of regions "
                    "that are active together, and a volume is a sum of few of them. Between halves of the people, "
                    f"matched one to one, they correlate by {_mean(mean_interval(result.networks))} on the mean.",
                ],
                pictures=[Picture(pictures["networks.png"], alt="Regions by networks, and atoms on a glass brain")],
            ),
            Section(
                title="Components over time",
                text=[
                    f"In each window of {settings.window} volumes atoms are linked whose columns of P point "
                    "the same way (as in Fig. 3 of the paper); linked atoms are a component. A component goes on where "
                    "half of its atoms, two at least, are in one of the next window; it persists if it is seen in "
                    "windows without a common volume.",
                ],
                pictures=[
                    Picture(pictures["components.png"], alt="Sizes of components over time, with births and ends")
                ],
                tables=[_components(result)],
            ),
            Section(
                title="States",
                text=[
                    f"{_how_many(result)} A state is a place that the trajectory of the brain through the embedding is "
                    "drawn to, and a Markov chain says which comes next. From volume to volume the trajectory keeps "
                    f"{percent(result.model.memory)} of where it was. Transitions are shares of its leavings.",
                ],
                pictures=[
                    Picture(pictures["states.png"], alt="States over time, their patterns, transitions and dwell times")
                ],
                tables=[_occupancy(result)],
            ),
            Section(
                title="How far to trust it",
                text=[
                    f"The last {percent(SCORED)} of each series is predicted from what came before. States are fitted "
                    "anew on two halves of the people and matched, by the correlation of what regions do (activity) "
                    "and of how they correlate beyond what all volumes show (connectivity); surrogates go likewise.",
                ],
                pictures=[Picture(pictures["trust.png"], alt="Errors by volumes ahead, and matched correlations")],
                tables=[prediction, found, *agreement],
            ),
        ],
        facts=[
            Fact("People", _people(result)),
            Fact("Regions", f"{len(study.regions)}"),
            Fact("TR", f"{study.tr:g} s" if study.tr else "not known; times are in volumes"),
            *(Fact("Left out", remark) for remark in study.remarks),
            Fact(
                "Model",
                f"M = {settings.n_atoms}, α = {settings.alpha:g}, H = {settings.window}, {settings.n_components} "
                f"directions, drifts below {settings.high_pass or 0:g} Hz removed, seed {settings.seed}",
            ),
            Fact(
                "Compared on",
                f"{len(result.within)} people, {len(result.between)} splits, {settings.n_surrogates} draws of each "
                "surrogate",
            ),
            Fact("Version", f"psmt {psmt.__version__}"),
        ],
    )


def brain_tables(result: BrainResult) -> list[Table]:
    """Errors, states found again, and on simulated scans agreement with the truth."""
    tables = [_errors(result), _found_again(result)]
    if result.agreement:
        rows = [
            [
                Cell(METHODS[name]),
                Cell(f"{value:.3f}", "best" if value == max(result.agreement.values()) else ""),
                Cell(_told(mean_interval(result.agreement_by_person[name]))),
            ]
            for name, value in result.agreement.items()
        ]
        columns = ("method", "all volumes", "person by person, 95%")
        tables.append(Table("Agreement with the simulated states (adjusted Rand index)", columns, rows))
    return tables


def _errors(result: BrainResult) -> Table:
    means = result.errors.mean(axis=0)
    copied = means[list(PREDICTORS).index("copy")]
    rows = []
    for name, own in zip(PREDICTORS, means, strict=True):
        cells = [
            Cell(
                f"{error:.3f}",
                "best" if error == means[:, h].min() else "loses" if error > (1 + TIE) * copied[h] else "",
            )
            for h, error in enumerate(own)
        ]
        rows.append([Cell(PREDICTORS[name]), *cells])
    columns = ("method", *(f"{h + 1} ahead" for h in range(means.shape[1])))
    return Table("Error (MSE / variance of the scored part), mean over people", columns, rows)


def _found_again(result: BrainResult) -> Table:
    rows = []
    for i, name in enumerate(result.methods):
        cells = [Cell(_told(mean_interval(result.between[:, i, k]))) for k in range(len(MEASURES))]
        cells += [Cell(_told(mean_interval(result.within[:, i, k]))) for k in range(2)]
        rows.append([Cell(METHODS[name]), *cells])
    for kind in SURROGATES:
        cells = [Cell(_spread(result.against(kind, measure).null)) for measure in MEASURES]
        cells += [Cell(_told(mean_interval(result.within_nulls[kind][:, k]))) for k in range(2)]
        rows.append([Cell(f"PSMT, surrogates: {kind}"), *cells])
    columns = (
        "method",
        "people: activity",
        "people: connectivity",
        "people: whole connectivity",
        "a person's time: activity",
        "a person's time: connectivity",
    )
    return Table("Matched correlation of states between halves of the people, and of each person's time", columns, rows)


def _components(result: BrainResult) -> Table:
    columns = ("person", "components", "births", "merges", "splits", "returns", "ends", "persistent", "recurrent")
    counts = [result.topology_counts(k) for k in range(min(len(result.steps), MOST_ROWS))]
    rows = [
        [Cell(result.study.subjects[k].name), *(Cell(str(own[name])) for name in columns[1:])]
        for k, own in enumerate(counts)
    ]
    return Table("What became of the components; persistent: seen in windows without a common volume", columns, rows)


def _occupancy(result: BrainResult) -> Table:
    rows = []
    for name, own in [
        ("all people", result.dynamics()),
        *((result.study.subjects[k].name, result.dynamics(k)) for k in range(min(len(result.states), MOST_ROWS))),
    ]:
        cells = [
            Cell(f"{percent(share)}, {result.seconds * dwell:.1f}" if np.isfinite(dwell) else "never")
            for share, dwell in zip(own.occupancy, own.dwell, strict=True)
        ]
        rows.append([Cell(name), *cells])
    columns = ("person", *(f"state {k + 1}" for k in range(result.n_states)))
    return Table(f"Share of time and mean dwell time ({result.unit}) of each state", columns, rows)


def _lead(result: BrainResult) -> str:
    means = dict(zip(PREDICTORS, result.errors.mean(axis=0)[:, 0], strict=True))
    text = (
        f"{len(result.states)} people, {len(result.study.regions)} regions, {result.n_states} states. One volume ahead "
        f"PSMT has {means['psmt']:.2f} of the variance as error, ridge autoregression {means['ridge']:.2f}, copying "
        f"{means['copy']:.2f}."
    )
    if result.agreement:
        text += f" The states agree with the simulated ones by {result.agreement['psmt']:.2f} (adjusted Rand index)."
    return text


def _how_many(result: BrainResult) -> str:
    if not result.state_scores:
        return f"{result.n_states} states were asked for."
    return (
        f"{result.n_states} states: the fewest that gain four fifths of what any number of them gains in foretelling "
        f"other people; {min(result.state_scores)} to {max(result.state_scores)} were tried."
    )


def _people(result: BrainResult) -> str:
    lengths = result.study.lengths
    volumes = f"{min(lengths):,}" if min(lengths) == max(lengths) else f"{min(lengths):,} to {max(lengths):,}"
    return f"{len(lengths)}, {volumes} volumes each"


def _mean(interval: Interval) -> str:
    return signed(interval.mean) if np.isfinite(interval.mean) else "an unknown amount (one person)"


def _told(interval: Interval) -> str:
    if not np.isfinite(interval.mean):
        return "–"
    if not interval.is_finite:
        return signed(interval.mean)
    return f"{signed(interval.mean)} ({signed(interval.low)} to {signed(interval.high)})"


def _spread(values: np.ndarray) -> str:
    return f"{signed(values.mean())} ({signed(values.min())} to {signed(values.max())})" if len(values) else "–"
