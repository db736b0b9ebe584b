"""Parameters that several experiments share."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from psmt.experiments.options.declaration import RATIO, Derived, Option, anything
from psmt.utils.constraints import choice, count, real

if TYPE_CHECKING:
    from psmt.model.paper_options import Departures
else:
    Departures = Any  # its module takes a second to import, which is too long for --help

_LAM = "λ: sparsity (L1) penalty of step 7, recovery."
_COMPONENTS = "f: dimension of the embedding."
_CHOSEN = "chosen by predicting the end of the past"

Atoms = Annotated[int, Option("--atoms", "M: number of atoms in the dictionary.")]
SeveralAtoms = Annotated[tuple[int, ...], Option("--atoms", "M: number of atoms in the dictionary; may be repeated.")]
Window = Annotated[
    int,
    Option("--window", "H: number of codes of an embedding.", default=f"{RATIO} times M"),
    Derived("n_atoms", lambda n_atoms: RATIO * n_atoms),
    count(3),
]
Horizon = Annotated[int, Option("--horizon", "K: number of frames that are predicted after each start.")]
QuarterComponents = Annotated[int | None, Option("--components", _COMPONENTS, "a quarter of the atoms", auto=True)]
ChosenComponents = Annotated[int | Literal["auto"], Option("--components", _COMPONENTS, _CHOSEN, auto=True)]
Lam = Annotated[float, Option("--lam", _LAM, auto=True)]
SeveralLam = Annotated[tuple[float, ...], Option("--lam", f"{_LAM[:-1]}; may be repeated.")]
ChosenLam = Annotated[float | Literal["auto"], Option("--lam", _LAM, _CHOSEN, auto=True)]
Alpha = Annotated[
    float,
    Option("--alpha", "α: sparsity (L1) penalty of layer 1.", "1, or √n / 16 for a series of n features", auto=True),
    real(open_bound=True),
]
Seed = Annotated[int, Option("--seed", "Seed of the random numbers, such as the dictionary's first atoms."), count(0)]
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


def extrapolation_names() -> tuple[str, ...]:
    """Return the names of all extrapolations. They are read from the source files, because imports are slow."""
    spec = find_spec("psmt.extrapolation")
    folder = Path((spec and spec.origin) or "").parent
    texts = (file.read_text("utf-8") for file in folder.glob("*.py"))
    return tuple(sorted(name for text in texts for name in re.findall(r'^    name(?:: .+)? = "(\w+)"$', text, re.M)))


Extrapolation = Annotated[
    str,
    Option(
        "--extrapolation",
        "Step 6: how PSMT continues the embedding. linear is the paper's straight line; dynamics learns a matrix from "
        "the window (docs/explanation/dynamics.md).",
        default="linear; dynamics in psmt predict on a series",
    ),
    choice(*extrapolation_names()),
]


def make_departures(literal: bool = False) -> Departures:
    """Return the options in which the package departs from the paper. If `literal`, they have the paper's values."""
    from psmt.model.paper_options import OURS, Departures

    return Departures.literal() if literal else OURS


Departed = Annotated[
    Departures,
    Option(
        "--literal", "As in the paper; use lam>0 (docs/explanation/departures.md).", parse=make_departures, is_flag=True
    ),
]
