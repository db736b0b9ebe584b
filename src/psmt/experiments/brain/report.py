"""Declaration and report of the experiment `psmt brain`: claims with their evidence, tables, and the page."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from io import BytesIO
from typing import Any

import numpy as np

from psmt.evaluation import Interval, mean_interval, ratio_interval
from psmt.evaluation.intervals import FEWEST_VALUES
from psmt.evaluation.null_models import LEVEL
from psmt.experiments.brain import exports
from psmt.experiments.brain.figures import atoms_figure, components_figure, states_figure
from psmt.experiments.brain.maps import nifti_file
from psmt.experiments.brain.prediction import PREDICTORS, SCORED
from psmt.experiments.brain.reproducibility import MEASURES, STATE_METHODS, split_interval
from psmt.experiments.brain.result import BrainResult
from psmt.experiments.brain.run import study_brains
from psmt.experiments.brain.settings import BrainSettings
from psmt.experiments.contract import Experiment
from psmt.figures import png
from psmt.report import TIE, Answer, Claim, Column, Evidence, Fact, Page, Picture, Section, Table
from psmt.report.claim import error_ratio_evidence, write_interval
from psmt.report.numbers import percent, plus, signed
from psmt.types import Array

MAX_ROWS = 20
"""Largest number of people in a table of the page. The files have all people."""

_NAMES = {
    "activity": "activity",
    "connectivity": "connectivity less the overall",
    "ridge": "ridge",
    "lasso": "the lasso",
    "reduced_rank": "reduced rank",
    "dmd": "dynamic modes",
    "copy": "copying",
    "mean": "the mean",
}
"""Short names of measures and predictors, for claims."""

_AGAIN = {"between": "other people", "within": "the same person", "between-within": "other people and the same person"}

LINEAR = ("ridge", "lasso", "reduced_rank", "dmd")

_claim = partial(Claim.from_evidence, paper=False)
_people_interval = partial(mean_interval, independent=True)


@lru_cache(maxsize=1)
def brain_claims(result: BrainResult) -> list[Claim]:
    """Return all claims with their verdicts, or [] if an earlier model was applied. The result is cached."""
    if not result.compared:
        return []
    claims = [
        _predicts_better(result, "beats_trivial", "PSMT predicts better than copying and the mean", ("copy", "mean")),
        _predicts_better(result, "beats_linear", "PSMT predicts better than standard linear models", LINEAR),
        _found_again(result, "states_found_again", ["between"], "swc"),
        _found_again(result, "states_within_person", ["within"], "swc"),
        _found_again(result, "beyond_principal_components", ["between", "within"], "pca"),
        _beyond_surrogates(result),
    ]
    return [*claims, _states_true(result)] if result.agreement else claims


def _predicts_better(result: BrainResult, key: str, text: str, rivals: Sequence[str]) -> Claim:
    errors = dict(zip(PREDICTORS, result.errors.swapaxes(0, 1), strict=True))
    evidence = [
        error_ratio_evidence(
            name=f"{h} ahead",
            statistic=ratio_interval(own, other, independent=True),
            margin=TIE,
            unit=f" × the error of {_NAMES[rival]}",
            too_few=_too_few(len(result.errors)),
        )
        for rival in rivals
        for h, (own, other) in enumerate(zip(errors["psmt"].T, errors[rival].T, strict=True), 1)
    ]
    rule = "the mean error over people is lower at each horizon (95% interval of the ratio of mean errors)"
    return _claim(key, text, rule, evidence, figures=result.mean_errors)


def _gains(rows: Iterable[tuple[str, Interval, str]], unit: str, too_few: str = "") -> list[Evidence]:
    """Return a piece of evidence for each row (name, difference, details). A difference > 0 supports the claim."""
    how: dict[str, Any] = {"write": lambda value: plus(signed(value)), "unit": unit, "too_few": too_few}
    return [Evidence(name=name, statistic=own, details=f"; {details}", **how) for name, own, details in rows]


def _differences(result: BrainResult, scope: str, rival: str) -> list[tuple[str, Interval, str]]:
    """Return rows for `_gains`: PSMT's scores minus those of a rival, from the field `scope` of `BrainResult`."""
    rows = []
    for measure in MEASURES if result.n_splits or scope == "within" else ():
        scores: Mapping[str, Array] = getattr(result, scope)[measure]
        less = scores["psmt"] - scores[rival]
        interval = split_interval(less, result.n_compared) if scope == "between" else _people_interval(less)
        means = [signed(float(np.mean(scores[name]))) for name in ("psmt", rival)]
        rows.append((f"{_NAMES[measure]} in {_AGAIN[scope]}", interval, f"{means[0]} by PSMT, {means[1]} by the other"))
    return rows


def _found_again(result: BrainResult, key: str, scopes: Sequence[str], rival: str) -> Claim:
    text = f"States are found again in {_AGAIN['-'.join(scopes)]} more reliably than by {STATE_METHODS[rival]}"
    rule = (
        f"matched states of two halves correlate more than those of {STATE_METHODS[rival]} (95% interval; splits into "
        "halves have the same people and are not independent)"
    )
    rows = [row for scope in scopes for row in _differences(result, scope, rival)]
    few, notes = _too_few(result.n_compared), [_single_person(result)]
    return _claim(key, text, rule, _gains(rows, " in correlation", few), notes=notes)


def _beyond_surrogates(result: BrainResult) -> Claim:
    test, rows = result.surrogate_tests["likelihood_gain"], []
    if result.n_splits:
        details = f"{signed(test.value)} on scans, {signed(test.null_mean)} on surrogates"
        rows.append(("gain in log-likelihood, compared with random phases", test.excess, details))
    return _claim(
        "states_predict_people",
        "States predict other people better than in series without switching",
        "the gain in log-likelihood of the other half of the people by states, compared with a single state, is larger "
        "than in surrogates by the same splits (90% interval of the draws). Random phases keep correlations and "
        "spectra, as in a stationary linear process",
        _gains(rows, " nats"),
        notes=[_single_person(result)],
        figures=test.summary(),
    )


def _states_true(result: BrainResult) -> Claim:
    scores, overall = result.agreement_by_person, result.agreement
    rows = [
        (
            f"compared with {STATE_METHODS[name]}",
            _people_interval(scores["psmt"] - own),
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
        _gains(rows, " in adjusted Rand index", _too_few(result.n_compared)),
        notes=["" if "hmm" in overall else "hmmlearn is not installed, so there is no HMM to compare with"],
        figures=overall,
    )


def _too_few(n: int) -> str:
    return f"{n} people are too few to say; an interval needs at least {FEWEST_VALUES}" if n < FEWEST_VALUES else ""


def _single_person(result: BrainResult) -> str:
    return "" if result.n_splits else "a single person cannot be split into halves of people"


@lru_cache(maxsize=1)
def brain_tables(result: BrainResult) -> list[Table]:
    """Return the tables of prediction errors, of reproducibility and, for simulated scans, of agreement with the truth.

    If an earlier model was applied, return only the table of occupancy. The result is cached.
    """
    if not result.compared:
        return [_occupancy_table(result)]
    errors = result.mean_errors
    trivial = np.minimum(errors["copy"], errors["mean"])

    def ahead(h: int) -> Column:
        return Column(
            f"{h + 1} ahead",
            lambda name: errors[name][h],
            "{:.3f}".format,
            best=min,
            loses=lambda name: errors[name][h] > (1 + TIE) * trivial[h],
        )

    columns = [Column("method", PREDICTORS.__getitem__), *map(ahead, range(len(trivial)))]
    caption = "Error (MSE / variance of the scored part), mean over people; red: worse than copying or the mean"
    tables = [Table.of(caption, PREDICTORS, columns), _states_table(result)]
    if result.agreement:
        by_person = result.agreement_by_person
        columns = [
            Column("method", STATE_METHODS.__getitem__),
            Column("BOLD signal", result.agreement.__getitem__, "{:.3f}".format, best=max),
            Column("hidden chain", result.hidden_agreement.__getitem__, "{:.3f}".format, best=max),
            Column("BOLD signal, mean over people, 95%", lambda name: _mean(_people_interval(by_person[name]))),
        ]
        caption = "Agreement with the simulated states (adjusted Rand index), in the BOLD signal and the hidden chain"
        tables.append(Table.of(caption, result.agreement, columns))
    return tables


def _states_table(result: BrainResult) -> Table:
    between, within = result.between_means, result.within_means

    def written(draws: Array) -> str:
        return f"{signed(draws.mean())} ({signed(draws.min())} to {signed(draws.max())})" if len(draws) else "–"

    rows = [
        (STATE_METHODS[method], *(_mean(own[measure][method]) for own in (between, within) for measure in MEASURES))
        for method in between["activity"]
    ]
    rows.append(("PSMT on random phases", *(written(result.surrogate_tests[own].null) for own in MEASURES), "–", "–"))
    columns = [f"{scope}: {measure}" for scope in ("people", "a person's time") for measure in MEASURES]
    caption = "Correlation of matched states between halves of the people, and of each person's time"
    caption += "" if between["activity"]["psmt"].is_finite else "; too few people for intervals"
    return Table.of_rows(caption, ["method", *columns], rows)


def _occupancy_table(result: BrainResult) -> Table:
    def cell(share: float, dwell: float) -> str:
        return f"{percent(share)}, {result.seconds * dwell:.1f}" if np.isfinite(dwell) else "never"

    people = [("all people", result.group_dynamics), *list(result.person_dynamics.items())[:MAX_ROWS]]
    caption = f"Share of time and mean dwell time ({result.unit}) of each state"
    columns = ["person", *(f"state {k + 1}" for k in range(result.n_states))]
    return Table.of_rows(caption, columns, [(name, *map(cell, own.occupancy, own.dwell)) for name, own in people])


def _states_verdict(result: BrainResult) -> str:
    """Return a sentence that says whether the test against surrogates found states. It opens the report."""
    p, described = result.switching, f"The {result.n_states} states that follow"
    if not result.compared:
        return f"{result.people} were described by the {result.n_states} states of a learned model."
    if np.isnan(p):
        return f"Whether there are states is unknown: one person cannot be tested. {described} only summarise the scan."
    if p > LEVEL:
        return (
            f"No states found: a stationary linear process with the same spectra and correlations gives states that "
            f"predict other people as well (p = {p:.2f}). {described} summarise where the activity wanders, not what "
            "it switches between."
        )
    found = f"States found: {result.n_states} states predict other people better than in series without switching"
    few = f" Most other claims are inconclusive, because they need at least {FEWEST_VALUES} people."
    return f"{found} (p = {p:.2f}).{few if result.n_compared < FEWEST_VALUES else ''}"


def _groups_verdict(result: BrainResult) -> str:
    """Return sentences that name the measures that differ between groups or depend on motion, by corrected p-values."""
    sentences = []
    for contrast, own in result.comparisons.items():
        p = np.nan_to_num(own["p_corrected"], nan=1.0)
        what = "Groups differ in" if contrast == "group" else "Head motion is related to"
        none = "No difference between groups was found" if contrast == "group" else "Motion is related to no measure"
        found = ", ".join(_measure_name(*result.measures.labels[k]) for k in np.flatnonzero(p <= LEVEL))
        sentences.append(f"{what} {found}." if found else f"{none} (smallest corrected p = {p.min(initial=1.0):.2f}).")
        few = min(Counter(result.study.participants.groups).values(), default=FEWEST_VALUES)
        if contrast == "group" and few < FEWEST_VALUES:
            sentences.append(f"A group of {few} people is too small to say much.")
    return " ".join(sentences)


def _measure_name(measure: str, state: int, to_state: int) -> str:
    where = f" from state {state} to {to_state}" if to_state else f" of state {state}" if state else ""
    return measure.replace("_", " ") + where


def _groups_section(result: BrainResult) -> Section:
    people, tables = result.study.participants, []
    groups = np.array(people.groups)
    for contrast, own in result.comparisons.items():
        names = sorted(set(people.groups)) if contrast == "group" else []
        order = np.argsort(np.nan_to_num(own["p"], nan=2.0), kind="stable")[:MAX_ROWS]
        rows = [
            (
                _measure_name(*result.measures.labels[k]),
                *(f"{result.measures.values[groups == name, k].mean():.3g}" for name in names),
                *(f"{own[key][k]:.3g}" for key in exports.TESTED),
            )
            for k in order
        ]
        what = f"Groups ({', '.join(f'{n} {name}' for name, n in Counter(people.groups).items())})"
        what = what if contrast == "group" else "Motion (mean framewise displacement)"
        columns = ["measure", *(f"mean, {name}" for name in names), "F", "p", "p, corrected"]
        tables.append(Table.of_rows(f"{what}: measures of smallest p; group_comparison.csv has all", columns, rows))
    adjusted = f" adjusted for {', '.join(people.covariates)}" if people.covariates else ""
    text = (
        f"{_groups_verdict(result)} Tests permute people{adjusted} (Freedman and Lane), and correct for all measures "
        "by the largest statistic."
    )
    return Section(title="Groups and motion", text=[text], tables=tables)


def brain_page(result: BrainResult, pictures: Mapping[str, bytes]) -> Page:
    """Return the page of the report. `pictures` maps the names of PNG files to their contents."""
    study, settings = result.study, result.settings
    networks = result.between_means["networks"]["psmt"].mean if result.compared else np.nan

    def section(title: str, text: str, picture: str = "", alt: str = "", tables: Sequence[Table] = ()) -> Section:
        shown = [Picture(pictures[picture], alt=alt)] if picture else []
        return Section(title=title, text=[text], pictures=shown, tables=tables)

    matched = f" Matched atoms of two halves of the people have a mean correlation of {signed(networks)}."
    reproduced = matched if np.isfinite(networks) else ""
    chosen = f"The number of states was set to {result.n_states}."
    if study.model is not None:
        chosen = f"The {result.n_states} states are those of the model, which was learned from other people."
    elif result.model.scores_:
        tried = result.model.scores_
        chosen = (
            f"{result.n_states} states were chosen out of {min(tried)} to {max(tried)}: "
            "the fewest that reach four fifths of the largest gain in predicting other people."
        )
    sections = [
        *([_groups_section(result)] if result.comparisons else []),
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
            "window if half of its atoms, at least two, are in one component there. components.csv has all of them.",
            "components.png",
            "Sizes of components over time",
        ),
        section(
            "States",
            f"{_states_verdict(result)} {chosen} A state is a place in the embedding that attracts the trajectory of "
            "the brain, and a covariance of its fluctuations. A Markov chain describes which state comes next. From "
            "volume to volume the trajectory keeps "
            f"{percent(result.model.chain_.memory)} of its position. Transitions are shares of all changes from a "
            "state to another one.",
            "states.png",
            "States over time, their patterns, transitions and dwell times",
            [_occupancy_table(result)],
        ),
    ]
    if result.compared:
        claim = next(own for own in brain_claims(result) if own.key == "beyond_principal_components")
        added = "something" if claim.as_measured.verdict == "yes" else "nothing that is certain"
        sections.append(
            section(
                "How far to trust it",
                f"The last {percent(SCORED)} of each series is predicted from the volumes before it. States are fitted "
                "separately to two halves of the people and matched by correlation: of the mean activity of regions "
                "(activity), and of the correlations between regions less those in all volumes (connectivity). The "
                "same is done with surrogates with random phases. For states, sparse codes add "
                f"{added} to principal components.",
                tables=brain_tables(result),
            )
        )
    sections.append(exports.methods_section(result))
    lengths = " to ".join(f"{n:,}" for n in sorted({min(study.lengths), max(study.lengths)}))
    facts = [
        Fact("People", f"{len(study.names)}, {lengths} volumes each"),
        Fact("Regions", f"{len(study.regions)}"),
        Fact("TR", f"{study.tr:g} s" if study.tr else "not known; times are in volumes"),
        *(Fact("Left out", remark) for remark in study.remarks),
        Fact("Model", settings.text()),
        *exports.provenance_facts(result),
    ]
    answer = _states_verdict(result)
    if result.compared:
        compared = f"{result.n_compared} people, {result.n_splits} splits"
        facts.append(Fact("Compared on", f"{compared}, {settings.n_surrogates} surrogates"))
        errors = {name: own[0] for name, own in result.mean_errors.items()}
        rival = min(LINEAR, key=errors.__getitem__)
        answer += (
            f" One volume ahead the error, as a share of the variance, is {errors['psmt']:.3f} with PSMT, "
            f"{errors[rival]:.3f} with {PREDICTORS[rival]} (the best linear model) and {errors['copy']:.3f} with "
            "copying."
        )
    else:
        answer += " A learned model was applied; nothing was learned from these people."
    if result.comparisons:
        answer += f" {_groups_verdict(result)}"
    if result.agreement:
        answer += f" The adjusted Rand index with the simulated states is {result.agreement['psmt']:.3f} "
        answer += f"(principal components with the same AR-HMM: {result.agreement['pca']:.3f})."
    title = "Dynamic networks of the brain"
    return Page(title=title, answer=Answer(answer), claims=brain_claims(result), sections=sections, facts=facts)


def _mean(interval: Interval) -> str:
    if not np.isfinite(interval.mean):
        return "–"
    return f"{signed(interval.mean)} {write_interval(interval) if interval.is_finite else ''}".rstrip()


def _group_file(result: BrainResult) -> bytes:
    file = BytesIO()
    result.model.write_to(file)
    return file.getvalue()


EXPERIMENT = Experiment[BrainSettings, BrainResult](
    run=lambda study, settings, run, _: study_brains(study, settings, run),
    files={
        "networks.png": lambda result: png(atoms_figure(result)),
        "components.png": lambda result: png(components_figure(result)),
        "states.png": lambda result: png(states_figure(result)),
        **{table.file: table.content for table in exports.TABLES},
        "networks.nii.gz": lambda result: nifti_file(result.study, result.model.networks_),
        "states.nii.gz": lambda result: nifti_file(result.study, result.patterns),
        "group.psmt": _group_file,
        "dataset_description.json": exports.dataset_description,
    },
    shown=lambda result: [*brain_tables(result), *brain_claims(result)],
    page=brain_page,
    summary=lambda result: (
        result.summary() | {"methods": exports.methods(result), "provenance": exports.provenance(result)}
    ),
    complete=True,
)
