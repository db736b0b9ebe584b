"""The graph of one window: P from codes, and links between atoms with similar columns of P."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from psmt.embedding import solve_closed_form, solve_window
from psmt.embedding.atom_graph import THRESHOLD, links, similar_columns
from psmt.embedding.moments import WindowMoments, covariance_of, second_moment_of_differences
from psmt.engines import Engine, engine_for
from psmt.engines.window import Sums
from psmt.experiments.coding_tasks import unpack_codes
from psmt.numerics.rank import RANK_TOL
from psmt.types import AnyArray, Array, Ints, Mask, Result

MIN_USES = 10
"""Frames of a window in which an atom must be active to have links: a cosine from fewer is not reliable."""

N_NEAREST = 8
"""Number of most similar atoms that a window keeps for each atom."""


def embed(codes: csr_array, n_components: int, engine: Engine, *, run: int | None = None, **how: Any) -> Any:
    """P (n_components, n_atoms) of codes (time, n_atoms), as an array of the engine.

    With a `run`, the codes are successive runs of that many frames from different times. Second differences across
    the border of two runs are left out, because a jump is not motion. Then only the closed form is available, without
    half stencils. `how` are options of `solve_window`.
    """
    if run is None:
        return solve_window(WindowMoments.of(codes, engine), n_components, **how).matrix
    place = np.arange(codes.shape[0]) % run
    inner = np.flatnonzero((place > 0) & (place < run - 1))
    differences = codes[inner] - 0.5 * (codes[inner - 1] + codes[inner + 1])
    sums = Sums(
        products=engine.array((codes.T @ codes).toarray()),
        curvature=engine.array((differences.T @ differences).toarray()),
        total=engine.array(codes.sum(axis=0)),
        ends=engine.array(np.empty((0, codes.shape[1]))),
        n=codes.shape[0],
    )
    covariance, second = covariance_of(sums, centred=how.get("centred", True)), second_moment_of_differences(sums)
    rank_tol = how.get("rank_tol", RANK_TOL)
    return solve_closed_form(covariance, second, n_components, n_codes=len(inner) + 2, rank_tol=rank_tol).matrix


def window_graph(
    *,
    values: Array,
    columns: AnyArray,
    offsets: AnyArray,
    n_atoms: int,
    n_components: int,
    threshold: float = THRESHOLD,
    min_uses: int = MIN_USES,
    device: str = "cpu",
    **how: Any,
) -> Result:
    """Graph of one window from its packed codes, see `similarity_graph` and `embed`. One task."""
    codes = unpack_codes(values, columns, offsets, n_atoms)
    embedding = embed(codes, n_components, engine_for(device), **how)
    return similarity_graph(embedding, often_used(codes, min_uses), threshold=threshold, device=device)


def link_sets(
    *,
    values: Array,
    columns: AnyArray,
    offsets: AnyArray,
    frames: Ints,
    run: int,
    n_atoms: int,
    n_components: int,
    threshold: float = THRESHOLD,
    min_uses: int = MIN_USES,
    device: str = "cpu",
    **how: Any,
) -> Result:
    """Links of sets of frames (n_sets, n_frames) of the packed codes, each set made of runs of `run` frames. One task.

    Returns ``edges`` (n_edges, 2), the linked atoms of all sets, one set after the other; ``counts`` (n_sets,), the
    links of each; and ``used`` (n_sets, n_atoms), whether the atom may have links in the set.
    """
    engine = engine_for(device)
    codes = unpack_codes(values, columns, offsets, n_atoms)
    edges, used = [], np.zeros((len(frames), n_atoms), dtype=bool)
    for own, chosen in zip(used, frames, strict=True):
        part = csr_array(codes[chosen])
        embedding = embed(part, n_components, engine, run=run, **how)
        atoms, similarity = similar_columns(embedding, often_used(part, min_uses), engine)
        own[atoms] = True
        edges.append(links(atoms, similarity, threshold))
    return {"edges": np.concatenate(edges), "counts": np.array([len(part) for part in edges]), "used": used}


def often_used(codes: csr_array, min_uses: int) -> Mask:
    """Whether each atom is active in at least `min_uses` of the codes (time, n_atoms)."""
    enough: Mask = np.bincount(codes.indices, minlength=codes.shape[1]) >= min_uses
    return enough


def similarity_graph(
    embedding: Any, may_link: Mask | None = None, *, threshold: float = THRESHOLD, device: str = "cpu"
) -> Result:
    """Graph of the columns of P (n_components, n_atoms), of all atoms or of those that `may_link` (n_atoms,).

    Returns ``used`` (n_atoms,), whether the atom may have links and has a column in P; ``edges`` (n_edges, 2), linked
    atoms, sorted, the lower number first; ``component`` (n_atoms,), label of the connected component;
    ``component_size`` and ``neighbours`` (n_atoms,); ``nearest`` (n_atoms, 8), most similar atoms, padded with -1, and
    ``nearest_similarity``.
    """
    engine = engine_for(device)
    n_atoms = embedding.shape[1]
    atoms, similarity = similar_columns(engine.array(embedding), may_link, engine)
    edges = links(atoms, similarity, threshold)
    linked = coo_array((np.ones(len(edges), dtype=np.int8), (edges[:, 0], edges[:, 1])), shape=(n_atoms, n_atoms))
    _, component = connected_components(linked, directed=False)
    k = min(N_NEAREST, n_atoms - 1)
    nearest = np.full((n_atoms, k), -1, dtype=np.int32)
    nearest_similarity = np.zeros((n_atoms, k))
    if found := min(k, len(atoms) - 1) if len(atoms) else 0:
        # Most similar others first; ties are ordered by number.
        apart = similarity.copy()
        np.fill_diagonal(apart, -np.inf)
        row, column = np.nonzero(apart >= np.partition(apart, -found, axis=1)[:, -found, None])
        order = np.lexsort((-apart[row, column], row))
        others = column[order][np.searchsorted(row, np.arange(len(apart)))[:, None] + np.arange(found)]
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
