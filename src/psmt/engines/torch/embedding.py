"""The closed form of step 5 in torch: `psmt.embedding.closed_form` and the rank and sign policy that it follows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from psmt.embedding.closed_form import ALL_NOISE, noise_curvature
from psmt.numerics.rank import NULL, RANK_TOL


@dataclass(frozen=True)
class Embedding:
    """P of the paper with what the window says of it."""

    matrix: Tensor
    """P (n_components, n_features), straightest direction first."""
    roughness: Tensor
    """Curvature of each direction (n_components,), ascending."""
    rank: int
    """How many directions the window determines."""


@dataclass(frozen=True)
class Whitening:
    """V in its own directions, lifted by the noise where it needs to be; see `psmt.numerics.rank`."""

    directions: Tensor
    """(n_features, n) orthonormal; without noise, those of variance zero are left out."""
    variances: Tensor
    """(n,) > 0, lifted."""
    floor: float
    """Variance of the noise, zero where V is well determined."""
    rank: int
    """How many directions the window determines."""

    @property
    def matrix(self) -> Tensor:
        """W (n_features, n) with ``W' (V + floor) W = I``."""
        return self.directions / self.variances.sqrt()


def noise_line(variances: Tensor, rank_tol: float) -> Tensor:
    """The variance below which a direction is not determined, given those of the atoms (n_features,)."""
    largest = variances.max()
    return torch.where(largest > 0, rank_tol * torch.exp2(torch.floor(torch.log2(largest))), 0.0)


def moving(variances: Tensor) -> Tensor:
    """Which atoms (n_features,) vary at all."""
    return variances > NULL * variances.max()


def whiten(covariance: Tensor, *, rank_tol: float = RANK_TOL) -> Whitening:
    """V in its own directions, lifted where some of them are neither determined nor absent."""
    variance = covariance.diagonal()
    line = float(noise_line(variance, rank_tol))
    atoms = moving(variance).nonzero()[:, 0]
    if not len(atoms):
        return Whitening(covariance.new_zeros(len(covariance), 0), covariance.new_zeros(0), 0.0, 0)
    values, vectors = torch.linalg.eigh(covariance[atoms[:, None], atoms])
    determined = values > line
    if bool((determined == (values > NULL * values[-1])).all()):
        values, vectors, floor = values[determined], vectors[:, determined], 0.0
    else:
        floor = line
    directions = covariance.new_zeros(len(covariance), len(values))
    directions[atoms] = vectors
    return Whitening(directions, values.clamp_min(0.0) + floor, floor, int(determined.sum()))


def straightest(
    covariance: Tensor,
    second_differences: Tensor,
    n_components: int | None = None,
    *,
    n_codes: int,
    rank_tol: float = RANK_TOL,
) -> Embedding:
    """The `n_components` straightest directions (all for None), fewer where V has a smaller rank."""
    return straightest_in(whiten(covariance, rank_tol=rank_tol), second_differences, n_components, n_codes=n_codes)


def straightest_in(
    whitening: Whitening, second_differences: Tensor, n_components: int | None, *, n_codes: int
) -> Embedding:
    """`straightest`, where V is known in its own directions."""
    count = whitening.rank if n_components is None else min(n_components, whitening.rank)
    white = whitening.matrix
    if count == 0:
        return Embedding(white.new_zeros(0, len(white)), white.new_zeros(0), whitening.rank)
    inner = white.T @ (second_differences @ white)
    noise = whitening.floor / whitening.variances
    inner.diagonal().add_(noise_curvature(n_codes) * noise)
    roughness, vectors = torch.linalg.eigh((inner + inner.T) / 2)
    # Directions of the noise alone are not among them, however many are wanted.
    shown = (noise @ vectors**2 < ALL_NOISE).nonzero()[:count, 0]
    return Embedding(fix_signs((white @ vectors[:, shown]).T), roughness[shown].clamp_min(0.0), whitening.rank)


def fix_signs(embedding: Tensor) -> Tensor:
    """The rows (f, n_features), each turned so that its entry of largest magnitude is positive."""
    if not embedding.numel():
        return embedding
    signs = embedding.gather(1, embedding.abs().argmax(1, keepdim=True)).sign()
    return embedding * torch.where(signs == 0, 1.0, signs)
