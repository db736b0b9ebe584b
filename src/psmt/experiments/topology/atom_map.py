"""Map of all atoms: a grid on which neighbours have similar columns of P."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.optimize import linear_sum_assignment

from psmt.embedding.atom_graph import used_columns
from psmt.engines import engine_for
from psmt.experiments.coding_tasks import unpack_codes
from psmt.experiments.topology.measures import picture_likeness
from psmt.experiments.window_graphs import embed
from psmt.numerics.rank import fix_signs
from psmt.types import AnyArray, Array, Ints, Result

MAP_COMPONENTS = 32
"""Leading directions of P that place the atoms: two dimensions cannot show many more."""

ASPECT = 1.25
"""Width of the map over its height, about."""


@dataclass(frozen=True)
class AtomMap:
    """All used atoms on a grid."""

    atoms: Ints
    """(n_used,): numbers of the atoms."""
    places: Ints
    """(n_used, 2): row and column of each."""
    shape: tuple[int, int]
    beside: float
    """Mean likeness as pictures of neighbours on the grid."""
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
        neighbours = [(grid[:, :-1], grid[:, 1:]), (grid[:-1], grid[1:])]
        first, second = np.concatenate([np.reshape(pair, (2, -1)) for pair in neighbours], axis=1)
        there = (first >= 0) & (second >= 0)
        beside, every = likeness[first[there], second[there]], likeness[np.triu_indices(len(atoms), 1)]
        means = [float(values.mean()) if len(values) else np.nan for values in (beside, every)]
        return cls(atoms, places, shape, *means)

    def summary(self) -> dict[str, Any]:
        """Values for JSON."""
        return {"n_atoms": len(self.atoms), "beside": self.beside, "apart": self.apart}


def arrange_atoms(
    *,
    values: Array,
    columns: AnyArray,
    offsets: AnyArray,
    n_atoms: int,
    n_components: int,
    device: str = "cpu",
    **how: Any,
) -> Result:
    """Places of the used atoms on a grid, from the embedding of all the packed codes. One task.

    At most `MAP_COMPONENTS` of the `n_components` directions are used. `how` are options of `solve_window`. Returns
    ``atoms`` (n_used,), the numbers of the used atoms; ``places`` (n_used, 2), row and column of each; and ``shape``.
    """
    engine = engine_for(device)
    codes = unpack_codes(values, columns, offsets, n_atoms)
    embedding = embed(codes, min(n_components, MAP_COMPONENTS), engine, **how)
    atoms, unit = used_columns(embedding, engine)
    shape, places = grid_by_similarity(engine.numpy(unit).T)
    return {"atoms": atoms, "places": places, "shape": np.array(shape)}


def grid_by_similarity(features: Array) -> tuple[tuple[int, int], Ints]:
    """Grid (rows, columns) and places (n, 2) on it at which vectors (n, n_features) lie beside similar ones.

    The first places follow the two leading principal directions. Then the grid is blurred and all vectors are assigned
    to the places whose blurred vectors are most similar (linear assignment), again and again with less blur.
    """
    n = len(features)
    if n == 0:
        return (0, 0), np.zeros((0, 2), dtype=np.int64)
    # Rows and columns with the fewest empty places, among shapes whose aspect is close to `ASPECT`.
    shapes = [(rows, -(-n // rows)) for rows in range(1, n + 1)]
    off = {shape: abs(shape[1] / shape[0] - ASPECT) for shape in shapes}
    close = [shape for shape in shapes if off[shape] <= 0.27 * ASPECT]
    shape = min(close or shapes, key=lambda shape: (shape[0] * shape[1] if close else 0, off[shape]))
    cells = np.stack(np.divmod(np.arange(n), shape[1]), axis=1)
    left, scale, _ = np.linalg.svd(features - features.mean(axis=0), full_matrices=False)
    points = fix_signs((left * scale).T).T
    # First places: columns in order of the first direction, rows within a column in order of the second.
    first, second = (*points.T[:2], np.zeros(n))[:2]
    rank = np.argsort(np.argsort(first, kind="stable"), kind="stable")
    by_column = cells[np.lexsort(cells.T)]
    at = np.empty_like(cells)
    at[np.lexsort((rank, second, by_column[rank, 1]))] = by_column
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
