"""The study of the layers: its samples, its ridge regression and its chapters, against known answers."""

import numpy as np
import pytest
from PIL import Image
from studies.layers.chapters import chapters
from studies.layers.command import main, score, table
from studies.layers.gates import GATES, gated
from studies.layers.rivals import RIVALS, _var
from studies.layers.rules import RULES, Rule, pooled_embedding, ridge
from studies.layers.stretches import HORIZON, SCORED, Stretch, stretches

FILM = "builtin:glide?frames=150&seed=3&speed=0.5&size=128"


@pytest.fixture(scope="module")
def stretch():
    return next(stretches(FILM))


def test_a_stretch_is_learned_from_the_frames_before_its_start(stretch):
    assert (stretch.start, stretch.n_past, len(stretch.frames)) == (75, 75, 75 + HORIZON)
    changed = Stretch(stretch.film, 75, stretch.frames.copy(), 75)
    changed.frames[75:] = 0.5
    np.testing.assert_array_equal(changed.learned.x, stretch.learned.x)
    np.testing.assert_array_equal(changed.learned.y, stretch.learned.y)


def test_samples_are_the_pixels_of_the_frames(stretch):
    samples, (row, column) = stretch.scored, SCORED[1]
    block = 4 + 3  # the last block of the second patch, at the first time
    expected = stretch.frames[74:76, row + 8 : row + 16, column + 8 : column + 16].reshape(2, -1)
    np.testing.assert_array_equal(samples.block("x")[block], expected[0])
    np.testing.assert_allclose(samples.y[block], expected[1] - expected[0], atol=1e-6)
    assert np.mean((samples.w_patch - samples.y) ** 2) < 0.5 * np.mean(samples.y**2)


def test_perfect_predictions_have_no_error_and_copying_has_ratio_1(stretch):
    methods = {"truth": lambda given: given.scored.y, "copy": lambda given: 0 * given.scored.y}
    assert score(stretch, methods) == {"truth": 0.0, "copy": 1.0}


def test_ridge_finds_the_weights_of_a_linear_map():
    rng = np.random.default_rng(0)
    X, B = rng.standard_normal((2000, 12)).astype(np.float32), rng.standard_normal((12, 64)).astype(np.float32)
    np.testing.assert_allclose(ridge(X, X @ B, 6, np.arange(2000) % 5 == 4), B, atol=1e-3)


def test_features_that_the_past_does_not_show_have_no_weight():
    X = np.random.default_rng(0).standard_normal((2000, 12)).astype(np.float32)
    X[:, 7] = 0
    assert not ridge(X, X @ np.ones((12, 64), np.float32), 6, np.arange(2000) % 5 == 4)[7].any()


def test_the_pooled_embedding_puts_slow_directions_first():
    rng, t = np.random.default_rng(0), np.arange(200)[:, None]
    slow = np.cos(t / 30 + rng.uniform(0, 6, 10))
    codes = np.stack([slow, *rng.standard_normal((3, 200, 10))], axis=-1).astype(np.float32)
    P = pooled_embedding(codes, 2)
    assert abs(P[0, 0]) > 20 * abs(P[0, 1:]).max()


@pytest.mark.parametrize("name", ["motion alone", "without layers: pixels and motion", "without codes (PCA)"])
def test_rules_that_know_the_motion_beat_copying_by_far(stretch, name):
    assert score(stretch, {name: RULES[name].predict})[name] < 0.3


def test_the_layers_see_the_motion(stretch, monkeypatch):
    monkeypatch.setattr("studies.layers.rules.N_ATOMS", 64)
    monkeypatch.setattr("studies.layers.rules.N_COMPONENTS", 32)
    ratios = score(stretch, {str(n): Rule(pixels=(), n_lags=n, transport=False).predict for n in (1, 2)})
    assert ratios["2"] < ratios["1"] < 1


def test_motion_in_the_patch_beats_copying_on_a_gliding_camera(stretch):
    assert score(stretch, {"motion": RIVALS["motion in the patch"]})["motion"] < 0.5


def test_pca_and_var_continue_a_patch_that_turns():
    t, pattern = np.arange(100.0)[:, None], np.random.default_rng(0).standard_normal((2, 256))
    patches = np.cos(0.3 * t) * pattern[0] + np.sin(0.3 * t) * pattern[1]
    changes = _var(patches[:80], patches[79:-1])
    np.testing.assert_allclose(changes, patches[81:] - patches[80:-1], atol=0.01)


def test_a_gate_of_four_states_is_no_worse_than_a_common_map(stretch):
    ratios = score(stretch, {name: gated(GATES[name]) for name in ("nothing", "four magnitudes")})
    assert ratios["four magnitudes"] < 1.1 * ratios["nothing"] < 0.4


def test_chapters_return_and_never_repeat_a_view():
    frames, kinds = chapters(0)
    assert np.bincount(kinds).min() >= 150
    assert np.count_nonzero(np.diff(kinds)) >= 12
    assert len(np.unique(frames.reshape(len(frames), -1), axis=0)) == len(frames)


def test_the_table_has_means_over_films_and_the_worst_film():
    rows = [{"film": f, "method": "a", "ratio": r} for f, r in (("u", "0.1"), ("u", "0.3"), ("v", "0.8"))]
    assert table(rows).splitlines()[-1] == "| a | 0.200 | 0.800 | 0.500 | 0.800 |"


def test_the_command_writes_the_ratios_and_prints_the_table(tmp_path, capsys):
    main([FILM, "--no-builtin", "--methods", "motion alone", "--out", str(tmp_path)])
    _, start, method, ratio = (tmp_path / "layers.csv").read_text().splitlines()[1].split(",")
    assert (start, method) == ("75", "motion alone") and 0 < float(ratio) < 0.3
    assert "| motion alone |" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--methods", "nonsense"])


def test_the_picture_has_moving_atoms(tmp_path):
    main(["builtin:glide?frames=60&seed=3&speed=0.6&size=48", "--picture", "--out", str(tmp_path)])
    with Image.open(tmp_path / "space-time.gif") as picture:
        assert picture.size == (360, 180) and picture.n_frames == 6
        first = np.asarray(picture.convert("L"), float)
        picture.seek(1)
        assert np.abs(np.asarray(picture.convert("L"), float) - first).mean() > 1
