"""Graphs of atoms: two atoms are linked in a window if their columns of the window's embedding matrix P are similar."""

from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from psmt.embedding import embed_window, solve_closed_form
from psmt.embedding.atom_graph import THRESHOLD, links, similar_columns
from psmt.embedding.moments import WindowMoments
from psmt.engines import Engine, engine_for
from psmt.experiments.film_tasks import unpack_codes
from psmt.numerics.rank import RANK_TOL
from psmt.types import Array, Ints, Mask, Result

MIN_USES = 10
"""Number of frames of a window in which an atom must be active to have links. With fewer, links are unreliable."""


def embed_runs(codes: csr_array, n_components: int, engine: Engine, *, run: int, **how: Any) -> tuple[Any, Any]:
    """Return the embedding matrix P (n_components, n_atoms) and the covariance matrix V (n_atoms, n_atoms) of codes.

    The codes (time, n_atoms) consist of runs of `run` successive frames each, from different times. Second differences
    across the border of two runs are left out, because a jump is not motion. P is computed in closed form. `how` are
    the options `centred` and `rank_tol` of `embed_window`.
    """
    n = codes.shape[0]
    moments = WindowMoments.of(codes, engine, begins=np.arange(n) % run == 0)
    covariance, tol = moments.covariance(centred=how.get("centred", True)), how.get("rank_tol", RANK_TOL)
    n_codes = n - 2 * (n // run) + 2  # a series of this length has as many second differences
    solved = solve_closed_form(covariance, moments.second_differences(), n_components, n_codes=n_codes, rank_tol=tol)
    return solved.matrix, covariance


def window_graph(
    *,
    codes: Result,
    n_atoms: int,
    n_components: int,
    threshold: float = THRESHOLD,
    min_uses: int = MIN_USES,
    device: str = "cpu",
    **how: Any,
) -> Result:
    """Return the graph of the linked atoms in one window, from codes packed by `pack_codes`.

    Atoms whose column of P is 0, or which are active in fewer than `min_uses` frames, have no links. The result has
    ``used`` (n_atoms,), a mask of the other atoms; ``edges`` (n_edges, 2), the sorted pairs of linked atoms; and for
    each atom (n_atoms,) ``component``, the label of its connected component, ``component_size``, and ``neighbours``,
    the number of its links.
    """
    unpacked, engine = unpack_codes(codes, n_atoms), engine_for(device)
    embedding = embed_window(WindowMoments.of(unpacked, engine), n_components, **how).matrix
    atoms, similarity = similar_columns(embedding, often_used(unpacked, min_uses), engine)
    edges = links(atoms, similarity, threshold)
    linked = coo_array((np.ones(len(edges), dtype=np.int8), (edges[:, 0], edges[:, 1])), shape=(n_atoms, n_atoms))
    _, component = connected_components(linked, directed=False)
    return {
        "used": np.isin(np.arange(n_atoms), atoms),
        "edges": edges,
        "component": component.astype(np.int32),
        "component_size": np.bincount(component, minlength=1)[component].astype(np.int32),
        "neighbours": np.bincount(edges.ravel(), minlength=n_atoms).astype(np.int32),
    }


def link_sets(
    *,
    codes: Result,
    frames: Ints,
    n_atoms: int,
    n_components: int,
    threshold: float = THRESHOLD,
    min_uses: int = MIN_USES,
    device: str = "cpu",
    **how: Any,
) -> Result:
    """Return the links between atoms in each of several sets of frames.

    `frames` (n_sets, n_frames) are indices into `codes`, which are packed by `pack_codes`. `how` are options of
    `embed_runs`. The result has ``edges`` (n_edges, 2), the pairs of linked atoms of all sets, one set after the other;
    ``counts`` (n_sets,), the number of links in each set; and ``used`` (n_sets, n_atoms), whether an atom is active
    often enough to have links.
    """
    engine, unpacked = engine_for(device), unpack_codes(codes, n_atoms)
    edges, used = [], np.zeros((len(frames), n_atoms), dtype=bool)
    for own, chosen in zip(used, frames, strict=True):
        part = csr_array(unpacked[chosen])
        embedding, _ = embed_runs(part, n_components, engine, run=len(chosen), **how)
        atoms, similarity = similar_columns(embedding, often_used(part, min_uses), engine)
        own[atoms] = True
        edges.append(links(atoms, similarity, threshold))
    return {"edges": np.concatenate(edges), "counts": np.array([len(part) for part in edges]), "used": used}


def compare_times(
    *,
    codes: Result,
    blocks: Ints,
    splits: Ints,
    n_atoms: int,
    n_components: int,
    min_uses: int = MIN_USES,
    device: str = "cpu",
    **how: Any,
) -> Result:
    """Compare the similarities of atoms before and after each of several times.

    `blocks` (n_blocks, n_frames) are indices of successive frames into the packed `codes`. `splits` (n_splits,) has the
    number of blocks that come before each time. `how` are options of `embed_runs`.

    Return ``agreement`` (n_splits,): the correlation, over pairs of atoms, of the similarities before and after. The
    similarity of two atoms is the cosine of their columns of P V, which are covariances of the embedding's directions
    with the atoms. It groups atoms as the columns of P do, but is much less noisy, because P contains the inverse of V.
    The similarity is 0 if an atom is active in fewer than `min_uses` frames.
    """
    engine, unpacked = engine_for(device), unpack_codes(codes, n_atoms)

    def similarities(chosen: Ints) -> tuple[Array, Mask]:
        part = csr_array(unpacked[chosen.ravel()])
        embedding, covariance = embed_runs(part, n_components, engine, run=chosen.shape[1], **how)
        atoms, similarity = similar_columns(embedding @ covariance, often_used(part, min_uses), engine)
        every, used = np.zeros((n_atoms, n_atoms)), np.zeros(n_atoms, dtype=bool)
        every[np.ix_(atoms, atoms)] = similarity
        used[atoms] = True
        return every, used

    agreement = []
    for split in splits:
        (before, early), (after, late) = similarities(blocks[:split]), similarities(blocks[split:])
        atoms = np.flatnonzero(early | late)
        pairs = atoms[np.array(np.triu_indices(len(atoms), 1))]
        own = [found[pairs[0], pairs[1]] for found in (before, after)]
        # A correlation needs similarities that vary over pairs; without them, the agreement is 0.
        agreement.append(np.corrcoef(own)[0, 1] if all(len(one) and np.ptp(one) > 0 for one in own) else 0.0)
    return {"agreement": np.array(agreement)}


def often_used(codes: csr_array, min_uses: int) -> Mask:
    """Return a mask (n_atoms,) of the atoms that are active in at least `min_uses` of the codes (time, n_atoms)."""
    return np.asarray(np.bincount(codes.indices, minlength=codes.shape[1]) >= min_uses)
