"""The embedding of a window that slides, in torch: `psmt.embedding.followed`, where the method is explained.

All shifts are worked on side by side, and their inverses are changed in place at every slide: on a GPU a pass over a
matrix costs less than the launches that would save it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from psmt.embedding.closed_form import noise_curvature
from psmt.embedding.followed import DEPENDENT, MIXED, SHIFTS, WITNESSES, WORN, Track, TrackedEmbedding
from psmt.engines.torch.embedding import Embedding, Whitening, fix_signs, moving, noise_line, straightest_in, whiten
from psmt.engines.torch.graphs import Recorded
from psmt.engines.torch.moments import covariance_of, covariance_times, second_differences_times, variances_of
from psmt.moments import Change
from psmt.numerics.rank import NULL

_RIDGE = 1e-10
"""Fraction of a proposed direction's variance, below which what it has of its own is rounding."""


class TorchTrackedEmbedding(TrackedEmbedding):
    """P of a sliding window on a torch device, renewed after each slide. Parameters as `TrackedEmbedding`."""

    _whiten = staticmethod(whiten)
    _straightest_in = staticmethod(straightest_in)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._limits = Recorded(_limits)

    def _pencil(self, moments: Any, floor: float) -> Any:
        n, centred = len(moments), self.centred
        squares = moments.products.diagonal()
        still, threshold = self._limits(squares, moments.total, n=n, centred=centred, rank_tol=self.rank_tol)
        ends = moments.end_bends() if self.ends else moments.codes[:0]
        sums = moments.products, moments.curvature, moments.total
        return _Pencil(*sums, ends, still, threshold, n=n, centred=centred, floor=floor)

    def _begin(self, found: Any, wanted: int, whitening: Any, pencil: Any) -> Track:
        return _Track(found, wanted, whitening, pencil)


class _Pencil:
    """V and S of a window, seen through the noise."""

    def __init__(
        self,
        products: Tensor,
        curvature: Tensor,
        total: Tensor,
        ends: Tensor,
        still: Tensor,
        threshold: Tensor,
        *,
        n: int,
        centred: bool,
        floor: float,
    ) -> None:
        self.products, self.curvature, self.total = products, curvature, total
        self.ends = ends
        """Second differences (2, n_features) at the ends of the window, or none (0, n_features)."""
        self.still = still
        """Atoms (n_features,) that do not vary."""
        self.threshold = threshold
        """Variance below which a direction is not determined."""
        self.n, self.centred, self.floor = n, centred, floor

    @property
    def line(self) -> float:
        """The threshold; that of the noise where there is some, so that the host need not wait for it.

        Where it has become another, the error tells.
        """
        return self.floor or float(self.threshold)

    @property
    def parts(self) -> dict[str, Any]:
        """What recorded work needs to have the same pencil, beside its small tensors."""
        fixed = self.products, self.curvature, self.total
        return {"fixed": fixed, "n": self.n, "centred": self.centred, "floor": self.floor}

    def shifted(self, shifts: Tensor) -> Tensor:
        """S - shift V for each shift (n,), as matrices (n, n_features, n_features)."""
        covariance = covariance_of(self.products, self.total, self.n, centred=self.centred)
        matrices = self.curvature + self.ends.T @ self.ends - shifts[:, None, None] * covariance
        matrices.diagonal(dim1=1, dim2=2).add_((noise_curvature(self.n) - shifts[:, None]) * self.floor)
        return matrices

    def is_determined(self) -> bool:
        """Whether V has more than the line in every direction."""
        covariance = covariance_of(self.products, self.total, self.n, centred=self.centred)
        covariance.diagonal().sub_(self.threshold)
        return int(torch.linalg.cholesky_ex(covariance).info) == 0

    def covariance_times(self, vectors: Tensor) -> Tensor:
        images = covariance_times(vectors, self.products, self.total, self.n, centred=self.centred)
        return images.add_(vectors, alpha=self.floor)

    def curvature_times(self, vectors: Tensor) -> Tensor:
        products = second_differences_times(vectors, self.curvature, self.ends)
        return products.add_(vectors, alpha=noise_curvature(self.n) * self.floor)


def _limits(squares: Tensor, total: Tensor, *, n: int, centred: bool, rank_tol: float) -> tuple[Tensor, Tensor]:
    """Which atoms stand still, and the variance below which a direction is not determined."""
    variances = variances_of(squares, total, n, centred=centred)
    return ~moving(variances), noise_line(variances, rank_tol)


class _Track(Track):
    lost = (torch.linalg.LinAlgError,)

    def __init__(self, found: Embedding, wanted: int, whitening: Whitening, pencil: _Pencil) -> None:
        super().__init__(found.matrix.T.contiguous(), found.roughness, wanted, whitening)
        between = (whitening.variances - whitening.floor <= pencil.threshold).nonzero()[:, 0]
        chosen = torch.linspace(0, len(between) - 1, min(WITNESSES, len(between))).long().to(between.device)
        self._witnesses = whitening.directions[:, between[chosen]]
        self._shifts = self._good_shifts()
        self._inverses = torch.linalg.inv(pencil.shifted(self._shifts))
        random = np.random.default_rng(0)
        self._few = torch.from_numpy(random.standard_normal((wanted, 2))).to(self._shifts)
        self._many = torch.from_numpy(random.standard_normal((wanted, SHIFTS, MIXED))).to(self._shifts)
        self._matrix: Tensor | None = None
        # What was recorded is bound to the inverses, so that it ends with them.
        self._proposals, self._reduced, self._turned, self._error = (
            Recorded(work) for work in (_proposals, _reduced, _turned, _error)
        )

    @property
    def embedding(self) -> Embedding:
        if self._matrix is None:
            self._matrix = fix_signs(self.directions[:, : self.wanted].T)
        return Embedding(self._matrix, self.roughness[: self.wanted].clamp_min(0.0), self.rank)

    def _propose(self, change: Change, along: Tensor) -> Tensor:
        known = self.directions, self.roughness, self._shifts
        return self._proposals(along, *change, *known, fixed=(self._inverses,))[0]

    def _mend(self, pencil: _Pencil) -> None:
        """Make the inverses afresh that have come to grief."""
        probe = torch.from_numpy(np.random.default_rng(0).standard_normal((len(self.directions), 1)))
        probe = probe.to(self._shifts)
        images = (self._inverses @ probe)[..., 0].T
        residuals = pencil.curvature_times(images) - self._shifts * pencil.covariance_times(images) - probe
        worn = ~(residuals.norm(dim=0) <= WORN * probe.norm())
        if bool(worn.any()):
            self._shifts = torch.where(worn, self._good_shifts(), self._shifts)
            self._inverses[worn] = torch.linalg.inv(pencil.shifted(self._shifts[worn]))

    def _corrections(self, pencil: _Pencil) -> Tensor:
        self._mend(pencil)
        nearest = (self.roughness[: self.wanted, None] - self._shifts).abs().argmin(1)
        mixing = self._many * (nearest[:, None] == torch.arange(SHIFTS, device=nearest.device))[..., None]
        residuals = self._residuals(pencil, mixing.flatten(1)).unflatten(1, mixing.shape[1:])
        return (self._inverses @ residuals.movedim(1, 0)).movedim(0, 1).flatten(1)

    def _rayleigh_ritz(
        self, pencil: _Pencil, proposed: Tensor, covariance_change: Tensor, curvature_change: Tensor
    ) -> None:
        known = self.directions, self.roughness
        small = pencil.ends, pencil.still, pencil.threshold
        inner, white, proposed = self._reduced(
            proposed, covariance_change, curvature_change, *known, *small, **pencil.parts
        )
        values, vectors = torch.linalg.eigh(inner)
        self.roughness, self.directions, self._matrix = self._turned(
            values, vectors, white, proposed, self.directions, pencil.still, wanted=self.wanted
        )

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
        self._matrix = None

    def _estimate_error(self, pencil: _Pencil) -> float:
        small = pencil.ends, pencil.still, pencil.threshold
        parts = pencil.parts
        parts["fixed"] = (*parts["fixed"], self._inverses[-1])
        return float(self._error(self.directions, self.roughness, self._few, self._witnesses, *small, **parts)[0])


def _proposals(
    along: Tensor,
    vectors: Tensor,
    covariance: Tensor,
    curvature: Tensor,
    directions: Tensor,
    roughness: Tensor,
    shifts: Tensor,
    inverses: Tensor,
) -> tuple[Tensor]:
    """Directions (n_features, n) in which the new eigenvectors may differ; the inverses become those of now."""
    images = inverses @ vectors.T
    # Less what the known directions have of it: for an eigenvector, known without a product.
    known = along / (roughness[:, None] - shifts[:, None, None])
    proposed = images - directions @ known
    weights = curvature - shifts[:, None, None] * covariance
    inner = weights @ (vectors @ images)
    inner.diagonal(dim1=1, dim2=2).add_(1.0)
    turned = torch.linalg.solve_ex(inner, weights).result
    inverses.baddbmm_(images, turned @ images.mT, alpha=-1.0)
    return (proposed.movedim(0, 1).flatten(1),)


def _reduced(
    proposed: Tensor,
    covariance_change: Tensor,
    curvature_change: Tensor,
    directions: Tensor,
    roughness: Tensor,
    *pencil: Tensor,
    **settings: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """The pencil on the known and the proposed directions, as one symmetric matrix; its whitening; and the latter.

    The matrix is not finite where V is not positive there.
    """
    own = _pencil_of(*pencil, **settings)
    proposed, _ = _apart(own, proposed)
    proposed, images = _apart(own, proposed)  # once more, now that no two of them are almost the same
    new = (proposed * images).sum(0) > 0.5
    proposed, images = proposed * new, images * new

    covariance = _bordered(torch.ones_like(roughness), covariance_change, directions, proposed, images)
    curvature = _bordered(roughness, curvature_change, directions, proposed, own.curvature_times(proposed))
    # What adds nothing new is rougher than all others, and by itself.
    apart = torch.cat([torch.zeros_like(roughness), 1.0 - new.to(roughness.dtype)])
    covariance.diagonal().add_(apart)
    factor, info = torch.linalg.cholesky_ex(covariance)
    unit = torch.eye(len(factor), dtype=factor.dtype, device=factor.device)
    white = torch.linalg.solve_triangular(factor, unit, upper=False)
    inner = white @ curvature @ white.mT
    inner.diagonal().add_(apart * inner.diagonal().sum())
    return torch.where(info == 0, (inner + inner.mT) / 2, torch.nan), white, proposed


def _apart(pencil: _Pencil, directions: Tensor) -> tuple[Tensor, Tensor]:
    """The directions (n_features, n), each without what those before it have of it, and V times them.

    They get unit variance, less where the rest is no more than rounding.
    """
    norms = directions.norm(dim=0)
    directions = directions / torch.where(norms > 0, norms, 1.0)
    images = pencil.covariance_times(directions)
    products = directions.T @ images
    variances = products.diagonal()
    scale = torch.where(variances > 0, variances, 1.0).rsqrt()
    products = scale[:, None] * products * scale
    products.diagonal().add_(_RIDGE)
    unit = torch.eye(len(products), dtype=scale.dtype, device=scale.device)
    turn = torch.linalg.solve_triangular(torch.linalg.cholesky_ex(products).L.mT, unit, upper=True)
    turn = scale[:, None] * turn
    return directions @ turn, images @ turn


def _turned(
    values: Tensor, vectors: Tensor, white: Tensor, proposed: Tensor, directions: Tensor, still: Tensor, *, wanted: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Roughness, directions (n_features, n_known) and the matrix (wanted, n_features) of the embedding."""
    known = directions.shape[1]
    turn = white.mT @ vectors[:, :known]
    directions = directions @ turn[:known] + proposed @ turn[known:]
    directions.masked_fill_(still[:, None], 0.0)
    return values[:known].clone(), directions, fix_signs(directions[:, :wanted].T)


def _error(
    directions: Tensor, roughness: Tensor, mixing: Tensor, witnesses: Tensor, *pencil: Tensor, **settings: Any
) -> tuple[Tensor]:
    """Estimated sine of the angle to the exact subspace; infinite if V is another."""
    own, last = _pencil_of(*pencil[:-1], **settings), pencil[-1]
    wanted = len(mixing)
    mixed = directions[:, :wanted] @ mixing
    bent = directions[:, :wanted] @ (roughness[:wanted, None] * mixing)
    errors = last @ (own.curvature_times(mixed) - own.covariance_times(bent))
    images = own.covariance_times(torch.cat([errors, mixed, witnesses], 1))
    outside = (errors * images[:, :2]).sum() - (directions.T @ images[:, :2]).square().sum()
    size = mixing.square().sum()
    drift = ((mixed * images[:, 2:4]).sum() / size - 1.0).abs()
    error = (wanted * outside.clamp_min(0.0) / size).sqrt() + drift
    if own.floor:
        variances = (witnesses * images[:, 4:]).sum(0) - own.floor
        between = ((variances > NULL * own.floor) & (variances < own.floor)).any()
        error = torch.where(between & (own.threshold == own.floor), error, torch.inf)
    return (error,)


def _pencil_of(
    ends: Tensor, still: Tensor, threshold: Tensor, products: Tensor, curvature: Tensor, total: Tensor, **settings: Any
) -> _Pencil:
    """The pencil of tensors in the order in which recorded work gets them."""
    return _Pencil(products, curvature, total, ends, still, threshold, **settings)


def _orthonormal(covariance: Tensor) -> Tensor:
    """Mixtures (n, m) of n directions with this covariance (n, n) of unit covariance; dependent ones drop out."""
    variances, turn = torch.linalg.eigh(covariance)
    new = variances > DEPENDENT * variances[-1]
    return turn[:, new] / variances[new].sqrt()


def _bordered(diagonal: Tensor, change: Tensor, known: Tensor, proposed: Tensor, images: Tensor) -> Tensor:
    """The diagonal and its change, bordered by products of all directions with the images of the proposed ones."""
    cross = known.T @ images
    return torch.cat([torch.cat([diagonal.diag() + change, cross], 1), torch.cat([cross.T, proposed.T @ images], 1)])
