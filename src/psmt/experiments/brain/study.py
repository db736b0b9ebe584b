"""People and their series: from files of any kind to arrays of the same regions, or a sentence on why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from psmt.data import open_series
from psmt.data.readers.scans import Parcels, Scan, find_scans, is_scan, read_scan
from psmt.data.synthetic.brain import BOLD
from psmt.errors import FrameSourceError
from psmt.persistence.zip_archive import Archive, ArchiveError
from psmt.types import Array, Ints, Progress, silent

DEFAULT_STRATEGY = "simple"
"""Confounds of a BIDS folder, where none are named: motion, white matter and ventricles."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One person's series."""

    name: str
    values: Array
    """(time, n_regions), as it came."""
    truth: Ints | None = None
    """(time,): the state, where it is known."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """Some people with the same regions."""

    subjects: Sequence[Subject]
    regions: tuple[str, ...]
    tr: float | None = None
    """Seconds from volume to volume; None where nobody says."""
    atlas: Path | None = None
    """Image of the regions, for pictures."""
    remarks: tuple[str, ...] = ()
    """What was left out, and why."""

    @property
    def lengths(self) -> list[int]:
        """Volumes of each person."""
        return [len(subject.values) for subject in self.subjects]


@dataclass(frozen=True)
class People:
    """Names of people, and what each is read from. Nothing is read yet.

    ``name`` and ``n_frames`` are for the command line, which asks them of all sources.
    """

    files: Sequence[tuple[str, str | Path]]
    bids: bool
    """Whether some come from a BIDS folder, with confounds beside them."""
    name: str = "brain"
    n_frames: None = None


def find_people(specs: Sequence[str]) -> People:
    """People of files, of a BIDS derivatives folder, or of ``builtin:bold``; what is not there raises at once."""
    people: list[tuple[str, str | Path]] = []
    bids = False
    for spec in specs:
        if BOLD.matches(spec):
            people += [(f"bold-{k + 1:03d}", f"{spec}#{k}") for k in range(BOLD.parse(spec).n_subjects)]
        elif not Path(spec).exists():
            raise FrameSourceError(f"{spec} does not exist; check the path, or try builtin:bold")
        elif Path(spec).is_dir():
            people += list(find_scans(Path(spec)).items())
            bids = True
        else:
            people.append((_stem(Path(spec)), Path(spec)))
    again = next((spec for spec, n in Counter(Path(spec).absolute() for _, spec in people).items() if n > 1), None)
    if again is not None:
        # A person who is in both halves would make them agree.
        raise FrameSourceError(f"{again} is given twice; give each person once")
    if len({name for name, _ in people}) < len(people):
        # Files of one name from several folders.
        people = [(f"{Path(spec).parent.name}_{name}", spec) for name, spec in people]
    if len({name for name, _ in people}) < len(people):
        people = [(f"{name}_{k + 1}", spec) for k, (name, spec) in enumerate(people)]
    return People(people, bids)


def read_study(people: People, parcels: Parcels, *, stop: int | None = None, progress: Progress = silent) -> Study:
    """The series of all people, with the regions that all of them have."""
    if people.bids and parcels.confounds is None:
        parcels = replace(parcels, confounds=DEFAULT_STRATEGY)
    read: list[tuple[str, Scan, Ints | None]] = []
    for done, (name, spec) in enumerate(people.files):
        progress("read scans", done, len(people.files))
        read.append((name, *_read_one(spec, parcels, stop)))
    progress("read scans", len(people.files), len(people.files))
    tr = _one_tr([(name, scan.tr) for name, scan, _ in read])
    regions, remarks = _same_regions([(name, scan) for name, scan, _ in read])
    subjects = [
        Subject(name=name, values=scan.values[:, [scan.regions.index(region) for region in regions]], truth=truth)
        for name, scan, truth in read
    ]
    remarks = [remark for _, scan, _ in read for remark in scan.remarks] + remarks
    varying, constant = _varying(subjects, regions)
    remarks += constant
    if tr is None:
        remarks.append(
            "no TR is known, so times are in volumes, and slow drifts are taken to be 200 volumes long: --tr"
        )
    return Study(
        subjects=[replace(subject, values=np.ascontiguousarray(subject.values[:, varying])) for subject in subjects],
        regions=tuple(regions[k] for k in varying),
        tr=tr,
        atlas=parcels.atlas,
        remarks=tuple(remarks),
    )


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").rpartition(".")[0] or path.name


def _read_one(spec: str | Path, parcels: Parcels, stop: int | None) -> tuple[Scan, Ints | None]:
    if isinstance(spec, str):
        source, _, index = spec.partition("#")
        simulation, k = BOLD.parse(source), int(index)
        series = simulation.subject(k).head(stop)
        names = series.feature_names or ()
        return Scan(series.values, names, parcels.tr or simulation.tr, ()), simulation.states(k)[:stop]
    if is_scan(spec):
        scan = read_scan(spec, parcels)
        return replace(scan, values=scan.values[:stop]), None
    series = open_series(spec, stop=stop)
    names = series.feature_names or tuple(f"region {k + 1}" for k in range(series.n_features))
    twice = next((name for name, n in Counter(names).items() if n > 1), None)
    if twice is not None:
        raise FrameSourceError(f"{spec} has two columns called {twice!r}; give each region a name of its own")
    return Scan(series.values, names, parcels.tr or _stored_tr(spec), ()), None


def _stored_tr(path: Path) -> float | None:
    """The TR that lies beside the series in a ``.npz`` file; None elsewhere."""
    if path.suffix.lower() != ".npz":
        return None
    try:
        with Archive.open(path) as archive:
            name = next((name for name in ("tr", "TR", "t_r") if name in archive.names), None)
            if name is None or archive.layout(name).shape != ():
                return None
            stored = archive.read(name)
    except ArchiveError as error:
        raise FrameSourceError(
            f"the TR in {path} cannot be read: {error}; save it again, or give --tr SECONDS"
        ) from error
    if stored.dtype.kind not in "iuf":
        raise FrameSourceError(f"{path}: {name} is {stored.item()!r}, no number of seconds; give --tr SECONDS")
    found = float(stored)
    return found if np.isfinite(found) and found > 0 else None


def _one_tr(given: Sequence[tuple[str, float | None]]) -> float | None:
    first = next(((name, tr) for name, tr in given if tr is not None), None)
    if first is None:
        return None
    for name, tr in given:
        if tr is None:
            raise FrameSourceError(f"{name} says no TR, but {first[0]} has {first[1]:g} s; give --tr SECONDS for all")
        if abs(tr - first[1]) > 1e-3 * first[1]:
            raise FrameSourceError(
                f"{name} has a TR of {tr:g} s, but {first[0]} of {first[1]:g} s; look at each kind of scan by itself"
            )
    return first[1]


def _same_regions(read: Sequence[tuple[str, Scan]]) -> tuple[list[str], list[str]]:
    """Regions that all people have, in the order of the first; and what is said of the others."""
    first, scan = read[0]
    for name, other in read[1:]:
        shared = set(scan.regions) & set(other.regions)
        if len(shared) < max(2, len(scan.regions) // 2) or (
            len(scan.regions) != len(other.regions) and not other.remarks and not scan.remarks
        ):
            raise FrameSourceError(
                f"{name} has {len(other.regions)} regions, but {first} has {len(scan.regions)}, and {len(shared)} have "
                "the same names; all people need the same regions: use one atlas for all"
            )
    kept = [region for region in scan.regions if all(region in other.regions for _, other in read)]
    missing = sorted({region for _, other in read for region in other.regions} - set(kept))
    remarks = [f"{len(missing)} regions that some people lack are left out in all"] if missing else []
    return kept, remarks


def _varying(subjects: Sequence[Subject], regions: Sequence[str]) -> tuple[list[int], list[str]]:
    """Regions that vary in all people, and what is said of those that do not."""
    constant: dict[int, str] = {}
    for subject in subjects:
        spread = subject.values.std(axis=0)
        flat = spread <= 1e-9 * np.maximum(np.abs(subject.values).max(axis=0), 1e-300)
        for k in np.flatnonzero(flat):
            constant.setdefault(int(k), subject.name)
    varying = [k for k in range(len(regions)) if k not in constant]
    if len(varying) < max(2, len(regions) // 2):
        name = next(iter(constant.values()))
        raise FrameSourceError(
            f"{len(constant)} of {len(regions)} regions never change (in {name}, among others); check the mask and the "
            "confounds: a scan varies in all regions"
        )
    remarks = [f"{regions[k]} never changes in {name}: left out in all" for k, name in list(constant.items())[:5]]
    return varying, [*remarks, *([f"and {len(constant) - 5} more such regions"] if len(constant) > 5 else [])]
