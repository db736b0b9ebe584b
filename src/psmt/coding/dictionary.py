"""Online dictionary learning: what the atoms should be, given the codes so far.

The surrogate of Mairal et al. (2010): the codes of all batches enter through two small statistics, ``sum a a'`` and
``sum a x'``, in which old batches fade as the dictionary moves away from the one they were coded with.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from psmt.engines.contract import Engine
from psmt.numerics.linalg import unit_columns
from psmt.numerics.namespace import array_namespace
from psmt.types import Array
from psmt.utils.disk_series import blocks

FADING = 2.0
"""Exponent of the forgetting (1 - 1/batch)^fading: early batches were coded with a poor dictionary."""

MEMORY = 8
"""Samples per atom that are remembered. More of them hold the dictionary back, fewer make its atoms noisy."""

PATIENCE = 4
"""An atom that served no code in this many samples per atom is dead."""


def first_atoms(samples: Array, n_atoms: int, rng: np.random.RandomState) -> Array:
    """Unit-norm atoms (n_atoms, n_features) to start from: samples, slightly blurred so that none are equal."""
    useful = np.flatnonzero(np.concatenate([np.linalg.norm(block, axis=1) > 0 for block in blocks(samples)]))
    atoms: Array = rng.standard_normal((n_atoms, samples.shape[1]))
    if len(useful):
        picked = samples[useful[rng.choice(len(useful), n_atoms, replace=len(useful) < n_atoms)]]
        atoms = picked + 0.01 * np.sqrt(np.mean(picked**2)) * atoms
    return unit_columns(atoms)[0]


def forgetting_factor(n_batches: int, n_atoms: int, batch_size: int) -> float:
    """Share of the statistics so far that is kept when the n-th batch comes in."""
    full = max(FADING * MEMORY * n_atoms / batch_size, 1.0)
    return float((1.0 - 1.0 / min(n_batches, full)) ** FADING)


class DictionaryStatistics:
    """Faded sums over the codes so far, and the dictionary that is best for them."""

    def __init__(self, n_atoms: int, n_features: int, engine: Engine) -> None:
        self._engine = engine
        self.code_code = engine.array(np.zeros((n_atoms, n_atoms)))
        self.code_sample = engine.array(np.zeros((n_atoms, n_features)))
        self.samples_since_use = engine.array(np.zeros(n_atoms))
        self.n_batches = 0

    def update(self, codes: Array, samples: Array) -> None:
        """Take in one batch of codes (n, n_atoms) of samples (n, n_features)."""
        self.n_batches += 1
        kept = forgetting_factor(self.n_batches, len(self.code_code), len(codes))
        self._engine.add_codes(codes, samples, kept, self.code_code, self.code_sample)
        xp = array_namespace(codes)
        self.samples_since_use = xp.where(xp.any(codes != 0, axis=0), 0.0, self.samples_since_use + len(codes))

    def copy(self) -> DictionaryStatistics:
        """The same sums once more, to go on from twice."""
        other = copy(self)
        for name in ("code_code", "code_sample", "samples_since_use"):
            setattr(other, name, getattr(self, name) + 0.0)  # they are changed in place
        return other

    def improve(self, atoms: Array) -> None:
        """One sweep of exact block-coordinate descent, in place, over the unit-norm atoms that the last batch used."""
        self._engine.sweep_atoms(atoms, self.code_code, self.code_sample, self.samples_since_use == 0)

    def replace_dead(self, atoms: Array, samples: Array, residuals: Array) -> int:
        """Number of dead atoms that were set, in place, to the samples that are explained worst."""
        xp = array_namespace(atoms)
        (dead,) = xp.nonzero(self.samples_since_use > PATIENCE * len(atoms))
        if not len(dead):
            return 0
        worst = xp.argsort(-xp.sum(residuals**2, axis=1))[: len(dead)]
        worst = worst[xp.linalg.vector_norm(samples[worst], axis=1) > 0]
        dead = dead[: len(worst)]
        atoms[dead] = unit_columns(samples[worst])[0]
        self.code_code[dead] = 0.0
        self.code_code[:, dead] = 0.0
        self.code_sample[dead] = 0.0
        self.samples_since_use[dead] = 0.0
        return len(dead)
