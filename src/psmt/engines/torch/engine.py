"""The engine of a torch device: one GPU, or the CPU to test it with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from torch import Tensor

from psmt.engines.torch.atoms import TorchAtoms, TorchStatistics
from psmt.engines.torch.embedding import Embedding, straightest
from psmt.engines.torch.lasso import solve_many
from psmt.engines.torch.moments import TorchMoments
from psmt.engines.torch.recovery import TorchRecovery
from psmt.engines.torch.tracked import TorchTrackedEmbedding
from psmt.extrapolation import Extrapolation

Array = NDArray[np.float64]


class TorchEngine:
    """See `psmt.engines.Engine`; its own arrays are tensors of float64 on the device."""

    def __init__(self, device: str, place: torch.device, dtype: torch.dtype) -> None:
        self.device = device
        self._place = place
        self._dtype = dtype

    def array(self, values: ArrayLike) -> Tensor:
        if isinstance(values, Tensor):
            return values
        # torch warns of arrays that it may not write to.
        return torch.from_numpy(np.require(values, np.float64, ["C", "W"])).to(self._place)

    def numpy(self, values: Tensor) -> Array:
        return values.cpu().numpy()

    def dense(self, values: csr_array) -> Tensor:
        filled = torch.zeros(values.shape, dtype=torch.float64, device=self._place)
        rows, columns = (torch.from_numpy(part.astype(np.int64)).to(self._place) for part in values.tocoo().coords)
        filled[rows, columns] = self.array(values.data)
        return filled

    def stack(self, arrays: Sequence[Tensor]) -> Tensor:
        return torch.stack(list(arrays))

    def atoms(self, given: Array) -> TorchAtoms:
        return TorchAtoms(given, self.device, self._place, self._dtype)

    def statistics(self, n_atoms: int, n_features: int) -> TorchStatistics:
        return TorchStatistics(n_atoms, n_features, self._place)

    def code(self, atoms: Tensor, samples: Tensor, alpha: float, *, tol: float) -> Tensor:
        columns, targets = atoms.to(self._dtype), samples.to(self._dtype)
        return solve_many(columns, targets, columns.new_full((len(columns),), alpha), tol=tol).coef.to(atoms.dtype)

    def moments(self, codes: Tensor) -> TorchMoments:
        return TorchMoments.of(codes)

    def moments_from_state(self, state: dict[str, Array]) -> TorchMoments:
        return TorchMoments.from_state({name: self.array(value) for name, value in state.items()})

    def straightest(
        self, moments: TorchMoments, n_components: int | None, *, centred: bool, ends: bool, rank_tol: float
    ) -> Embedding:
        return straightest(
            moments.covariance(centred=centred),
            moments.second_differences(ends=ends),
            n_components,
            n_codes=len(moments),
            rank_tol=rank_tol,
        )

    def tracked(self, n_components: int | None, *, centred: bool, ends: bool, rank_tol: float) -> TorchTrackedEmbedding:
        return TorchTrackedEmbedding(n_components, centred=centred, ends=ends, rank_tol=rank_tol)

    def embedding(self, matrix: Array, roughness: Array, rank: int) -> Embedding:
        return Embedding(self.array(matrix), self.array(roughness), rank)

    def recovery(self, embedding: Tensor, lam: float | Sequence[float], *, activity: Any = torch.inf) -> TorchRecovery:
        return TorchRecovery(embedding, lam, activity=activity, dtype=self._dtype)

    def recover_next(
        self, recover: TorchRecovery, extrapolation: Extrapolation, previous: Tensor, current: Tensor
    ) -> Tensor:
        before, now = recover.embedding @ previous, recover.embedding @ current
        if extrapolation.learns:
            # What was learned is a few numbers per direction, kept where it was learned: on the host.
            point = self.array(extrapolation.advance(self.numpy(before), self.numpy(now)))
        else:
            point = extrapolation.advance(before, now)
        if extrapolation.anchored:
            return current + recover.change(point - now, current)
        return recover(point, current)
