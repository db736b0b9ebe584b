"""Films of which it is known what can be predicted: every verdict must be right."""

import numpy as np
import pytest

from psmt.evaluation.null_models import draw_noise, shuffle_frames
from psmt.experiments.phases import FilmPhase
from psmt.experiments.prediction.report import prediction_answer, prediction_claims
from psmt.experiments.prediction.run import MARGIN, choose_null_starts, choose_starts, predict
from psmt.experiments.prediction.settings import PredictionSettings
from psmt.pipeline.run import Run

pytestmark = pytest.mark.slow

N_FRAMES, N_PIXELS = 420, 16
INCONCLUSIVE = "inconclusive"


def ring(speed=0.25, noise=0.003):
    """A bump (420, 16) that travels on a ring, with a window that has seen half of it.

    Where it comes next was seen before, but not in the window: a static embedding has no columns for these atoms.
    """
    t, pixel = np.arange(N_FRAMES)[:, None], np.arange(N_PIXELS)
    away = np.abs(pixel - (speed * t) % N_PIXELS)
    away = np.minimum(away, N_PIXELS - away)
    return np.exp(-(away**2) / 4.5) + noise * np.random.default_rng(0).standard_normal((N_FRAMES, N_PIXELS))


def grating():
    """Two gratings (420, 16) whose periods, 32 and 16 frames, fit into each window: it always shows the same."""
    t, pixel = np.arange(N_FRAMES)[:, None], np.arange(N_PIXELS)
    return np.cos(2 * np.pi * (pixel / 8 + t / 32)) + 0.5 * np.cos(2 * np.pi * (pixel / 4 - t / 16))


SIZES = {"n_starts": 10, "n_atoms": 16, "window": 32, "horizon": 6, "n_components": 6, "alpha": 0.02, "lam": 0.003}
FILMS = {
    "noise": (lambda rng: rng.standard_normal((N_FRAMES, N_PIXELS)), {}),
    "shuffled": (lambda rng: rng.permutation(ring(), axis=0), {}),
    "static": (lambda rng: np.tile(rng.standard_normal(N_PIXELS), (N_FRAMES, 1)), {"n_components": "auto"}),
    "periodic": (lambda rng: grating(), {"window": 64, "n_components": "auto", "lam": "auto", "alpha": 0.1}),
    "smooth": (lambda rng: ring(), {"horizon": 30, "alpha": 0.1, "n_starts": 14}),
}
"""Films with known truth, and the sizes in which they are special."""


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """Results and verdicts by film."""

    def judge(name):
        make, special = FILMS[name]
        settings = PredictionSettings(**SIZES | special, starts=(100,), n_null=6)
        result = predict(make(np.random.default_rng(1)), settings, Run(folder=tmp_path_factory.mktemp(name)))
        return result, {claim.key: claim.beyond_controls.verdict for claim in prediction_claims(result)}

    return {name: judge(name) for name in FILMS}


def answer_of(result):
    return prediction_answer(result, {"methods.png": b"", "pipeline.png": b""})


def against(result, other):
    """Evidence that PSMT is better than another method."""
    return {own.name: own for own in result.evidence["dynamic_beats_static"]}[f"PSMT against {other}, vs code"]


def test_on_noise_nothing_holds_and_the_mean_is_best(verdicts):
    result, outcomes = verdicts["noise"]
    assert {outcomes[key] for key in ("dynamic_beats_static", "beats_copying", "beats_simple_rules")} == {"no"}
    assert against(result, "mean code").statistic.low > 1.0
    assert against(result, "Baseline 2").beyond_controls.verdict != "yes"


def test_without_its_order_in_time_a_film_that_held_holds_no_more(verdicts):
    _, outcomes = verdicts["shuffled"]
    assert "yes" not in outcomes.values()


def test_where_nothing_moves_there_is_nothing_to_win(verdicts):
    _, outcomes = verdicts["static"]
    assert outcomes["dynamic_beats_static"] == INCONCLUSIVE
    assert "yes" not in outcomes.values()


def test_where_each_window_shows_the_same_the_static_embedding_is_as_good(verdicts):
    result, outcomes = verdicts["periodic"]
    assert outcomes["dynamic_beats_static"] == INCONCLUSIVE
    assert abs(against(result, "Baseline 2").statistic.mean) < 0.01
    assert outcomes["beats_copying"] == "yes"  # it does move, and on lines that are straight enough
    assert outcomes["beats_simple_rules"] == "no"
    (simple,) = result.evidence["beats_simple_rules"]
    assert simple.name.endswith("against ridge regression, vs frame") and simple.as_measured.ratio > 1000
    assert "“ridge regression” predicts the next patch best" in answer_of(result).text


def test_where_the_scene_goes_on_to_other_atoms_the_dynamic_embedding_wins(verdicts):
    result, outcomes = verdicts["smooth"]
    assert outcomes["dynamic_beats_static"] == "yes"
    assert against(result, "Baseline 2").statistic.high < -MARGIN


# Starts and nulls


@pytest.mark.parametrize("n_starts", [0, 1, 2, 3, 8, 100])
def test_starts_fit_share_no_frame_and_have_the_phases_among_them(n_starts):
    phases = [FilmPhase("calm", 57), FilmPhase("lively", 70)]
    starts = choose_starts(phases, 200, window=40, horizon=9, n_starts=n_starts)
    places = [start.start for start in starts]
    assert set(phases) <= set(starts)
    assert 2 <= len(starts) <= max(n_starts, 2)
    assert places == sorted(places)
    assert min(np.diff(places)) >= 10
    assert all(40 <= place <= 190 for place in places)
    if n_starts == 100:
        assert len(starts) >= 12  # 16 would fit, but for those that the phases lie across


def test_nulls_are_tested_all_over_the_film():
    starts = [FilmPhase(f"start-{k}", k) for k in range(20)]
    assert [start.start for start in choose_null_starts(starts, 4)] == [0, 6, 13, 19]
    assert choose_null_starts(starts[:2], 4) == starts[:2]
    assert choose_null_starts(starts, 0) == []


def test_a_shuffled_film_has_the_same_frames():
    film = ring()
    shuffled = shuffle_frames(film, np.random.default_rng(0))
    assert not np.array_equal(shuffled, film)
    assert np.array_equal(np.sort(shuffled[:, 0]), np.sort(film[:, 0]))
    assert {row.tobytes() for row in shuffled} == {row.tobytes() for row in film}


def test_noise_has_the_films_spectrum_and_values_but_not_its_order():
    rng = np.random.default_rng(0)
    film = np.cumsum(rng.standard_normal((2000, 6)), axis=0) @ rng.standard_normal((6, 6))
    noise = draw_noise(film, np.random.default_rng(1))
    assert np.array_equal(np.sort(noise, axis=0), np.sort(film, axis=0))
    assert np.abs(np.corrcoef(noise.T) - np.corrcoef(film.T)).max() < 0.15
    follow = [np.corrcoef(X[:-1, 0], X[1:, 0])[0, 1] for X in (film, noise)]
    assert follow[0] > 0.99 and abs(follow[1]) < 0.1
