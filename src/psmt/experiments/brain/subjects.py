"""Find the people of a study in files and folders, and read their series as arrays with the same regions."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from psmt.brain import GroupModel
from psmt.data import open_series
from psmt.data.contract import file_checksum
from psmt.data.readers.scans import STRATEGIES, Parcels, Scan, find_scans, is_scan, read_scan
from psmt.data.synthetic.brain import BOLD
from psmt.errors import FrameSourceError
from psmt.experiments.brain.groups import Participants, read_participants
from psmt.experiments.brain.labels import beside_atlas, label_regions, region_numbers
from psmt.persistence.zip_archive import Archive, ArchiveError
from psmt.types import Array, Ints, Progress, silent
from psmt.utils.files import shown


@dataclass(frozen=True, kw_only=True)
class Study:
    """The data of `psmt brain`: series of several people in the same regions, and what is known about the people."""

    names: Sequence[str]
    series: Sequence[Array]
    """Series (time, n_regions) of each person, in the units of the file."""
    truths: Sequence[Ints | None]
    """True states (2, time) of each person, in the BOLD signal and in the hidden chain, or None if not known."""
    regions: tuple[str, ...]
    tr: float | None = None
    """Seconds from volume to volume, or None if not known."""
    atlas: Path | None = None
    """Image of the regions. Maps and pictures of brains are made from it."""
    numbers: tuple[int, ...] = ()
    """Number of each region in the atlas. It is empty if regions have no numbers."""
    networks: tuple[str, ...] = ()
    """Known network of each region, or '' for a region without one. It is empty if the regions have no labels."""
    model: GroupModel | None = None
    """Learned model that is applied to these people, or None if a model is learned from them."""
    participants: Participants = field(default_factory=Participants)
    """Groups, covariates and motion of the people."""
    origin: Mapping[str, Any] = field(default_factory=dict)
    """The files that were read, with checksums, and how scans were turned into series."""
    remarks: tuple[str, ...] = ()
    """Sentences that say what was left out, and why."""

    @property
    def lengths(self) -> list[int]:
        """Number of volumes of each person."""
        return [len(own) for own in self.series]


@dataclass(frozen=True)
class People:
    """Names of the people of a study, and the files that their series will be read from.

    The attributes `name` and `n_frames` are those that every source of a command must have.
    """

    files: Sequence[tuple[str, str | Path]]
    bids: bool
    """Whether some people come from a BIDS folder, which has tables of confounds."""
    participants: Path | None = None
    """Table of the participants, or None if there is none."""
    model_path: Path | None = None
    model: GroupModel | None = None
    """Learned model that will be applied to these people."""
    name: str = "brain"
    n_frames: None = None


def find_people(specs: Sequence[str], model: Path | None = None, participants: Path | None = None) -> People:
    """Return the people in `specs`: files, BIDS derivatives folders, or ``builtin:bold`` (simulated scans).

    `model` is a file with a group model to apply to them. `participants` is the table of the participants. By default
    it is the file participants.tsv in a BIDS folder, or in the dataset that contains the folder.
    """
    people: list[tuple[str, str | Path]] = []
    bids = False
    for spec in specs:
        path = Path(spec)
        if BOLD.matches(spec):
            people += [(f"bold-{k + 1:03d}", f"{spec}#{k}") for k in range(BOLD.parse(spec).n_subjects)]
        elif not path.exists():
            raise FrameSourceError(f"{spec} does not exist; check the path, or try builtin:bold")
        elif path.is_dir():
            people += list(find_scans(path).items())
            bids = True
            tables = [folder / "participants.tsv" for folder in (path, *path.absolute().parents[:2])]
            participants = participants or next(filter(Path.is_file, tables), None)
        else:
            people.append((path.name.removesuffix(".gz").rpartition(".")[0] or path.name, path))
    again = _repeated(Path(spec).absolute() for _, spec in people)
    if again is not None:
        # A person in both halves would make the halves agree.
        raise FrameSourceError(f"{again} is given twice; give each person once")
    if _repeated(name for name, _ in people) is not None:
        # Files in several folders have the same name.
        people = [(f"{Path(spec).parent.name}_{name}", spec) for name, spec in people]
    if _repeated(name for name, _ in people) is not None:
        people = [(f"{name}_{k + 1}", spec) for k, (name, spec) in enumerate(people)]
    return People(people, bids, participants, model, None if model is None else GroupModel.load(model))


def read_study(
    people: People,
    parcels: Parcels,
    *,
    labels: Path | None = None,
    group: str = "group",
    covariates: Sequence[str] | None = None,
    stop: int | None = None,
    progress: Progress = silent,
) -> Study:
    """Read the series of all people, and return them in those regions that all people have.

    `parcels` says how regions are extracted from scans. `labels` is a file with the names of the regions. `group` and
    `covariates` are columns of the participants' table. At most `stop` volumes of each person are read.
    """
    if people.bids and parcels.confounds is None:
        parcels = replace(parcels, confounds="simple")  # motion, white matter and ventricles
    read: list[tuple[Scan, Ints | None]] = []
    for done, (_, spec) in enumerate(people.files):
        progress("read scans", done, len(people.files))
        read.append(_read_one(spec, parcels, stop))
    progress("read scans", len(people.files), len(people.files))
    scans = {name: scan for (name, _), (scan, _) in zip(people.files, read, strict=True)}
    tr = _common_tr(scans)
    remarks = [remark for scan in scans.values() for remark in scan.remarks]
    regions = _common_regions(scans, remarks)
    values = {name: scan.values[:, [scan.regions.index(own) for own in regions]] for name, scan in scans.items()}
    varying = _varying(values, regions, remarks)
    if tr is None:
        remarks.append("no TR is known: times are in volumes; drifts slower than 200 volumes are removed; give --tr")
    kept = [regions[k] for k in varying]
    numbers = tuple(region_numbers(kept))
    path = labels if labels or not (parcels.atlas and numbers) else beside_atlas(parcels.atlas)
    named = [] if path is None else label_regions(kept, path)
    study = Study(
        names=list(values),
        series=[np.ascontiguousarray(own[:, varying]) for own in values.values()],
        truths=[truth for _, truth in read],
        regions=tuple(label.name for label in named) or tuple(kept),
        tr=tr,
        atlas=parcels.atlas,
        numbers=numbers,
        networks=tuple(label.network for label in named),
        participants=_participants(people, scans, group, covariates),
        origin=_origin(people, parcels, path, scans),
        remarks=tuple(remarks),
    )
    return study if people.model is None else _as_in_model(study, people.model)


def _participants(people: People, scans: dict[str, Scan], group: str, covariates: Sequence[str] | None) -> Participants:
    moved = [scan.motion for scan in scans.values()]
    motion = None if None in moved else np.array(moved, dtype=np.float64)
    if people.participants is not None:
        return read_participants(people.participants, list(scans), group=group, covariates=covariates, motion=motion)
    simulated = [str(spec).partition("#") for _, spec in people.files]
    if all(BOLD.matches(spec) and BOLD.parse(spec).effect != 1 for spec, _, _ in simulated) and len(simulated) > 1:
        return Participants([BOLD.parse(spec).group(int(index)) for spec, _, index in simulated])
    return Participants(motion=motion)


def _origin(people: People, parcels: Parcels, labels: Path | None, scans: Mapping[str, Scan]) -> dict[str, Any]:
    def file(path: str | Path | None) -> dict[str, str] | None:
        if path is None:
            return None
        named = {"file": str(path)}
        return named | ({"sha256": file_checksum(path)} if isinstance(path, Path) and path.is_file() else {})

    table = Path(parcels.confounds) if parcels.confounds and parcels.confounds not in STRATEGIES else None
    return {
        "inputs": [
            {"subject": name, **(file(spec) or {}), "volumes": len(scans[name].values)} for name, spec in people.files
        ],
        "scans": any(isinstance(spec, Path) and is_scan(spec) for _, spec in people.files),
        "atlas": file(parcels.atlas),
        "labels": file(labels),
        "mask": file(parcels.mask),
        "confounds": file(table) or parcels.confounds,
        "low_pass_hertz": parcels.low_pass,
        "smoothing_millimetres": parcels.smoothing,
        "participants": file(people.participants),
        "model": file(people.model_path),
    }


def _as_in_model(study: Study, model: GroupModel) -> Study:
    """Return the study with the regions of the model, in its order. Raise if a region is missing or the TR differs."""
    missing = [name for name in model.regions if name not in study.regions]
    if missing:
        raise FrameSourceError(
            f"the model needs {len(model.regions)} regions, but the series lack {len(missing)} of them, such as "
            f"{missing[0]!r}; use the atlas and the labels that the model was learned with"
        )
    if abs((study.tr or 0.0) - (model.tr or 0.0)) > 1e-3 * (study.tr or 0.0):
        raise FrameSourceError(
            f"the series have a TR of {study.tr} s, but the model was learned with {model.tr} s; states of different "
            "TRs cannot be compared: resample the series, or give --tr if the files have none"
        )
    order = [study.regions.index(name) for name in model.regions]
    return replace(
        study,
        model=model,
        regions=model.regions,
        series=[np.ascontiguousarray(own[:, order]) for own in study.series],
        numbers=tuple(study.numbers[k] for k in order) if study.numbers else (),
        networks=tuple(study.networks[k] for k in order) if study.networks else (),
    )


def _repeated(values: Iterable[Any]) -> Any:
    """Return the first value that occurs more than once, or None if all differ."""
    return next((value for value, n in Counter(values).items() if n > 1), None)


def _read_one(spec: str | Path, parcels: Parcels, stop: int | None) -> tuple[Scan, Ints | None]:
    if isinstance(spec, str):
        source, _, index = spec.partition("#")
        simulation, k = BOLD.parse(source), int(index)
        series = simulation.subject(k).head(stop)
        scan = Scan(series.values, series.feature_names or (), parcels.tr or simulation.tr, ())
        blurred, chain = simulation.states(k), simulation.states(k, hidden=True)
        return scan, None if blurred is None or chain is None else np.stack([blurred, chain])[:, :stop]
    if is_scan(spec):
        scan = read_scan(spec, parcels)
        return replace(scan, values=scan.values[:stop]), None
    series = open_series(spec, stop=stop)
    names = series.feature_names or tuple(f"region {k + 1}" for k in range(series.n_features))
    twice = _repeated(names)
    if twice is not None:
        raise FrameSourceError(f"{spec} has two columns called {twice!r}; give each region a name of its own")
    return Scan(series.values, names, parcels.tr or _stored_tr(spec), ()), None


def _stored_tr(path: Path) -> float | None:
    """Return the repetition time (TR) that is stored in a ``.npz`` file, or None if there is none."""
    if path.suffix.lower() != ".npz":
        return None
    try:
        with Archive.open(path) as archive:
            name = next((name for name in ("tr", "TR", "t_r") if name in archive.names), None)
            if name is None or archive.layout(name).shape != ():
                return None
            stored = archive.read(name)
    except ArchiveError as why:
        raise FrameSourceError(f"the TR in {path} cannot be read: {why}; save it again, or give --tr SECONDS") from why
    if stored.dtype.kind not in "iuf":
        raise FrameSourceError(f"{path}: {name} is {stored.item()!r}, not a number of seconds; give --tr SECONDS")
    return float(stored) if np.isfinite(stored) and stored > 0 else None


def _common_tr(scans: Mapping[str, Scan]) -> float | None:
    first, known = next(((name, scan.tr) for name, scan in scans.items() if scan.tr is not None), ("", None))
    if known is None:
        return None
    for name, scan in scans.items():
        if scan.tr is None:
            raise FrameSourceError(f"{name} has no TR, but {first} has {known:g} s; give --tr SECONDS for all")
        if abs(scan.tr - known) > 1e-3 * known:
            raise FrameSourceError(
                f"{name} has a TR of {scan.tr:g} s, but {first} of {known:g} s; study scans of each TR separately"
            )
    return known


def _common_regions(scans: Mapping[str, Scan], remarks: list[str]) -> list[str]:
    """Return the regions that all people have, in the order of the first person. Add a remark on other regions."""
    first, scan = next(iter(scans.items()))
    for name, other in scans.items():
        shared = set(scan.regions) & set(other.regions)
        # Scans may lack regions of the atlas, which their remarks report; tables must have the same ones.
        unexplained = len(scan.regions) != len(other.regions) and not other.remarks and not scan.remarks
        if other is not scan and (unexplained or len(shared) < max(2, len(scan.regions) // 2)):
            raise FrameSourceError(
                f"{name} has {len(other.regions)} regions, but {first} has {len(scan.regions)}, and {len(shared)} have "
                "the same names; all people need the same regions: use one atlas for all"
            )
    kept = [region for region in scan.regions if all(region in other.regions for other in scans.values())]
    missing = {region for other in scans.values() for region in other.regions} - set(kept)
    if missing:
        remarks.append(f"{len(missing)} regions that some people lack are left out in all")
    return kept


def _varying(values: Mapping[str, Array], regions: Sequence[str], remarks: list[str]) -> list[int]:
    """Return the indices of the regions that vary over time in all people. Add remarks on constant regions."""
    if len(regions) < 2:
        raise FrameSourceError(f"a series of {len(regions)} region has no networks; give at least two regions")
    constant: dict[int, str] = {}
    for name, own in values.items():
        flat = own.std(axis=0) <= 1e-9 * np.maximum(np.abs(own).max(axis=0), 1e-300)
        for k in np.flatnonzero(flat):
            constant.setdefault(int(k), name)
    varying = [k for k in range(len(regions)) if k not in constant]
    if len(varying) < max(2, len(regions) // 2):
        name = next(iter(constant.values()))
        raise FrameSourceError(
            f"{len(constant)} of {len(regions)} regions never change (in {name}, among others); check the mask and the "
            "confounds: a scan varies in all regions"
        )
    remarks += [
        f"{shown(regions[k])} never changes in {shown(name)}: left out in all" for k, name in list(constant.items())[:5]
    ]
    if len(constant) > 5:
        remarks.append(f"and {len(constant) - 5} more such regions")
    return varying
