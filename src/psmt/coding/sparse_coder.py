"""`SparseCoder`: the estimator of layer 1."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, Self, cast, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, vstack
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted

from psmt.coding.dictionary import (
    BATCH,
    Atoms,
    DictionaryStatistics,
    alpha_for_sparsity,
    first_atoms,
    start_alpha,
)
from psmt.engines import engine_for
from psmt.engines.contract import Engine
from psmt.numerics.arrays import unit_rows
from psmt.types import Array, Ints, Progress, silent
from psmt.utils.constraints import Declared, allowing, by_name, check_parameters, count, mapping, parameter, real, seed
from psmt.utils.disk_series import DiskSeries
from psmt.utils.threads import one_blas_thread
from psmt.utils.transactions import all_or_nothing
from psmt.utils.validation import as_array, check_samples, check_series, check_size

_ROUGH_GAP = 1e-6  # duality gap of codes whose non-zero entries are only counted
_CHOSEN_ON = 1024  # largest number of samples for alpha='auto': half to learn a dictionary, half to count atoms


@by_name
@dataclass(kw_only=True, eq=False, repr=False)
class SparseCoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Overcomplete dictionary with exact non-negative lasso codes (layer 1 of the paper).

    The code of a sample ``x`` is ``argmin 1/2 ||x - a Phi||^2 + alpha * sum(a)`` over ``a >= 0``, solved to a small
    duality gap. The dictionary ``Phi`` is learned online, batch by batch.

    Parameters
    ----------
    n_atoms : int, default 512
        Number of atoms, M in the paper.
    alpha : float or 'auto', default 1.0
        Sparsity (L1) penalty, > 0. With 1.0, codes of standardised 16 x 16 patches (norm 16) use 5 to 20 atoms. With
        'auto', the penalty is chosen so that codes of held-out samples use n atoms on average, where n is 10 or a
        quarter of the number of features, whichever is less. The choice does not depend on the units of the samples.
    max_epochs : int, default 5
        Largest number of passes of `fit` over the samples.
    tol : float, default 0.01
        `fit` stops when an epoch lowers the mean objective by less than this fraction.
    batch_size : int, default 256
    gap_tol : float, default 1e-12
        Codes are solved to a duality gap of ``gap_tol * ||x||^2 / 2``.
    random_state : int, RandomState or None
    device : str, default 'cpu'
        Where to compute: 'cpu', or 'cuda' for a GPU (see docs/how-to/gpu.md).
    dtype : {'float64', 'float32'}, default 'float64'
        Precision of the solver. Codes are always float64, and 'float32' needs a GPU.

    Attributes
    ----------
    dictionary_ : (n_atoms, n_features) array
        Unit-norm atoms. The array is read-only, but another dictionary may be assigned.
    alpha_ : float
        The penalty that was given or that 'auto' chose.
    objective_ : list of float
        Mean objective of each epoch, measured during learning.

    Examples
    --------
    >>> import numpy as np
    >>> from psmt import SparseCoder
    >>> X = np.random.default_rng(0).standard_normal((200, 8))
    >>> coder = SparseCoder(n_atoms=16, alpha=0.1, random_state=0).fit(X)
    >>> codes = coder.transform(X)
    >>> codes.shape, bool((codes >= 0).all())
    ((200, 16), True)
    >>> sparse = coder.transform(X, sparse_output=True)
    >>> sparse.format, bool((sparse.toarray() == codes).all())
    ('csr', True)
    """

    n_atoms: int = parameter(512, count())
    alpha: float | Literal["auto"] = parameter(1.0, allowing("auto", real(open_bound=True)))
    max_epochs: int = parameter(5, count())
    tol: float = parameter(0.01, real())
    batch_size: int = parameter(256, count())
    gap_tol: float = parameter(1e-12, real(open_bound=True))
    random_state: int | np.random.RandomState | None = parameter(None, seed)
    device: str = "cpu"
    dtype: str = "float64"

    _chosen = cast("float | None", None)
    _parameter_constraints = Declared()

    @classmethod
    def from_dictionary(cls, atoms: ArrayLike, **parameters: Any) -> Self:
        """Return a fitted coder with the given atoms (n_atoms, n_features) of any norm. Parameters are as in the class.

        `transform` uses the atoms as they are. `partial_fit` scales them to unit norm and improves them.

        >>> import numpy as np
        >>> coder = SparseCoder.from_dictionary(np.eye(3), alpha=0.5)
        >>> coder.transform([[2.0, 0.0, -1.0]])
        array([[1.5, 0. , 0. ]])
        """
        dictionary: Array = check_array(as_array(atoms, name="atoms"), dtype=np.float64)
        check_size(dictionary, name="atoms")
        coder = cls(n_atoms=len(dictionary), **parameters)
        coder._check_parameters()
        coder.dictionary_ = dictionary
        coder.n_features_in_ = dictionary.shape[1]
        coder.objective_ = []
        return coder

    @classmethod
    def check_stored(cls, name: str, values: object) -> None:
        """Raise an error unless `values` are valid parameters from a file. The message calls them `name`."""
        # A saved coder has a chosen alpha, because 'auto' would require another fit.
        mapping(cls._parameter_constraints | {"alpha": real(open_bound=True)}, complete=False)(name, values)

    @all_or_nothing
    def fit(self, X: ArrayLike, y: object = None, *, progress: Progress = silent) -> Self:
        """Learn a new dictionary from the samples (n_samples, n_features). `y` is ignored.

        `progress` is called with 'dictionary', the number of samples seen, and the largest number that may be seen.
        """
        self._check_parameters()
        samples = self._samples(X, reset=True)
        rng = check_random_state(self.random_state)
        self._start(samples, rng)
        total = self.max_epochs * len(samples)
        for epoch in range(self.max_epochs):
            self._learn(samples, rng.permutation(len(samples)))
            progress("dictionary", (epoch + 1) * len(samples), total)
            if len(self.objective_) > 1:
                before, after = self.objective_[-2:]
                if before - after <= self.tol * before:
                    break
        progress("dictionary", total, total)
        return self

    @all_or_nothing
    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
        """Start or continue learning, by one pass over the samples (n_samples, n_features). `y` is ignored."""
        self._check_parameters()
        first = not hasattr(self, "dictionary_")
        samples = self._samples(X, reset=first)
        if first:
            self._start(samples, check_random_state(self.random_state))
        elif not hasattr(self, "_statistics"):
            self.dictionary_, _ = unit_rows(self.dictionary_)
            self._statistics = DictionaryStatistics(len(self.dictionary_), self.n_features_in_, self._engine)
        self._learn(samples, np.arange(len(samples)))
        return self

    def fit_further(self, X: ArrayLike) -> Self:
        """Return a copy of this coder that has also learned from further samples (n_samples, n_features).

        The copy makes as many passes over the new samples as `fit` made over its samples. It continues from the atoms
        and their statistics, so the earlier samples are not needed.
        """
        check_is_fitted(self, "_statistics", msg="fit_further continues fit; given atoms are improved by partial_fit")
        samples = self._samples(X, reset=False)
        rng = check_random_state(self.random_state)
        other = copy(self)
        for _ in self.objective_:
            other.partial_fit(samples[rng.permutation(len(samples))])
        return other

    @overload
    def transform(self, X: ArrayLike, *, sparse_output: Literal[False] = False) -> Array: ...

    @overload
    def transform(self, X: ArrayLike, *, sparse_output: Literal[True]) -> csr_array: ...

    def transform(self, X: ArrayLike, *, sparse_output: bool = False) -> Array | csr_array:
        """Return non-negative codes (n_samples, n_atoms) of the samples (n_samples, n_features).

        Samples in order of time are coded faster, because successive codes are similar. If `sparse_output` is True, the
        result is a CSR array with the same values. It is built batch by batch, so the whole dense array is never in
        memory. ValueError is raised if the number of features is not that of `fit`, or if a value is not finite.
        """
        check_is_fitted(self)
        samples = self._samples(X, reset=False, finite=False)  # values are checked batch by batch
        engine = self._engine
        batches = self._atoms.code_batches(samples, self.alpha_, tol=self.gap_tol)
        if sparse_output:
            return vstack([engine.sparse(batch) for batch in batches], format="csr")
        codes = np.empty((len(samples), len(self.dictionary_)))
        for i, batch in enumerate(batches):
            codes[i * BATCH : (i + 1) * BATCH] = engine.numpy(batch)
        return codes

    def transform_next(self, x: Array, code: Array) -> Array:
        """Return the code (n_atoms,) of a sample (n_features,), given the code of the sample before it.

        This is faster than `transform` and gives the same result. If atoms are so similar that the code is not unique,
        atoms of the given code are preferred. All arrays are on the device.
        """
        return self._atoms.code_next(x, self.alpha_, tol=self.gap_tol, last=code)

    def decode(self, codes: Array) -> Array:
        """Return samples (n, n_features) reconstructed from codes (n, n_atoms) (step 8). Arrays are on the device."""
        return self._atoms.decode(codes)

    def to(self, device: str, dtype: str = "float64") -> Self:
        """Return a copy of the fitted coder on another device, with the given precision of the solver."""
        other: Self = clone(self).set_params(device=device, dtype=dtype)
        other.n_features_in_, other.objective_ = self.n_features_in_, list(self.objective_)
        other.dictionary_ = self.dictionary_
        other._chosen = self._chosen
        return other

    def inverse_transform(self, codes: ArrayLike | csr_array) -> Array:
        """Return samples (n_samples, n_features) decoded from dense or sparse codes (n_samples, n_atoms) (step 8).

        >>> import numpy as np
        >>> SparseCoder.from_dictionary(2 * np.eye(2)).inverse_transform([[1.0, 3.0]])
        array([[2., 6.]])
        """
        check_is_fitted(self)
        given: Array = check_array(codes, accept_sparse="csr", dtype=np.float64)
        check_size(given, name="codes")
        if given.shape[1] != len(self.dictionary_):
            n_atoms = len(self.dictionary_)
            raise ValueError(f"codes have {given.shape[1]} columns, but there are {n_atoms} atoms; give (n, {n_atoms})")
        return given @ self.dictionary_

    def __copy__(self) -> Self:
        other = type(self).__new__(type(self))
        other.__dict__ |= self.__dict__
        if hasattr(self, "_statistics"):  # learning changes the statistics in place
            other.__dict__ |= {"objective_": list(self.objective_), "_statistics": self._statistics.copy()}
        return other

    @property
    def alpha_(self) -> float:
        """Return the given penalty, or the penalty that 'auto' chose."""
        if not isinstance(self.alpha, str):
            return self.alpha
        if self._chosen is None:
            raise NotFittedError("alpha='auto' is chosen by fit; call fit, or give a number")
        return self._chosen

    @property
    def dictionary_(self) -> Array:
        """Return the dictionary Phi (n_atoms, n_features)."""
        return self._atoms.given

    @dictionary_.setter
    def dictionary_(self, atoms: Array) -> None:
        self._atoms = Atoms(atoms, self._engine)

    @property
    def _n_features_out(self) -> int:
        return len(self.dictionary_)

    @property
    def _engine(self) -> Engine:
        return engine_for(self.device, self.dtype)

    def _check_parameters(self) -> None:
        engine_for(self.device, self.dtype)
        check_parameters(self, self._parameter_constraints)

    def _choose_alpha(self, samples: Array) -> float:
        """Return the penalty for ``alpha='auto'``. Codes of held-out samples then use the wanted number of atoms."""
        every = -(-len(samples) // _CHOSEN_ON)
        shown = samples[::every]
        if len(shown) < 4:
            return start_alpha(samples)
        trial = clone(self).set_params(alpha=start_alpha(samples), gap_tol=_ROUGH_GAP).fit(shown[::2])
        counted = shown[1::2]

        def atoms_used(alpha: float) -> float:
            with config_context(transform_output="default"):  # other output containers cannot hold sparse codes
                codes = trial.set_params(alpha=alpha).transform(counted, sparse_output=True)
            return float(codes.count_nonzero()) / len(counted)

        return alpha_for_sparsity(atoms_used, counted)

    def _start(self, X: Array, rng: np.random.RandomState) -> None:
        self._chosen = self._choose_alpha(X) if isinstance(self.alpha, str) else None
        self.dictionary_ = first_atoms(X, self.n_atoms, rng)
        self.objective_: list[float] = []
        self._statistics = DictionaryStatistics(len(self.dictionary_), self.n_features_in_, self._engine)

    def _samples(self, X: ArrayLike, *, reset: bool, finite: bool = True) -> Array:
        """Return validated samples (n_samples, n_features). If `finite` is True, samples in memory must be finite."""
        if isinstance(X, DiskSeries):
            if reset:
                self.n_features_in_ = X.shape[1]
            return check_series(X, n_features=self.n_features_in_)
        return check_samples(self, X, reset=reset, finite=finite)

    def _learn(self, X: Array, order: Ints) -> None:
        """Improve the dictionary by one pass over the samples in the given order, and record their mean objective."""
        engine = self._engine
        atoms, total = engine.array(self.dictionary_.copy()), 0.0
        # Samples in memory go to the device all at once.
        moved = None if isinstance(X, DiskSeries) else engine.array(X[order])
        with one_blas_thread():  # more BLAS threads would compete with the threads that solve for codes
            for start in range(0, len(X), self.batch_size):
                part = slice(start, start + self.batch_size)
                batch = engine.array(X[order[part]]) if moved is None else moved[part]
                codes = engine.solve_many(engine.solver_array(atoms), batch, self.alpha_, tol=self.gap_tol)
                residuals = batch - codes @ atoms
                total = total + 0.5 * (residuals**2).sum() + self.alpha_ * codes.sum()
                self._statistics.update(codes, batch)
                self._statistics.improve(atoms)
                self._statistics.replace_dead(atoms, batch, residuals)
        self.dictionary_ = engine.numpy(atoms)
        self.objective_.append(float(total) / len(X))
