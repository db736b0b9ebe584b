"""Layer 1 and 2 of a group: one dictionary, one embedding, and each person's trajectory in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct, idct
from scipy.sparse import csr_array

from psmt.coding import SparseCoder
from psmt.embedding import solve_closed_form
from psmt.embedding.closed_form import noise_curvature
from psmt.embedding.moments import CONSTANT
from psmt.experiments.coding_tasks import pack_codes, unpack_codes
from psmt.numerics.rank import fix_signs
from psmt.types import Array, Result

LEARNED_FROM = 12_000
"""Volumes that are learned from at the most: by the dictionary, evenly taken from all people, and by predictions."""

MAX_EPOCHS = 3
"""Passes over them."""

VOLUMES_OF_DRIFT = 200
"""Length of a slow drift, where no TR is known."""


def cleaned(values: Array, tr: float | None, high_pass: float | None) -> Array:
    """The series (time, n_regions) without slow drifts, each region with variance one.

    Drifts are the cosines (the discrete cosine transform's) that are slower than `high_pass` in Hz.
    """
    n = len(values)
    count = 0
    if high_pass is not None:
        count = int(2 * n * (high_pass * tr if tr is not None else 1.0 / VOLUMES_OF_DRIFT))
    # The transform, not a regression on its cosines: those take memory with the square of the length.
    shares = dct(values, axis=0, norm="ortho")
    shares[: min(count, n - 2) + 1] = 0.0
    rest = idct(shares, axis=0, norm="ortho", overwrite_x=True)
    spread = rest.std(axis=0)
    standardised: Array = np.divide(rest, spread, out=np.zeros_like(rest), where=spread > 1e-12 * np.abs(values).max())
    return standardised


def sampled(people: Sequence[Array]) -> Array:
    """Volumes (n, n_regions) that a dictionary is learned from, evenly from all people."""
    every = max(1, -(-sum(map(len, people)) // LEARNED_FROM))
    return np.ascontiguousarray(np.concatenate([series[::every] for series in people]))


def learn_atoms(people: Sequence[Array], *, n_atoms: int, alpha: float, seed: int) -> Array:
    """The group's dictionary (n_atoms, n_regions)."""
    coder = SparseCoder(n_atoms=n_atoms, alpha=alpha, max_epochs=MAX_EPOCHS, random_state=seed)
    return coder.fit(sampled(people)).dictionary_


def code_person(*, series: Array, dictionary: Array, alpha: float) -> Result:
    """Packed codes of a person's cleaned series (time, n_regions), and their moments. One task.

    Returns
    -------
    dict
        ``values``, ``columns``, ``offsets``: the codes, see `psmt.experiments.coding_tasks`; ``products`` and
        ``curvature`` (n_atoms, n_atoms), ``total`` (n_atoms,): sums over this person's volumes about their mean. Sums
        of people add up, and no second difference reaches from one to the next.
    """
    codes = _coded(dictionary, alpha, series)
    return {**pack_codes(codes), **moments(codes)}


def moments(codes: Array) -> Result:
    """Sums of a person's codes (time, n_atoms) about their mean: ``products`` and ``curvature`` (n_atoms, n_atoms)."""
    own = codes - codes.mean(axis=0)
    bends = own[1:-1] - 0.5 * (own[:-2] + own[2:])
    return {"products": own.T @ own, "curvature": bends.T @ bends, "total": codes.sum(axis=0)}


def unpacked(coded: Result, n_atoms: int) -> csr_array:
    """Codes (time, n_atoms) of a person that `code_person` gave."""
    return unpack_codes(coded["values"], coded["columns"], coded["offsets"], n_atoms)


@dataclass(frozen=True)
class GroupEmbedding:
    """From codes to places of the brain.

    Directions of the embedding have variance one each, however little of the brain moves along them. Here each counts
    as its picture does, and as far as it is smoother than noise; of these pictures the principal directions are taken.
    So distances between points are distances between what regions do.
    """

    matrix: Array
    """(n_components, n_atoms): codes about a person's mean to a point."""
    pictures: Array
    """(n_components, n_regions): what a step along each direction does to the regions."""
    eigenvalues: Array
    """Of the embedding (rank,), relative to noise: 0 is straight, 1 as rough as noise."""

    def points(self, codes: Any) -> Array:
        """Trajectory (time, n_components) of a person's codes (time, n_atoms)."""
        images = np.asarray(codes @ self.matrix.T)
        return np.asarray(images - images.mean(axis=0))


def embed_group(sums: Sequence[Result], n_volumes: int, dictionary: Array, n_components: int) -> GroupEmbedding:
    """The embedding of the codes of some people, whose sums are given, with their dictionary (n_atoms, n_regions)."""
    products = np.sum([one["products"] for one in sums], axis=0)
    curvature = np.sum([one["curvature"] for one in sums], axis=0)
    covariance = products / max(n_volumes - len(sums), 1)
    still = np.diag(covariance) <= CONSTANT * max(float(np.diag(covariance).max()), 1e-300)
    covariance[still], covariance[:, still] = 0.0, 0.0
    embedding = solve_closed_form(covariance, curvature, None, n_codes=n_volumes)
    roughness = embedding.eigenvalues / noise_curvature(n_volumes)
    smooth = np.clip(1.0 - roughness, 0.0, None)
    # Directions are uncorrelated and of variance one: what regions do along one is a covariance with it.
    pictures = smooth[:, None] * (embedding.matrix @ covariance @ dictionary)
    _, sizes, principal = np.linalg.svd(pictures, full_matrices=False)
    kept = min(n_components, int(np.sum(sizes > 1e-9 * max(sizes.max(initial=0.0), 1e-300))))
    axes = fix_signs(principal[:kept])
    return GroupEmbedding(axes @ pictures.T @ embedding.matrix, axes, roughness)


@dataclass(frozen=True)
class Layers:
    """Both layers of some people: what makes a trajectory of anybody's series."""

    dictionary: Array
    """(n_atoms, n_regions)"""
    alpha: float
    embedding: GroupEmbedding

    def points(self, series: Array) -> Array:
        """Trajectory (time, n_components) of a cleaned series (time, n_regions), of these people or of another."""
        return self.embedding.points(_coded(self.dictionary, self.alpha, series))


def learn_layers(
    people: Sequence[Array], *, n_atoms: int, alpha: float, n_components: int, seed: int
) -> tuple[Layers, list[Array]]:
    """Both layers of cleaned people (time, n_regions), and the trajectory (time, n_components) of each."""
    dictionary = learn_atoms(people, n_atoms=n_atoms, alpha=alpha, seed=seed)
    codes: list[csr_array] = []
    sums: list[Result] = []
    for series in people:
        dense = _coded(dictionary, alpha, series)
        codes.append(csr_array(dense))
        sums.append(moments(dense))
    embedding = embed_group(sums, sum(map(len, people)), dictionary, n_components)
    return Layers(dictionary, alpha, embedding), [embedding.points(own) for own in codes]


def _coded(dictionary: Array, alpha: float, series: Array) -> Array:
    return SparseCoder.from_dictionary(dictionary, alpha=alpha).transform(series)


def split(joined: NDArray[Any], lengths: Sequence[int]) -> list[NDArray[Any]]:
    """Arrays of each person, of one that holds all after another."""
    return np.split(joined, np.cumsum(lengths)[:-1])
