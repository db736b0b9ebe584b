"""Coding in torch: `psmt.coding.atoms.Atoms` on a device, and the learning of a dictionary there."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from psmt.coding.dictionary import PATIENCE, kept_share
from psmt.engines import engine_for
from psmt.engines.torch_graphs import recorded
from psmt.engines.torch_lasso import Solvers, padded, pose

_BLOCK = 32
"""Atoms whose dependence on all others is worked out in one product."""

_TINY = 1e-200
"""A wish of zero stays zero instead of becoming nan."""


def unit_columns(columns: Tensor) -> tuple[Tensor, Tensor]:
    """Unit-norm columns (n_columns, n_features) and the norms (n_columns,) they had; zero columns stay zero."""
    norms = columns.norm(dim=1)
    return columns / torch.where(norms > 0, norms, 1.0)[:, None], norms


class TorchAtoms:
    """Atoms (n_atoms, n_features) of any norm, ready for coding."""

    def __init__(self, given: NDArray[np.float64], device: str, place: torch.device, solvers: Solvers) -> None:
        self.given = np.array(given, dtype=np.float64)
        self.given.flags.writeable = False
        self._device, self._solvers = device, solvers
        self._atoms = torch.from_numpy(np.array(given, dtype=np.float64)).to(place)
        unit, norms = unit_columns(self._atoms)
        self._columns = padded(unit)
        # A zero atom keeps its zeros: it correlates with nothing, so no code uses it.
        self._norms = torch.where(norms > 0, norms, 1.0)

    def __reduce__(self) -> tuple[Any, ...]:
        # Recorded solvers can be neither copied nor written down.
        return _atoms_on, (self._device, self.given)

    @cached_property
    def _gram(self) -> Tensor:
        return self._columns @ self._columns.mT

    def code(self, samples: Tensor, alpha: float, *, tol: float) -> Tensor:
        """Codes (n_samples, n_atoms) of the samples (n_samples, n_features)."""
        prices = alpha / self._norms
        return self._solvers.solve_many(self._columns, samples, prices, tol=tol, gram=self._gram).coef / self._norms

    def code_next(self, sample: Tensor, alpha: float, *, tol: float, last: Tensor) -> Tensor:
        """Code (n_atoms,) of a sample (n_features,), sought from the last code (n_atoms,) on."""
        problem = pose(self._columns, sample[None], alpha / self._norms, self._gram)
        start = torch.nn.functional.pad(last, (0, len(self._columns) - len(last)))
        return self._solvers.solve(problem, tol, start[None]).coef[0, : len(last)] / self._norms

    def decode(self, codes: Tensor) -> Tensor:
        """Samples (n_samples, n_features) that the codes (n_samples, n_atoms) stand for."""
        return codes @ self._atoms


def _atoms_on(device: str, given: NDArray[np.float64]) -> TorchAtoms:
    return engine_for(device).atoms(given)


class TorchStatistics:
    """Faded sums over the codes so far, and the dictionary that is best for them.

    As `psmt.coding.dictionary.DictionaryStatistics`. The sweep over the atoms is the same, one after the other, but
    what a block of them asks of all others is one product.
    """

    def __init__(self, n_atoms: int, n_features: int, device: torch.device) -> None:
        self.code_code = torch.zeros(n_atoms, n_atoms, dtype=torch.float64, device=device)
        self.code_sample = torch.zeros(n_atoms, n_features, dtype=torch.float64, device=device)
        self.idle = torch.zeros(n_atoms, dtype=torch.float64, device=device)
        self.n_batches = 0
        self._atoms = torch.zeros_like(self.code_sample)
        self._sweep: Callable[[], None] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # What was recorded can be neither copied nor written down.
        return self.__dict__ | {"_sweep": None}

    def update(self, codes: Tensor, samples: Tensor) -> None:
        """Take in one batch of codes (n, n_atoms) of samples (n, n_features)."""
        self.n_batches += 1
        kept = kept_share(self.n_batches, len(self.code_code), len(codes))
        self.code_code.addmm_(codes.T, codes, beta=kept)
        self.code_sample.addmm_(codes.T, samples, beta=kept)
        self.idle += len(codes)
        self.idle.masked_fill_(codes.any(0), 0.0)

    def improve(self, atoms: Tensor) -> None:
        """One sweep of exact coordinate descent, in place, over the unit-norm atoms that the last batch used."""
        if self._sweep is None:
            self._sweep = recorded(self._sweep_all, atoms.device)
        self._atoms.copy_(atoms)
        self._sweep()
        atoms.copy_(self._atoms)

    def _sweep_all(self) -> None:
        own = self.code_code.diagonal()
        free = ((self.idle == 0) & (own > 0)).to(own.dtype)
        for first in range(0, len(own), _BLOCK):
            block = slice(first, min(first + _BLOCK, len(own)))
            atoms, shared = self._atoms[block], self.code_code[block, block]
            wishes = torch.addmm(self.code_sample[block], self.code_code[block], self._atoms, alpha=-1.0)
            wishes.addcmul_(atoms, own[block, None])
            moved = shared * free[block]
            best = torch.empty_like(atoms)
            for j in range(len(atoms)):
                norm = wishes[j].norm().clamp_min(_TINY)
                torch.div(wishes[j], norm, out=best[j])
                # What this atom changed, the others of its block take into account.
                wishes.addr_(moved[:, j], best[j] - atoms[j], alpha=-1.0)
            atoms.copy_(torch.where(free[block, None] > 0, best, atoms))

    def replace_dead(self, atoms: Tensor, samples: Tensor, residuals: Tensor) -> int:
        """Number of dead atoms that were set, in place, to the samples that are explained worst."""
        dead = (self.idle > PATIENCE * len(atoms)).nonzero()[:, 0]
        if not len(dead):
            return 0
        worst = residuals.square().sum(1).argsort(descending=True, stable=True)[: len(dead)]
        worst = worst[samples[worst].norm(dim=1) > 0]
        dead = dead[: len(worst)]
        atoms[dead] = unit_columns(samples[worst])[0]
        self.code_code[dead] = 0.0
        self.code_code[:, dead] = 0.0
        self.code_sample[dead] = 0.0
        self.idle[dead] = 0.0
        return len(dead)
