"""The dictionary: coding with given atoms, online learning of atoms, and the choice of ``alpha='auto'``.

Learning minimises the surrogate objective of Mairal et al. (2010). It needs only the sums ``sum a a'`` and ``sum a x'``
over the codes a and samples x of all batches. Old batches are discounted, because an older dictionary coded them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property

import numpy as np

from psmt.engines import engine_for
from psmt.engines.contract import Engine, ResidentArrays
from psmt.numerics.arrays import array_namespace, is_numpy_array, positive_or_one, unit_rows
from psmt.types import Array
from psmt.utils.disk_series import blocks
from psmt.utils.threads import one_blas_thread
from psmt.utils.validation import LARGEST, check_numbers

BATCH = 1 << 14
"""Number of samples that are coded at a time. Engines code chunks independently, and this number is a multiple of the
chunk size of every engine, so codes do not depend on the batches."""

FADING = 2.0  # exponent of the discount (1 - 1/batch)^fading, because early batches were coded with a poor dictionary
MEMORY = 8  # samples per atom that are not yet discounted much. More make learning slower, fewer make atoms noisy.
PATIENCE = 4  # an atom is dead if no code used it for this many samples per atom

WANTED = 10.0  # wanted mean number of atoms per code; standardised 16 x 16 patches use 5 to 20 at the paper's alpha = 1
SHARE = 0.25  # largest wanted number of atoms per code, as a fraction of the number of features
START = 1.0 / 16.0  # the paper's alpha for 16 x 16 patches, as a fraction of the norm of a patch
_STEPS = 12  # number of bisection steps for log alpha


class Atoms:
    """A dictionary of atoms (n_atoms, n_features) of any norm, with methods that code samples on the device."""

    def __init__(self, given: Array, engine: Engine) -> None:
        self.given = np.array(given, dtype=np.float64)
        self.given.flags.writeable = False  # other arrays are derived from it
        self._engine = engine
        self._atoms = engine.array(self.given)
        unit, norms = unit_rows(self._atoms)
        self._columns = engine.solver_array(unit)
        # A zero atom stays zero. It has no correlation with any sample, so no code uses it.
        self._norms = positive_or_one(norms)
        self._code_next = engine.capture(_code_next)

    def __reduce__(self) -> tuple[object, ...]:
        # The Gram matrix is not pickled: it is larger than the atoms, and computing it is faster than reading it.
        return _atoms_on, (self._engine.device, self.given)

    @cached_property
    def _gram(self) -> Array:
        with one_blas_thread():
            return self._columns @ self._columns.T

    def code(self, samples: Array, alpha: float, *, tol: float) -> Array:
        """Return the codes (n_samples, n_atoms) of the samples (n_samples, n_features)."""
        penalty = alpha / self._norms
        solve = self._engine.solve_many
        return solve(self._columns, samples, penalty, tol=float(tol), norms=self._norms, gram=self._gram)

    def code_batches(self, samples: Array, alpha: float, *, tol: float) -> Iterator[Array]:
        """Yield the codes (at most `BATCH`, n_atoms) of batches of NumPy samples (n_samples, n_features)."""
        codes = None
        for first in range(0, len(samples), BATCH):
            batch = np.asarray(samples[first : first + BATCH])
            moved = self._engine.array(batch)
            # The maximum is computed on the GPU and read only after the previous batch has left the GPU.
            largest = None if is_numpy_array(moved) else abs(moved).max()
            if codes is not None:
                yield codes
            if largest is None or not float(largest) <= LARGEST:
                with one_blas_thread():
                    check_numbers(batch, name="X")
            codes = self.code(moved, alpha, tol=tol)
        if codes is not None:
            yield codes

    def code_next(self, sample: Array, alpha: float, *, tol: float, last: Array) -> Array:
        """Return the code (n_atoms,) of a sample (n_features,). The solver starts from `last`, the previous code."""
        prepared = ResidentArrays((self._columns, self._gram, self._norms))
        return self._code_next(sample, last, prepared, engine=self._engine, alpha=alpha, tol=float(tol))[0]

    def decode(self, codes: Array) -> Array:
        """Return samples (n_samples, n_features) reconstructed from codes (n_samples, n_atoms)."""
        return codes @ self._atoms


def _code_next(
    sample: Array, last: Array, prepared: ResidentArrays, *, engine: Engine, alpha: float, tol: float
) -> tuple[Array]:
    columns, gram, norms = prepared
    return (engine.solve_next(columns, sample, alpha / norms, tol=tol, start=last, gram=gram) / norms,)


def _atoms_on(device: str, given: Array) -> Atoms:
    return Atoms(given, engine_for(device))


def first_atoms(samples: Array, n_atoms: int, rng: np.random.RandomState) -> Array:
    """Return initial atoms (n_atoms, n_features) of unit norm: random samples, made distinct by noise."""
    useful = np.flatnonzero(np.concatenate([np.linalg.norm(block, axis=1) > 0 for block in blocks(samples)]))
    atoms: Array = rng.standard_normal((n_atoms, samples.shape[1]))
    if len(useful):
        picked = samples[useful[rng.choice(len(useful), n_atoms, replace=len(useful) < n_atoms)]]
        atoms = picked + 0.01 * np.sqrt(np.mean(picked**2)) * atoms * np.any(picked != 0, axis=0)
    return unit_rows(atoms)[0]


class DictionaryStatistics:
    """Discounted sums over all codes and samples so far, from which the dictionary is improved."""

    def __init__(self, n_atoms: int, n_features: int, engine: Engine) -> None:
        self._engine = engine
        self.code_code = engine.array(np.zeros((n_atoms, n_atoms)))
        self.code_sample = engine.array(np.zeros((n_atoms, n_features)))
        self.samples_since_use = engine.array(np.zeros(n_atoms))
        self.n_batches = 0

    def update(self, codes: Array, samples: Array) -> None:
        """Add one batch of codes (n, n_atoms) and their samples (n, n_features)."""
        self.n_batches += 1
        full = max(FADING * MEMORY * len(self.code_code) / len(codes), 1.0)  # number of batches that are remembered
        kept = float((1.0 - 1.0 / min(self.n_batches, full)) ** FADING)
        self._engine.add_codes(codes, samples, kept, self.code_code, self.code_sample)
        xp = array_namespace(codes)
        self.samples_since_use = xp.where(xp.any(codes != 0, axis=0), 0.0, self.samples_since_use + len(codes))

    def copy(self) -> DictionaryStatistics:
        """Return an independent copy."""
        other = copy(self)
        for name in ("code_code", "code_sample", "samples_since_use"):
            setattr(other, name, getattr(self, name) + 0.0)  # a copy, because they are changed in place
        return other

    def improve(self, atoms: Array) -> None:
        """Improve the atoms that the last batch used, in place, by one sweep of block-coordinate descent."""
        self._engine.sweep_atoms(atoms, self.code_code, self.code_sample, self.samples_since_use == 0)

    def replace_dead(self, atoms: Array, samples: Array, residuals: Array) -> int:
        """Replace unused atoms by samples with large residuals. Return the number of replaced atoms."""
        xp = array_namespace(atoms)
        (dead,) = xp.nonzero(self.samples_since_use > PATIENCE * len(atoms))
        if not len(dead):
            return 0
        worst = xp.argsort(-xp.sum(residuals**2, axis=1))[: len(dead)]
        worst = worst[xp.linalg.vector_norm(samples[worst], axis=1) > 0]
        dead = dead[: len(worst)]
        atoms[dead] = unit_rows(samples[worst])[0]
        self.code_code[dead] = 0.0
        self.code_code[:, dead] = 0.0
        self.code_sample[dead] = 0.0
        self.samples_since_use[dead] = 0.0
        return len(dead)


def start_alpha(samples: Array) -> float:
    """Return `START` times the root mean square norm of the samples (n, n_features), or 1 if all are zero."""
    return START * float(np.sqrt(np.mean(np.sum(samples**2, axis=1)))) or 1.0


def alpha_for_sparsity(atoms_used: Callable[[float], float], samples: Array) -> float:
    """Find by bisection the alpha at which codes of the samples (n, n_features) use the wanted number of atoms.

    `atoms_used` is a function from alpha to the mean number of atoms per code. This number falls as alpha rises. If it
    is too small even for a tiny alpha, the result is `start_alpha` of the samples.
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
