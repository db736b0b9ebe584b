"""Series without what states would be: the same volumes in random order, or the same spectra with random phases."""

from __future__ import annotations

import numpy as np

from psmt.types import Array

SURROGATES = {
    "shuffled": "volumes in random order: what regions do together stays, what follows what is lost",
    "phases": "phases drawn at random, the same for all regions: correlations and spectra stay, as in a stationary "
    "linear process, and nothing switches",
}
"""By name, with what each keeps."""


def surrogate(series: Array, kind: str, rng: np.random.Generator) -> Array:
    """A draw (time, n_regions) that has lost something of the series (time, n_regions), see `SURROGATES`.

    >>> x = np.random.default_rng(0).standard_normal((100, 3))
    >>> y = surrogate(x, "phases", np.random.default_rng(1))
    >>> bool(np.allclose(np.cov(x.T), np.cov(y.T)))
    True
    """
    if kind == "shuffled":
        return series[rng.permutation(len(series))]
    spectrum = np.fft.rfft(series, axis=0)
    turn = np.exp(2j * np.pi * rng.random(len(spectrum)))
    turn[0] = 1.0
    if len(series) % 2 == 0:
        turn[-1] = 1.0  # it has no phase
    return np.fft.irfft(spectrum * turn[:, None], n=len(series), axis=0)
