"""`psmt brain` as an experiment, and its report: claims with their evidence, tables, and the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any

import numpy as np

import psmt
from psmt.evaluation import Interval, mean_interval
from psmt.experiments.brain.figures import atoms_figure, components_figure, states_figure, trust_figure
from psmt.experiments.brain.prediction import PREDICTORS, SCORED
from psmt.experiments.brain.reproducibility import COMPARED, MEASURES, STATE_METHODS, SURROGATES
from psmt.experiments.brain.result import BrainResult
from psmt.experiments.brain.run import study_brains
from psmt.experiments.brain.settings import BrainSettings
from psmt.experiments.contract import Experiment
from psmt.figures import png
from psmt.report import (
    TIE,
    Claim,
    Column,
    Evidence,
    Fact,
    Page,
    Picture,
    Section,
    Table,
    csv_parts,
    error_ratio_evidence,
    write_interval,
)
from psmt.report.numbers import percent, plus, signed
from psmt.types import Array

MAX_ROWS = 20
"""Most people in a table of the page; the files have all."""

_NAMES = {
    "activity": "activity",
    "connectivity": "connectivity less the overall",
    "foretold": "gain in log-likelihood",
    "ridge": "ridge",
    "dmd": "dynamic modes",
    "copy": "copying",
    "mean": "the mean",
}
"""Short names, for claims."""

_claim = partial(Claim.from_evidence, paper=False)


@lru_cache(maxsize=1)
def brain_claims(result: BrainResult) -> list[Claim]:
    """All claims of a study. They are cached: each interval takes a bootstrap."""
    claims = [
        _predicts_better(result, "beats_trivial", "PSMT predicts better than copying and the mean", ("copy", "mean")),
        _predicts_better(result, "beats_linear", "PSMT predicts better than standard linear models", ("ridge", "dmd")),
        _states_found_again(result),
        _beyond_surrogates(
            result,
            "states_beyond_surrogates",
            "States are found again more reliably than in series without dynamics",
            "the correlation of matched states between halves of the people",
            COMPARED,
            " in correlation",
        ),
        _beyond_surrogates(
            result,
            "states_foretell",
            "States predict other people better than in series without dynamics",
            "the gain in log-likelihood of the other half of the people by states, compared with a single state,",
            ["foretold"],
            " nats",
        ),
    ]
    return [*claims, _states_true(result)] if result.agreement else claims


def _predicts_better(result: BrainResult, key: str, text: str, rivals: Sequence[str]) -> Claim:
    logs = dict(zip(PREDICTORS, np.log(result.errors).swapaxes(0, 1), strict=True))
    evidence = [
        error_ratio_evidence(
            name=f"{h} ahead",
            statistic=mean_interval(change),
            margin=TIE,
            unit=f" × the error of {_NAMES[rival]}",
            too_few=_too_few(result.errors, "people"),
        )
        for rival in rivals
        for h, change in enumerate((logs["psmt"] - logs[rival]).T, 1)
    ]
    rule = "the error is lower at each horizon, in paired differences over people with a 95% bootstrap interval"
    return _claim(key, text, rule, evidence, figures=result.mean_errors)


def _gains(rows: Iterable[tuple[str, Interval, str]], unit: str, too_few: str = "") -> list[Evidence]:
    """Evidence by differences that should be positive, each with a name, an interval and details."""
    how: dict[str, Any] = {"write": lambda value: plus(signed(value)), "unit": unit, "too_few": too_few}
    return [Evidence(name=name, statistic=own, details=f"; {details}", **how) for name, own, details in rows]


def _states_found_again(result: BrainResult) -> Claim:
    rows = []
    for measure in COMPARED if result.n_splits else ():
        scores, means = result.between[measure], result.between_means[measure]
        details = f"{signed(means['psmt'].mean)} by PSMT, {signed(means['swc'].mean)} by sliding windows"
        rows.append((_NAMES[measure], mean_interval(scores["psmt"] - scores["swc"]), details))
    return _claim(
        "states_found_again",
        "States are found again in other people more reliably than by sliding windows",
        "matched states of two halves of the people correlate more than those of sliding windows with k-means, over "
        "splits with a 95% interval",
        _gains(rows, " in correlation", _too_few(result.between["activity"]["psmt"], "splits of the people")),
        notes=[_single_person(result)],
        figures={measure: result.between_means[measure] for measure in MEASURES} if result.n_splits else {},
    )


def _beyond_surrogates(
    result: BrainResult, key: str, text: str, what: str, measures: Sequence[str], unit: str
) -> Claim:
    tests = {kind: {measure: own[measure] for measure in measures} for kind, own in result.surrogate_tests.items()}
    rows = [
        (
            f"{_NAMES[measure]}, compared with {SURROGATES[kind]}",
            test.excess,
            f"{signed(test.value)} on scans, {signed(float(test.null.mean()))} on surrogates",
        )
        for kind, own in (tests.items() if result.n_splits else ())
        for measure, test in own.items()
    ]
    return _claim(
        key,
        text,
        f"{what} is larger than in surrogates by the same splits (90% interval of the draws). Shuffled volumes keep "
        "the patterns of regions, but not their order; random phases keep correlations and spectra, as in a "
        "stationary linear process",
        _gains(rows, unit),
        notes=[_single_person(result)],
        figures={kind: {measure: test.summary() for measure, test in own.items()} for kind, own in tests.items()},
    )


def _states_true(result: BrainResult) -> Claim:
    scores, overall = result.agreement_by_person, result.agreement
    rows = [
        (
            f"compared with {STATE_METHODS[name]}",
            mean_interval(scores["psmt"] - own),
            f"{overall['psmt']:.3f} and {overall[name]:.3f} over all volumes",
        )
        for name, own in scores.items()
        if name != "psmt"
    ]
    return _claim(
        "states_true",
        "States agree with the true states better than those of other methods",
        "the adjusted Rand index with the simulated states is higher, in paired differences over people with a 95% "
        "interval",
        _gains(rows, " in adjusted Rand index", _too_few(scores["psmt"], "people")),
        notes=["" if "hmm" in overall else "hmmlearn is not installed, so there is no HMM to compare with"],
        figures=overall,
    )


def _too_few(sample: Array, what: str) -> str:
    return f"{len(sample)} {what}; an interval needs at least three" if len(sample) < 3 else ""


def _single_person(result: BrainResult) -> str:
    return "" if result.n_splits else "a single person cannot be split into halves of people"


@lru_cache(maxsize=1)
def brain_tables(result: BrainResult) -> list[Table]:
    """Errors, states found again, and on simulated scans agreement with the truth."""
    errors, copied = result.mean_errors, result.mean_errors["copy"]

    def ahead(h: int) -> Column:
        return Column(
            f"{h + 1} ahead",
            lambda name: errors[name][h],
            "{:.3f}".format,
            best=min,
            loses=lambda name: errors[name][h] > (1 + TIE) * copied[h],
        )

    columns = [Column("method", PREDICTORS.__getitem__), *map(ahead, range(len(copied)))]
    caption = "Error (MSE / variance of the scored part), mean over people"
    tables = [Table.of(caption, PREDICTORS, columns), _states_table(result)]
    if result.agreement:
        columns = [
            Column("method", STATE_METHODS.__getitem__),
            Column("all volumes", result.agreement.__getitem__, "{:.3f}".format, best=max),
            Column("mean over people, 95%", lambda name: _mean(mean_interval(result.agreement_by_person[name]))),
        ]
        caption = "Agreement with the simulated states (adjusted Rand index)"
        tables.append(Table.of(caption, result.agreement, columns))
    return tables


def _states_table(result: BrainResult) -> Table:
    between, within = result.between_means, result.within_means

    def written(draws: Array) -> str:
        return f"{signed(draws.mean())} ({signed(draws.min())} to {signed(draws.max())})" if len(draws) else "–"

    rows = [
        (
            STATE_METHODS[method],
            *(_mean(between[measure][method]) for measure in MEASURES),
            *(_mean(within[measure][method]) for measure in COMPARED),
        )
        for method in between["activity"]
    ]
    rows += [
        (
            f"PSMT on {SURROGATES[kind]}",
            *(written(tests[measure].null) for measure in MEASURES),
            *(_mean(mean_interval(result.within_nulls[kind][measure])) for measure in COMPARED),
        )
        for kind, tests in result.surrogate_tests.items()
    ]
    columns = ["people: activity", "people: connectivity", "people: whole connectivity"]
    columns += ["a person's time: activity", "a person's time: connectivity"]
    caption = "Correlation of matched states between halves of the people, and of each person's time"
    return _table(caption, ["method", *columns], rows)


def _components_table(result: BrainResult) -> Table:
    counts = list(result.component_counts.items())[:MAX_ROWS]
    caption = "Components and their events; persistent ones are seen in windows that do not overlap"
    return _table(caption, ["person", *counts[0][1]], [(name, *own.values()) for name, own in counts])


def _occupancy_table(result: BrainResult) -> Table:
    def cell(share: float, dwell: float) -> str:
        return f"{percent(share)}, {result.seconds * dwell:.1f}" if np.isfinite(dwell) else "never"

    people = [("all people", result.group_dynamics), *list(result.person_dynamics.items())[:MAX_ROWS]]
    caption = f"Share of time and mean dwell time ({result.unit}) of each state"
    columns = ["person", *(f"state {k + 1}" for k in range(result.n_states))]
    return _table(caption, columns, [(name, *map(cell, own.occupancy, own.dwell)) for name, own in people])


def _table(caption: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> Table:
    return Table.of(caption, rows, [Column(name, itemgetter(k)) for k, name in enumerate(columns)])


def brain_page(result: BrainResult, pictures: Mapping[str, bytes]) -> Page:
    """Page with PNG files by name."""
    study, settings, networks = result.study, result.settings, result.between_means["networks"]["psmt"].mean

    def section(title: str, text: str, picture: str, alt: str, tables: Sequence[Table] = ()) -> Section:
        return Section(title=title, text=[text], pictures=[Picture(pictures[picture], alt=alt)], tables=tables)

    reproduced = ""
    if np.isfinite(networks):
        reproduced = f" Matched atoms of two halves of the people have a mean correlation of {signed(networks)}."
    chosen = f"The number of states was set to {result.n_states}."
    if result.state_scores:
        chosen = (
            f"{result.n_states} states were chosen out of {min(result.state_scores)} to {max(result.state_scores)}: "
            "the fewest that reach four fifths of the largest gain in predicting other people."
        )
    sections = [
        section(
            "Networks",
            f"All people share one dictionary of {settings.n_atoms} atoms. An atom is a pattern of regions that are "
            f"active together; a volume is a sum of few atoms.{reproduced}",
            "networks.png",
            "Regions by networks, and atoms on a glass brain",
        ),
        section(
            "Components over time",
            f"In each window of {settings.window} volumes, atoms are linked if their columns of P point in the same "
            "direction (as in Fig. 3 of the paper). A component is a set of linked atoms. It continues in the next "
            "window if half of its atoms, at least two, are in one component there. It is persistent if it is seen in "
            "windows that do not overlap.",
            "components.png",
            "Sizes of components over time, with births and ends",
            [_components_table(result)],
        ),
        section(
            "States",
            f"{chosen} A state is a place in the embedding that attracts the trajectory of the brain. A Markov chain "
            "describes which state comes next. From volume to volume the trajectory keeps "
            f"{percent(result.model.memory)} of its position. Transitions are shares of all changes from a state to "
            "another one.",
            "states.png",
            "States over time, their patterns, transitions and dwell times",
            [_occupancy_table(result)],
        ),
        section(
            "How far to trust it",
            f"The last {percent(SCORED)} of each series is predicted from the volumes before it. States are fitted "
            "separately to two halves of the people and matched by correlation: of the mean activity of regions "
            "(activity), and of the correlations between regions less those in all volumes (connectivity). The same "
            "is done with surrogates.",
            "trust.png",
            "Errors by volumes ahead, and matched correlations",
            brain_tables(result),
        ),
    ]
    lengths = " to ".join(f"{n:,}" for n in sorted({min(study.lengths), max(study.lengths)}))
    model = (
        f"M = {settings.n_atoms}, α = {settings.alpha:g}, H = {settings.window}, {settings.n_components} directions, "
        f"drifts below {settings.high_pass or 0:g} Hz removed, seed {settings.seed}"
    )
    compared = f"{len(result.within['activity']['psmt'])} people, {result.n_splits} splits"
    facts = [
        Fact("People", f"{len(study.names)}, {lengths} volumes each"),
        Fact("Regions", f"{len(study.regions)}"),
        Fact("TR", f"{study.tr:g} s" if study.tr else "not known; times are in volumes"),
        *(Fact("Left out", remark) for remark in study.remarks),
        Fact("Model", model),
        Fact("Compared on", f"{compared}, {settings.n_surrogates} draws of each surrogate"),
        Fact("Version", f"psmt {psmt.__version__}"),
    ]
    errors = {name: own[0] for name, own in result.mean_errors.items()}
    lead = (
        f"{len(study.names)} people, {len(study.regions)} regions, {result.n_states} states. One volume ahead the "
        f"error, as a share of the variance, is {errors['psmt']:.2f} with PSMT, {errors['ridge']:.2f} with ridge "
        f"autoregression and {errors['copy']:.2f} with copying."
    )
    if result.agreement:
        lead += f" The adjusted Rand index with the simulated states is {result.agreement['psmt']:.2f}."
    title = "Dynamic networks of the brain"
    return Page(title=title, lead=lead, claims=brain_claims(result), sections=sections, facts=facts)


def _mean(interval: Interval) -> str:
    if not np.isfinite(interval.mean):
        return "–"
    return f"{signed(interval.mean)} {write_interval(interval)}" if interval.is_finite else signed(interval.mean)


EXPERIMENT = Experiment[BrainSettings, BrainResult](
    run=lambda study, settings, run, _: study_brains(study, settings, run),
    files={
        "networks.png": lambda result: png(atoms_figure(result)),
        "components.png": lambda result: png(components_figure(result)),
        "states.png": lambda result: png(states_figure(result)),
        "trust.png": lambda result: png(trust_figure(result)),
        "prediction.csv": lambda r: csv_parts(("subject", "method", "horizon", "error"), r.prediction_rows()),
        "states.csv": lambda r: csv_parts(("subject", "volume", "time", "state", "probability"), r.state_rows()),
        "topology.csv": lambda r: csv_parts(
            ("subject", "volume", "time", "component", "atoms", "event", "ends"), r.topology_rows()
        ),
    },
    shown=lambda result: [*brain_tables(result), *brain_claims(result)],
    page=brain_page,
    summary=BrainResult.summary,
    complete=True,
)
