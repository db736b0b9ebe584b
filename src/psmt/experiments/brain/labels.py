"""Names of the regions of an atlas, and the known networks (such as the default mode) that they belong to."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from psmt.errors import FrameSourceError
from psmt.types import Array
from psmt.utils.files import reading

_SCHAEFER = re.compile(r"^(?:7|17)Networks_[LR]H_([A-Za-z]+)")
"""Names of the regions of Schaefer's atlases, which contain the network of Yeo et al. (2011)."""


class Label(NamedTuple):
    """Name of a region, and the network that it belongs to in the literature, or '' if none is given."""

    name: str
    network: str = ""


def beside_atlas(atlas: Path) -> Path | None:
    """Return the path of the table of labels, or None if missing. It is the atlas's path with the suffix ``.tsv``."""
    path = atlas.with_name(re.sub(r"\.nii(\.gz)?$", "", atlas.name, flags=re.IGNORECASE) + ".tsv")
    return path if path.is_file() else None


def region_numbers(regions: Sequence[str]) -> list[int]:
    """Return the atlas number of each region, parsed from names such as 'region 3', or [] if any name has another form.

    >>> [region_numbers(names) for names in (["region 3", "region 12"], ["region 3", "insula"], ["region x", ""])]
    [[3, 12], [], []]
    """
    found = [re.fullmatch(r"(?:region|map) ([1-9][0-9]{0,8})", name) for name in regions]
    return [int(own[1]) for own in found if own] if all(found) else []


def label_regions(regions: Sequence[str], path: Path) -> list[Label]:
    """Read the labels of `regions`, which have names such as 'region 3', from the file `path`.

    A ``.tsv`` or ``.csv`` table has the columns index and name, and optionally network. Any other file has one name per
    line, for the regions 1, 2, .. of the atlas. For Schaefer's atlases, the network is taken from the name.
    """
    labels, numbers = _read(path), region_numbers(regions)
    missing = [number for number in numbers if number not in labels]
    names = [labels[number].name for number in numbers if number in labels]
    twice = next((name for name in names if names.count(name) > 1), None)
    why = ""
    if not numbers:
        odd = next(name for name in regions if not region_numbers([name]))
        why = f"name regions by number, but a region is called {odd!r}; leave them out"
    elif missing:
        why = f"have no name for {len(missing)} of {len(numbers)} regions, such as region {missing[0]}; name them all"
    elif twice is not None:
        why = f"call two regions {twice!r}; give each region a name of its own"
    if why:
        raise FrameSourceError(f"labels {path} {why}")
    return [labels[number] for number in numbers]


def _read(path: Path) -> dict[int, Label]:
    """Read the label of each region of the atlas, by its number."""
    suffix = path.suffix.lower()
    with reading(path) as file:
        content = file.read()
    try:
        # utf-8-sig removes the byte order mark that spreadsheets write.
        lines = [line for line in content.decode("utf-8-sig").splitlines() if line.strip()]
        if suffix not in (".tsv", ".csv"):
            return {k: Label(line.strip()) for k, line in enumerate(lines, 1)}
        rows = list(csv.DictReader([lines[0].lower(), *lines[1:]], delimiter="\t" if suffix == ".tsv" else ","))
        known = {row["name"]: _SCHAEFER.findall(row["name"]) or [""] for row in rows}
        found = {int(row["index"]): Label(row["name"], row.get("network") or known[row["name"]][0]) for row in rows}
    except (UnicodeDecodeError, csv.Error, LookupError, ValueError, TypeError) as error:
        raise FrameSourceError(
            f"labels {path} cannot be read ({error!r:.80}); give a table with numbers in the column index and texts in "
            "the column name"
        ) from error
    return found


def match_networks(weights: Array, networks: Sequence[str]) -> list[tuple[str, float]]:
    """Return, for each atom, the name of the most similar network of the literature, and the correlation with it.

    `weights` (n_atoms, n_regions) are the atoms. `networks` has the name of each region's network, or '' for none. An
    atom is correlated with a vector that is 1 in the regions of the network and 0 elsewhere.

    >>> match_networks(np.array([[0.9, 0.8, 0.1], [0.0, 0.1, 0.7]]), ["Vis", "Vis", "Default"])
    [('Vis', 0.99...), ('Default', 0.99...)]
    """
    names = sorted(set(networks) - {""})
    if not names or len(set(networks)) < 2:
        return [("", np.nan)] * len(weights)
    members = np.array([[own == name for own in networks] for name in names], dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.nan_to_num(np.corrcoef(weights, members)[: len(weights), len(weights) :])
    return [(names[k], float(row[k])) for k, row in zip(found.argmax(axis=1), found, strict=True)]
