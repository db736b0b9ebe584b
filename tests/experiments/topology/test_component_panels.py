"""Places of nodes in the pictures of components."""

from itertools import combinations

import numpy as np
import pytest

from psmt.figures.graphs import stable_positions


@pytest.mark.parametrize("n_nodes", [2, 3, 17, 39, 72, 139])
def test_nodes_that_are_all_linked_have_places(n_nodes):
    """As the atoms of a moving grating are: asked for two eigenvectors, LAPACK finds none of that."""
    edges = np.array(list(combinations(range(n_nodes), 2)))
    places = stable_positions([edges, edges[:1]], n_nodes)
    assert places.shape == (n_nodes, 2)
    assert np.linalg.norm(places, axis=1).max() <= 1 + 1e-9
    assert len(np.unique(places.round(6), axis=0)) == n_nodes


def test_groups_that_are_all_linked_inside_have_places():
    group = np.arange(40) % 3
    edges = np.array([(i, j) for i, j in combinations(range(40), 2) if group[i] == group[j]])
    places = stable_positions([edges], 40)
    middles = np.array([places[group == k].mean(axis=0) for k in range(3)])
    own = np.linalg.norm(places - middles[group], axis=1).mean()
    assert own < np.linalg.norm(middles[0] - middles[1])
