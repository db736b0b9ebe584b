"""Online dictionary learning: the best atoms for the codes so far, and the choice of ``alpha='auto'``.

The surrogate objective of Mairal et al. (2010): the codes of all batches enter through two small statistics,
``sum a a'`` and ``sum a x'``. Old batches, which were coded with an older dictionary, are discounted.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numpy as np

from psmt.engines.contract import Engine
from psmt.numerics.linalg import unit_columns
from psmt.numerics.namespace import array_namespace
from psmt.types import Array
from psmt.utils.disk_series import blocks

FADING = 2.0  # exponent of the discount (1 - 1/batch)^fading: early batches were coded with a poor dictionary
MEMORY = 8  # samples per atom that are remembered: more slow the dictionary down, fewer make its atoms noisy
PATIENCE = 4  # an atom that no code used in this many samples per atom is dead

WANTED = 10.0  # mean number of atoms in a code; standardised 16 x 16 patches use 5 to 20 at the paper's alpha = 1
SHARE = 0.25  # most atoms as a fraction of the features: a code with as many atoms as features says nothing
START = 1.0 / 16.0  # the paper's alpha for a patch of 16 x 16, as a fraction of the norm of its frames
_STEPS = 12  # halvings of the interval for log alpha: to about a thousandth of it


def first_atoms(samples: Array, n_atoms: int, rng: np.random.RandomState) -> Array:
    """Unit-norm atoms (n_atoms, n_features) to start from: samples, plus a little noise so that no two are equal."""
    useful = np.flatnonzero(np.concatenate([np.linalg.norm(block, axis=1) > 0 for block in blocks(samples)]))
    atoms: Array = rng.standard_normal((n_atoms, samples.shape[1]))
    if len(useful):
        picked = samples[useful[rng.choice(len(useful), n_atoms, replace=len(useful) < n_atoms)]]
        atoms = picked + 0.01 * np.sqrt(np.mean(picked**2)) * atoms
    return unit_columns(atoms)[0]


def forgetting_factor(n_batches: int, n_atoms: int, batch_size: int) -> float:
    """Fraction of the statistics that is kept when the n-th batch is added."""
    full = max(FADING * MEMORY * n_atoms / batch_size, 1.0)
    return float((1.0 - 1.0 / min(n_batches, full)) ** FADING)


class DictionaryStatistics:
    """Discounted sums over the codes so far, and the best dictionary for them."""

    def __init__(self, n_atoms: int, n_features: int, engine: Engine) -> None:
        self._engine = engine
        self.code_code = engine.array(np.zeros((n_atoms, n_atoms)))
        self.code_sample = engine.array(np.zeros((n_atoms, n_features)))
        self.samples_since_use = engine.array(np.zeros(n_atoms))
        self.n_batches = 0

    def update(self, codes: Array, samples: Array) -> None:
        """Add one batch of codes (n, n_atoms) of samples (n, n_features)."""
        self.n_batches += 1
        kept = forgetting_factor(self.n_batches, len(self.code_code), len(codes))
        self._engine.add_codes(codes, samples, kept, self.code_code, self.code_sample)
        xp = array_namespace(codes)
        self.samples_since_use = xp.where(xp.any(codes != 0, axis=0), 0.0, self.samples_since_use + len(codes))

    def copy(self) -> DictionaryStatistics:
        """An independent copy."""
        other = copy(self)
        for name in ("code_code", "code_sample", "samples_since_use"):
            setattr(other, name, getattr(self, name) + 0.0)  # a copy, because they are changed in place
        return other

    def improve(self, atoms: Array) -> None:
        """One sweep of exact block-coordinate descent, in place, over the unit-norm atoms that the last batch used."""
        self._engine.sweep_atoms(atoms, self.code_code, self.code_sample, self.samples_since_use == 0)

    def replace_dead(self, atoms: Array, samples: Array, residuals: Array) -> int:
        """Set dead atoms, in place, to the samples that are explained worst; return the number of atoms."""
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


def start_alpha(samples: Array) -> float:
    """The paper's alpha, scaled to the size of samples (n, n_features); 1 if they are zero."""
    return START * float(np.sqrt(np.mean(np.sum(samples**2, axis=1)))) or 1.0


def alpha_for_sparsity(atoms_used: Callable[[float], float], samples: Array) -> float:
    """The alpha at which codes of the samples (n, n_features) use `WANTED` atoms on average, by bisection.

    `atoms_used` maps an alpha to the mean number of atoms, which falls as alpha rises. If even a tiny alpha gives too
    few atoms, the result is the paper's alpha.
    """
    start = start_alpha(samples)
    wanted = min(WANTED, max(SHARE * samples.shape[1], 1.0))
    low, high = np.log(start / 64.0), np.log(16.0 * start)
    if atoms_used(float(np.exp(low))) < wanted:
        return start
    for _ in range(_STEPS):
        centre = 0.5 * (low + high)
        low, high = (centre, high) if atoms_used(float(np.exp(centre))) > wanted else (low, centre)
    return float(np.exp(0.5 * (low + high)))
