"""Online dictionary learning: what the atoms should be, given the codes so far.

The surrogate of Mairal et al. (2010): the codes of all batches enter through two small statistics, ``sum a a'`` and
``sum a x'``, in which old batches fade as the dictionary moves away from the one they were coded with.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from psmt.engines.numba.lasso import subtract_rows, unit_columns

Array = NDArray[np.float64]

FADING = 2.0
"""Exponent of the forgetting (1 - 1/batch)^fading: early batches were coded with a poor dictionary."""

MEMORY = 8
"""Samples per atom that are remembered. More of them hold the dictionary back, fewer make its atoms noisy."""

_BLOCK = 128
"""Atoms whose dependence on all others is worked out in one product."""

PATIENCE = 4
"""An atom that served no code in this many samples per atom is dead."""


def first_atoms(samples: Array, n_atoms: int, rng: np.random.RandomState) -> Array:
    """Unit-norm atoms (n_atoms, n_features) to start from: samples, slightly blurred so that none are equal."""
    useful = samples[np.linalg.norm(samples, axis=1) > 0]
    atoms = rng.standard_normal((n_atoms, samples.shape[1]))
    if len(useful):
        picked = useful[rng.choice(len(useful), n_atoms, replace=len(useful) < n_atoms)]
        atoms = picked + 0.01 * np.sqrt(np.mean(picked**2)) * atoms
    return unit_columns(atoms)[0]


def kept_share(n_batches: int, n_atoms: int, batch_size: int) -> float:
    """Share of the statistics so far that is kept when the n-th batch comes in."""
    full = max(FADING * MEMORY * n_atoms / batch_size, 1.0)
    return float((1.0 - 1.0 / min(n_batches, full)) ** FADING)


@njit(cache=True, nogil=True)
def _add_codes(codes, samples, code_code, code_sample):
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


@njit(cache=True, nogil=True)
def _improve_block(wishes, shared, block, atoms):
    """Set each atom of a block to the best unit-norm one, given the others.

    `wishes` (n, n_features) are what the samples ask of the atoms, less what all atoms gave before any of these n has
    changed; `shared` (n, n) are the products of their codes.
    """
    moved, index = np.empty_like(wishes), np.arange(len(block))
    for i in range(len(block)):
        wish, atom, own = wishes[i], atoms[block[i]], shared[i, i]
        for k in range(atom.size):
            wish[k] += own * atom[k]
        subtract_rows(moved, index, shared[i], i, wish)
        norm = np.sqrt(np.sum(wish * wish))
        for k in range(atom.size):
            best = wish[k] / norm if own > 0.0 and norm > 0.0 else atom[k]
            moved[i, k] = best - atom[k]
            atom[k] = best


class DictionaryStatistics:
    """Faded sums over the codes so far, and the dictionary that is best for them."""

    def __init__(self, n_atoms: int, n_features: int) -> None:
        self.code_code = np.zeros((n_atoms, n_atoms))
        self.code_sample = np.zeros((n_atoms, n_features))
        self.idle = np.zeros(n_atoms)
        self.n_batches = 0

    def update(self, codes: Array, samples: Array) -> None:
        """Take in one batch of codes (n, n_atoms) of samples (n, n_features)."""
        self.n_batches += 1
        kept = kept_share(self.n_batches, len(self.code_code), len(codes))
        self.code_code *= kept
        self.code_sample *= kept
        _add_codes(codes, samples, self.code_code, self.code_sample)
        self.idle += len(codes)
        self.idle[codes.any(axis=0)] = 0

    def improve(self, atoms: Array) -> None:
        """One sweep of exact coordinate descent, in place, over the unit-norm atoms that the last batch used.

        What a block of atoms asks of all others is one product; what they change for each other is minded one by one.
        """
        order = np.flatnonzero(self.idle == 0)
        for first in range(0, len(order), _BLOCK):
            block = order[first : first + _BLOCK]
            shared = self.code_code[block]
            wishes = self.code_sample[block] - shared @ atoms
            _improve_block(wishes, shared[:, block], block, atoms)

    def replace_dead(self, atoms: Array, samples: Array, residuals: Array) -> int:
        """Number of dead atoms that were set, in place, to the samples that are explained worst."""
        dead = np.flatnonzero(self.idle > PATIENCE * len(atoms))
        if not len(dead):
            return 0
        worst = np.argsort(-np.einsum("ij,ij->i", residuals, residuals))[: len(dead)]
        worst = worst[np.linalg.norm(samples[worst], axis=1) > 0]
        dead = dead[: len(worst)]
        atoms[dead] = unit_columns(samples[worst])[0]
        self.code_code[dead] = 0
        self.code_code[:, dead] = 0
        self.code_sample[dead] = 0
        self.idle[dead] = 0
        return len(dead)
