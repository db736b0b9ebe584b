"""Both layers of a group: one dictionary, one embedding, and the trajectory of each person in it."""

from __future__ import annotations

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
from psmt.experiments.coding_tasks import pack_codes
from psmt.numerics.rank import fix_signs
from psmt.types import Array, Result

MAX_VOLUMES = 12_000
"""Most volumes that a dictionary (evenly from all people) or a predictor (the last ones) is learned from."""

MAX_EPOCHS = 3
"""Passes of dictionary learning over these volumes."""


def clean(values: Array, tr: float | None, high_pass: float | None) -> Array:
    """The series (time, n_regions) without slow drifts, each region scaled to variance one.

    Drifts are the components of the discrete cosine transform that are slower than `high_pass` in Hz, or slower than
    200 volumes if the TR is not known.
    """
    n, n_drifts = len(values), 0
    if high_pass is not None:
        n_drifts = int(2 * n * (high_pass * tr if tr is not None else 1.0 / 200))
    # A regression on the cosines gives the same, but its memory grows with the square of the length.
    spectrum = dct(values, axis=0, norm="ortho")
    spectrum[: min(n_drifts, n - 2) + 1] = 0.0
    rest = idct(spectrum, axis=0, norm="ortho", overwrite_x=True)
    deviation = rest.std(axis=0)
    varies = deviation > 1e-12 * np.abs(values).max()
    return np.asarray(np.divide(rest, deviation, out=np.zeros_like(rest), where=varies))


def training_volumes(people: Sequence[Array]) -> Array:
    """Volumes (n, n_regions) that the dictionary is learned from, evenly from all people."""
    every = max(1, -(-sum(map(len, people)) // MAX_VOLUMES))
    return np.ascontiguousarray(np.concatenate([series[::every] for series in people]))


def code_person(*, series: Array, dictionary: Array, alpha: float) -> Result:
    """Packed codes of a person's cleaned series (time, n_regions), with the sums of `moments`. One task."""
    codes = SparseCoder.from_dictionary(dictionary, alpha=alpha).transform(series)
    return {**pack_codes(codes), **moments(codes)}


def moments(codes: Array) -> Result:
    """Sums over a person's codes (time, n_atoms) about their mean: ``products`` and ``curvature`` (n_atoms, n_atoms).

    ``total`` (n_atoms,) is the sum of the codes. The sums of several people add up, so that no second difference
    reaches from one person to the next.
    """
    centred = codes - codes.mean(axis=0)
    bends = centred[1:-1] - 0.5 * (centred[:-2] + centred[2:])
    return {"products": centred.T @ centred, "curvature": bends.T @ bends, "total": codes.sum(axis=0)}


def embed_group(sums: Sequence[Result], n_volumes: int, dictionary: Array, n_components: int) -> Array:
    """Compute the matrix (n_components, n_atoms) that maps codes to the trajectory, from the `moments` of each person.

    Each direction of the embedding has variance one, however little the brain moves along it. Here a direction is
    weighted by its pattern of regions, and by how much smoother than noise it is. The trajectory consists of the
    principal components of these patterns, so that distances in it are distances between patterns of activity.
    """
    products = np.sum([one["products"] for one in sums], axis=0)
    curvature = np.sum([one["curvature"] for one in sums], axis=0)
    covariance = products / max(n_volumes - len(sums), 1)
    constant = np.diag(covariance) <= CONSTANT * max(float(np.diag(covariance).max()), 1e-300)
    covariance[constant], covariance[:, constant] = 0.0, 0.0
    embedding = solve_closed_form(covariance, curvature, None, n_codes=n_volumes)
    smoothness = np.clip(1.0 - embedding.eigenvalues / noise_curvature(n_volumes), 0.0, None)
    # Directions are uncorrelated with variance one: the pattern of a direction is the regions' covariance with it.
    patterns = smoothness[:, None] * (embedding.matrix @ covariance @ dictionary)
    _, sizes, principal = np.linalg.svd(patterns, full_matrices=False)
    kept = min(n_components, int(np.sum(sizes > 1e-9 * max(sizes.max(initial=0.0), 1e-300))))
    return np.asarray(fix_signs(principal[:kept]) @ patterns.T @ embedding.matrix)


def trajectory(codes: Any, matrix: Array) -> Array:
    """Trajectory (time, n_components) of a person's codes (time, n_atoms), about its mean."""
    points = np.asarray(codes @ matrix.T)
    return np.asarray(points - points.mean(axis=0))


def learn_layers(
    people: Sequence[Array], others: Sequence[Array], *, n_atoms: int, alpha: float, n_components: int, seed: int
) -> tuple[Array, list[Array], list[Array]]:
    """Learn both layers from cleaned series (time, n_regions): the dictionary (n_atoms, n_regions) and trajectories.

    The trajectories (time, n_components) are those of the people, and those of others in the same embedding.
    """
    learner = SparseCoder(n_atoms=n_atoms, alpha=alpha, max_epochs=MAX_EPOCHS, random_state=seed)
    dictionary = learner.fit(training_volumes(people)).dictionary_
    coder = SparseCoder.from_dictionary(dictionary, alpha=alpha)
    codes: list[csr_array] = []
    sums: list[Result] = []
    for series in people:
        dense = coder.transform(series)
        codes.append(csr_array(dense))
        sums.append(moments(dense))
    matrix = embed_group(sums, sum(map(len, people)), dictionary, n_components)
    own = [trajectory(code, matrix) for code in codes]
    return dictionary, own, [trajectory(coder.transform(series), matrix) for series in others]


def join(people: Sequence[Array]) -> dict[str, Any]:
    """Arrays of several people as inputs of a task: ``series``, all in a row, and their ``lengths``."""
    return {"series": np.concatenate(people), "lengths": [len(own) for own in people]}


def split(joined: NDArray[Any], lengths: Sequence[int]) -> list[NDArray[Any]]:
    """The array of each person, from what `join` gives."""
    return np.split(joined, np.cumsum(lengths)[:-1])
