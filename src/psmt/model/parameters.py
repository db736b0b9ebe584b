"""Parameters of `PSMT`: defaults, constraints, and named sets of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from psmt.coding import SparseCoder
from psmt.embedding.stochastic import BATCH_SIZE, MAX_EPOCHS, TOL, check_solver
from psmt.engines import engine_for
from psmt.engines.contract import Engine
from psmt.extrapolation import EXTRAPOLATIONS
from psmt.model.online_estimator import Forecaster
from psmt.model.paper_options import CONSTRAINTS, Departures
from psmt.numerics.rank import RANK_TOL
from psmt.recovery import ACTIVITY_FACTOR
from psmt.selection import Auto
from psmt.utils.constraints import Constraint, allowing, check_parameters, choice, count, real, renamed, seed, truth


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters(Forecaster):
    """Parameters of `PSMT`, whose docstring explains them."""

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {
        "window": allowing("auto", count(3)),
        "n_atoms": allowing("auto", count()),
        "alpha": allowing("auto", real(open_bound=True)),
        **CONSTRAINTS,
        "n_components": allowing(None, allowing("auto", count())),
        "lam": allowing("auto", real()),
        # Extrapolations may be added after this module was imported.
        "extrapolation": lambda name, value: choice(*EXTRAPOLATIONS)(name, value),
        "solver": choice("closed", "sgd"),
        "max_epochs": count(),
        "batch_size": count(),
        "tol": allowing(None, real()),
        "sparsity": real(),
        "standardise": truth,
        "centred": truth,
        "half_stencils": truth,
        "merge_parallel": truth,
        "random_state": seed,
    }

    n_atoms: int | Auto = 512
    window: int | Auto = 1536
    n_components: int | Auto | None = "auto"
    alpha: float | Auto = 1.0
    lam: float | Auto = "auto"
    extrapolation: str = "linear"
    standardise: bool = False
    on_cut: str = "hold"
    centred: bool = True
    half_stencils: bool = False
    rank_tol: float = RANK_TOL
    activity_bound: float | None = ACTIVITY_FACTOR
    merge_parallel: bool = True
    dictionary_from: str = "past"
    solver: str = "closed"
    max_epochs: int = MAX_EPOCHS
    batch_size: int = BATCH_SIZE
    tol: float | None = TOL
    sparsity: float = 0.0
    coder: SparseCoder | None = None
    random_state: int | np.random.RandomState | None = None
    device: str = "cpu"
    dtype: str = "float64"
    ends: bool | Literal["deprecated"] = "deprecated"

    @classmethod
    def literal(cls, **parameters: Any) -> Self:
        """The paper to the letter, except for the given parameters.

        The dictionary is learned from the H frames of the window, D is H x H, V is not regularised, and step 7 has
        neither a bound nor merged columns. What the paper leaves open is as in all models: a singular V is inverted
        in its range, and an atom that does not vary in the window keeps its activity.

        >>> from psmt import PSMT
        >>> model = PSMT.literal(n_atoms=24, window=200)
        >>> model.rank_tol, model.half_stencils, model.activity_bound
        (0.0, True, None)
        """
        return cls(**Departures.literal().parameters | parameters)

    @classmethod
    def for_series(cls, **parameters: Any) -> Self:
        """For series other than films, of any units and length, except for the given parameters.

        They are taken to have no cuts: a sharp change of a brain is part of its dynamics.

        >>> from psmt import PSMT
        >>> model = PSMT.for_series()
        >>> model.standardise, model.alpha, model.window, model.n_atoms, model.extrapolation, model.on_cut
        (True, 'auto', 'auto', 'auto', 'dynamics', 'ignore')
        """
        auto: dict[str, Any] = dict.fromkeys(("alpha", "window", "n_atoms"), "auto")
        return cls(**auto | {"standardise": True, "extrapolation": "dynamics", "on_cut": "ignore"} | parameters)

    @property
    def _half_stencils(self) -> bool:
        return renamed("half_stencils", self.half_stencils, "ends", self.ends)

    @property
    def _engine(self) -> Engine:
        return engine_for(self.device, self.dtype)

    def _check_parameters(self) -> None:
        engine_for(self.device, self.dtype)
        check_parameters(self, self._parameter_constraints)
        check_solver(self.solver, device=self.device, sparsity=self.sparsity)
