"""The engine of a torch device: a GPU, or the CPU for tests."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from torch import Tensor

from psmt.engines.contract import Bound, InverseOperator, ResidentArrays, Work
from psmt.engines.torch.cuda import Captured, kernel
from psmt.engines.torch.frame_kernels import TorchFrameKernels
from psmt.engines.torch.lasso import pose, solve, solve_many
from psmt.engines.torch.low_rank import DenseInverse, DenseWindow
from psmt.engines.window import CodeWindow
from psmt.types import Mask

_STAGED = (1 << 20, 1 << 26)  # smallest and largest number of bytes that go to the device through pinned memory
_BLOCK = 32  # atoms whose products with all others are computed at once; the same as in `sweep.cu`
_TINY = 1e-200  # smallest divisor, so that a target of zero stays zero


class TorchEngine:
    """The engine of a torch device (see `psmt.engines.contract.Engine`). Its arrays are tensors on the device."""

    captures = True
    linalg_errors: tuple[type[Exception], ...] = (torch.linalg.LinAlgError,)

    def __init__(self, device: str, place: torch.device, dtype: torch.dtype) -> None:
        self.device = device
        self._place = place
        self._dtype = dtype
        self._swept = Captured(_swept_atoms)
        self.frames = TorchFrameKernels(place)

    def array(self, values: ArrayLike) -> Tensor:
        if isinstance(values, Tensor):
            return values
        # Writable, because torch warns about read-only arrays.
        given = torch.from_numpy(np.require(values, np.float64, ["C", "W"]))
        if self._place.type == "cuda" and _STAGED[0] <= given.nbytes <= _STAGED[1]:
            # The device reads pinned memory by itself, so the host does not wait.
            return given.pin_memory().to(self._place, non_blocking=True)
        return given.to(self._place)

    def numpy(self, values: Tensor) -> NDArray[np.float64]:
        return np.asarray(values.cpu().numpy())

    def dense(self, values: csr_array) -> Tensor:
        filled = torch.zeros(values.shape, dtype=torch.float64, device=self._place)
        rows, columns = (torch.from_numpy(part.astype(np.int64)).to(self._place) for part in values.tocoo().coords)
        filled[rows, columns] = self.array(values.data)
        return filled

    def sparse(self, values: Tensor) -> csr_array:
        active = values != 0
        rows, columns = active.nonzero(as_tuple=True)
        offsets = torch.nn.functional.pad(active.sum(1).cumsum(0), (1, 0))
        parts = (values[rows, columns], columns.int(), offsets)
        return csr_array(tuple(part.cpu().numpy() for part in parts), shape=tuple(values.shape))

    def solver_array(self, values: Tensor) -> Tensor:
        return values.to(self._dtype)

    def solve_many(
        self,
        columns: Tensor,
        targets: Tensor,
        penalty: Tensor | float,
        *,
        tol: float,
        norms: Tensor | None = None,
        gram: Tensor | None = None,
    ) -> Tensor:
        penalties = torch.as_tensor(penalty, dtype=columns.dtype, device=columns.device).expand(len(columns))
        coef: Tensor = solve_many(columns, targets.to(columns.dtype), penalties, tol=tol, gram=gram).coef
        return coef.double() if norms is None else coef / norms

    def solve_next(
        self, columns: Tensor, target: Tensor, penalty: Tensor, *, tol: float, start: Tensor, gram: Tensor
    ) -> Tensor:
        problem = pose(columns, target[None].to(columns.dtype), penalty.to(columns.dtype), gram)
        coef: Tensor = solve(problem, tol=tol, start=start[None]).coef[0]
        return coef.double()

    def solve_bounded(
        self, columns: Tensor, targets: Tensor, penalty: Tensor, bound: Bound, *, tol: float, start: Tensor
    ) -> Tensor:
        own, limits = (self.solver_array(part) for part in bound)
        penalties = self.solver_array(penalty)[:, None].expand(-1, len(columns))
        shared = penalties[0] if len(penalties) == 1 else penalties
        problems = pose(self.solver_array(columns), self.solver_array(targets), shared)
        coef: Tensor = solve(problems, tol=tol, start=start, bound=Bound(own, limits)).coef
        return coef.double()

    def add_codes(self, codes: Tensor, samples: Tensor, kept: float, code_code: Tensor, code_sample: Tensor) -> None:
        code_code.addmm_(codes.T, codes, beta=kept)
        code_sample.addmm_(codes.T, samples, beta=kept)

    def sweep_atoms(self, atoms: Tensor, code_code: Tensor, code_sample: Tensor, used: Tensor) -> None:
        atoms.copy_(self._swept(atoms, used, ResidentArrays((code_code, code_sample)))[0])

    def code_window(self, codes: Tensor, begins: Mask | None = None) -> CodeWindow:
        return DenseWindow(codes, begins)

    def inverse(self, matrix: Tensor) -> InverseOperator:
        return DenseInverse(torch.linalg.inv(matrix))

    def capture(self, work: Work) -> Work:
        return cast(Work, Captured(work))

    def small_work(self) -> AbstractContextManager[object]:
        return nullcontext()


def _swept_atoms(atoms: Tensor, used: Tensor, statistics: tuple[Tensor, Tensor]) -> tuple[Tensor]:
    """Return the atoms (n_atoms, n_features) after a sweep over the used atoms; see `Engine.sweep_atoms`."""
    code_code, code_sample = statistics
    atoms, (n_atoms, n_features) = atoms.clone(), atoms.shape
    free = (used & (code_code.diagonal() > 0)).to(atoms.dtype)
    threads = -(-n_features // 32) * 32
    compiled = kernel("sweep.cu", "improve", atoms.dtype, atoms.device, threads) if threads <= 1024 else None
    size = 1 if compiled is None else _BLOCK  # without a kernel, atoms are improved one by one
    for first in range(0, n_atoms, size):
        block = slice(first, first + size)
        own, products = atoms[block], code_code[block]
        targets = torch.addmm(code_sample[block], products, atoms, alpha=-1.0)
        if compiled is None:
            targets += products[:, block] * own
            best = targets / targets.norm().clamp_min(_TINY)
            own.copy_(torch.where(free[block] > 0, best, own))
        else:
            sizes = len(own), n_features, n_atoms
            compiled(1, threads, 0, own, targets, products[:, block], free[block], *sizes)
    return (atoms,)
