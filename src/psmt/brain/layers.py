"""The two layers of PSMT for a group: a common dictionary and embedding, and each person's trajectory in it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct, idct
from scipy.sparse import csr_array

from psmt.coding import SparseCoder
from psmt.embedding import solve_closed_form
from psmt.embedding.closed_form import noise_curvature
from psmt.embedding.moments import CONSTANT
from psmt.numerics.rank import fix_signs
from psmt.types import Array, Result

MAX_VOLUMES = 12_000
"""Largest number of training volumes. The dictionary of a group is learned from evenly spaced volumes of all people. A
predictor of one person is learned from the last volumes."""

MAX_EPOCHS = 3
"""Number of passes of dictionary learning over the training volumes."""


def clean(values: Array, tr: float | None, high_pass: float | None) -> Array:
    """Return a series (time, n_regions) without slow drifts, with each region scaled to variance one.

    Drifts are the components of the discrete cosine transform below the frequency `high_pass` in Hz. If the TR (time
    from volume to volume) is not known, they are the components with periods above 200 volumes.
    """
    n, n_drifts = len(values), 0
    if high_pass is not None:
        n_drifts = int(2 * n * (high_pass * tr if tr is not None else 1.0 / 200))
    # A regression on the cosines gives the same result, but its memory grows with the square of the length.
    spectrum = dct(values, axis=0, norm="ortho")
    spectrum[: min(n_drifts, n - 2) + 1] = 0.0
    rest = idct(spectrum, axis=0, norm="ortho", overwrite_x=True)
    deviation = rest.std(axis=0)
    varies = deviation > 1e-12 * np.abs(values).max()
    return np.asarray(np.divide(rest, deviation, out=np.zeros_like(rest), where=varies))


def learn_networks(*, volumes: Array, n_atoms: int, alpha: float, seed: int) -> Result:
    """Return the array ``dictionary`` (n_atoms, n_regions) that a `SparseCoder` learns from volumes (n, n_regions)."""
    learner = SparseCoder(n_atoms=n_atoms, alpha=alpha, max_epochs=MAX_EPOCHS, random_state=seed)
    return {"dictionary": learner.fit(volumes).dictionary_}


def code_person(*, series: Array, dictionary: Array, alpha: float) -> Result:
    """Return the codes of a person's cleaned series (time, n_regions), together with their `moments`.

    The codes are returned as the arrays ``data``, ``indices`` and ``indptr`` of a CSR array (time, n_atoms).
    """
    codes = SparseCoder.from_dictionary(dictionary, alpha=alpha).transform(series)
    sparse = csr_array(codes)
    return {"data": sparse.data, "indices": sparse.indices, "indptr": sparse.indptr, **moments(codes)}


def moments(codes: Array) -> Result:
    """Return the sums over a person's codes (time, n_atoms) from which the embedding of a group is computed.

    ``products`` and ``curvature`` (n_atoms, n_atoms) sum the outer products of the centred codes and of their second
    differences. ``total`` (n_atoms,) is the sum of the codes. For a group, the sums of its people are added, so no
    second difference crosses from one person to the next.
    """
    centred = codes - codes.mean(axis=0)
    bends = centred[1:-1] - 0.5 * (centred[:-2] + centred[2:])
    return {"products": centred.T @ centred, "curvature": bends.T @ bends, "total": codes.sum(axis=0)}


def embed_group(sums: Sequence[Result], n_volumes: int, dictionary: Array, n_components: int) -> Array:
    """Return the matrix (n_components, n_atoms) that maps codes to trajectories, given the `moments` of each person.

    `n_volumes` is the number of volumes of all people. In the embedding, all directions have variance one, even those
    along which the brain hardly moves, so distances mean little. Therefore each direction is replaced by its pattern,
    (smoothness relative to noise) * (covariance with the regions). Trajectories are expressed in the principal
    components of these patterns, so that their distances are distances between patterns of activity.
    """
    products = np.sum([one["products"] for one in sums], axis=0)
    curvature = np.sum([one["curvature"] for one in sums], axis=0)
    covariance = products / max(n_volumes - len(sums), 1)
    constant = np.diag(covariance) <= CONSTANT * max(float(np.diag(covariance).max()), 1e-300)
    covariance[constant], covariance[:, constant] = 0.0, 0.0
    embedding = solve_closed_form(covariance, curvature, None, n_codes=n_volumes)
    smoothness = np.clip(1.0 - embedding.eigenvalues / noise_curvature(n_volumes), 0.0, None)
    # Directions are uncorrelated with variance one, so the pattern of a direction is its covariance with the regions.
    patterns = smoothness[:, None] * (embedding.matrix @ covariance @ dictionary)
    _, sizes, principal = np.linalg.svd(patterns, full_matrices=False)
    kept = min(n_components, int(np.sum(sizes > 1e-9 * max(sizes.max(initial=0.0), 1e-300))))
    return np.asarray(fix_signs(principal[:kept]) @ patterns.T @ embedding.matrix)


def trajectory(codes: Any, matrix: Array) -> Array:
    """Return the trajectory (time, n_components) of a person's codes (time, n_atoms), with its mean subtracted."""
    points = np.asarray(codes @ matrix.T)
    return np.asarray(points - points.mean(axis=0))


def join(people: Sequence[Array]) -> dict[str, Any]:
    """Return inputs of a task: ``series``, the arrays of all people one after the other, and their ``lengths``."""
    return {"series": np.concatenate(people), "lengths": [len(own) for own in people]}


def split(joined: NDArray[Any], lengths: Sequence[int]) -> list[NDArray[Any]]:
    """Return the array of each person, given what `join` returned."""
    return np.split(joined, np.cumsum(lengths)[:-1])
