"""Shift-invert operators on a torch device: side by side in one tensor, changed in place at every slide.

On a GPU a pass over a matrix costs less than the launches that would save it.
"""

from __future__ import annotations

from typing import Self, cast

import torch
from torch import Tensor

from psmt.engines.contract import Change, Resident


class DenseShiftInvert(Resident):
    """See `psmt.engines.contract.ShiftInvert`. As an argument of captured work the operators stay where they are."""

    def __init__(self, matrices: Tensor, shifts: Tensor) -> None:
        self.matrices, self.shifts = matrices, shifts

    def dense(self) -> Tensor:
        """The operators as matrices (n_shifts, n_features, n_features)."""
        return self.matrices

    def times(self, which: int, vectors: Tensor) -> Tensor:
        """One operator times the columns of `vectors` (n_features, n)."""
        return _times_rows(vectors.T, self.matrices[which]).mT

    def times_each(self, vectors: Tensor) -> Tensor:
        """Each operator times its own columns (n_shifts, n_features, n), or all times one set (1, ..)."""
        return _times_rows(vectors.mT, self.matrices).mT

    def refactorise(
        self,
        which: Tensor,
        shifts: Tensor,
        shifted: Tensor,
        /,
        *,
        later: bool = False,  # noqa: ARG002  a GPU inverts a matrix in no time
    ) -> None:
        """Set some of the operators (n_shifts,) to the inverses of `shifted`, at new shifts; at once in any case."""
        self.shifts = torch.where(which, shifts, self.shifts)
        self.matrices[which] = torch.linalg.inv(shifted)

    def images(self, vectors: Tensor) -> Tensor:
        """Images (n_shifts, n, n_features) of vectors (n, n_features) under the operators."""
        return _times_rows(vectors, self.matrices)

    def subtract(self, left: Tensor, right: Tensor) -> None:
        """Take ``left' right`` from the operators, each (n_shifts, n, n_features)."""
        self.matrices.baddbmm_(left.mT, right, alpha=-1.0)

    def update(self, change: Change) -> Tensor:
        """Images (n_shifts, n, n_features) of the vectors of a change under the operators before it."""
        vectors, covariance, curvature = change
        images = self.images(vectors)
        weights = curvature - self.shifts[:, None] * covariance
        inner = weights[..., None] * (images @ cast(Tensor, vectors).to(images.dtype).T).mT
        inner.diagonal(dim1=1, dim2=2).add_(1.0)
        core = torch.linalg.solve_ex(inner, torch.diag_embed(weights)).result
        # The operators stay symmetric: what is not would grow from slide to slide.
        self.subtract(images, (0.5 * (core + core.mT)) @ images)
        return images

    def parts(self) -> tuple[tuple[Tensor], tuple[Tensor], tuple[()]]:
        """As an argument of captured work."""
        return (self.shifts,), (self.matrices,), ()

    def with_arrays(self, copied: tuple[Tensor, ...], resident: tuple[Tensor, ...], /) -> Self:
        """The same of other tensors."""
        return type(self)(*resident, *copied)


def _times_rows(vectors: Tensor, matrices: Tensor) -> Tensor:
    """Real vectors (.., n, n_features) times symmetric matrices (.., n_features, n_features), real or complex."""
    if not matrices.is_complex():
        return vectors @ matrices
    # Real and imaginary parts stand side by side: one real product, in half the time of a complex one.
    images = vectors @ torch.view_as_real(matrices).flatten(-2)
    return torch.view_as_complex(images.unflatten(-1, (-1, 2)))
