"""Options that commands share: each means the same in all that have it. Free of heavy imports.

Here and in each ``command.py`` annotations are values, not strings: cyclopts reads those of a base class in the module
of its subclass, which has not imported their names.
"""

from psmt.experiments.options.departures import (
    EMBEDDING_FLAGS,
    MODEL_FLAGS,
    RECOVERY_FLAGS,
    EmbeddingDepartures,
    EmbeddingFlags,
    ModelDepartures,
    ModelFlags,
    RecoveryDepartures,
    RecoveryFlags,
)
from psmt.experiments.options.film import FilmOptions
from psmt.experiments.options.parallel import ParallelOptions, workers_for
from psmt.experiments.options.parameters import (
    AUTO,
    DEFAULT_LAM,
    Atoms,
    ChosenComponents,
    ChosenLam,
    ExtrapolationName,
    FixedLam,
    Horizon,
    NStarts,
    Out,
    QuarterComponents,
    Search,
    Solver,
    Start,
    Window,
    unless_auto,
)
from psmt.experiments.options.patch import PatchOptions

__all__ = [
    "AUTO",
    "DEFAULT_LAM",
    "EMBEDDING_FLAGS",
    "MODEL_FLAGS",
    "RECOVERY_FLAGS",
    "Atoms",
    "ChosenComponents",
    "ChosenLam",
    "EmbeddingDepartures",
    "EmbeddingFlags",
    "ExtrapolationName",
    "FilmOptions",
    "FixedLam",
    "Horizon",
    "ModelDepartures",
    "ModelFlags",
    "NStarts",
    "Out",
    "ParallelOptions",
    "PatchOptions",
    "QuarterComponents",
    "RecoveryDepartures",
    "RecoveryFlags",
    "Search",
    "Solver",
    "Start",
    "Window",
    "unless_auto",
    "workers_for",
]
