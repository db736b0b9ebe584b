"""The engine of the CPU: NumPy, LAPACK and compiled kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from psmt.coding.atoms import Atoms
from psmt.coding.dictionary import DictionaryStatistics
from psmt.embedding.closed_form import Embedding, straightest
from psmt.embedding.followed import TrackedEmbedding
from psmt.engines.numba.lasso import solve_many
from psmt.extrapolation import Extrapolation
from psmt.moments import WindowMoments
from psmt.recovery import Recovery, recover_next

Array = NDArray[np.float64]


class CpuEngine:
    """See `psmt.engines.Engine`; its own arrays are NumPy's."""

    device = "cpu"

    def array(self, values: ArrayLike) -> Array:
        return np.asarray(values, dtype=np.float64)

    def numpy(self, values: Array) -> Array:
        return values

    def dense(self, values: csr_array) -> Array:
        return values.toarray()

    def stack(self, arrays: Sequence[Array]) -> Array:
        return np.stack(arrays)

    def atoms(self, given: Array) -> Atoms:
        return Atoms(given)

    def statistics(self, n_atoms: int, n_features: int) -> DictionaryStatistics:
        return DictionaryStatistics(n_atoms, n_features)

    def code(self, atoms: Array, samples: Array, alpha: float, *, tol: float) -> Array:
        return solve_many(atoms, samples, alpha, tol=tol).coef

    def moments(self, codes: Array) -> WindowMoments:
        return WindowMoments.of(codes)

    def moments_from_state(self, state: dict[str, Array]) -> WindowMoments:
        return WindowMoments.from_state(state)

    def straightest(
        self, moments: WindowMoments, n_components: int | None, *, centred: bool, ends: bool, rank_tol: float
    ) -> Embedding:
        return straightest(
            moments.covariance(centred=centred),
            moments.second_differences(ends=ends),
            n_components,
            n_codes=len(moments),
            rank_tol=rank_tol,
        )

    def tracked(self, n_components: int | None, *, centred: bool, ends: bool, rank_tol: float) -> TrackedEmbedding:
        return TrackedEmbedding(n_components, centred=centred, ends=ends, rank_tol=rank_tol)

    def embedding(self, matrix: Array, roughness: Array, rank: int) -> Embedding:
        return Embedding(matrix, roughness, rank)

    def recovery(self, embedding: Array, lam: float | Sequence[float], *, activity: float = np.inf) -> Recovery:
        return Recovery(embedding, lam, activity=activity)

    def recover_next(self, recover: Recovery, extrapolation: Extrapolation, previous: Array, current: Array) -> Array:
        return recover_next(recover, extrapolation, previous, current)
