"""The tables of a study that other programs read. Each table and each column is declared once.

The files, the table in docs/how-to/brain.md and dataset_description.json are made from `TABLES` and `COLUMNS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import psmt
from psmt.brain import StateDynamics, state_connectivity
from psmt.experiments.brain.labels import match_networks
from psmt.experiments.brain.prediction import PREDICTORS
from psmt.experiments.brain.result import BrainResult
from psmt.experiments.film_report import to_json
from psmt.report import csv_parts

COLUMNS = {
    "subject": "name of the person; empty for the group",
    "level": "`person`, or `group` for all people together",
    "volume": "number of the volume, from 0; for a window, the volume in its middle",
    "time": "seconds from the first volume; volumes if the TR is not known",
    "network": "number of the network (atom), from 1",
    "region": "name of the region",
    "weight": "weight of the region; the weights of a network have norm 1",
    "share_of_activity": "share of the network in the activity of all networks",
    "main_region": "region with the largest weight",
    "known_network": "most similar known network; empty if the labels of the regions have no networks",
    "similarity": "correlation of the weights with 1 for the regions of the known network and 0 for others",
    "state": "number of the state that contributes most to the volume, from 1",
    "activity": "mean activity, in standard deviations of the region",
    "other_region": "name of the other region; each pair of regions is listed once",
    "correlation": "correlation over the volumes in the state; empty if there are fewer than 10",
    "occupancy": "share of the volumes in the state",
    "dwell_time": "mean length of a visit in seconds (volumes without a TR); empty if there is no visit",
    "visits": "number of visits",
    "from_state": "number of the state that is left, from 1",
    "to_state": "number of the next state, from 1",
    "share": "share of the next state among all changes from the state; empty if it is never left",
    "probability": "probability of the likeliest state at the volume",
    "coordinate_1..": "coordinates in the embedding, one column each",
    "component": "number of the component of linked networks, from 1; it keeps its number over time",
    "networks": "number of networks in the component",
    "event": "how the component arose: start, birth, goes on, merge, split or return",
    "ends": "1 if no component of the next window continues it, else 0",
    "method": f"one of {', '.join(PREDICTORS)}",
    "horizon": "number of volumes ahead",
    "contrast": "`group`: groups are compared; `motion`: mean framewise displacement is related to the measure",
    "measure": "occupancy, dwell_time, transition or prediction_error (of PSMT, one volume ahead)",
    "statistic": "F statistic; empty if the measure is constant, or undefined for somebody",
    "p": "p-value of a permutation test",
    "p_corrected": "p-value, corrected for all measures of the contrast (family-wise)",
    "group": "group of the people",
    "mean": "mean of the measure in the group",
    "error": "mean squared error divided by the variance of the scored part",
}


def _patterns(result: BrainResult, patterns: Any) -> Iterator[tuple[Any, ...]]:
    for k, row in enumerate(patterns.tolist(), 1):
        yield from ((k, name, own) for name, own in zip(result.study.regions, row, strict=True))


def _networks(result: BrainResult) -> Iterator[tuple[Any, ...]]:
    return _patterns(result, result.model.networks_)


def _state_patterns(result: BrainResult) -> Iterator[tuple[Any, ...]]:
    return _patterns(result, result.patterns)


def _matches(result: BrainResult) -> Iterator[tuple[Any, ...]]:
    networks, regions = result.model.networks_, result.study.regions
    main = [regions[k] for k in np.abs(networks).argmax(axis=1)]
    rows = zip(result.model.shares_.tolist(), main, match_networks(networks, result.study.networks), strict=True)
    return ((k, share, region, *known) for k, (share, region, known) in enumerate(rows, 1))


def _connectivity(result: BrainResult) -> Iterator[tuple[Any, ...]]:
    regions = result.study.regions
    for k in range(result.n_states):
        found = state_connectivity(result.courses, k)
        for i, one in enumerate(regions):
            yield from ((k + 1, one, regions[j], float(found[i, j])) for j in range(i + 1, len(regions)))


def _dynamics(result: BrainResult) -> list[tuple[str, str, StateDynamics]]:
    people = [("person", name, own) for name, own in result.person_dynamics.items()]
    return [("group", "", result.group_dynamics), *people]


def _occupancy(result: BrainResult) -> Iterator[tuple[Any, ...]]:
    for level, name, own in _dynamics(result):
        columns = own.occupancy.tolist(), (result.seconds * own.dwell).tolist(), own.visits.astype(int).tolist()
        yield from ((level, name, k, *row) for k, row in enumerate(zip(*columns, strict=True), 1))


def _transitions(result: BrainResult) -> Iterator[tuple[Any, ...]]:
    for level, name, own in _dynamics(result):
        shares = np.ndenumerate(own.transitions)
        yield from ((level, name, i + 1, j + 1, float(share)) for (i, j), share in shares if i != j)


def _trajectory(result: BrainResult) -> Iterator[tuple[Any, ...]]:
    for name, course in zip(result.study.names, result.courses, strict=True):
        rows = zip(course.states.tolist(), course.probabilities.max(axis=1), course.embedding.tolist(), strict=True)
        for t, (state, sure, place) in enumerate(rows):
            yield name, t, t * result.seconds, state + 1, round(float(sure), 4), *place


def _components(result: BrainResult) -> Iterator[tuple[Any, ...]]:
    for name, steps, starts in zip(result.study.names, result.steps, result.starts, strict=True):
        for step in steps:
            t = int(starts[step.window]) + result.settings.window // 2
            yield name, t, t * result.seconds, step.component + 1, step.size, step.event, int(step.ends)


def _predictions(result: BrainResult) -> Iterator[tuple[Any, ...]]:
    for name, errors in zip(result.study.names, result.errors.tolist(), strict=True):
        for method, own in zip(PREDICTORS, errors, strict=True):
            yield from ((name, method, h, error) for h, error in enumerate(own, 1))


def _comparisons(result: BrainResult) -> Iterator[tuple[Any, ...]]:
    groups = np.array(result.study.participants.groups)
    for contrast, own in result.comparisons.items():
        columns = zip(result.measures.labels, *(own[key].tolist() for key in TESTED), strict=True)
        for k, ((measure, state, to_state), *tested) in enumerate(columns):
            row = contrast, measure, state or np.nan, to_state or np.nan, *tested
            if contrast == "motion":
                yield *row, "", np.nan
                continue
            values = result.measures.values[:, k]
            yield from ((*row, name, float(values[groups == name].mean())) for name in sorted(set(groups.tolist())))


@dataclass(frozen=True)
class ExportedTable:
    """A table of a study: its file, what one row is, the names of its columns, and its rows."""

    file: str
    row: str
    columns: str
    rows: Callable[[BrainResult], Iterable[tuple[Any, ...]]]

    def is_written(self, result: BrainResult) -> bool:
        """Return whether the study has this table. Predictions and groups may be missing."""
        known = {"prediction.csv": result.compared, "group_comparison.csv": bool(result.comparisons)}
        return known.get(self.file, True)

    def content(self, result: BrainResult) -> Iterator[bytes] | None:
        """Return the CSV file in parts, or None if the study does not have it. Missing values are empty."""
        if not self.is_written(result):
            return None
        several = " ".join(f"coordinate_{k + 1}" for k in range(len(result.model.embedding_)))
        header = self.columns.replace("coordinate_1..", several).split()
        return csv_parts(header, (["" if value != value else value for value in row] for row in self.rows(result)))


_MATCHES = "network share_of_activity main_region known_network similarity"
TESTED = ("statistic", "p", "p_corrected")
_TEST = f"contrast measure state to_state {' '.join(TESTED)}"
_PAIR, _WHO, _WHEN = "state region other_region", "level subject", "subject volume time"
TABLES = (
    ExportedTable("networks.csv", "a region in a network", "network region weight", _networks),
    ExportedTable("network_matches.csv", "a network", _MATCHES, _matches),
    ExportedTable("state_patterns.csv", "a region in a state", "state region activity", _state_patterns),
    ExportedTable("state_connectivity.csv", "two regions in a state", f"{_PAIR} correlation", _connectivity),
    ExportedTable("occupancy.csv", "a state of a person", f"{_WHO} state occupancy dwell_time visits", _occupancy),
    ExportedTable("transitions.csv", "a change of state", f"{_WHO} from_state to_state share", _transitions),
    ExportedTable("trajectory.csv", "a volume of a person", f"{_WHEN} state probability coordinate_1..", _trajectory),
    ExportedTable("components.csv", "a component in a window", f"{_WHEN} component networks event ends", _components),
    ExportedTable("prediction.csv", "an error of a method", "subject method horizon error", _predictions),
    ExportedTable("group_comparison.csv", "a measure in a group", f"{_TEST} group mean", _comparisons),
)

OTHER_FILES = {
    "networks.nii.gz": "with an atlas: one volume per network, with the weight of each region",
    "states.nii.gz": "with an atlas: one volume per state, with the mean activity of each region",
    "group.psmt": "the group model, for `psmt brain --model` and `psmt.brain.GroupModel.load`",
    "summary.json": "all numbers, claims, settings and the provenance",
}


def dataset_description(result: BrainResult) -> bytes:
    """Return dataset_description.json, which describes the files in the format of a derived BIDS dataset."""
    written = [one for one in TABLES if one.is_written(result)]
    tables = {one.file: {name: COLUMNS[name] for name in one.columns.split()} for one in written}
    made = {"Name": "psmt brain", "Version": psmt.__version__}
    read = [{"URL": one["file"]} for one in result.study.origin.get("inputs", ())]
    kind = {"Name": "Dynamic networks and states", "BIDSVersion": "1.9.0", "DatasetType": "derivative"}
    return to_json({**kind, "GeneratedBy": [made], "SourceDatasets": read, "Tables": tables, "Files": OTHER_FILES})
