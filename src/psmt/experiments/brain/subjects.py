"""People and their series: reads files of all kinds into arrays of the same regions, or says why it cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from psmt.data import open_series
from psmt.data.readers.scans import Parcels, Scan, find_scans, is_scan, read_scan
from psmt.data.synthetic.brain import BOLD
from psmt.errors import FrameSourceError
from psmt.persistence.zip_archive import Archive, ArchiveError
from psmt.types import Array, Ints, Progress, silent


@dataclass(frozen=True, kw_only=True)
class Study:
    """Series of some people with the same regions."""

    names: Sequence[str]
    series: Sequence[Array]
    """(time, n_regions) of each person, in the units of the file."""
    truths: Sequence[Ints | None]
    """(time,) of each person: the true states, if they are known."""
    regions: tuple[str, ...]
    tr: float | None = None
    """Seconds from volume to volume; None if it is not known."""
    atlas: Path | None = None
    """Image of the regions, for pictures."""
    remarks: tuple[str, ...] = ()
    """What was left out, and why."""

    @property
    def lengths(self) -> list[int]:
        """Number of volumes of each person."""
        return [len(own) for own in self.series]


@dataclass(frozen=True)
class People:
    """Names of people and the files that they will be read from.

    The command line asks every source for ``name`` and ``n_frames``.
    """

    files: Sequence[tuple[str, str | Path]]
    bids: bool
    """Whether some come from a BIDS folder, which has confounds."""
    name: str = "brain"
    n_frames: None = None


def find_people(specs: Sequence[str]) -> People:
    """People in files, in a BIDS derivatives folder, or in ``builtin:bold``. Raises for a missing file."""
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
        else:
            people.append((path.name.removesuffix(".gz").rpartition(".")[0] or path.name, path))
    again = _repeated(Path(spec).absolute() for _, spec in people)
    if again is not None:
        # A person in both halves would make them agree.
        raise FrameSourceError(f"{again} is given twice; give each person once")
    if _repeated(name for name, _ in people) is not None:
        # Files of the same name in several folders.
        people = [(f"{Path(spec).parent.name}_{name}", spec) for name, spec in people]
    if _repeated(name for name, _ in people) is not None:
        people = [(f"{name}_{k + 1}", spec) for k, (name, spec) in enumerate(people)]
    return People(people, bids)


def read_study(people: People, parcels: Parcels, *, stop: int | None = None, progress: Progress = silent) -> Study:
    """The series of all people, with the regions that all of them have."""
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
        remarks.append(
            "no TR is known, so times are in volumes, and drifts slower than 200 volumes are removed; give --tr"
        )
    return Study(
        names=list(values),
        series=[np.ascontiguousarray(own[:, varying]) for own in values.values()],
        truths=[truth for _, truth in read],
        regions=tuple(regions[k] for k in varying),
        tr=tr,
        atlas=parcels.atlas,
        remarks=tuple(remarks),
    )


def _repeated(values: Iterable[Any]) -> Any:
    """The first value that occurs more than once, or None."""
    return next((value for value, n in Counter(values).items() if n > 1), None)


def _read_one(spec: str | Path, parcels: Parcels, stop: int | None) -> tuple[Scan, Ints | None]:
    if isinstance(spec, str):
        source, _, index = spec.partition("#")
        simulation, k = BOLD.parse(source), int(index)
        series = simulation.subject(k).head(stop)
        scan = Scan(series.values, series.feature_names or (), parcels.tr or simulation.tr, ())
        return scan, simulation.states(k)[:stop]
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
    """The TR in a ``.npz`` file of a series; None in other files."""
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
    """Regions that all people have, in the order of the first person; regions left out are added to `remarks`."""
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
    """Indices of the regions that vary in all people; constant regions are added to `remarks`."""
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
    remarks += [f"{regions[k]} never changes in {name}: left out in all" for k, name in list(constant.items())[:5]]
    if len(constant) > 5:
        remarks.append(f"and {len(constant) - 5} more such regions")
    return varying
