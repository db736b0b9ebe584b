"""The dictionary: atoms that are ready for coding, online learning, and the choice of ``alpha='auto'``.

Learning uses the surrogate objective of Mairal et al. (2010): the codes of all batches enter through two small
statistics, ``sum a a'`` and ``sum a x'``. Old batches, which were coded with an older dictionary, are discounted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from psmt.engines import engine_for
from psmt.engines.contract import Engine, ResidentArrays
from psmt.numerics.arrays import array_namespace, is_numpy_array, positive_or_one, unit_columns
from psmt.types import AnyArray, Array
from psmt.utils.disk_series import blocks
from psmt.utils.threads import one_blas_thread
from psmt.utils.validation import LARGEST, check_numbers

BATCH = 1 << 14
"""Samples whose codes are dense at one time. It is a multiple of every engine's chunk, so that batches do not change
which earlier sample a code starts from."""

FADING = 2.0  # exponent of the discount (1 - 1/batch)^fading: early batches were coded with a poor dictionary
MEMORY = 8  # samples per atom that are remembered: more slow the dictionary down, fewer make its atoms noisy
PATIENCE = 4  # an atom that no code used in this many samples per atom is dead

WANTED = 10.0  # mean number of atoms in a code; standardised 16 x 16 patches use 5 to 20 at the paper's alpha = 1
SHARE = 0.25  # most atoms as a fraction of the features: a code with as many atoms as features says nothing
START = 1.0 / 16.0  # the paper's alpha for a patch of 16 x 16, as a fraction of the norm of its frames
_STEPS = 12  # halvings of the interval for log alpha: to about a thousandth of it


class Atoms:
    """Atoms (n_atoms, n_features) of any norm, ready to code samples, which are arrays of the engine."""

    def __init__(self, given: Array, engine: Engine) -> None:
        self.given = np.array(given, dtype=np.float64)
        self.given.flags.writeable = False  # other arrays are derived from it
        self._engine = engine
        self._atoms = engine.array(self.given)
        unit, norms = unit_columns(self._atoms)
        self._columns = engine.solver_array(unit)
        # A zero atom stays zero: it correlates with nothing, so no code uses it.
        self._norms = positive_or_one(norms)
        self._code_next = engine.capture(_code_next)

    def __reduce__(self) -> tuple[object, ...]:
        # The Gram matrix is larger than the atoms, and faster to compute than to read.
        return _atoms_on, (self._engine.device, self.given)

    @cached_property
    def _gram(self) -> Array:
        with one_blas_thread():
            return self._columns @ self._columns.T

    def code(self, samples: Array, alpha: float, *, tol: float) -> Array:
        """Codes (n_samples, n_atoms) of the samples (n_samples, n_features)."""
        penalty = alpha / self._norms
        solve = self._engine.solve_many
        return solve(self._columns, samples, penalty, tol=float(tol), norms=self._norms, gram=self._gram)

    def code_batches(self, samples: Array, alpha: float, *, tol: float) -> Iterator[Array]:
        """Codes (n, n_atoms) of samples (n_samples, n_features) on the host, `BATCH` samples at a time.

        Raises `ValueError` if values are not finite. A GPU codes one batch while the next one is read and moved to it.
        """
        codes = None
        for first in range(0, len(samples), BATCH):
            batch = np.asarray(samples[first : first + BATCH])
            moved = self._engine.array(batch)
            # A GPU finds the maximum quickly; it is read after the batch before has left the GPU.
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
        """Code (n_atoms,) of a sample (n_features,), starting from the last code (n_atoms,)."""
        prepared = ResidentArrays((self._columns, self._gram, self._norms))
        return self._code_next(sample, last, prepared, engine=self._engine, alpha=alpha, tol=float(tol))[0]

    def decode(self, codes: Array) -> Array:
        """Samples (n_samples, n_features) reconstructed from codes (n_samples, n_atoms)."""
        return codes @ self._atoms


def _code_next(
    sample: Array, last: Array, prepared: ResidentArrays, *, engine: Engine, alpha: float, tol: float
) -> tuple[Array]:
    columns, gram, norms = prepared
    return (engine.solve_next(columns, sample, alpha / norms, tol=tol, start=last, gram=gram) / norms,)


def _atoms_on(device: str, given: Array) -> Atoms:
    return Atoms(given, engine_for(device))


class SparseRows:
    """A CSR array (n_rows, n_columns) that is filled batch by batch, with the result of `scipy.sparse.vstack`.

    Memory is allocated for as many values as the rows so far let expect. Each batch is stored as it comes, while the
    next one is being coded, and no second copy is needed at the end.
    """

    _SPARE = 1.1  # allocated values relative to the expected ones, because rows differ

    def __init__(self, n_rows: int, n_columns: int) -> None:
        self._shape = n_rows, n_columns
        self._offsets = np.zeros(n_rows + 1, np.int64)
        self._values, self._columns = np.empty(0), np.empty(0, np.int32)
        self._n_rows = self._n_values = 0

    def add(self, rows: csr_array) -> None:
        """Append the next rows (n, n_columns)."""
        n_rows, n_values = self._n_rows + rows.shape[0], self._n_values + rows.nnz
        if n_values > len(self._values):
            expected = int(self._SPARE * n_values * self._shape[0] / n_rows) if n_rows < self._shape[0] else n_values
            self._values, self._columns = (self._resized(old, expected) for old in (self._values, self._columns))
        self._values[self._n_values : n_values] = rows.data
        self._columns[self._n_values : n_values] = rows.indices
        self._offsets[self._n_rows + 1 : n_rows + 1] = self._n_values + rows.indptr[1:].astype(np.int64)
        self._n_rows, self._n_values = n_rows, n_values

    def _resized(self, old: AnyArray, size: int) -> AnyArray:
        new = np.empty(size, old.dtype)
        new[: self._n_values] = old[: self._n_values]
        return new

    def array(self) -> csr_array:
        """All rows (n_rows, n_columns)."""
        n = self._n_values
        # Offsets have the dtype of the column indices, if that is large enough.
        offsets = self._offsets if n > np.iinfo(np.int32).max else self._offsets.astype(np.int32)
        return csr_array((self._values[:n], self._columns[:n], offsets), shape=self._shape)


def first_atoms(samples: Array, n_atoms: int, rng: np.random.RandomState) -> Array:
    """Unit-norm atoms (n_atoms, n_features) to start from: samples, plus a little noise so that no two are equal."""
    useful = np.flatnonzero(np.concatenate([np.linalg.norm(block, axis=1) > 0 for block in blocks(samples)]))
    atoms: Array = rng.standard_normal((n_atoms, samples.shape[1]))
    if len(useful):
        picked = samples[useful[rng.choice(len(useful), n_atoms, replace=len(useful) < n_atoms)]]
        atoms = picked + 0.01 * np.sqrt(np.mean(picked**2)) * atoms
    return unit_columns(atoms)[0]


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
        full = max(FADING * MEMORY * len(self.code_code) / len(codes), 1.0)  # batches that are remembered
        kept = float((1.0 - 1.0 / min(self.n_batches, full)) ** FADING)
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
