"""Which atoms move together: cosine similarity between columns of P, and links between similar atoms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.engines import Engine
from psmt.types import Array, Mask

THRESHOLD = 0.7
"""Cosine similarity of two columns of P above which the paper links two atoms."""


def used_columns(embedding: Any, engine: Engine) -> tuple[NDArray[np.intp], Any]:
    """Atoms (n_used,) with a nonzero column in P (n_components, n_atoms), and these columns at unit length."""
    norms = np.sqrt(engine.numpy((embedding**2).sum(0)))
    atoms = np.flatnonzero(norms)
    return atoms, embedding[:, atoms] / engine.array(norms[atoms])


def similar_columns(embedding: Any, may_link: Mask | None, engine: Engine) -> tuple[NDArray[np.intp], Array]:
    """Atoms (n,) that may have links, and cosines (n, n) between their columns of P (n_components, n_atoms)."""
    atoms, unit = used_columns(embedding, engine)
    if may_link is not None:
        kept = np.flatnonzero(may_link[atoms])
        atoms, unit = atoms[kept], unit[:, kept]
    return atoms, engine.numpy(unit.T @ unit)


def links(atoms: NDArray[np.intp], similarity: Array, threshold: float) -> NDArray[np.int32]:
    """Linked atoms (n_links, 2), sorted, the lower number first: pairs whose cosine (n, n) exceeds the threshold."""
    # Only one triangle is read: rounding may break the symmetry of the product.
    return atoms[np.argwhere(np.triu(similarity > threshold, 1))].astype(np.int32)
