"""Coding in torch: `psmt.coding.atoms.Atoms` on a device, and the learning of a dictionary there."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from psmt.coding.dictionary import PATIENCE, kept_share
from psmt.engines import engine_for
from psmt.engines.torch.graphs import Recorded
from psmt.engines.torch.lasso import pose, solve, solve_many
from psmt.engines.torch.nvrtc import kernel

_BLOCK = 32
"""Atoms whose dependence on all others is worked out in one product. The kernel knows it too."""

_TINY = 1e-200
"""A wish of zero stays zero instead of becoming nan."""


def unit_columns(columns: Tensor) -> tuple[Tensor, Tensor]:
    """Unit-norm columns (n_columns, n_features) and the norms (n_columns,) they had; zero columns stay zero."""
    norms = columns.norm(dim=1)
    return columns / torch.where(norms > 0, norms, 1.0)[:, None], norms


class TorchAtoms:
    """Atoms (n_atoms, n_features) of any norm, ready for coding in numbers of a dtype."""

    def __init__(
        self, given: NDArray[np.float64], device: str, place: torch.device, dtype: torch.dtype = torch.float64
    ) -> None:
        self.given = np.array(given, dtype=np.float64)
        self.given.flags.writeable = False
        self._device, self._dtype = device, dtype
        self._atoms = torch.from_numpy(np.array(given, dtype=np.float64)).to(place)
        unit, norms = unit_columns(self._atoms)
        self._columns = unit.to(dtype)
        # A zero atom keeps its zeros: it correlates with nothing, so no code uses it.
        self._norms = torch.where(norms > 0, norms, 1.0)
        self._follow = Recorded(_follow)

    def __reduce__(self) -> tuple[Any, ...]:
        # The Gram matrix is larger than the atoms, and quicker made than read.
        return _atoms_on, (self._device, self.given)

    @cached_property
    def _gram(self) -> Tensor:
        return self._columns @ self._columns.mT

    def code(self, samples: Tensor, alpha: float, *, tol: float) -> Tensor:
        """Codes (n_samples, n_atoms) of the samples (n_samples, n_features)."""
        prices = (alpha / self._norms).to(self._dtype)
        found = solve_many(self._columns, samples.to(self._dtype), prices, tol=tol, gram=self._gram)
        return found.coef / self._norms

    def code_next(self, sample: Tensor, alpha: float, *, tol: float, last: Tensor) -> Tensor:
        """Code (n_atoms,) of a sample (n_features,), sought from the last code (n_atoms,) on."""
        return self._follow(sample, last, fixed=(self._columns, self._gram, self._norms), alpha=alpha, tol=tol)[0]

    def decode(self, codes: Tensor) -> Tensor:
        """Samples (n_samples, n_features) that the codes (n_samples, n_atoms) stand for."""
        return codes @ self._atoms


def _follow(
    sample: Tensor, last: Tensor, columns: Tensor, gram: Tensor, norms: Tensor, *, alpha: float, tol: float
) -> tuple[Tensor]:
    problem = pose(columns, sample[None].to(columns.dtype), (alpha / norms).to(columns.dtype), gram)
    return (solve(problem, tol=tol, start=last[None]).coef[0] / norms,)


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
        self._sweep = Recorded(_sweep)

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
        atoms.copy_(self._sweep(atoms, fixed=(self.code_code, self.code_sample, self.idle))[0])

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


def _sweep(atoms: Tensor, code_code: Tensor, code_sample: Tensor, idle: Tensor) -> tuple[Tensor]:
    """The improved atoms."""
    atoms, (n_atoms, n_features) = atoms.clone(), atoms.shape
    free = ((idle == 0) & (code_code.diagonal() > 0)).to(atoms.dtype)
    threads = -(-n_features // 32) * 32
    compiled = kernel("sweep.cu", "improve", atoms.dtype, atoms.device, threads) if threads <= 1024 else None
    for first in range(0, n_atoms, _BLOCK):
        block = slice(first, first + _BLOCK)
        own, products = atoms[block], code_code[block]
        wishes = torch.addmm(code_sample[block], products, atoms, alpha=-1.0)
        if compiled is None:
            _improve_block(own, wishes, products[:, block], free[block])
        else:
            sizes = len(own), n_features, n_atoms
            compiled(1, threads, 0, own, wishes, products[:, block], free[block], *sizes)
    return (atoms,)


def _improve_block(atoms: Tensor, wishes: Tensor, shared: Tensor, free: Tensor) -> None:
    """`sweep.cu`, where there is no kernel for the device."""
    wishes.addcmul_(atoms, shared.diagonal()[:, None])
    best = torch.empty_like(atoms)
    for j in range(len(atoms)):
        torch.div(wishes[j], wishes[j].norm().clamp_min(_TINY), out=best[j])
        # What this atom changed, the others of its block take into account.
        wishes.addr_(shared[:, j] * free[j], best[j] - atoms[j], alpha=-1.0)
    atoms.copy_(torch.where(free[:, None] > 0, best, atoms))
