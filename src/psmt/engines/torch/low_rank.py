"""Low-rank updates on a torch device: the window of codes, and the shift-invert operators.

The window is a buffer of dense codes with sums that a captured slide changes in place. The operators lie in one tensor
and also change in place at every slide: on a GPU, a pass over a matrix costs less than the launches that would save it.
"""

from __future__ import annotations

from collections import deque
from typing import Self, cast

import torch
from torch import Tensor

from psmt.engines.contract import LowRankChange, Resident, ResidentArrays
from psmt.engines.torch.cuda import Captured
from psmt.engines.window import FALL, CodeWindow, Slide, Sums, second_difference, slide_vectors
from psmt.types import Mask


class DenseWindow(CodeWindow):
    """See `psmt.engines.window.CodeWindow`. A slide costs four passes over the sums, whatever the window holds."""

    total: Tensor
    products: Tensor
    curvature: Tensor
    uses: Tensor
    peak: Tensor

    def __init__(self, codes: Tensor, begins: Mask | None = None) -> None:
        self.begins = deque([False] * len(codes) if begins is None else begins.tolist())
        self.n_features = codes.shape[1]
        self._renew_buffer(codes)
        self.total = self._buffer.new_zeros(self.n_features)
        self.uses = torch.zeros(self.n_features, dtype=torch.int64, device=codes.device)
        self.products, self.curvature = self._buffer.new_zeros(2, self.n_features, self.n_features).unbind()
        self.peak = self._buffer.new_zeros(2)
        # On the host. The device writes to it, and nobody waits.
        self._fallen = torch.zeros((), dtype=torch.bool, pin_memory=codes.is_cuda)
        self._slide_sums = Captured(_slide_sums)
        self.refresh()

    def __len__(self) -> int:
        return self._n

    @property
    def codes(self) -> Tensor:
        return self._buffer[self._first : self._first + self._n]

    def latest(self, count: int) -> Tensor:
        return self.codes[self._n - count :]

    def oldest(self, count: int) -> Tensor:
        return self.codes[:count].clone()

    @property
    def activities(self) -> Tensor:
        return self._activity[self._first : self._first + self._n]

    def slide(self, code: Tensor, *, begins: bool = False) -> Slide | None:
        # The host does not wait: that sums have fallen far below their peak is noticed at the next slide.
        if self._n < 3:
            return super().slide(code, begins=begins)
        if bool(self._fallen):
            self.refresh()
        oldest, youngest = self.oldest(3), torch.cat([self.latest(2), code[None]])
        leaves = self.bends_at(0)
        self.begins.append(begins)
        how = {"arrives": self.bends_at(-3), "leaves": leaves}
        vectors, fallen = self._slide_sums(oldest, youngest, self._resident, **how)
        self._fallen.copy_(fallen, non_blocking=True)
        self._store(code)
        self._discard()
        self.begins.popleft()
        if self.reverted >= self._n:
            self.refresh()
        return Slide(vectors, oldest, youngest)

    def sums(self, *, half_stencils: bool) -> Sums:
        ends = self.ends() if half_stencils else self._buffer[:0]
        return Sums(self.products, self.curvature, self.total, ends, self._n)

    @property
    def _resident(self) -> ResidentArrays:
        return ResidentArrays((self.total, self.uses, self.products, self.curvature, self.peak))

    def _renew_buffer(self, codes: Tensor) -> None:
        # The window is the part [first, first + n) of a buffer, which is replaced when its end is reached.
        self._first, self._n = 0, len(codes)
        self._buffer = torch.cat([codes, torch.zeros_like(codes), codes.new_zeros(8, self.n_features)])
        self._activity = self._buffer.sum(1)

    def _store(self, code: Tensor) -> None:
        if self._first + self._n == len(self._buffer):
            self._renew_buffer(self.codes)
        self._buffer[self._first + self._n] = code
        self._activity[self._first + self._n] = code.sum()
        self._n += 1

    def _discard(self) -> None:
        self._first += 1
        self._n -= 1
        self.reverted += 1

    def _enter(self, code: Tensor) -> None:
        self._store(code)
        latest = self.codes[-3:]
        _add(code, self._resident, latest if len(latest) == 3 and self.bends_at(-3) else None)

    def _leave(self) -> None:
        oldest = self.oldest(3)
        _subtract(oldest[0], self._resident, oldest if len(oldest) == 3 and self.bends_at(0) else None)
        self._discard()

    def _recompute(self) -> None:
        # In place, because captured slides refer to the memory of the sums.
        self._fallen.zero_()
        codes = self.codes
        self.total.copy_(codes.sum(0))
        self.uses.copy_((codes != 0).sum(0))
        torch.mm(codes.T, codes, out=self.products)
        bends = second_difference(codes[:-2], codes[1:-1], codes[2:]) if len(codes) >= 3 else codes[:0]
        if self.seams and len(codes) >= 3:
            bends = bends[torch.as_tensor(self.bends_kept(), device=bends.device)]
        torch.mm(bends.T, bends, out=self.curvature)


def _add(code: Tensor, sums: tuple[Tensor, ...], latest: Tensor | None) -> None:
    """Add a code (n_features,) to the sums, in place; give the latest three if they are of one series."""
    total, uses, products, curvature, _ = sums
    total += code
    products.addr_(code, code)
    uses += (code != 0).long()
    if latest is not None:
        bend = second_difference(*latest)
        curvature.addr_(bend, bend)


def _subtract(code: Tensor, sums: tuple[Tensor, ...], oldest: Tensor | None) -> None:
    """Subtract a code (n_features,) from the sums, in place; give the oldest three if they are of one series."""
    total, uses, products, curvature, _ = sums
    if oldest is not None:
        bend = second_difference(*oldest)
        curvature.addr_(bend, bend, alpha=-1.0)
    total -= code
    products.addr_(code, code, alpha=-1.0)
    uses -= (code != 0).long()
    # The sums of an atom that no code uses any more are only rounding.
    unused = (code != 0) & (uses == 0)
    total.masked_fill_(unused, 0.0)
    for matrix in (products, curvature):
        matrix.masked_fill_(unused[:, None] | unused, 0.0)


def _slide_sums(
    oldest: Tensor, youngest: Tensor, sums: tuple[Tensor, ...], *, arrives: bool, leaves: bool
) -> tuple[Tensor, Tensor]:
    """Slide the sums; return the vectors of the `Slide`, and whether the sums have fallen far below their peak."""
    total, _, products, curvature, peak = sums

    def traces() -> Tensor:
        return torch.stack([products.diagonal().sum(), curvature.diagonal().sum()])

    vectors = slide_vectors(oldest, youngest, total, arrives=arrives, leaves=leaves)
    _add(youngest[-1], sums, youngest if arrives else None)
    torch.maximum(peak, traces(), out=peak)
    _subtract(oldest[0], sums, oldest if leaves else None)
    return vectors, (traces() < FALL * peak).any()


class DenseShiftInvert(Resident):
    """See `psmt.engines.contract.ShiftInvert`. As an argument of captured work the operators stay where they are."""

    def __init__(self, matrices: Tensor, shifts: Tensor) -> None:
        self.matrices, self.shifts = matrices, shifts

    def dense(self) -> Tensor:
        return self.matrices

    def times(self, which: int, vectors: Tensor) -> Tensor:
        return _times_rows(vectors.T, self.matrices[which]).mT

    def times_each(self, vectors: Tensor) -> Tensor:
        return _times_rows(vectors.mT, self.matrices).mT

    def refactorise(
        self,
        which: Tensor,
        shifts: Tensor,
        shifted: Tensor,
        /,
        *,
        later: bool = False,  # noqa: ARG002  a GPU inverts a matrix fast enough
    ) -> None:
        self.shifts = torch.where(which, shifts, self.shifts)
        self.matrices[which] = torch.linalg.inv(shifted)

    def images(self, vectors: Tensor) -> Tensor:
        return _times_rows(vectors, self.matrices)

    def subtract(self, left: Tensor, right: Tensor) -> None:
        self.matrices.baddbmm_(left.mT, right, alpha=-1.0)

    def update(self, change: LowRankChange) -> Tensor:
        vectors, covariance, curvature = change
        images = self.images(vectors)
        weights = curvature - self.shifts[:, None] * covariance
        inner = weights[..., None] * (images @ cast(Tensor, vectors).to(images.dtype).T).mT
        inner.diagonal(dim1=1, dim2=2).add_(1.0)
        core = torch.linalg.solve_ex(inner, torch.diag_embed(weights)).result
        # Symmetrise: an antisymmetric part would grow from slide to slide.
        self.subtract(images, (0.5 * (core + core.mT)) @ images)
        return images

    def parts(self) -> tuple[tuple[Tensor], tuple[Tensor], tuple[()]]:
        return (self.shifts,), (self.matrices,), ()

    def with_arrays(self, copied: tuple[Tensor, ...], resident: tuple[Tensor, ...], /) -> Self:
        return type(self)(*resident, *copied)


def _times_rows(vectors: Tensor, matrices: Tensor) -> Tensor:
    """Real vectors (.., n, n_features) times symmetric matrices (.., n_features, n_features), real or complex."""
    if not matrices.is_complex():
        return vectors @ matrices
    # Real and imaginary parts side by side: one real product takes half the time of a complex one.
    images = vectors @ torch.view_as_real(matrices).flatten(-2)
    return torch.view_as_complex(images.unflatten(-1, (-1, 2)))
