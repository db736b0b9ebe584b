"""Draw graphs of atoms. Nodes keep their positions while links change over time."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path
from sklearn.manifold import smacof

from psmt.figures.style import RULE
from psmt.types import Array


def draw_graph(axes: Axes, positions: Array, edges: NDArray[Any], colours: NDArray[Any]) -> float:
    """Draw nodes at positions (n, 2) in colours (n,), and `edges` (n_links, 2). Return the size of the markers.

    Linked nodes must have the same colour. Nodes in the grey `RULE` are drawn smaller and behind the others.
    """
    size = float(np.clip(600 / len(positions), 5, 24))
    # Draw the background first, and all links before all nodes.
    groups = list(dict.fromkeys([RULE, *colours.tolist()]))
    for colour in groups:
        own = edges[colours[edges[:, 0]] == colour]
        strength = 0.6 if colour == RULE else float(np.clip(40 / max(len(own), 1), 0.04, 0.8))
        axes.add_collection(LineCollection(list(positions[own]), colors=colour, linewidths=0.8, alpha=strength))
    for colour in groups:
        behind = colour == RULE
        x, y = positions[colours == colour].T
        edge, width = ("none", 0.0) if behind else ("white", 0.4)
        look: dict[str, Any] = {"color": colour, "edgecolors": edge, "linewidths": width, "zorder": 3 if behind else 4}
        axes.scatter(x, y, s=0.6 * size if behind else size, **look)
    axes.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), xticks=[], yticks=[])
    return size


def stable_positions(edges: list[NDArray[Any]], n_nodes: int) -> Array:
    """Return the positions (n_nodes, 2) of nodes in the unit disc, for a graph that changes over time.

    `edges` has the edges (n, 2) at each time. Distances approximate the lengths of shortest paths in the union of all
    graphs (stress majorisation, SMACOF).
    """
    if n_nodes == 1:
        return np.zeros((1, 2))
    # scipy 1.13 takes graphs with 32-bit indices only.
    pairs = np.concatenate([np.zeros((0, 2)), *edges]).astype(np.int32)
    union = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n_nodes, n_nodes)).tocsr()
    steps = shortest_path(union, directed=False, unweighted=True)
    reachable = np.isfinite(steps)
    steps[~reachable] = steps[reachable].max() + 1.0
    positions, _ = smacof(steps, n_init=4, max_iter=100, normalized_stress=False, random_state=0)
    # Spread the nodes over the unit disc in the same directions, which moves outliers inwards and a crowded centre out.
    positions = positions - positions.mean(axis=0)
    radius = np.linalg.norm(positions, axis=1)
    rank = np.empty(n_nodes)
    rank[np.argsort(radius, kind="stable")] = np.arange(1, n_nodes + 1)
    wanted = 0.35 * radius / max(float(radius.max()), 1e-12) + 0.65 * np.sqrt(rank / n_nodes)
    factors = np.divide(wanted, radius, out=np.zeros_like(radius), where=radius > 1e-9)
    return np.asarray(positions * factors[:, None])
