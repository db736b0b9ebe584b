"""The dictionary sweep on a torch device: the sweep of the CPU, in the same order, a block of atoms at a time."""

from __future__ import annotations

import torch
from torch import Tensor

from psmt.engines.torch.nvrtc import kernel

_BLOCK = 32
"""Atoms whose dependence on all others is worked out in one product. The kernel knows it too."""

_TINY = 1e-200
"""A target of zero stays zero instead of becoming nan."""


def swept(atoms: Tensor, used: Tensor, statistics: tuple[Tensor, Tensor]) -> tuple[Tensor]:
    """The atoms (n_atoms, n_features) after a sweep over those that are used, given ``sum a a'`` and ``sum a x'``."""
    code_code, code_sample = statistics
    atoms, (n_atoms, n_features) = atoms.clone(), atoms.shape
    free = (used & (code_code.diagonal() > 0)).to(atoms.dtype)
    threads = -(-n_features // 32) * 32
    compiled = kernel("sweep.cu", "improve", atoms.dtype, atoms.device, threads) if threads <= 1024 else None
    for first in range(0, n_atoms, _BLOCK):
        block = slice(first, first + _BLOCK)
        own, products = atoms[block], code_code[block]
        targets = torch.addmm(code_sample[block], products, atoms, alpha=-1.0)
        if compiled is None:
            _improve_block(own, targets, products[:, block], free[block])
        else:
            sizes = len(own), n_features, n_atoms
            compiled(1, threads, 0, own, targets, products[:, block], free[block], *sizes)
    return (atoms,)


def _improve_block(atoms: Tensor, targets: Tensor, shared: Tensor, free: Tensor) -> None:
    """`sweep.cu`, where there is no kernel for the device."""
    targets.addcmul_(atoms, shared.diagonal()[:, None])
    best = torch.empty_like(atoms)
    for j in range(len(atoms)):
        torch.div(targets[j], targets[j].norm().clamp_min(_TINY), out=best[j])
        # What this atom changed, the others of its block take into account.
        targets.addr_(shared[:, j] * free[j], best[j] - atoms[j], alpha=-1.0)
    atoms.copy_(torch.where(free[:, None] > 0, best, atoms))
