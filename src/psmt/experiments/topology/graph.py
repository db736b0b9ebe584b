"""The graph of one window: codes to P, and links between atoms whose columns of P point the same way."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from psmt.engines import Engine, engine_for
from psmt.experiments.coding_tasks import unpack_codes
from psmt.experiments.topology.settings import THRESHOLD
from psmt.moments import WindowMoments
from psmt.types import Array, Result

N_NEAREST = 8
"""How many of each atom's most similar atoms a window keeps."""


def embed(
    values: Array,
    columns: NDArray[Any],
    offsets: NDArray[Any],
    n_atoms: int,
    n_components: int,
    device: str = "cpu",
    **how: Any,
) -> Any:
    """P (n_components, n_atoms) of packed codes, as an array of the engine; the rest is as in `solve_window`."""
    engine = engine_for(device)
    moments = WindowMoments.of(engine.dense(unpack_codes(values, columns, offsets, n_atoms)), engine)
    return solve_window(moments, n_components, **how).matrix


def used_columns(embedding: Any, engine: Engine) -> tuple[NDArray[np.intp], Any]:
    """Numbers (n_used,) of the atoms that have a column in P (n_components, n_atoms), and these with unit length."""
    norms = np.sqrt(engine.numpy((embedding**2).sum(0)))
    atoms = np.flatnonzero(norms)
    return atoms, embedding[:, atoms] / engine.array(norms[atoms])


def window_graph(
    *,
    values: Array,
    columns: NDArray[Any],
    offsets: NDArray[Any],
    n_atoms: int,
    n_components: int,
    threshold: float = THRESHOLD,
    device: str = "cpu",
    **how: Any,
) -> Result:
    """The graph of one window, from its packed codes (see `psmt.experiments.coding_tasks`). One task.

    What is not named here is as in `solve_window`.

    Returns
    -------
    dict
        ``used`` (n_atoms,): whether the atom has a column in P; ``edges`` (n_edges, 2): linked atoms, the lower
        first, in order; ``component`` (n_atoms,): label of the connected component; ``component_size`` and
        ``neighbours`` (n_atoms,); ``nearest`` (n_atoms, 8): most similar atoms, -1 where there are no more, and
        ``nearest_similarity``.
    """
    embedding = embed(values, columns, offsets, n_atoms, n_components, device, **how)
    return similarity_graph(embedding, threshold=threshold, device=device)


def similarity_graph(embedding: Any, *, threshold: float = THRESHOLD, device: str = "cpu") -> Result:
    """The graph of the columns of P (n_components, n_atoms): what `window_graph` returns."""
    engine = engine_for(device)
    n_atoms = embedding.shape[1]
    atoms, unit = used_columns(engine.array(embedding), engine)
    similarity = engine.numpy(unit.T @ unit)
    # One triangle alone decides: rounding could break the symmetry of the product.
    edges = atoms[np.argwhere(np.triu(similarity > threshold, 1))].astype(np.int32)
    _, component = connected_components(_adjacency(edges, n_atoms), directed=False)
    k = min(N_NEAREST, n_atoms - 1)
    nearest = np.full((n_atoms, k), -1, dtype=np.int32)
    nearest_similarity = np.zeros((n_atoms, k))
    if found := min(k, len(atoms) - 1) if len(atoms) else 0:
        others = _nearest(similarity, found)
        nearest[atoms, :found] = atoms[others]
        nearest_similarity[atoms, :found] = np.take_along_axis(similarity, others, axis=1)
    return {
        "used": np.isin(np.arange(n_atoms), atoms),
        "edges": edges,
        "component": component.astype(np.int32),
        "component_size": np.bincount(component, minlength=1)[component].astype(np.int32),
        "neighbours": np.bincount(edges.ravel(), minlength=n_atoms).astype(np.int32),
        "nearest": nearest,
        "nearest_similarity": nearest_similarity,
    }


def _nearest(similarity: Array, count: int) -> NDArray[np.intp]:
    """The `count` others (n, count) that each is most similar to, most similar first, and equals by their number."""
    others = similarity.copy()
    np.fill_diagonal(others, -np.inf)
    least = np.partition(others, -count, axis=1)[:, -count, None]
    row, column = np.nonzero(others >= least)
    order = np.lexsort((-others[row, column], row))
    first = np.searchsorted(row, np.arange(len(others)))
    nearest: NDArray[np.intp] = column[order][first[:, None] + np.arange(count)]
    return nearest


def _adjacency(edges: NDArray[Any], n_atoms: int) -> coo_array:
    return coo_array((np.ones(len(edges), dtype=np.int8), (edges[:, 0], edges[:, 1])), shape=(n_atoms, n_atoms))
