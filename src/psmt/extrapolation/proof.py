"""Correlations that count only as far as they exceed their standard errors."""

from __future__ import annotations

import numpy as np

from psmt.persistence.schema import Field, Size
from psmt.types import Array


def faded_sums(product: Array, energy: Array) -> Array:
    """What is faded and summed (3, n) of products and energies (n,)."""
    return np.array([product, energy, energy**2])


def field_of_sums(n: Size) -> Field:
    """Declaration of what `faded_sums` gives, faded and added up."""
    high = np.finfo(float).max
    return Field((3, n), low=-high, high=high, may_be_empty=True, check=(_are_sums, "has correlations beyond 1"))


def _are_sums(sums: Array) -> bool:
    """Whether energies are not negative, and no product is larger than its energy."""
    product, energy, squared = sums
    return bool((energy >= 0).all() and (squared >= 0).all() and (np.abs(product) <= (1.0 + 1e-6) * energy).all())


def widened(sums: Array, width: int) -> Array:
    """The sums (3, n) with as many columns as asked, zero where there were none."""
    return np.pad(sums, ((0, 0), (0, max(width - sums.shape[1], 0))))


def proven(sums: Array, prior: Array | float, errors: float) -> Array:
    """By how much the correlations (n,) differ from `prior`, soft-thresholded at so many standard errors."""
    repeated, energy, squared = sums
    known = energy > 0
    difference = np.divide(repeated, energy, out=np.zeros_like(energy), where=known) - prior
    # Lively moments weigh most: they are fewer observations than frames.
    error = np.divide(np.sqrt(squared), energy, out=np.full_like(energy, np.inf), where=known)
    share: Array = np.sign(difference) * np.maximum(np.abs(difference) - errors * error, 0.0)
    return share
