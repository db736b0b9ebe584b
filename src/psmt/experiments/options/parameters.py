"""Single options that several commands have, each with its type and its help."""

from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from cyclopts import Parameter

T = TypeVar("T")

DEFAULT_LAM = 0.1
"""λ of the sweep and the reconstruction, where no past can be held against a future to choose it."""

AUTO: dict[str, Any] = {"show_choices": False}
"""Of an option that takes a word as well as a number."""


def unless_auto(value: T | Literal["auto"], otherwise: Any) -> Any:
    """The value of an option, or what 'auto' stands for."""
    return otherwise if value == "auto" else value


QuarterComponents = Annotated[
    Literal["auto"] | int,
    Parameter(help="f: dimension of the embedding; auto is a quarter of the atoms.", metavar="auto|INT", **AUTO),
]
FixedLam = Annotated[
    Literal["auto"] | float,
    Parameter(help=f"λ: price of activity in step 7, recovery; auto is {DEFAULT_LAM}.", metavar="auto|FLOAT", **AUTO),
]
Solver = Annotated[
    Literal["closed", "sgd"],
    Parameter(help="Step 5: the closed form, or mini-batch descent (on the CPU) that goes on from window to window."),
]
Start = Annotated[
    tuple[int, ...],
    Parameter(
        help="T: frame to start from; may be repeated. Left out: a calm and a lively phase are searched.",
        metavar="INT",
        negative=(),
        show_default=False,
    ),
]
Search = Annotated[
    Literal["segment", "film"],
    Parameter(help="Where the phases are looked for: inside the segment of least error, or in the whole film."),
]
NStarts = Annotated[
    int | None,
    Parameter(
        help="Starts over which claims are judged, phases among them; fewer where the film has less room. Left out: "
        "20, or 8 with --quick.",
        metavar="INT",
        show_default=False,
    ),
]
Atoms = Annotated[
    int | None, Parameter(help="M: atoms in the dictionary. Left out: 512.", metavar="INT", show_default=False)
]
Horizon = Annotated[int, Parameter(help="K: how many frames are predicted after each start.")]
Window = Annotated[
    int | None,
    Parameter(
        help="H: how many codes the embedding is made from. Left out: 3 times M.", metavar="INT", show_default=False
    ),
]


ExtrapolationName = Annotated[
    Literal["linear", "hold", "gain", "phase", "dynamics"],
    Parameter(
        help="Step 6: how PSMT continues the embedding. linear is the paper's straight line; dynamics learns a matrix "
        "from the window (docs/explanation/dynamics.md)."
    ),
]
ChosenComponents = Annotated[
    Literal["auto"] | int,
    Parameter(
        help="f: dimension of the embedding; auto chooses by predicting the end of the past.",
        metavar="auto|INT",
        **AUTO,
    ),
]
ChosenLam = Annotated[
    Literal["auto"] | float,
    Parameter(help="λ: price of activity in step 7, recovery; auto as above.", metavar="auto|FLOAT", **AUTO),
]

Out = Annotated[Path, Parameter(help="Folder for the files; made if it is not there.")]
