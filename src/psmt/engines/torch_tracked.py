"""The embedding of a window that slides, in torch: `psmt.embedding.tracked`, where the method is explained.

All shifts are worked on side by side, and their inverses are changed in place at every slide: on a GPU a pass over a
matrix costs less than the launches that would save it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from psmt.embedding.closed_form import noise_curvature
from psmt.embedding.policy import NULL
from psmt.embedding.tracked import _DEPENDENT, _SHIFTS, _SLIDES, _WITNESSES, TrackedEmbedding, _followed
from psmt.engines.torch_embedding import Embedding, Whitening, fix_signs, moving, noise_line, straightest_in, whiten
from psmt.engines.torch_moments import Change, TorchMoments


class TorchTrackedEmbedding(TrackedEmbedding):
    """P of a sliding window on a torch device, renewed after each slide. Parameters as `TrackedEmbedding`."""

    def _pencil(self, moments: Any, floor: float) -> Any:
        return _Pencil(moments, self.centred, self.ends, self.rank_tol, floor)

    def _solve(self, moments: Any) -> Any:
        whitening = whiten(moments.covariance(centred=self.centred), rank_tol=self.rank_tol)
        curvature = moments.second_differences(ends=self.ends)
        count = self.n_components
        followed = 0 if count is None else _followed(count, whitening, moments.n_features)
        found = straightest_in(whitening, curvature, followed or count, n_codes=len(moments))
        self.n_solved_ += 1
        self.error_ = 0.0
        if count is None or not followed:
            return found
        self._track = _Track(found, count, whitening, self._pencil(moments, whitening.floor))
        return self._track.embedding


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


class _Track:
    """The wanted directions and their guards, from slide to slide; begins with the closed form."""

    def __init__(self, found: Embedding, wanted: int, whitening: Whitening, pencil: _Pencil) -> None:
        self.directions = found.matrix.T.contiguous()
        self.roughness = found.roughness
        self.wanted = wanted
        self.rank = whitening.rank
        self.floor = whitening.floor
        self.error = 0.0
        self._slides = 0
        between = (whitening.variances - whitening.floor <= pencil.line).nonzero()[:, 0]
        chosen = torch.linspace(0, len(between) - 1, min(_WITNESSES, len(between))).long().to(between.device)
        self._witnesses = whitening.directions[:, between[chosen]]
        nodes = (0.5 * wanted * (1.0 - torch.cos(torch.pi * (torch.arange(_SHIFTS) + 0.5) / _SHIFTS))).long()
        nodes = nodes.to(self.roughness.device)
        self._shifts = 0.5 * (self.roughness[nodes] + self.roughness[nodes + 1])
        self._inverses = torch.linalg.inv(pencil.shifted(self._shifts))
        self._random = torch.Generator(self.roughness.device).manual_seed(0)

    @property
    def embedding(self) -> Embedding:
        matrix = fix_signs(self.directions[:, : self.wanted].T)
        return Embedding(matrix, self.roughness[: self.wanted].clamp_min(0.0), self.rank)

    def follow(self, pencil: _Pencil, change: Change) -> bool:
        """Follow a slide; False where that cannot be done, and the track ends."""
        self._slides += 1
        if self._slides > _SLIDES or not self._same_noise(pencil):
            return False
        along = self.directions.T @ change.vectors.T
        try:
            self._rayleigh_ritz(pencil, change, along, self._propose(change, along))
        except torch.linalg.LinAlgError:
            return False
        self.error = self._estimate_error(pencil)
        return self.error == self.error

    def _same_noise(self, pencil: _Pencil) -> bool:
        """Whether the closed form would see the window through the same noise."""
        if self.floor == 0.0:
            return pencil.is_determined()
        images = pencil.moments.covariance_times(self._witnesses, centred=pencil.centred)
        variances = (self._witnesses * images).sum(0)
        between = ((variances > NULL * pencil.line) & (variances < pencil.line)).any()
        return bool((pencil.line == self.floor) & between)

    def _propose(self, change: Change, along: Tensor) -> Tensor:
        """Directions (n_features, n) in which the new eigenvectors may differ from the old; changes the inverses."""
        images = self._inverses @ change.vectors.T
        known = along / (self.roughness[:, None] - self._shifts[:, None, None])
        proposed = images - self.directions @ known
        weights = change.curvature - self._shifts[:, None, None] * change.covariance
        inner = weights @ (change.vectors @ images)
        inner.diagonal(dim1=1, dim2=2).add_(1.0)
        self._inverses.baddbmm_(images, torch.linalg.solve(inner, weights @ images.mT), alpha=-1.0)
        return proposed.movedim(0, 1).flatten(1)

    def _rayleigh_ritz(self, pencil: _Pencil, change: Change, along: Tensor, proposed: Tensor) -> None:
        """The best directions in the span of the known and the proposed ones."""
        norms = proposed.norm(dim=0)
        proposed = proposed / torch.where(norms > 0, norms, 1.0)
        images = pencil.covariance_times(proposed)
        variances, turn = torch.linalg.eigh(proposed.T @ images)
        new = variances > _DEPENDENT * variances[-1]
        turn = turn[:, new] / variances[new].sqrt()
        proposed, images = proposed @ turn, images @ turn

        known = len(self.roughness)
        covariance = _bordered(along @ change.covariance @ along.T, self.directions, proposed, images)
        covariance.diagonal()[:known].add_(1.0)
        bent = pencil.curvature_times(proposed)
        curvature = _bordered(along @ change.curvature @ along.T, self.directions, proposed, bent)
        curvature.diagonal()[:known].add_(self.roughness)
        factor = torch.linalg.cholesky(covariance)
        half = torch.linalg.solve_triangular(factor, curvature, upper=False)
        inner = torch.linalg.solve_triangular(factor, half.mT, upper=False)
        roughness, turn = torch.linalg.eigh((inner + inner.mT) / 2)
        turn = torch.linalg.solve_triangular(factor.mT, turn[:, :known], upper=True)
        self.roughness = roughness[:known]
        self.directions = self.directions @ turn[:known] + proposed @ turn[known:]
        self.directions.masked_fill_(pencil.still[:, None], 0.0)

    def _estimate_error(self, pencil: _Pencil) -> float:
        """Estimated sine of the angle to the exact subspace, as in `psmt.embedding.tracked`."""
        roughness = self.roughness[: self.wanted, None]
        mixing = torch.randn(self.wanted, 2, dtype=roughness.dtype, device=roughness.device, generator=self._random)
        mixed = self.directions[:, : self.wanted] @ torch.cat([mixing, roughness * mixing], 1)
        images = pencil.covariance_times(mixed)
        errors = self._inverses[-1] @ (pencil.curvature_times(mixed[:, :2]) - images[:, 2:])
        error_images = pencil.covariance_times(errors)
        outside = (errors * error_images).sum() - (self.directions.T @ error_images).square().sum()
        size = mixing.square().sum()
        drift = ((mixed[:, :2] * images[:, :2]).sum() / size - 1.0).abs()
        return float((self.wanted * outside.clamp_min(0.0) / size).sqrt() + drift)


def _bordered(corner: Tensor, known: Tensor, proposed: Tensor, images: Tensor) -> Tensor:
    """The corner, bordered by the products of known and proposed directions with the images of the latter."""
    cross = known.T @ images
    return torch.cat([torch.cat([corner, cross], 1), torch.cat([cross.T, proposed.T @ images], 1)])
