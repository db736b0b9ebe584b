"""Kernels of dictionary learning on the CPU: few atoms serve a code, and a block of atoms asks all others at once."""

from __future__ import annotations

import numpy as np

from psmt.engines.numba.lasso import subtract_rows
from psmt.types import Array, Ints, Mask
from psmt.utils.jit import njit

_BLOCK = 128
"""Atoms whose dependence on all others is worked out in one product."""


@njit(cache=True, nogil=True)
def add_codes(codes: Array, samples: Array, code_code: Array, code_sample: Array) -> None:
    """Add ``a a'`` and ``a x'`` of each code (n, n_atoms) and sample (n, n_features): few atoms serve a code."""
    active = np.empty(codes.shape[1], dtype=np.int64)
    for t in range(codes.shape[0]):
        n = 0
        for j in range(codes.shape[1]):
            if codes[t, j] != 0.0:
                active[n] = j
                n += 1
        for i in range(n):
            j = active[i]
            own = codes[t, j]
            for k in active[:n]:
                code_code[j, k] += own * codes[t, k]
            for k in range(samples.shape[1]):
                code_sample[j, k] += own * samples[t, k]


def sweep_atoms(atoms: Array, code_code: Array, code_sample: Array, used: Mask) -> None:
    """One sweep of exact block-coordinate descent, in place, over the unit-norm atoms that are used.

    What a block of atoms asks of all others is one product; what they change for each other is minded one by one.
    """
    order = np.flatnonzero(used)
    for first in range(0, len(order), _BLOCK):
        block = order[first : first + _BLOCK]
        shared = code_code[block]
        targets = code_sample[block] - shared @ atoms
        _improve_block(targets, shared[:, block], block, atoms)


@njit(cache=True, nogil=True)
def _improve_block(targets: Array, shared: Array, block: Ints, atoms: Array) -> None:
    """Set each atom of a block to the best unit-norm one, given the others.

    The block-coordinate `targets` (n, n_features) are what the samples ask of the atoms, less what all atoms gave
    before any of these n has changed; `shared` (n, n) are the products of their codes.
    """
    moved, index = np.empty_like(targets), np.arange(len(block))
    for i in range(len(block)):
        target, atom, own = targets[i], atoms[block[i]], shared[i, i]
        for k in range(atom.size):
            target[k] += own * atom[k]
        subtract_rows(moved, index, shared[i], i, target)
        norm = np.sqrt(np.sum(target * target))
        for k in range(atom.size):
            best = target[k] / norm if own > 0.0 and norm > 0.0 else atom[k]
            moved[i, k] = best - atom[k]
            atom[k] = best
