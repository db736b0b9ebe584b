"""Objects updated by low-rank changes on a torch device: the window of codes, and inverse matrices.

The window is a buffer of dense codes, and a captured function updates its sums in place. An inverse is one tensor that
is also updated in place at every slide. To collect changes first would take more launches, which cost more on a GPU.
"""

from __future__ import annotations

from collections import deque
from typing import Self

import torch
from torch import Tensor

from psmt.engines.contract import Resident, ResidentArrays
from psmt.engines.torch.cuda import Captured
from psmt.engines.window import FALL, CodeWindow, Slide, Sums, second_difference, slide_vectors
from psmt.types import Mask


class DenseWindow(CodeWindow):
    """Sliding window of dense codes (a `CodeWindow`). The cost of a slide does not depend on the size of the window."""

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
        # This flag is on the host. The device writes to it, and the host does not wait.
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
        # The host does not wait for the sums, so a fall far below their peak is noticed at the next slide.
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
        # The window is the part [first, first + n) of a buffer. A new buffer is made when its end is reached.
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
    """Add a code to the sums in place. `latest` are the three latest codes, or None if they span two series."""
    total, uses, products, curvature, _ = sums
    total += code
    products.addr_(code, code)
    uses += (code != 0).long()
    if latest is not None:
        bend = second_difference(*latest)
        curvature.addr_(bend, bend)


def _subtract(code: Tensor, sums: tuple[Tensor, ...], oldest: Tensor | None) -> None:
    """Subtract a code from the sums in place. `oldest` are the three oldest codes, or None if they span two series."""
    total, uses, products, curvature, _ = sums
    if oldest is not None:
        bend = second_difference(*oldest)
        curvature.addr_(bend, bend, alpha=-1.0)
    total -= code
    products.addr_(code, code, alpha=-1.0)
    uses -= (code != 0).long()
    # The sums of an atom that no code uses any more contain only rounding errors.
    unused = (code != 0) & (uses == 0)
    total.masked_fill_(unused, 0.0)
    for matrix in (products, curvature):
        matrix.masked_fill_(unused[:, None] | unused, 0.0)


def _slide_sums(
    oldest: Tensor, youngest: Tensor, sums: tuple[Tensor, ...], *, arrives: bool, leaves: bool
) -> tuple[Tensor, Tensor]:
    """Update the sums in place for a slide of the window, given the three codes at each end.

    Return the vectors of the `Slide`, and whether the sums have fallen so far below their peak that rounding matters.
    """
    total, _, products, curvature, peak = sums

    def traces() -> Tensor:
        return torch.stack([products.diagonal().sum(), curvature.diagonal().sum()])

    vectors = slide_vectors(oldest, youngest, total, arrives=arrives, leaves=leaves)
    _add(youngest[-1], sums, youngest if arrives else None)
    torch.maximum(peak, traces(), out=peak)
    _subtract(oldest[0], sums, oldest if leaves else None)
    return vectors, (traces() < FALL * peak).any()


class DenseInverse(Resident):
    """Inverse of a complex symmetric matrix (an `InverseOperator`). Captured functions can change it in place."""

    def __init__(self, matrix: Tensor) -> None:
        self._matrix = matrix

    def times(self, vectors: Tensor) -> Tensor:
        # Complex matrices are read as real and imaginary parts side by side, which takes half the time of a complex
        # product.
        images = vectors.T @ torch.view_as_real(self._matrix).flatten(-2)
        return torch.view_as_complex(images.unflatten(-1, (-1, 2))).mT

    def subtract(self, left: Tensor, right: Tensor) -> None:
        self._matrix.addmm_(left, right.mT, alpha=-1.0)

    def refactorise(self, matrix: Tensor) -> None:
        self._matrix.copy_(torch.linalg.inv(matrix))

    def parts(self) -> tuple[tuple[()], tuple[Tensor], tuple[()]]:
        return (), (self._matrix,), ()

    def with_arrays(self, _copied: tuple[Tensor, ...], resident: tuple[Tensor, ...], /) -> Self:
        return type(self)(*resident)
