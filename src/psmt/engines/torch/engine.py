"""The engine of a torch device: one GPU, or the CPU to test it with."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from torch import Tensor

from psmt.engines.contract import Bound, ResidentArrays, ShiftInvert, Work
from psmt.engines.torch.code_window import DenseWindow
from psmt.engines.torch.dictionary import swept
from psmt.engines.torch.frame_kernels import TorchFrameKernels
from psmt.engines.torch.graphs import Captured
from psmt.engines.torch.lasso import solve, solve_many
from psmt.engines.torch.problems import pose
from psmt.engines.torch.shift_invert import DenseShiftInvert
from psmt.engines.window import CodeWindow
from psmt.types import Mask

_STAGED = (1 << 20, 1 << 26)
"""Bytes of arrays that go to the device through pinned memory: less is not worth it, more takes too much of it."""


class TorchEngine:
    """See `psmt.engines.contract.Engine`; its own arrays are tensors of float64 on the device."""

    captures = True
    linalg_errors: tuple[type[Exception], ...] = (torch.linalg.LinAlgError,)

    def __init__(self, device: str, place: torch.device, dtype: torch.dtype) -> None:
        self.device = device
        self._place = place
        self._dtype = dtype
        self._swept = Captured(swept)
        self.frames = TorchFrameKernels(place)

    def array(self, values: ArrayLike) -> Tensor:
        """Own array of float64 with these values."""
        if isinstance(values, Tensor):
            return values
        # torch warns of arrays that it may not write to.
        given = torch.from_numpy(np.require(values, np.float64, ["C", "W"]))
        if self._place.type == "cuda" and _STAGED[0] <= given.nbytes <= _STAGED[1]:
            # From memory that the device can read by itself, so that nobody waits for it.
            return given.pin_memory().to(self._place, non_blocking=True)
        return given.to(self._place)

    def numpy(self, values: Tensor) -> NDArray[np.float64]:
        """A NumPy array with the values of an own one."""
        return np.asarray(values.cpu().numpy())

    def dense(self, values: csr_array) -> Tensor:
        """Own array of float64 with the values of a sparse one; only what is not zero goes to the device."""
        filled = torch.zeros(values.shape, dtype=torch.float64, device=self._place)
        rows, columns = (torch.from_numpy(part.astype(np.int64)).to(self._place) for part in values.tocoo().coords)
        filled[rows, columns] = self.array(values.data)
        return filled

    def sparse(self, values: Tensor) -> csr_array:
        """A sparse array (n, n_columns) on the host with the values of an own one; only what is not zero leaves it."""
        active = values != 0
        rows, columns = active.nonzero(as_tuple=True)
        offsets = torch.nn.functional.pad(active.sum(1).cumsum(0), (1, 0))
        parts = (values[rows, columns], columns.int(), offsets)
        return csr_array(tuple(part.cpu().numpy() for part in parts), shape=tuple(values.shape))

    def solver_array(self, values: Tensor) -> Tensor:
        """The values in the precision that lassos are solved in."""
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
        """Coefficients (n, n_columns) of targets (n, n_features), divided by `norms` (n_columns,) if given."""
        penalties = torch.as_tensor(penalty, dtype=columns.dtype, device=columns.device).expand(len(columns))
        coef: Tensor = solve_many(columns, targets.to(columns.dtype), penalties, tol=tol, gram=gram).coef
        return coef.double() if norms is None else coef / norms

    def solve_next(
        self, columns: Tensor, target: Tensor, penalty: Tensor, *, tol: float, start: Tensor, gram: Tensor
    ) -> Tensor:
        """Coefficients (n_columns,) of one target, sought from the support of an earlier solution on."""
        problem = pose(columns, target[None].to(columns.dtype), penalty.to(columns.dtype), gram)
        coef: Tensor = solve(problem, tol=tol, start=start[None]).coef[0]
        return coef.double()

    def solve_bounded(
        self, columns: Tensor, targets: Tensor, penalty: Tensor, bound: Bound, *, tol: float, start: Tensor
    ) -> Tensor:
        """Coefficients (n, n_columns) of targets (n, n_features), worth no more than the bound says."""
        own, limits = (self.solver_array(part) for part in bound)
        penalties = self.solver_array(penalty)[:, None].expand(-1, len(columns))
        shared = penalties[0] if len(penalties) == 1 else penalties
        problems = pose(self.solver_array(columns), self.solver_array(targets), shared)
        coef: Tensor = solve(problems, tol=tol, start=start, bound=Bound(own, limits)).coef
        return coef.double()

    def add_codes(self, codes: Tensor, samples: Tensor, kept: float, code_code: Tensor, code_sample: Tensor) -> None:
        """Scale the statistics by `kept` and add ``sum a a'`` and ``sum a x'`` of a batch to them, in place."""
        code_code.addmm_(codes.T, codes, beta=kept)
        code_sample.addmm_(codes.T, samples, beta=kept)

    def sweep_atoms(self, atoms: Tensor, code_code: Tensor, code_sample: Tensor, used: Tensor) -> None:
        """One sweep of exact block-coordinate descent, in place, over the unit-norm atoms that are used."""
        atoms.copy_(self._swept(atoms, used, ResidentArrays((code_code, code_sample)))[0])

    def code_window(self, codes: Tensor, begins: Mask | None = None) -> CodeWindow:
        """Codes (n, n_features) of a window with their sums, kept up as it slides; `begins` (n,) marks first ones."""
        return DenseWindow(codes, begins)

    def shift_invert(self, shifted: Tensor, shifts: Tensor) -> ShiftInvert:
        """Inverses of the matrices `shifted` (n_shifts, n_features, n_features)."""
        return DenseShiftInvert(torch.linalg.inv(shifted), shifts)

    def capture(self, work: Work) -> Work:
        """The work as one launch on a GPU."""
        return cast(Work, Captured(work))

    def small_work(self) -> AbstractContextManager[object]:
        """Nothing to mind: the device has its own threads."""
        return nullcontext()
