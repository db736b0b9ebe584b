"""The graph of each window against plain loops, known truths, and tests that are neither too easy nor too hard."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from psmt.data.patches import read_patches
from psmt.embedding import solve_closed_form
from psmt.embedding.moments import WindowMoments
from psmt.errors import NotEnoughFramesError
from psmt.evaluation.null_models import NullTest
from psmt.experiments.film_report import to_json
from psmt.experiments.film_tasks import pack_codes, slice_codes
from psmt.experiments.sweep.run import Combination
from psmt.experiments.topology.measures import measure_lasting, measure_likeness, picture_likeness
from psmt.experiments.topology.report import EXPERIMENT, best_sizes
from psmt.experiments.topology.run import choose_atoms, topology
from psmt.experiments.topology.settings import MOST_WINDOWS, RULE, TopologySettings
from psmt.experiments.window_graphs import link_sets, window_graph
from psmt.pipeline.run import Run


def smooth_signals(n_frames, n_signals, seed):
    """Slow, independent, non-negative signals (n_frames, n_signals)."""
    noise = np.random.default_rng(seed).standard_normal((n_frames + 20, n_signals))
    kernel = np.hanning(21)
    return np.stack([np.abs(np.convolve(column, kernel, mode="valid")) for column in noise.T], axis=1)


def graph_of(codes, **options):
    return window_graph(codes=pack_codes(codes), n_atoms=codes.shape[1], **{"n_components": codes.shape[1], **options})


def graph_from_edges(edges, n_atoms):
    """A window with exactly these links: orthogonal atoms, linked ones with a common part."""
    edges = np.array(sorted(tuple(sorted(edge)) for edge in edges), dtype=np.int32).reshape(-1, 2)
    label = np.arange(n_atoms)
    for _ in range(n_atoms):
        for i, j in edges:
            label[i] = label[j] = min(label[i], label[j])
    return {
        "used": np.ones(n_atoms, dtype=bool),
        "edges": edges,
        "component": label.astype(np.int32),
        "component_size": np.array([np.sum(label == own) for own in label], dtype=np.int32),
        "neighbours": np.array([np.sum(edges == atom) for atom in range(n_atoms)], dtype=np.int32),
    }


# One window


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.7])
def test_graph_is_that_of_plain_loops(engine, threshold):
    codes = smooth_signals(200, 14, seed=1)
    codes[:, 3] += codes[:, 8]
    graph = graph_of(codes, device=engine.device, n_components=6, threshold=threshold)

    moments = WindowMoments.of(codes)
    columns = solve_closed_form(moments.covariance(), moments.second_differences(), 6, n_codes=len(moments)).matrix.T
    linked = {
        (i, j)
        for i in range(14)
        for j in range(i + 1, 14)
        if columns[i] @ columns[j] / np.sqrt(columns[i] @ columns[i]) / np.sqrt(columns[j] @ columns[j]) > threshold
    }
    reached = {i: {i} for i in range(14)}
    for _ in range(14):
        for i, j in linked:
            reached[i] = reached[j] = reached[i] | reached[j]
            for k in reached[i]:
                reached[k] = reached[i]
    assert linked
    assert {tuple(edge) for edge in graph["edges"].tolist()} == linked
    assert graph["component_size"].tolist() == [len(reached[i]) for i in range(14)]
    assert graph["neighbours"].tolist() == [sum(i in edge for edge in linked) for i in range(14)]
    assert all(len({graph["component"][k] for k in reached[i]}) == 1 for i in range(14))


def test_atoms_that_move_together_are_linked_and_others_are_not(engine):
    signals = smooth_signals(400, 6, seed=2)
    # Atoms 0-2 share one signal, 3-5 another, each with a strength of its own; 6-9 go their own ways.
    codes = np.hstack([signals[:, [0]] * [1.0, 0.5, 2.0], signals[:, [1]] * [0.7, 1.5, 1.0], signals[:, 2:]])
    graph = graph_of(codes, device=engine.device)
    assert graph["edges"].tolist() == [[0, 1], [0, 2], [1, 2], [3, 4], [3, 5], [4, 5]]
    assert graph["component_size"].tolist() == [3] * 6 + [1] * 4
    assert graph["neighbours"].tolist() == [2] * 6 + [0] * 4


def test_dead_atoms_have_no_links(engine):
    codes = smooth_signals(100, 6, seed=4)
    codes[:, [2, 5]] = 0.0
    graph = graph_of(codes, device=engine.device, threshold=-1.0)
    assert graph["used"].tolist() == [True, True, False, True, True, False]
    assert not np.isin(graph["edges"], [2, 5]).any()
    assert len(graph["edges"]) == 6
    assert graph["component_size"][[2, 5]].tolist() == [1, 1]


def test_atoms_that_are_hardly_used_have_no_links(engine):
    codes = smooth_signals(100, 6, seed=4)
    codes[9:, 2] = 0.0
    codes[10:, 5] = 0.0
    graph = graph_of(codes, device=engine.device, threshold=-1.0, min_uses=10)
    assert graph["used"].tolist() == [True, True, False, True, True, True]
    assert not (graph["edges"] == 2).any()
    sets = link_sets(
        codes=pack_codes(codes),
        frames=np.arange(100)[None],
        n_atoms=6,
        n_components=6,
        threshold=-1.0,
        min_uses=10,
    )
    assert sets["edges"].tolist() == graph["edges"].tolist()
    assert sets["used"].tolist() == [graph["used"].tolist()]


def test_slices_of_packed_codes_are_packed_slices():
    codes = np.maximum(np.random.default_rng(0).standard_normal((30, 7)) - 1, 0)
    for name, array in pack_codes(codes[5:21]).items():
        np.testing.assert_array_equal(slice_codes(pack_codes(codes), 5, 21)[name], array)


# Pictures


def test_likeness_of_pictures_is_their_correlation():
    atoms = np.random.default_rng(0).standard_normal((4, 25))
    np.testing.assert_allclose(picture_likeness(atoms), np.corrcoef(atoms), atol=1e-12)


def windows_from(*graphs, n_atoms, unused=()):
    """What `link_sets` returns for windows with these links (n_edges, 2)."""
    used = np.ones((len(graphs), n_atoms), dtype=bool)
    used[:, list(unused)] = False
    edges = [np.array(graph, dtype=np.int32).reshape(-1, 2) for graph in graphs]
    return {"edges": np.concatenate(edges), "counts": np.array([len(own) for own in edges]), "used": used}


def test_likeness_counts_pairs_once_per_window_and_leaves_out_dead_atoms():
    likeness = np.random.default_rng(1).uniform(-1, 1, (6, 6))
    likeness = (likeness + likeness.T) / 2
    film = windows_from([(0, 1), (2, 4)], [(0, 1)], [(0, 1)], n_atoms=6, unused=[5])
    null = windows_from([(0, 2)], [], [], n_atoms=6, unused=[5])
    result = measure_likeness(likeness, film, [null], n_permutations=19, seed=0)
    pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    others = [likeness[pair] for pair in pairs if pair not in {(0, 1), (2, 4)}]
    assert result.linked == pytest.approx((3 * likeness[0, 1] + likeness[2, 4]) / 4, abs=1e-6)
    assert result.unlinked == pytest.approx(np.mean(others), abs=1e-6)
    assert len(result.permuted.null) == 19
    unlinked = np.mean([likeness[pair] for pair in pairs if pair != (0, 2)])
    assert result.shuffled.null.tolist() == pytest.approx([likeness[0, 2] - unlinked], abs=1e-6)


def test_permutations_find_nothing_in_random_graphs_and_much_in_true_ones():
    rng = np.random.default_rng(0)
    atoms = np.repeat(rng.standard_normal((5, 16)), 6, axis=0) + 0.5 * rng.standard_normal((30, 16))
    likeness = picture_likeness(atoms)

    def p_value(linked, seed):
        # Two windows with the same links: what is one piece of evidence is not counted as two.
        edges = np.argwhere(np.triu(linked, 1))
        film = windows_from(edges, edges, n_atoms=30)
        return measure_likeness(likeness, film, [], n_permutations=99, seed=seed).permuted.p_value

    chance = [p_value(rng.random((30, 30)) < 0.1, seed) for seed in range(60)]
    # Uniform p-values: 60 of them have a mean of 0.5 +- 0.037, and 6 +- 2.3 below 0.1.
    assert 0.38 < np.mean(chance) < 0.62
    assert np.mean(np.array(chance) <= 0.1) < 0.25
    same = np.repeat(np.arange(5), 6)
    assert p_value((same[:, None] == same) & (rng.random((30, 30)) < 0.5), 0) == 0.01


def test_likeness_without_links_is_open():
    measured = measure_likeness(np.eye(4), windows_from([], n_atoms=4), [], n_permutations=9, seed=0)
    result = json.loads(to_json(measured))
    assert (result["linked"], result["unlinked"]) == (None, 0.0)
    assert (result["permuted"]["value"], result["permuted"]["p_value"]) == (None, None)
    assert result["shuffled"]["beyond"] == {"mean": None, "low": None, "high": None}


# Persistence


def test_graph_that_stays_is_no_chance():
    edges = np.argwhere(np.triu(np.random.default_rng(0).random((30, 30)) < 0.1, 1))
    film = windows_from(edges, edges, edges, n_atoms=30)
    result = measure_lasting(film, [windows_from(edges, [], [], n_atoms=30)] * 19, n_permutations=99, seed=0)
    assert (result.share, result.permuted.p_value, result.shuffled.p_value) == (1.0, 0.01, 0.05)
    assert result.permuted.null.max() < 0.3
    assert tuple(result.shuffled.excess) == (1.0, 1.0, 1.0)


def test_bounds_leave_one_draw_in_twenty_beside():
    null = np.arange(999.0)
    assert tuple(NullTest(1000.0, null).excess) == pytest.approx((501.0, 51.0, 951.0))
    assert NullTest(949.0, null).p_value == pytest.approx(0.051)
    assert NullTest(949.5, null).p_value == pytest.approx(0.05)
    assert NullTest(949.5, null).excess.low > 0 >= NullTest(949.0, null).excess.low
    assert not NullTest(5.0, null[:18]).excess.is_finite


def test_windows_lie_further_apart_in_a_film_that_has_too_many():
    settings = TopologySettings(n_atoms=8, window=64)
    assert np.diff(settings.starts(1000)).max() == settings.step == 1
    for n_frames in (MOST_WINDOWS + 63, MOST_WINDOWS + 64, 20_000, 200_001):
        starts = settings.starts(n_frames)
        assert MOST_WINDOWS / 2 < len(starts) <= MOST_WINDOWS
        assert n_frames - 64 - (starts[1] - starts[0]) < starts[-1] <= n_frames - 64


# Chosen atoms


def test_chosen_atoms_change_most_and_do_not_keep_each_other_company():
    big, small = [(0, 1), (1, 2), (2, 3), (3, 4)], [(5, 6), (6, 7)]
    graphs = [graph_from_edges(edges, 9) for edges in (big, [], small, [])]
    assert choose_atoms(graphs, 2) == (0, 5)
    assert len(set(choose_atoms(graphs, 9))) == 9


def test_film_too_short_says_what_would_fit(tmp_path):
    with pytest.raises(
        NotEnoughFramesError, match=r"977 frames.*window=6144.*need 6240; use window <= (\d+)"
    ) as caught:
        topology(np.zeros((977, 4)), TopologySettings(), Run(folder=tmp_path))
    fits = int(str(caught.value).split("window <= ")[1].split(",")[0])
    assert len(TopologySettings(window=fits).starts(977)) >= 2
    with pytest.raises(NotEnoughFramesError):
        TopologySettings(window=fits + 1).starts(977)
    with pytest.raises(NotEnoughFramesError, match="at least 7 frames"):
        TopologySettings().starts(4)


def test_overlap_of_one_is_refused():
    with pytest.raises(ValueError, match="overlap=1"):
        TopologySettings(overlap=1.0)


# The whole


@pytest.fixture(scope="module")
def film():
    return read_patches("builtin:glide?frames=330", patch_size=8).values


SETTINGS = TopologySettings(n_atoms=64, window=192, overlap=3 / 4, max_epochs=2, n_permutations=49)


@pytest.fixture(scope="module")
def result(engine, film, tmp_path_factory):
    return topology(film, SETTINGS, Run(folder=tmp_path_factory.mktemp("topology"), device=engine.device))


def test_whole_experiment(result):
    assert result.centers.tolist() == [96, 144, 192]
    assert len(result.chosen) == 3
    lines = b"".join(EXPERIMENT.files["topology.csv"](result)).decode().splitlines()
    assert lines[0] == "center,atom,component_size,neighbours"
    assert len(lines) == 1 + 3 * 3
    for line in lines[1:]:
        center, atom, size, neighbours = map(int, line.split(","))
        graph = result.graphs[(center - 96) // 48]
        assert size == np.sum(graph["component"] == graph["component"][atom])
        assert neighbours == np.sum(graph["edges"] == atom)
    summary = json.loads(to_json(result.summary()))
    assert summary["rule"] == RULE
    assert summary["likeness"]["permuted"]["draws"] == 49


def test_companions_are_those_linked_most_often(result):
    atom = int(np.argmax(result.neighbours.sum(axis=0)))
    counts = np.zeros(64, dtype=int)
    for graph in result.graphs:
        for i, j in graph["edges"]:
            if atom in (i, j):
                counts[i + j - atom] += 1
    companions = result.companions(atom)
    assert [count for _, count in companions] == sorted(counts, reverse=True)[:2]
    assert all(counts[other] == count and other != atom for other, count in companions)


def test_a_film_shorter_than_two_windows_is_compared_by_its_halves(glide, tmp_path):
    settings = TopologySettings(n_atoms=16, window=300, overlap=0.8, alpha=0.3, n_permutations=19)
    result = topology(glide, settings, Run(folder=tmp_path))
    np.testing.assert_array_equal(result.design.windows, np.arange(420).reshape(2, 210))
    summary = json.loads(to_json(result.summary()))
    assert summary["lasting"]["shuffled"]["draws"] == 19
    assert summary["design"]["windows"] == [0, 210]


# The best combination of the sweep


def test_sizes_of_the_lowest_error_that_fit_are_taken():
    table = [
        Combination(0.1, 16, 32, trimmed_mean=0.3),
        Combination(0.1, 16, 48, trimmed_mean=0.2),
        Combination(0.1, 32, 96, trimmed_mean=0.1),
        Combination(0.1, 64, 192, missing="too short"),
    ]
    settings = TopologySettings(n_atoms=8, window=24, overlap=0.5)
    sizes = [(own.n_atoms, own.window) for own in (best_sizes(settings, table, n) for n in (200, 100, 20))]
    assert sizes == [(32, 96), (16, 48), (8, 24)]  # 96 + 48 frames do not fit into 100


@pytest.mark.parametrize("given", [{"n_atoms": 8}, {"window": 24}])
def test_sizes_that_were_given_stay(given):
    assert TopologySettings.make({}).best_of_sweep
    assert not TopologySettings.make(given).best_of_sweep


def test_reproduce_passes_the_sweep_on(tmp_path):
    film = smooth_signals(120, 6, seed=0)
    swept = SimpleNamespace(table=lambda: [Combination(0.1, 9, 27, trimmed_mean=0.1)])
    settings = TopologySettings(n_atoms=8, window=24, overlap=0.5, n_permutations=19, best_of_sweep=True)
    result = EXPERIMENT.run(film, settings, Run(folder=tmp_path), {"sweep": swept})
    assert (result.settings.n_atoms, result.settings.window) == (9, 27)
    assert len(result.dictionary) == 9
