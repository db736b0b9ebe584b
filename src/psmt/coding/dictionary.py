"""Online dictionary learning: what the atoms should be, given the codes so far.

The surrogate of Mairal et al. (2010): the codes of all batches enter through two small statistics, ``sum a a'`` and
``sum a x'``, in which old batches fade as the dictionary moves away from the one they were coded with.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from psmt.lasso import unit_columns

Array = NDArray[np.float64]

_FADING = 2.0
"""Exponent of the forgetting (1 - 1/batch)^fading: early batches were coded with a poor dictionary."""

_PATIENCE = 4
"""An atom that served no code in this many samples per atom is dead."""


def first_atoms(samples: Array, n_atoms: int, rng: np.random.RandomState) -> Array:
    """Unit-norm atoms (n_atoms, n_features) to start from: samples, slightly blurred so that none are equal."""
    useful = samples[np.linalg.norm(samples, axis=1) > 0]
    atoms = rng.standard_normal((n_atoms, samples.shape[1]))
    if len(useful):
        picked = useful[rng.choice(len(useful), n_atoms, replace=len(useful) < n_atoms)]
        atoms = picked + 0.01 * np.sqrt(np.mean(picked**2)) * atoms
    return unit_columns(atoms)[0]


@njit(cache=True, nogil=True)
def _sweep(code_code, code_sample, order, atoms):
    """Set each atom of `order` to the best unit-norm one, given the others."""
    n_atoms, n_features = atoms.shape
    wish = np.empty(n_features)
    for j in order:
        own = code_code[j, j]
        for i in range(n_features):
            wish[i] = code_sample[j, i]
        for k in range(n_atoms):
            shared = code_code[j, k]
            # Most pairs of atoms never serve the same code.
            if shared != 0.0 and k != j:
                for i in range(n_features):
                    wish[i] -= shared * atoms[k, i]
        norm = np.sqrt(np.sum(wish * wish))
        if own > 0.0 and norm > 0.0:
            for i in range(n_features):
                atoms[j, i] = wish[i] / norm


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
        kept = (1.0 - 1.0 / self.n_batches) ** _FADING
        self.code_code *= kept
        self.code_sample *= kept
        self.code_code += codes.T @ codes
        self.code_sample += codes.T @ samples
        self.idle += len(codes)
        self.idle[codes.any(axis=0)] = 0

    def improve(self, atoms: Array) -> None:
        """One sweep of exact coordinate descent, in place, over the unit-norm atoms that the last batch used."""
        _sweep(self.code_code, self.code_sample, np.flatnonzero(self.idle == 0), atoms)

    def replace_dead(self, atoms: Array, samples: Array, residuals: Array) -> int:
        """Number of dead atoms that were set, in place, to the samples that are explained worst."""
        dead = np.flatnonzero(self.idle > _PATIENCE * len(atoms))
        worst = np.argsort(-np.einsum("ij,ij->i", residuals, residuals))[: len(dead)]
        worst = worst[np.linalg.norm(samples[worst], axis=1) > 0]
        dead = dead[: len(worst)]
        atoms[dead] = unit_columns(samples[worst])[0]
        self.code_code[dead] = 0
        self.code_code[:, dead] = 0
        self.code_sample[dead] = 0
        self.idle[dead] = 0
        return len(dead)
