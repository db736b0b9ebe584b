"""Parameters that several experiments share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from psmt.experiments.options.declaration import RATIO, Declared, Derived, Flags, Option, anything
from psmt.utils.constraints import choice, count, real

if TYPE_CHECKING:
    from psmt.model.paper_options import Departures
else:
    Departures = Any  # its module takes a second to import, which is too long for --help

_LAM = "λ: sparsity (L1) penalty of step 7, recovery."
_COMPONENTS = "f: dimension of the embedding."

Atoms = Annotated[int, Option("--atoms", "M: number of atoms in the dictionary.")]
SeveralAtoms = Annotated[tuple[int, ...], Option("--atoms", "M: number of atoms in the dictionary; may be repeated.")]
Window = Annotated[
    int,
    Option("--window", "H: number of codes that the embedding is made from.", default=f"{RATIO} times M"),
    Derived("n_atoms", lambda n_atoms: RATIO * n_atoms),
    count(3),
]
Horizon = Annotated[int, Option("--horizon", "K: number of frames that are predicted after each start.")]
QuarterComponents = Annotated[int | None, Option("--components", _COMPONENTS, "a quarter of the atoms", auto=True)]
ChosenComponents = Annotated[
    int | Literal["auto"],
    Option("--components", _COMPONENTS, "chosen by predicting the end of the past", auto=True),
]
Lam = Annotated[float, Option("--lam", _LAM, auto=True)]
SeveralLam = Annotated[tuple[float, ...], Option("--lam", f"{_LAM[:-1]}; may be repeated.")]
ChosenLam = Annotated[
    float | Literal["auto"],
    Option("--lam", _LAM, "chosen by predicting the end of the past", auto=True),
]
Alpha = Annotated[
    float,
    Option("--alpha", "α: sparsity (L1) penalty of layer 1.", "1, for a series of n features √n / 16", auto=True),
    real(open_bound=True),
]
Seed = Annotated[int, Option("--seed", "Seed of the dictionary's first atoms."), count(0)]
Solver = Annotated[
    str,
    Option("--solver", "Step 5: closed form, or mini-batch descent (CPU only) that continues from window to window."),
    choice("closed", "sgd"),
]
Search = Annotated[
    Literal["segment", "film"],
    Option("--search", "Where phases are searched: inside the segment of least error, or in the whole film."),
]
Starts = Annotated[
    tuple[int, ...],
    Option("--start", "T: frame to start from; may be repeated.", "a calm and a lively phase are searched"),
    anything,
]
PatchSize = Annotated[int, Option("--patch", "Side of the patch in pixels; N is its square.")]
Device = Annotated[str, Option("--device", "Where to compute: cpu, or cuda for a GPU.", metavar="cpu|cuda")]


# Extrapolations


def extrapolation_names() -> tuple[str, ...]:
    """Names of the extrapolations in `psmt.extrapolation`, read from its files: importing it is too slow for --help."""
    spec = find_spec("psmt.extrapolation")
    folder = Path((spec and spec.origin) or "").parent
    found = (
        re.findall(r'^    name(?:: .+)? = "(\w+)"$', file.read_text("utf-8"), re.M) for file in folder.glob("*.py")
    )
    return tuple(sorted(name for names in found for name in names))


Extrapolation = Annotated[
    str,
    Option(
        "--extrapolation",
        "Step 6: how PSMT continues the embedding. linear is the paper's straight line; dynamics learns a matrix from "
        "the window (docs/explanation/dynamics.md).",
    ),
    choice(*extrapolation_names()),
]


# Departures from the paper


@dataclass(frozen=True, kw_only=True)
class DepartureFlags(Declared):
    """Fields of `Departures` as flags. Those that are left out are as in the paper with --literal, else as ours."""

    literal: Annotated[
        bool,
        Option(
            "--literal",
            "Follow the paper to the letter, but for departures that are given (docs/explanation/departures.md).",
        ),
    ] = False
    half_stencils: Annotated[
        bool | None, Option("--half-stencils", "D is H x H, with half stencils at both ends, as in the paper.")
    ] = None
    centred: Annotated[
        bool | None, Option("--centred", "V is the covariance, as in the paper, or the second moment about zero.")
    ] = None
    rank_tol: Annotated[
        float | None,
        Option("--rank-tol", "Regularisation of V, relative to the atoms' variance. 0, as in the paper: none."),
    ] = None
    activity_bound: Annotated[
        float | None,
        Option(
            "--activity-bound",
            "Upper bound on the activity of a recovered code, relative to the window's peak. In the paper: none.",
            none=True,
        ),
    ] = None
    merge_parallel: Annotated[
        bool | None, Option("--merge-parallel", "Recover atoms with parallel columns in P together, unlike the paper.")
    ] = None
    dictionary_from: Annotated[
        Literal["past", "window"] | None,
        Option(
            "--dictionary-from",
            "Learn a prediction's dictionary from its whole past, or as in the paper from the H frames of the window.",
        ),
    ] = None
    on_cut: Annotated[
        Literal["hold", "ignore"] | None,
        Option("--on-cut", "After a cut hold the last code, or as in the paper do nothing."),
    ] = None


def make_departures(given: Mapping[str, Any]) -> Departures:
    """Departures from the paper, from the flags among the given values."""
    from psmt.model.paper_options import Departures

    flags = {name: value for name, value in given.items() if name in FLAG_NAMES}
    literal = flags.pop("literal", False)
    return replace(Departures.literal() if literal else Departures(), **flags)


FLAG_NAMES = tuple(DepartureFlags.__dataclass_fields__)

LiteralDepartures = Annotated[Departures, Flags(DepartureFlags, FLAG_NAMES[:1], make_departures)]
EmbeddingDepartures = Annotated[Departures, Flags(DepartureFlags, FLAG_NAMES[:4], make_departures)]
RecoveryDepartures = Annotated[Departures, Flags(DepartureFlags, FLAG_NAMES[:6], make_departures)]
ModelDepartures = Annotated[Departures, Flags(DepartureFlags, FLAG_NAMES, make_departures)]


def our_departures() -> Departures:
    """The default."""
    from psmt.model.paper_options import OURS

    return OURS
