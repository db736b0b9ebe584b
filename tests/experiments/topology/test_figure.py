"""Figures of the topology: every panel there and labelled, every node in its place."""

import warnings
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest

from psmt.data.patches import read_patches
from psmt.experiments.topology.figure import topology_figure
from psmt.experiments.topology.run import TopologyResult, topology
from psmt.experiments.topology.settings import TopologySettings
from psmt.figures import png
from psmt.figures.graphs import stable_positions
from psmt.pipeline.run import Run


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    patches = read_patches("builtin:glide?frames=300&size=48", frame_size=48, patch_size=8).values
    settings = TopologySettings(n_atoms=36, window=120, overlap=7 / 8, max_epochs=2, n_components=8, n_permutations=19)
    return topology(patches, settings, Run(folder=tmp_path_factory.mktemp("tasks"), picture_shape=(8, 8)))


@pytest.fixture(scope="module")
def drawn(result):
    return topology_figure(result, n_times=4)


def graph_panels(figure):
    """Panels of b, row by row."""
    return [axes for axes in figure.axes if axes.get_label().startswith("graph")]


def test_all_panels_are_there_and_labelled(result, drawn):
    figure, n_times = drawn, 4
    pictures = [axes for axes in figure.axes if axes.images]
    assert len(graph_panels(figure)) == 3 * n_times
    assert len(pictures) == 9
    curves = [axes for axes in figure.axes if axes not in pictures and axes not in graph_panels(figure)]
    assert len(curves) == 2
    assert all(axes.get_ylabel() for axes in curves[:2])
    assert [axes.get_xlabel() for axes in curves].count("") == 1  # the upper half of a shares the axis below it
    headings = " ".join(text.get_text() for axes in figure.axes for text in axes.texts)
    assert all(f"{letter}  " in headings for letter in "abc")


@pytest.mark.slow
@pytest.mark.parametrize("n_windows", [2, 5])
def test_panels_of_few_windows_fill_the_width_and_do_not_overlap(result, n_windows):
    few = replace(result, graphs=result.graphs[:n_windows], starts=result.starts[:n_windows])
    figure = topology_figure(few, n_times=max(n_windows, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # constrained layout warns if panels have no room
        figure.draw_without_rendering()
    graphs = graph_panels(figure)
    pictures = [axes for axes in figure.axes if axes.get_label().startswith("picture 0")]
    assert len(graphs) == 3 * n_windows and len(pictures) == 3
    boxes = [axes.get_position() for axes in (*graphs[:n_windows], *pictures)]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    assert boxes[0].x0 < 0.05
    assert boxes[-1].x1 > 0.9
    assert boxes[0].y0 > graphs[n_windows].get_position().y1
    assert np.ptp([box.width for box in boxes[:n_windows]]) < 1e-6


def test_curves_show_the_table(result, drawn):
    sizes, counts = drawn.axes[:2]
    for axes, values in ((sizes, result.component_size), (counts, result.neighbours)):
        lines = {line.get_label(): line for line in axes.lines if line.get_label().startswith("atom")}
        for atom in result.chosen:
            np.testing.assert_array_equal(lines[f"atom {atom}"].get_xdata(), result.centers)
            np.testing.assert_array_equal(lines[f"atom {atom}"].get_ydata(), values[:, atom])


def test_nodes_stay_in_place_while_links_change(drawn):
    panels = graph_panels(drawn)
    for row in range(3):
        places = []
        for axes in panels[4 * row : 4 * row + 4]:
            outside, members = axes.collections[2:4]
            points = np.vstack([outside.get_offsets(), members.get_offsets()])
            places.append(points[np.lexsort(points.T)])
        for other in places[1:]:
            np.testing.assert_array_equal(other, places[0])


def test_coloured_nodes_are_the_component(result, drawn):
    times = result.shown_windows(4)
    panels = graph_panels(drawn)
    for row, atom in enumerate(result.chosen):
        sizes = [len(axes.collections[3].get_offsets()) for axes in panels[4 * row : 4 * row + 4]]
        assert sizes == result.component_size[times, atom].tolist()
        # A component of more than one atom is shaded, as in Fig. 3 (b).
        own = panels[4 * row : 4 * row + 4]
        shaded = [len(axes.collections[5].get_offsets()) for axes in own if len(axes.collections) > 5]
        assert shaded == [size for size in sizes if size > 1]


def test_positions_do_not_depend_on_the_order_of_times_and_follow_links():
    path = [np.array([[0, 1], [1, 2]]), np.array([[2, 3], [3, 4]])]
    positions = stable_positions(path, 5)
    np.testing.assert_array_equal(positions, stable_positions(path[::-1], 5))
    apart = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    assert apart[0, 1] < apart[0, 2] < apart[0, 4]
    assert np.linalg.norm(positions, axis=1).max() <= 1 + 1e-12


@pytest.mark.parametrize("n", [1, 2, 7])
def test_positions_differ_even_for_nodes_with_the_same_links(n):
    star = np.array([[0, j] for j in range(1, n)], dtype=int).reshape(-1, 2)
    positions = stable_positions([star], n)
    apart = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    assert np.isfinite(positions).all()
    assert (apart[~np.eye(n, dtype=bool)] > 0.05).all()


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


def test_figures_of_a_film_without_links(result):
    n_atoms = len(result.dictionary)
    alone = {
        **result.graphs[0],
        "edges": np.zeros((0, 2), dtype=np.int32),
        "component": np.arange(n_atoms, dtype=np.int32),
        "component_size": np.ones(n_atoms, dtype=np.int32),
        "neighbours": np.zeros(n_atoms, dtype=np.int32),
    }
    nothing = {
        "edges": np.zeros((0, 2), dtype=np.int32),
        "counts": np.zeros(2, dtype=int),
        "used": np.ones((2, n_atoms), dtype=bool),
    }
    empty = TopologyResult(
        graphs=[alone] * 3,
        design=result.design,
        windows=nothing,
        shuffled=[nothing] * 19,
        times=[],
        dictionary=result.dictionary,
        starts=result.starts[:3],
        settings=replace(result.settings, n_chosen=1),
    )
    assert png(topology_figure(empty)).startswith(b"\x89PNG")


@pytest.mark.slow
def test_same_result_gives_the_same_bytes(result):
    few = replace(result, graphs=result.graphs[:1], starts=result.starts[:1])
    assert png(topology_figure(few)) == png(topology_figure(few))
