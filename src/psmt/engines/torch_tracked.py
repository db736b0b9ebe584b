"""The embedding of a window that slides, in torch: `psmt.embedding.tracked`, where the method is explained.

All shifts are worked on side by side, and their inverses are changed in place at every slide: on a GPU a pass over a
matrix costs less than the launches that would save it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from psmt.embedding.closed_form import noise_curvature
from psmt.embedding.policy import NULL
from psmt.embedding.tracked import DEPENDENT, MIXED, SHIFTS, WITNESSES, Track, TrackedEmbedding
from psmt.engines.torch_embedding import Embedding, Whitening, fix_signs, moving, noise_line, straightest_in, whiten
from psmt.engines.torch_moments import TorchMoments
from psmt.moments import Change


class TorchTrackedEmbedding(TrackedEmbedding):
    """P of a sliding window on a torch device, renewed after each slide. Parameters as `TrackedEmbedding`."""

    _whiten = staticmethod(whiten)
    _straightest_in = staticmethod(straightest_in)

    def _pencil(self, moments: Any, floor: float) -> Any:
        return _Pencil(moments, self.centred, self.ends, self.rank_tol, floor)

    def _begin(self, found: Any, wanted: int, whitening: Any, pencil: Any) -> Track:
        return _Track(found, wanted, whitening, pencil)


class _Pencil:
    """V and S of a window, seen through the noise."""

    def __init__(self, moments: TorchMoments, centred: bool, ends: bool, rank_tol: float, floor: float) -> None:
        self.moments, self.centred, self.ends, self.floor = moments, centred, ends, floor
        variances = moments.variances(centred=centred)
        self.still = ~moving(variances)
        self.line = noise_line(variances, rank_tol)

    def covariance_times(self, vectors: Tensor) -> Tensor:
        return self.moments.covariance_times(vectors, centred=self.centred).add_(vectors, alpha=self.floor)

    def curvature_times(self, vectors: Tensor) -> Tensor:
        noise = noise_curvature(len(self.moments)) * self.floor
        return self.moments.second_differences_times(vectors, ends=self.ends).add_(vectors, alpha=noise)

    def shifted(self, shifts: Tensor) -> Tensor:
        """S - shift V for each shift (n,), as matrices (n, n_features, n_features)."""
        covariance, curvature = (
            self.moments.covariance(centred=self.centred),
            self.moments.second_differences(ends=self.ends),
        )
        matrices = curvature - shifts[:, None, None] * covariance
        matrices.diagonal(dim1=1, dim2=2).add_((noise_curvature(len(self.moments)) - shifts[:, None]) * self.floor)
        return matrices

    def is_determined(self) -> bool:
        """Whether V has more than the line in every direction."""
        covariance = self.moments.covariance(centred=self.centred)
        covariance.diagonal().sub_(self.line)
        return int(torch.linalg.cholesky_ex(covariance).info) == 0


class _Track(Track):
    lost = (torch.linalg.LinAlgError,)

    def __init__(self, found: Embedding, wanted: int, whitening: Whitening, pencil: _Pencil) -> None:
        super().__init__(found.matrix.T.contiguous(), found.roughness, wanted, whitening)
        between = (whitening.variances - whitening.floor <= pencil.line).nonzero()[:, 0]
        chosen = torch.linspace(0, len(between) - 1, min(WITNESSES, len(between))).long().to(between.device)
        self._witnesses = whitening.directions[:, between[chosen]]
        nodes = (0.5 * wanted * (1.0 - torch.cos(torch.pi * (torch.arange(SHIFTS) + 0.5) / SHIFTS))).long()
        nodes = nodes.to(self.roughness.device)
        self._shifts = 0.5 * (self.roughness[nodes] + self.roughness[nodes + 1])
        self._inverses = torch.linalg.inv(pencil.shifted(self._shifts))
        random = np.random.default_rng(0)
        self._few = torch.from_numpy(random.standard_normal((wanted, 2))).to(self._shifts)
        self._many = torch.from_numpy(random.standard_normal((wanted, SHIFTS, MIXED))).to(self._shifts)

    @property
    def embedding(self) -> Embedding:
        matrix = fix_signs(self.directions[:, : self.wanted].T)
        return Embedding(matrix, self.roughness[: self.wanted].clamp_min(0.0), self.rank)

    def _propose(self, change: Change, along: Tensor) -> Tensor:
        images = self._inverses @ change.vectors.T
        # Less what the known directions have of it: for an eigenvector, known without a product.
        known = along / (self.roughness[:, None] - self._shifts[:, None, None])
        proposed = images - self.directions @ known
        weights = change.curvature - self._shifts[:, None, None] * change.covariance
        inner = weights @ (change.vectors @ images)
        inner.diagonal(dim1=1, dim2=2).add_(1.0)
        self._inverses.baddbmm_(images, torch.linalg.solve(inner, weights @ images.mT), alpha=-1.0)
        return proposed.movedim(0, 1).flatten(1)

    def _corrections(self, pencil: _Pencil) -> Tensor:
        nearest = (self.roughness[: self.wanted, None] - self._shifts).abs().argmin(1)
        mixing = self._many * (nearest[:, None] == torch.arange(SHIFTS, device=nearest.device))[..., None]
        residuals = self._residuals(pencil, mixing.flatten(1)).unflatten(1, mixing.shape[1:])
        return (self._inverses @ residuals.movedim(1, 0)).movedim(0, 1).flatten(1)

    def _rayleigh_ritz(
        self, pencil: _Pencil, proposed: Tensor, covariance_change: Tensor, curvature_change: Tensor
    ) -> None:
        norms = proposed.norm(dim=0)
        proposed = proposed / torch.where(norms > 0, norms, 1.0)
        images = pencil.covariance_times(proposed)
        turn = _orthonormal(proposed.T @ images)
        proposed, images = proposed @ turn, images @ turn

        known = len(self.roughness)
        covariance = _bordered(torch.ones_like(self.roughness), covariance_change, self.directions, proposed, images)
        bent = pencil.curvature_times(proposed)
        curvature = _bordered(self.roughness, curvature_change, self.directions, proposed, bent)
        factor = torch.linalg.cholesky(covariance)
        half = torch.linalg.solve_triangular(factor, curvature, upper=False)
        inner = torch.linalg.solve_triangular(factor, half.mT, upper=False)
        roughness, turn = torch.linalg.eigh((inner + inner.mT) / 2)
        turn = torch.linalg.solve_triangular(factor.mT, turn[:, :known], upper=True)
        self.roughness = roughness[:known]
        self.directions = self.directions @ turn[:known] + proposed @ turn[known:]
        self.directions.masked_fill_(pencil.still[:, None], 0.0)

    def _rayleigh_ritz_afresh(self, pencil: _Pencil, proposed: Tensor) -> None:
        known = len(self.roughness)
        basis = torch.cat([self.directions, proposed], 1)
        covariance = basis.T @ pencil.covariance_times(basis)
        sizes = covariance.diagonal().sqrt()
        scale = 1.0 / torch.where(sizes > 0, sizes, 1.0)
        turn = scale[:, None] * _orthonormal(scale[:, None] * covariance * scale)
        roughness, inner = torch.linalg.eigh(turn.T @ (basis.T @ pencil.curvature_times(basis)) @ turn)
        self.roughness = roughness[:known]
        self.directions = basis @ (turn @ inner[:, :known])
        self.directions.masked_fill_(pencil.still[:, None], 0.0)

    def _estimate_error(self, pencil: _Pencil) -> float:
        mixing = self._few
        errors = self._inverses[-1] @ self._residuals(pencil, mixing)
        mixed = self.directions[:, : self.wanted] @ mixing
        images = pencil.covariance_times(torch.cat([errors, mixed, self._witnesses], 1))
        outside = (errors * images[:, :2]).sum() - (self.directions.T @ images[:, :2]).square().sum()
        size = mixing.square().sum()
        drift = ((mixed * images[:, 2:4]).sum() / size - 1.0).abs()
        error = (self.wanted * outside.clamp_min(0.0) / size).sqrt() + drift
        if self.floor:
            variances = (self._witnesses * images[:, 4:]).sum(0) - self.floor
            between = ((variances > NULL * pencil.line) & (variances < pencil.line)).any()
            error = torch.where(between, error, torch.inf)
        return float(error)


def _orthonormal(covariance: Tensor) -> Tensor:
    """Mixtures (n, m) of n directions with this covariance (n, n) of unit covariance; dependent ones drop out."""
    variances, turn = torch.linalg.eigh(covariance)
    new = variances > DEPENDENT * variances[-1]
    return turn[:, new] / variances[new].sqrt()


def _bordered(diagonal: Tensor, change: Tensor, known: Tensor, proposed: Tensor, images: Tensor) -> Tensor:
    """The diagonal and its change, bordered by products of all directions with the images of the proposed ones."""
    cross = known.T @ images
    return torch.cat([torch.cat([diagonal.diag() + change, cross], 1), torch.cat([cross.T, proposed.T @ images], 1)])
