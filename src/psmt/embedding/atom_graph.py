"""Graph of atoms that move together: two atoms are linked if their columns of the embedding matrix P are similar."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.engines import Engine
from psmt.types import Array, Mask

THRESHOLD = 0.7
"""The paper links two atoms if the cosine similarity of their columns of the embedding matrix P exceeds this value."""


def used_columns(embedding: Any, engine: Engine) -> tuple[NDArray[np.intp], Any]:
    """Return the indices (n_used,) of nonzero columns of P, and these columns at unit norm (n_components, n_used)."""
    norms = np.sqrt(engine.numpy((embedding**2).sum(0)))
    atoms = np.flatnonzero(norms)
    return atoms, embedding[:, atoms] / engine.array(norms[atoms])


def similar_columns(embedding: Any, may_link: Mask | None, engine: Engine) -> tuple[NDArray[np.intp], Array]:
    """Return the used atoms (n,) within the mask `may_link`, and the cosines (n, n) of their columns in P."""
    atoms, unit = used_columns(embedding, engine)
    if may_link is not None:
        kept = np.flatnonzero(may_link[atoms])
        atoms, unit = atoms[kept], unit[:, kept]
    return atoms, engine.numpy(unit.T @ unit)


def links(atoms: NDArray[np.intp], similarity: Array, threshold: float) -> NDArray[np.int32]:
    """Return the sorted pairs of atoms (n_links, 2) whose cosine exceeds the threshold."""
    # Only one triangle is read, because rounding may break the symmetry of the product.
    return atoms[np.argwhere(np.triu(similarity > threshold, 1))].astype(np.int32)
