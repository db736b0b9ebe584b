"""A penalty for layer 1 that is free of units: codes shall use as many atoms as the paper's do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from psmt.types import Array

WANTED = 10.0
"""Atoms that a code uses on average. Standardised 16 x 16 patches use 5 to 20 at the paper's alpha = 1."""

SHARE = 0.25
"""Of few features, no more than this fraction: a code that uses as many atoms as there are features says nothing."""

START = 1.0 / 16.0
"""The paper's alpha for a patch of 16 x 16, as a fraction of the norm of its frames."""

_STEPS = 12
"""Halvings of the interval for log alpha: to about a thousandth of it."""


def start_alpha(samples: Array) -> float:
    """The paper's alpha for samples (n, n_features) of this size; 1 for samples that are zero."""
    return START * float(np.sqrt(np.mean(np.sum(samples**2, axis=1)))) or 1.0


def alpha_for_sparsity(atoms_used: Callable[[float], float], samples: Array) -> float:
    """The alpha at which codes of the samples (n, n_features) use as many atoms as wanted, by bisection.

    `atoms_used` gives their mean number for an alpha: the more is asked for activity, the fewer they are. Where even a
    tiny alpha leaves fewer than wanted, it is the paper's.
    """
    start = start_alpha(samples)
    wanted = min(WANTED, max(SHARE * samples.shape[1], 1.0))
    low, high = np.log(start / 64.0), np.log(16.0 * start)
    if atoms_used(float(np.exp(low))) < wanted:
        return start
    for _ in range(_STEPS):
        centre = 0.5 * (low + high)
        low, high = (centre, high) if atoms_used(float(np.exp(centre))) > wanted else (low, centre)
    return float(np.exp(0.5 * (low + high)))
