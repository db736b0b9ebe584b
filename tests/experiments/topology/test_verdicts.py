"""Films whose truth is known: noise, shuffled, static, periodic, clusters that stay, clusters that change."""

from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_array

from psmt.embedding import embed_window
from psmt.embedding.moments import WindowMoments
from psmt.engines import engine_for
from psmt.evaluation.null_models import NullTest
from psmt.experiments.film_tasks import pack_codes
from psmt.experiments.topology.measures import Design, measure_lasting, shared_links
from psmt.experiments.topology.report import topology_claims
from psmt.experiments.topology.run import topology, topology_of_codes
from psmt.experiments.topology.settings import TopologySettings
from psmt.experiments.window_graphs import compare_times, embed_runs, link_sets
from psmt.numerics.rank import RANK_TOL
from psmt.pipeline.run import Run

INCONCLUSIVE = "inconclusive"
N_FRAMES, N_ATOMS, N_GROUPS = 1800, 24, 6
EARLY, LATE = np.repeat(np.arange(N_GROUPS), 4), np.tile(np.arange(N_GROUPS), 4)
"""Two groupings of the atoms by four that have no pair in common."""
SETTINGS = TopologySettings(n_atoms=N_ATOMS, window=600, overlap=0.5, n_components=N_GROUPS, n_permutations=99)


def slow(n_frames, n_signals, rng, width=15):
    """Signals (n_frames, n_signals) of variance 1 that remember a few frames."""
    kernel = np.hanning(width + 2)
    noise = rng.standard_normal((n_frames + width + 1, n_signals))
    return np.stack([np.convolve(column, kernel / np.linalg.norm(kernel), "valid") for column in noise.T], axis=1)


def moving(signals, *groupings, rng, noise=0.4):
    """Codes: in each stretch of time atoms follow the signal of their group, under fast noise of their own."""
    stretches = np.array_split(signals, len(groupings))
    codes = np.concatenate([own[:, groups] for own, groups in zip(stretches, groupings, strict=True)])
    return np.maximum(0.5 + codes + noise * rng.standard_normal(codes.shape), 0)


def pictures(groups, rng):
    """Atoms (n_atoms, 25) of which those in a group look alike."""
    return rng.standard_normal((N_GROUPS, 25))[groups] + 0.5 * rng.standard_normal((len(groups), 25))


def verdicts(codes, dictionary, folder, settings=SETTINGS):
    result = topology_of_codes(dictionary, pack_codes(codes), settings, Run(folder=folder))
    return [claim.beyond_controls.verdict for claim in topology_claims(result)], result


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def test_clusters_that_stay(rng, tmp_path):
    codes = moving(slow(N_FRAMES, N_GROUPS, rng), EARLY, rng=rng)
    (change, persist, alike), result = verdicts(codes, pictures(EARLY, rng), tmp_path)
    assert (change, persist, alike) == ("no", "yes", "yes")
    assert result.lasting.share > 0.8
    assert result.lasting.shuffled.excess.low > 0.5
    assert result.lasting.permuted.excess.low > 0.5


@pytest.mark.slow
def test_clusters_that_change_in_the_middle(rng, tmp_path):
    codes = moving(slow(N_FRAMES, N_GROUPS, rng), EARLY, LATE, rng=rng)
    (change, persist, _), result = verdicts(codes, pictures(EARLY, rng), tmp_path)
    assert (change, persist) == ("yes", "no")
    assert result.change.repeated > 0.3
    assert result.change.across < 0.5 * result.change.repeated


@pytest.mark.slow
def test_clusters_that_stay_in_part_both_persist_and_change(rng, tmp_path):
    # The first three groups stay, the others are made anew: two claims that do not exclude each other.
    anew = np.concatenate([EARLY[:12], np.tile([3, 4, 5], 4)])
    codes = moving(slow(N_FRAMES, N_GROUPS, rng), EARLY, anew, rng=rng, noise=0.3)
    (change, persist, _), result = verdicts(codes, pictures(EARLY, rng), tmp_path)
    assert (change, persist) == ("yes", "yes")
    assert 0.4 < result.lasting.share < 0.9


@pytest.mark.slow
def test_periodic_clusters_stay_and_do_not_change(rng, tmp_path):
    time = np.arange(N_FRAMES)[:, None]
    codes = moving(np.sqrt(2) * np.sin(2 * np.pi * time / [18.0, 23.0, 29.0, 33.0, 37.0, 43.0]), EARLY, rng=rng)
    (change, persist, _), _ = verdicts(codes, rng.standard_normal((N_ATOMS, 25)), tmp_path)
    assert (change, persist) == ("no", "yes")


@pytest.mark.slow
@pytest.mark.parametrize("truth", ["stay", "noise", "independent"])
def test_nothing_holds_on_frames_in_random_order_nor_on_noise(truth, rng, tmp_path):
    codes = {
        "stay": lambda: rng.permutation(moving(slow(N_FRAMES, N_GROUPS, rng), EARLY, rng=rng)),
        "noise": lambda: np.maximum(rng.standard_normal((N_FRAMES, N_ATOMS)), 0),
        "independent": lambda: np.maximum(slow(N_FRAMES, N_ATOMS, rng), 0),
    }[truth]()
    outcomes, _ = verdicts(codes, rng.standard_normal((N_ATOMS, 25)), tmp_path)
    assert "yes" not in outcomes


@pytest.mark.slow
def test_atoms_that_are_always_active_together_are_no_news(rng, tmp_path):
    # Copies of one code: linked in whatever order the frames come, which is no property of their motion.
    codes = np.maximum(slow(N_FRAMES, N_GROUPS, rng), 0)[:, EARLY] * rng.uniform(0.5, 2, N_ATOMS)
    (change, persist, _), result = verdicts(codes, pictures(EARLY, rng), tmp_path)
    assert change != "yes"
    assert persist == "no"
    assert result.lasting.share == 1.0
    assert result.lasting.shuffled.excess.mean == 0.0


def test_a_static_film_says_nothing(tmp_path):
    outcomes, _ = verdicts(np.ones((N_FRAMES, N_ATOMS)), np.eye(N_ATOMS, 25), tmp_path)
    assert outcomes == [INCONCLUSIVE] * 3


@pytest.mark.slow
def test_a_film_that_never_forgets_cannot_be_dealt_out(rng, tmp_path):
    codes = moving(slow(N_FRAMES, N_GROUPS, rng, width=801), EARLY, rng=rng, noise=0.2)
    outcomes, result = verdicts(codes, pictures(EARLY, rng), tmp_path)
    assert outcomes[0] == INCONCLUSIVE
    assert result.change is None
    assert "a longer film" in topology_claims(result)[0].notes[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["noise", "shuffled", "static"])
def test_nothing_holds_on_films_without_motion(kind, glide, tmp_path):
    rng = np.random.default_rng(0)
    film = {
        "noise": lambda: rng.standard_normal(glide.shape),
        "shuffled": lambda: rng.permutation(glide),
        "static": lambda: np.repeat(glide[:1], len(glide), axis=0),
    }[kind]()
    settings = TopologySettings(n_atoms=16, window=100, overlap=0.5, alpha=0.3, n_permutations=99)
    outcomes = [
        claim.beyond_controls.verdict for claim in topology_claims(topology(film, settings, Run(folder=tmp_path)))
    ]
    assert "yes" not in outcomes


# The tests have the size that they claim


def links_of(codes, frames):
    """Links of each set of frames by a quick stand-in for P: atoms whose steps correlate."""
    edges = [
        np.argwhere(np.triu(np.corrcoef(np.diff(codes[chosen], axis=0).T) > 0.25, 1)).astype(np.int32)
        for chosen in frames
    ]
    used = np.ones((len(frames), codes.shape[1]), dtype=bool)
    return {"edges": np.concatenate(edges), "counts": np.array([len(part) for part in edges]), "used": used}


def times_of(codes, blocks, splits):
    """Stand-in for `compare_times`: correlation of the atoms' correlations before and after."""
    upper = np.triu_indices(codes.shape[1], 1)
    halves = [[np.corrcoef(codes[own.ravel()].T)[upper] for own in np.split(blocks, [split])] for split in splits]
    return {"agreement": np.array([np.corrcoef(pair)[0, 1] for pair in halves])}


def p_values(codes, settings, seed, links, times):
    """Of change, and of lasting against shuffled frames and against permuted atoms."""
    design = Design.of(pack_codes(codes), settings)
    draws = settings.n_nulls, seed
    film, *nulls = [times(codes, blocks, design.splits) for blocks in (design.blocks, *design.reordered(*draws))]
    # Where nothing repeats, the share that is lost is not defined; the agreement itself is.
    change = NullTest(-film["agreement"].min(), -np.array([draw["agreement"].min() for draw in nulls])).p_value
    film, *nulls = [links(codes, frames) for frames in (design.windows, *design.shuffled(*draws))]
    lasting = measure_lasting(film, nulls, n_permutations=19, seed=seed)
    return change, lasting.shuffled.p_value, lasting.permuted.p_value


@pytest.mark.slow
def test_size_of_all_tests_on_their_null():
    # Windows of 64 frames in a film of 512: four parts, six pairs of windows that depend on each other.
    settings = TopologySettings(n_atoms=10, window=64)
    noise = [np.abs(np.random.default_rng(seed).standard_normal((512, 10))) for seed in range(40)]
    found = np.array([p_values(codes, settings, 7, links_of, times_of) for codes in noise])
    # Of 40 p-values 2 +- 1.4 lie at or below 0.05; ties make a test of few links only more careful.
    assert (np.mean(found <= 0.05, axis=0) <= 0.15).all()
    assert (np.mean(found <= 0.5, axis=0) <= 0.65).all()
    assert np.mean(found[:, 0] <= 0.2) > 0.08


@pytest.mark.slow
def test_windows_that_overlap_do_not_make_permuted_atoms_too_sure():
    # As the window slides, links come and go: graphs of neighbouring windows are alike, those far apart are not.
    rng = np.random.default_rng(0)
    p = []
    for _ in range(100):
        births = rng.random((40, 20, 20)) < 0.004
        graphs = [np.triu(births[start : start + 10].any(axis=0), 1) for start in range(31)]
        apart = [graphs[start] for start in (0, 10, 20, 30)]
        edges = [np.argwhere(graph) for graph in apart]
        links = {"edges": np.concatenate(edges), "counts": np.array([len(own) for own in edges])}
        p.append(
            measure_lasting(
                links | {"used": np.ones((4, 20), dtype=bool)},
                [links | {"used": np.ones((4, 20))}],
                n_permutations=39,
                seed=0,
            ).permuted.p_value
        )
    assert 0.01 <= np.mean(np.array(p) <= 0.05) <= 0.10
    assert 0.4 <= np.mean(p) <= 0.65


@pytest.mark.slow
@pytest.mark.parametrize("truth", ["noise", "independent", "shuffled", "stay"])
def test_size_with_the_embedding(truth):
    settings = TopologySettings(n_atoms=N_ATOMS, window=192, n_components=N_GROUPS)

    def links(codes, frames):
        return link_sets(codes=pack_codes(codes), frames=frames, n_atoms=N_ATOMS, n_components=N_GROUPS)

    def times(codes, blocks, splits):
        packed = pack_codes(codes)
        return compare_times(codes=packed, blocks=blocks, splits=splits, n_atoms=N_ATOMS, n_components=N_GROUPS)

    found = []
    for seed in range(20):
        rng = np.random.default_rng([5, seed])
        codes = {
            "noise": lambda rng=rng: np.maximum(rng.standard_normal((960, N_ATOMS)), 0),
            "independent": lambda rng=rng: np.maximum(slow(960, N_ATOMS, rng), 0),
            "shuffled": lambda rng=rng: rng.permutation(moving(slow(960, N_GROUPS, rng), EARLY, rng=rng)),
            "stay": lambda rng=rng: moving(slow(960, N_GROUPS, rng), EARLY, rng=rng),
        }[truth]()
        found.append(p_values(codes, settings, seed, links, times))
    change, order, atoms = np.mean(np.array(found) <= 0.05, axis=0)
    # Of 20 p-values 1 +- 1 lies at or below 0.05.
    assert change <= 0.15
    assert (order <= 0.15, atoms <= 0.15) == (truth != "stay", truth != "stay")


# The parts of the tests


def test_windows_and_blocks_have_no_frame_in_common():
    codes = pack_codes(np.abs(np.random.default_rng(0).standard_normal((1000, 6))))
    design = Design.of(codes, TopologySettings(n_atoms=6, window=140))
    assert design.windows.shape == (3, 140)
    assert all(len(np.intersect1d(one, two)) == 0 for one, two in combinations(design.windows, 2))
    assert design.windows[-1, 0] == 1000 - 280
    # A memory of one frame: 24 blocks with gaps of two frames, split at half of the film.
    assert design.blocks.shape == (24, 39)
    assert design.splits.tolist() == [12]
    np.testing.assert_array_equal(design.blocks[:2, [0, -1]], [[0, 38], [41, 79]])
    (reordered,), (shuffled,) = design.reordered(1, 0), design.shuffled(1, 0)
    assert not np.array_equal(reordered, design.blocks)
    np.testing.assert_array_equal(reordered[np.argsort(reordered[:, 0])], design.blocks)
    np.testing.assert_array_equal(np.sort(shuffled, axis=1), design.windows)
    assert (np.diff(shuffled, axis=1) != 1).mean() > 0.9


def test_blocks_are_as_long_as_codes_remember(rng):
    settings = TopologySettings(n_atoms=5, window=600)
    memories = [
        Design.of(pack_codes(np.abs(slow(4000, 5, rng, width=width))), settings).memory for width in (1, 21, 61)
    ]
    assert memories[0] == 1
    assert 2 < memories[1] < 12
    assert memories[1] < memories[2] < 40


def test_jumps_between_blocks_are_no_motion():
    # Slow codes cut into blocks, which are mixed: inside the blocks they move as before.
    codes = csr_array(np.abs(slow(640, 5, np.random.default_rng(0), width=31)))
    engine, options = engine_for("cpu"), {"rank_tol": RANK_TOL}
    blocks = np.arange(640).reshape(-1, 32)
    mixed = csr_array(codes[np.random.default_rng(1).permutation(blocks).ravel()])
    within = [embed_runs(part, 5, engine, run=32, **options)[0] for part in (codes, mixed)]
    np.testing.assert_allclose(*within, rtol=1e-8)
    whole = embed_window(WindowMoments.of(codes, engine), 5, **options).matrix
    np.testing.assert_allclose(embed_runs(codes, 5, engine, run=640, **options)[0], whole, rtol=1e-8)
    assert np.abs(embed_window(WindowMoments.of(mixed, engine), 5, **options).matrix - whole).max() > 0.01


def test_shared_links_by_hand():
    links = {
        "edges": np.array([[0, 1], [1, 2], [0, 1], [2, 3], [3, 4]]),
        "counts": np.array([2, 3, 0]),
        "used": np.ones((3, 5), dtype=bool),
    }
    assert shared_links(links, [(0, 1)]) == pytest.approx(2 * 1 / 5)
    assert shared_links(links, [(0, 1), (0, 2)]) == pytest.approx(2 * 1 / 7)
    assert np.isnan(shared_links({**links, "edges": links["edges"][:0], "counts": np.zeros(3, int)}, [(0, 1)]))
