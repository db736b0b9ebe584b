"""All atoms on a grid, neighbours in P side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.optimize import linear_sum_assignment

from psmt.embedding.atom_graph import used_columns
from psmt.engines import engine_for
from psmt.evaluation.missing_numbers import nan_mean, plain
from psmt.experiments.coding_tasks import unpack_codes
from psmt.experiments.topology.likeness import picture_likeness
from psmt.experiments.window_graphs import embed
from psmt.numerics.rank import fix_signs
from psmt.types import Array, Ints, Result

MAP_COMPONENTS = 32
"""Directions of P, straightest first, that place the atoms on the map: two dimensions cannot show many more."""


@dataclass(frozen=True)
class AtomMap:
    """All used atoms on a grid on which neighbours move together."""

    atoms: Ints
    """(n_used,): numbers of the atoms."""
    places: Ints
    """(n_used, 2): row and column of each."""
    shape: tuple[int, int]
    beside: float
    """Mean likeness as pictures of atoms that lie side by side."""
    apart: float
    """Mean likeness of all pairs."""

    @classmethod
    def of(cls, arranged: Result, dictionary: Array) -> AtomMap:
        """Map from what `arrange_atoms` returned, and the atoms (n_atoms, n_features)."""
        atoms, places = arranged["atoms"].astype(np.int64), arranged["places"].astype(np.int64)
        shape = (int(arranged["shape"][0]), int(arranged["shape"][1]))
        likeness = picture_likeness(dictionary[atoms])
        grid = np.full(shape, -1)
        grid[places[:, 0], places[:, 1]] = np.arange(len(atoms))
        pairs = np.concatenate(
            [
                np.stack([grid[:, :-1].ravel(), grid[:, 1:].ravel()], axis=1),
                np.stack([grid[:-1].ravel(), grid[1:].ravel()], axis=1),
            ]
        )
        pairs = pairs[(pairs >= 0).all(axis=1)]
        upper = likeness[np.triu_indices(len(atoms), 1)]
        return cls(atoms, places, shape, nan_mean(likeness[pairs[:, 0], pairs[:, 1]]), nan_mean(upper))

    def summary(self) -> dict[str, Any]:
        """Plain numbers."""
        return {"n_atoms": len(self.atoms), "beside": plain(self.beside), "apart": plain(self.apart)}


def arrange_atoms(
    *,
    values: Array,
    columns: NDArray[Any],
    offsets: NDArray[Any],
    n_atoms: int,
    n_components: int,
    aspect: float = 1.25,
    device: str = "cpu",
    **how: Any,
) -> Result:
    """Places of the used atoms on a grid, from the embedding of all the packed codes. One task.

    Of the `n_components` directions the `MAP_COMPONENTS` straightest have a say. What is not named here is as in
    `embed_window`.

    Returns
    -------
    dict
        ``atoms`` (n_used,): numbers of the used atoms; ``places`` (n_used, 2): row and column of each; ``shape``.
    """
    engine = engine_for(device)
    codes = unpack_codes(values, columns, offsets, n_atoms)
    embedding = embed(codes, min(n_components, MAP_COMPONENTS), engine, **how)
    atoms, unit = used_columns(embedding, engine)
    shape, places = grid_by_similarity(engine.numpy(unit).T, aspect=aspect)
    return {"atoms": atoms, "places": places, "shape": np.array(shape)}


def grid_by_similarity(features: Array, *, aspect: float = 1.25) -> tuple[tuple[int, int], Ints]:
    """Grid (rows, columns) and places (n, 2) at which vectors (n, n_features) lie beside similar ones.

    Starts from the two leading principal directions and then sorts: the grid is blurred, each vector is assigned to the
    place whose blurred vector is most like it, all at once (linear assignment), with an ever smaller blur.
    """
    n = len(features)
    if n == 0:
        return (0, 0), np.zeros((0, 2), dtype=np.int64)
    shape = _grid_shape(n, aspect)
    cells = np.stack(np.divmod(np.arange(n), shape[1]), axis=1)
    left, scale, _ = np.linalg.svd(features - features.mean(axis=0), full_matrices=False)
    points = fix_signs((left * scale).T).T
    at = _spread(points, cells, shape)
    radius = max(shape) / 4
    weights = np.zeros(shape)
    weights[cells[:, 0], cells[:, 1]] = 1.0
    while radius > 0.5:
        grid = np.zeros((*shape, points.shape[1]))
        grid[at[:, 0], at[:, 1]] = points
        blurred = gaussian_filter(grid, (radius, radius, 0), mode="constant")
        blurred /= np.maximum(gaussian_filter(weights, radius, mode="constant"), 1e-12)[..., None]
        targets = blurred[cells[:, 0], cells[:, 1]]
        _, place = linear_sum_assignment(-(points @ targets.T) + 0.5 * np.sum(targets**2, axis=1))
        at = cells[place]
        radius *= 0.8
    return shape, at


def _grid_shape(n: int, aspect: float) -> tuple[int, int]:
    """Rows and columns for n places, as full as can be, a little wider or narrower than `aspect` if that helps."""
    shapes = [(rows, -(-n // rows)) for rows in range(1, n + 1)]
    off = {shape: abs(shape[1] / shape[0] - aspect) for shape in shapes}
    close = [shape for shape in shapes if off[shape] <= 0.27 * aspect]
    return (
        min(close, key=lambda shape: (shape[0] * shape[1], off[shape])) if close else min(shapes, key=off.__getitem__)
    )


def _spread(points: Array, cells: Ints, shape: tuple[int, int]) -> Ints:
    """First places: order by the first direction makes columns, order by the second the rows within."""
    flat = np.zeros((len(points), 2))
    flat[:, : points.shape[1]] = points[:, :2]
    by_column = np.lexsort((cells[:, 0], cells[:, 1]))
    order = np.argsort(flat[:, 0], kind="stable")
    places = np.empty_like(cells)
    start = 0
    for column in range(shape[1]):
        here = by_column[cells[by_column, 1] == column]
        members = order[start : start + len(here)]
        places[members[np.argsort(flat[members, 1], kind="stable")]] = cells[here]
        start += len(here)
    return places
