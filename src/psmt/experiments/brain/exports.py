"""Exports of `psmt brain`: CSV tables, dataset_description.json, and a description of how the results were made.

`TABLES` declares each table once, and `COLUMNS` (read from columns.toml) says what each column means. The files, the
table in docs/how-to/brain.md and dataset_description.json are made from these declarations.
"""

import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

import numpy as np

import psmt
from psmt.brain import StateDynamics, state_connectivity
from psmt.experiments.brain.labels import match_networks
from psmt.experiments.brain.prediction import PREDICTORS
from psmt.experiments.brain.result import BrainResult
from psmt.experiments.film_report import to_json, versions
from psmt.report import Column, Fact, Section, Table, csv_parts

COLUMNS: dict[str, str] = tomllib.loads(Path(__file__).with_name("columns.toml").read_text(encoding="utf-8"))
"""What each column means, by name."""
COLUMNS["method"] = f"one of {', '.join(PREDICTORS)}"


def _patterns(attribute: str, result: BrainResult) -> Iterator[tuple[Any, ...]]:
    for k, row in enumerate(attrgetter(attribute)(result).tolist(), 1):
        yield from ((k, name, own) for name, own in zip(result.study.regions, row, strict=True))


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
    """Declaration of a CSV file that `psmt brain` writes."""

    file: str
    row: str
    """What one row describes, in words."""
    columns: str
    """Names of the columns, separated by spaces."""
    rows: Callable[[BrainResult], Iterable[tuple[Any, ...]]]

    def is_written(self, result: BrainResult) -> bool:
        """Return whether this table is written. Some results have no predictions or no comparison of groups."""
        known = {"prediction.csv": result.compared, "group_comparison.csv": bool(result.comparisons)}
        return known.get(self.file, True)

    def content(self, result: BrainResult) -> Iterator[bytes] | None:
        """Return the parts of the CSV file, or None if the table is not written. NaN becomes an empty field."""
        if not self.is_written(result):
            return None
        several = " ".join(f"coordinate_{k + 1}" for k in range(len(result.model.embedding_)))
        header = self.columns.replace("coordinate_1..", several).split()
        return csv_parts(header, (["" if value != value else value for value in row] for row in self.rows(result)))


_networks, _state_patterns = partial(_patterns, "model.networks_"), partial(_patterns, "patterns")
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
    """Return dataset_description.json in the format of BIDS derivatives, with the meaning of each column."""
    written = [one for one in TABLES if one.is_written(result)]
    tables = {one.file: {name: COLUMNS[name] for name in one.columns.split()} for one in written}
    made = {"Name": "psmt brain", "Version": psmt.__version__}
    read = [{"URL": one["file"]} for one in result.study.origin.get("inputs", ())]
    kind = {"Name": "Dynamic networks and states", "BIDSVersion": "1.9.0", "DatasetType": "derivative"}
    return to_json({**kind, "GeneratedBy": [made], "SourceDatasets": read, "Tables": tables, "Files": OTHER_FILES})


MAX_INPUTS = 20
"""Largest number of input files on the page."""


def provenance(result: BrainResult) -> dict[str, Any]:
    """Return how the results were made, for summary.json: input files, preprocessing, settings and versions."""
    optional = {name: version(name) for name in ("nilearn", "nibabel", "hmmlearn") if find_spec(name)}
    return {
        **result.study.origin,
        "tr_seconds": result.study.tr,
        "high_pass_hertz": result.model.high_pass,
        "settings": result.settings,
        "versions": {"psmt": psmt.__version__, **versions(), **optional},
    }


def methods(result: BrainResult) -> str:
    """Return a methods paragraph that the user can paste into a paper."""
    study, settings, model, origin = result.study, result.settings, result.model, result.study.origin
    lengths = " to ".join(f"{n:,}" for n in sorted({min(study.lengths), max(study.lengths)}))
    slow = f"{model.high_pass or 0:g} Hz" if study.tr else "one cycle in 200 volumes"
    drifts = "The mean of each region was" if model.high_pass is None else f"Drifts below {slow} were"
    learned = (
        f"The model of the group (Predictive Sparse Manifold Transform, Xie, Li and Calhoun, 2023; psmt "
        f"{psmt.__version__}) has {len(model.networks_)} networks with non-negative sparse codes (L1 penalty "
        f"{model.alpha:g}), an embedding of the codes with smooth trajectories, of which {len(model.embedding_)} "
        "principal directions were kept, and "
        f"{model.n_states} states by an autoregressive hidden Markov model."
    )
    if origin.get("model"):
        source = f"{Path(origin['model']['file']).name}, sha256 {origin['model']['sha256'][:12]}"
        learned += f" The model was learned earlier ({source}) and applied without learning from these people."
    if model.scores_:
        learned += (
            f" The number of states was chosen from {min(model.scores_)} to {max(model.scores_)}: the smallest number "
            "with 80% of the largest gain in the log-likelihood of the other half of the people."
        )
    if result.compared:
        learned += (
            " The last quarter of each series was predicted from the volumes before it. States were fitted to "
            f"{result.n_splits} splits of {result.n_compared} people into halves, and compared with "
            f"{settings.n_surrogates} surrogates with random Fourier phases."
        )
    return (
        f"{_extraction(result)} {result.people} had {lengths} volumes each (repetition time: "
        f"{f'{study.tr:g} s' if study.tr else 'unknown'}). {drifts} removed, and each region was scaled to "
        f"variance one. {learned} Occupancy, mean dwell times and transitions of the states were computed for "
        "each person. Components of networks with similar columns of the embedding matrix were followed in windows of "
        f"{settings.window} volumes. Random numbers were drawn with the seed {settings.seed}."
    )


def methods_section(result: BrainResult) -> Section:
    """Return the section of the report with the paragraph of `methods` and a table of the input files."""
    inputs = result.study.origin.get("inputs", ())
    columns = [Column(name, itemgetter(name)) for name in ("subject", "file", "volumes")]
    columns.append(Column("sha256", lambda one: one.get("sha256", "–")))
    files = Table.of("Input files; summary.json has all of them", inputs[:MAX_INPUTS], columns)
    folded = Section(title="Input files", tables=[files])
    return Section(title="Methods, to be pasted into a paper", text=[methods(result)], folded=[folded])


def provenance_facts(result: BrainResult) -> list[Fact]:
    """Return facts for the report: the atlas, mask, confounds, filter and model that were used, and versions."""
    origin = provenance(result)
    names = ("atlas", "labels", "mask", "confounds", "low_pass_hertz", "smoothing_millimetres", "model")
    known = {name.replace("_", ", ").capitalize(): origin[name] for name in names if origin.get(name) is not None}
    known["Versions"] = [f"{name} {number}" for name, number in origin["versions"].items()]
    shown = {name: list(own.values()) if isinstance(own, dict) else own for name, own in known.items()}
    return [Fact(name, ", ".join(own) if isinstance(own, list) else str(own)) for name, own in shown.items()]


def _extraction(result: BrainResult) -> str:
    origin, n_regions = result.study.origin, len(result.study.regions)
    if not origin.get("scans"):
        return f"Series of {n_regions} regions were read from tables."
    where = f"regions of the atlas {Path(origin['atlas']['file']).name}" if origin["atlas"] else "voxels of a mask"
    confounds, smoothing, low_pass = (origin[name] for name in ("confounds", "smoothing_millimetres", "low_pass_hertz"))
    parts = [f"nilearn {version('nilearn')}"]
    if confounds:
        strategy = f"by the strategy {confounds} of fMRIPrep" if isinstance(confounds, str) else "from a table"
        parts.append(f"confounds {strategy}")
    parts += [f"smoothing of {smoothing:g} mm"] if smoothing else []
    parts += [f"low-pass filter at {low_pass:g} Hz"] if low_pass else []
    return f"Series of {n_regions} {where} were extracted from scans ({', '.join(parts)})."
