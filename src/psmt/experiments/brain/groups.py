"""Read participants.tsv, and compare groups by permutation tests with covariates and family-wise correction."""

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from psmt.brain import StateDynamics
from psmt.errors import FrameSourceError
from psmt.types import Array, Result
from psmt.utils.files import reading

N_PERMUTATIONS = 4_999
MOTION = "framewise_displacement"
USUAL = ("age", "sex", MOTION)
"""Columns that are covariates if no others are requested."""


@dataclass(frozen=True)
class Participants:
    """Groups, covariates and head motion of the people in a study. Each has one value per person."""

    groups: Sequence[str] = ()
    """Group of each person. It is empty if there are no groups."""
    covariates: Mapping[str, Array] = field(default_factory=dict)
    """Covariates (n_people,) by name. A covariate of two texts, such as sex, is 0 or 1."""
    motion: Array | None = None
    """Mean framewise displacement (n_people,) in mm, or None if it is not known for all people."""


def read_participants(
    path: Path, names: Sequence[str], *, group: str, covariates: Sequence[str] | None, motion: Array | None
) -> Participants:
    """Read groups, covariates and head motion from a table with the column participant_id, as in BIDS.

    `names` are the names of the people's scans. Each begins with a participant_id. `group` and `covariates` are names
    of columns. By default, the covariates are those columns of `USUAL` that the table has. `motion` (n_people,) is the
    mean framewise displacement if the scans have it; the column `MOTION` of the table takes precedence.
    """
    with reading(path) as file:
        try:
            lines = file.read().decode("utf-8-sig").splitlines()
            rows = list(csv.DictReader(lines, delimiter="," if path.suffix.lower() == ".csv" else "\t"))
        except (UnicodeDecodeError, csv.Error) as error:
            raise FrameSourceError(f"{path} cannot be read as a table ({error}); give a .tsv or .csv file") from error
    columns = {name.strip().lower(): name for name in (rows[0] if rows else {}) if name}
    wanted = [name for name in USUAL if name in columns] if covariates is None else [one.lower() for one in covariates]
    missing = [name for name in ("participant_id", group.lower(), *wanted) if name not in columns]
    if missing and not (missing == [group.lower()] == ["group"]):
        raise FrameSourceError(f"{path} has no column {missing[0]!r}; it has {', '.join(columns) or 'no rows'}")
    table = {row[columns["participant_id"]].strip().removeprefix("sub-"): row for row in rows}
    own = [_row_of(name, table, path) for name in names]
    twice = [name for name, n in Counter(row[columns["participant_id"]] for row in own).items() if n > 1]
    if twice:
        raise FrameSourceError(f"participant {twice[0]} has several scans; people are independent, so give one of each")
    found = {name: _numbers([row[columns[name]] or "" for row in own], name, names, path) for name in wanted}
    motion = found.get(MOTION, motion)
    if motion is not None and covariates is None:
        found[MOTION] = motion
    groups = [] if missing else [(row[columns[group.lower()]] or "").strip() for row in own]
    for name, label in zip(names, groups, strict=False):
        if label.lower() in ("", "n/a"):
            raise FrameSourceError(f"{path} has no {group} for {name}; fill it in, or leave this person out")
    return Participants(groups if len(set(groups)) > 1 else (), found, motion)


def _row_of(name: str, table: Mapping[str, dict[str, str]], path: Path) -> dict[str, str]:
    bare = name.removeprefix("sub-")
    found = [key for key in table if bare == key or bare.startswith((f"{key}_", f"{key}-", f"{key}."))]
    if not found:
        raise FrameSourceError(f"{path} has no participant_id for {name}; add a row, or leave this person out")
    return table[max(found, key=len)]


def _numbers(values: Sequence[str], column: str, names: Sequence[str], path: Path) -> Array:
    """Return a covariate as numbers (n_people,). Two different texts, such as F and M, become 0 and 1."""
    lacking = [name for name, value in zip(names, values, strict=True) if value.strip().lower() in ("", "n/a", "nan")]
    if lacking:
        raise FrameSourceError(
            f"{path} has no {column} for {lacking[0]}; fill it in, leave this person out, or name other --covariates"
        )
    try:
        return np.array([float(value) for value in values])
    except ValueError:
        kinds = sorted(set(values))
        if len(kinds) != 2:
            raise FrameSourceError(
                f"{column} in {path} has texts of {len(kinds)} kinds; a covariate is a number or one of two texts"
            ) from None
        return np.array([float(kinds.index(value)) for value in values])


class Measures(NamedTuple):
    """Measures of each person's states and predictions, which the permutation tests compare."""

    labels: list[tuple[str, int, int]]
    """Name, state and next state of each measure. Numbers begin at 1, and 0 stands for none."""
    values: Array
    """(n_people, n_measures). NaN where a measure is not defined, such as the dwell time of a state without visits."""


def person_measures(people: Sequence[StateDynamics], errors: Array, seconds: float) -> Measures:
    """Return occupancy, dwell times and transitions of each person's states, and PSMT's prediction errors.

    `errors` (n_people,) are prediction errors one volume ahead. An empty array leaves them out. `seconds` is the time
    between volumes.
    """
    n_states = len(people[0].occupancy)
    states, pairs = range(n_states), [(i, j) for i in range(n_states) for j in range(n_states) if i != j]
    labels = [(name, k + 1, 0) for name in ("occupancy", "dwell_time") for k in states]
    labels += [("transition", i + 1, j + 1) for i, j in pairs]
    rows = [[*own.occupancy, *(seconds * own.dwell), *(own.transitions[pair] for pair in pairs)] for own in people]
    values = np.array(rows)
    if len(errors):
        labels.append(("prediction_error", 0, 0))
        values = np.column_stack([values, errors])
    return Measures(labels, values)


def compare_groups(
    *, values: Array, effect: Array, covariates: Array, seed: int, n_permutations: int = N_PERMUTATIONS
) -> Result:
    """Test whether measures depend on an effect, given covariates, by permutation (Freedman and Lane 1983).

    `values` (n_people, n_measures) are the measures. `effect` and `covariates` (n_people, any number) are regressors.
    The residuals of the measures after regression on the covariates are permuted. The result has three arrays
    (n_measures,): ``statistic``, the F statistic; ``p``, its p-value; and ``p_corrected``, the p-value corrected for
    all measures, by the largest F in each permutation. All three are NaN for a measure that is NaN for some person, or
    that the covariates determine.
    """
    n_people = len(values)
    reduced = np.column_stack([np.ones(n_people), covariates])
    basis = np.linalg.svd(reduced, full_matrices=False)
    kept = basis[0][:, basis[1] > 1e-9 * basis[1][0]]
    left = effect - kept @ (kept.T @ effect)
    axes, sizes, _ = np.linalg.svd(left, full_matrices=False)
    axes = axes[:, sizes > 1e-6 * max(float(np.linalg.norm(effect)), 1e-300)]
    free = n_people - kept.shape[1] - axes.shape[1]
    if not axes.shape[1] or free < 2:
        raise FrameSourceError(
            f"{n_people} people are too few to separate the effect from {covariates.shape[1]} covariates, or the "
            "covariates determine it; use fewer --covariates or more people"
        )
    tested: NDArray[np.bool_] = np.asarray(np.isfinite(values).all(axis=0))
    residuals = values[:, tested] - kept @ (kept.T @ values[:, tested])
    sizes = np.linalg.norm(residuals, axis=0)
    varies = sizes > 1e-9 * np.maximum(np.abs(values[:, tested]).max(axis=0), 1e-300)
    tested[tested] = varies
    residuals = residuals[:, varies] / sizes[varies]

    def statistic(own: Array) -> Array:
        own = own - kept @ (kept.T @ own)
        explained = ((axes.T @ own) ** 2).sum(axis=0)
        unexplained = np.maximum((own**2).sum(axis=0) - explained, 1e-12)
        return np.asarray((explained / axes.shape[1]) / (unexplained / free))

    rng, found = np.random.default_rng(seed), statistic(residuals)
    drawn = np.array([statistic(residuals[rng.permutation(n_people)]) for _ in range(n_permutations)])
    highest = drawn.max(axis=1, initial=0.0)
    result = {name: np.full(len(tested), np.nan) for name in ("statistic", "p", "p_corrected")}
    result["statistic"][tested] = found
    result["p"][tested] = (1 + (drawn >= found - 1e-12).sum(axis=0)) / (1 + n_permutations)
    result["p_corrected"][tested] = (1 + (highest[:, None] >= found - 1e-12).sum(axis=0)) / (1 + n_permutations)
    return result


def contrasts(people: Participants) -> dict[str, dict[str, Any]]:
    """Return the arguments ``effect`` and ``covariates`` of `compare_groups` for the tests ``group`` and ``motion``.

    ``group`` compares groups, given all covariates. ``motion`` tests head motion, given all other covariates. A test
    without data is left out.
    """
    n_people = len(people.groups) or (0 if people.motion is None else len(people.motion))
    scaled = {name: own - own.mean() for name, own in people.covariates.items()}
    scaled = {name: own / max(float(own.std()), 1e-300) for name, own in scaled.items()}

    def columns(names: Sequence[str]) -> Array:
        return np.column_stack([scaled[name] for name in names]) if names else np.zeros((n_people, 0))

    found: dict[str, dict[str, Any]] = {}
    if people.groups:
        effect = np.array([[own == label for label in sorted(set(people.groups))[1:]] for own in people.groups])
        found["group"] = {"effect": effect.astype(np.float64), "covariates": columns(list(scaled))}
    if people.motion is not None and np.ptp(people.motion) > 0:
        others = columns([name for name in scaled if name != MOTION])
        found["motion"] = {"effect": people.motion[:, None], "covariates": others}
    return found
