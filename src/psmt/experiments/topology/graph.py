"""The graph of one window: codes to P, and links between atoms whose columns of P point the same way."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from psmt.embedding.policy import RANK_TOL
from psmt.engines import engine_for
from psmt.experiments.cells import Result
from psmt.experiments.codes import sparse_codes
from psmt.experiments.topology.settings import THRESHOLD

Array = NDArray[np.float64]

N_NEAREST = 8
"""How many of each atom's most similar atoms a window keeps."""


def embed(
    values: Array,
    columns: NDArray[Any],
    offsets: NDArray[Any],
    n_atoms: int,
    n_components: int,
    rank_tol: float,
    device: str = "cpu",
) -> Array:
    """P (n_components, n_atoms) of packed codes with columns of unit length, or zero for a dead atom."""
    codes = sparse_codes(values, columns, offsets, n_atoms).toarray()
    engine = engine_for(device)
    moments = engine.moments(engine.array(codes))
    del codes  # 100 MB at the paper's size, not needed while the eigenvectors are made
    found = engine.straightest(moments, n_components, centred=True, ends=False, rank_tol=rank_tol)
    matrix = engine.numpy(found.matrix)
    norms = np.linalg.norm(matrix, axis=0)
    return np.divide(matrix, norms, out=np.zeros_like(matrix), where=norms > 0)


def window_graph(
    *,
    values: Array,
    columns: NDArray[Any],
    offsets: NDArray[Any],
    n_atoms: int,
    n_components: int,
    threshold: float = THRESHOLD,
    rank_tol: float = RANK_TOL,
    device: str = "cpu",
) -> Result:
    """The graph of one window, from its packed codes (see `psmt.experiments.codes`). One cell.

    Returns
    -------
    dict
        ``used`` (n_atoms,): whether the atom has a column in P; ``edges`` (n_edges, 2): linked atoms, the lower
        first, in order; ``component`` (n_atoms,): label of the connected component; ``component_size`` and
        ``neighbours`` (n_atoms,); ``nearest`` (n_atoms, 8): most similar atoms, -1 where there are no more, and
        ``nearest_similarity``.
    """
    unit = embed(values, columns, offsets, n_atoms, n_components, rank_tol, device)
    return similarity_graph(unit, threshold=threshold)


def similarity_graph(embedding: Array, *, threshold: float = THRESHOLD) -> Result:
    """The graph of the columns of P (n_components, n_atoms): what `window_graph` returns."""
    norms = np.linalg.norm(embedding, axis=0)
    used = norms > 0
    unit = np.divide(embedding, norms, out=np.zeros_like(embedding), where=used)
    similarity = unit.T @ unit
    np.fill_diagonal(similarity, -np.inf)
    similarity[~used] = -np.inf
    similarity[:, ~used] = -np.inf
    # One triangle alone decides: rounding could break the symmetry of the product.
    edges = np.argwhere(np.triu(similarity > threshold, 1)).astype(np.int32)
    n_atoms = len(used)
    _, component = connected_components(_adjacency(edges, n_atoms), directed=False)
    k = min(N_NEAREST, n_atoms - 1)
    nearest = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    nearest_similarity = np.take_along_axis(similarity, nearest, axis=1)
    none = np.isneginf(nearest_similarity)
    return {
        "used": used,
        "edges": edges,
        "component": component.astype(np.int32),
        "component_size": np.bincount(component, minlength=1)[component].astype(np.int32),
        "neighbours": np.bincount(edges.ravel(), minlength=n_atoms).astype(np.int32),
        "nearest": np.where(none, -1, nearest).astype(np.int32),
        "nearest_similarity": np.where(none, 0.0, nearest_similarity),
    }


def _adjacency(edges: NDArray[Any], n_atoms: int) -> coo_array:
    return coo_array((np.ones(len(edges), dtype=np.int8), (edges[:, 0], edges[:, 1])), shape=(n_atoms, n_atoms))
