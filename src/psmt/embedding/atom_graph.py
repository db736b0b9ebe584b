"""The graph of atoms that move together: links between columns of P that point in similar directions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.engines import Engine
from psmt.types import Array

THRESHOLD = 0.7  # the paper links two atoms if the cosine similarity of their columns of P is above this


def used_columns(embedding: Any, engine: Engine) -> tuple[NDArray[np.intp], Any]:
    """Atoms (n_used,) with a non-zero column in P (n_components, n_atoms), and these columns with unit norm."""
    norms = np.sqrt(engine.numpy((embedding**2).sum(0)))
    atoms = np.flatnonzero(norms)
    return atoms, embedding[:, atoms] / engine.array(norms[atoms])


def similar_columns(
    embedding: Any, may_link: NDArray[np.bool_] | None, engine: Engine
) -> tuple[NDArray[np.intp], Array]:
    """Atoms (n,) that may have links, and cosines (n, n) between their columns of P (n_components, n_atoms)."""
    atoms, unit = used_columns(embedding, engine)
    if may_link is not None:
        kept = np.flatnonzero(may_link[atoms])
        atoms, unit = atoms[kept], unit[:, kept]
    return atoms, engine.numpy(unit.T @ unit)


def links(atoms: NDArray[np.intp], similarity: Array, threshold: float) -> NDArray[np.int32]:
    """Pairs (n_links, 2) of atoms whose cosine (n, n) is above the threshold, each in ascending order."""
    # Only one triangle decides, because rounding could break the symmetry of the product.
    return atoms[np.argwhere(np.triu(similarity > threshold, 1))].astype(np.int32)
