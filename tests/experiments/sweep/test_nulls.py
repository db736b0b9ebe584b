"""Table 1 on the film's nulls, the same frames in another order and noise; and what holds beyond them."""

from dataclasses import replace

import numpy as np
import pytest

from made_up_series import wave
from psmt.experiments.film_tasks import code_patches, learn_dictionary, round_trip, unpack_codes
from psmt.experiments.sweep.report import sweep_claims
from psmt.experiments.sweep.run import SweepResult, sweep
from psmt.experiments.sweep.settings import SweepSettings
from psmt.pipeline.run import Run
from psmt.utils.disk_series import DiskSeries

TINY = SweepSettings(n_atoms=(8, 12), max_epochs=1, alpha=0.1, lam=(0.1,), null_windows=3, steps_per_window=2)


@pytest.fixture(scope="module")
def film():
    return wave(90)


@pytest.fixture(scope="module")
def result(film, tmp_path_factory):
    return sweep(film, TINY, Run(folder=tmp_path_factory.mktemp("nulls")))


def test_shuffled_frames_keep_their_codes(film, result):
    order = np.random.default_rng(TINY.seed).permutation(len(film))
    dictionary = learn_dictionary(patches=film, n_atoms=12, alpha=0.1, max_epochs=1, seed=0)["dictionary"]
    codes = unpack_codes(code_patches(patches=film, dictionary=dictionary, alpha=0.1), 12).toarray()
    places = TINY.null_segments(36, len(film))
    assert places == [(0, 36), (27, 63), (54, 90)]
    for errors, (start, stop) in zip(result.null_errors["shuffled"][0.1, 12, 36], places, strict=True):
        rows = order[start:stop]
        frames = round_trip(codes[rows], dictionary, n_components=3, lam=0.1)(codes[rows], codes[rows])
        np.testing.assert_allclose(errors, np.mean((frames - film[rows]) ** 2, axis=1), rtol=1e-6)


def test_each_null_has_every_combination(result):
    assert set(result.null_errors) == {"shuffled", "noise"}
    for null, errors in result.null_errors.items():
        assert {key: own.shape for key, own in errors.items()} == {key: (3, key[2]) for key in result.errors}
        assert not np.allclose(errors[0.1, 8, 24], result.null_errors["shuffled"][0.1, 8, 24]) or null == "shuffled"


def test_a_film_on_disk_gives_the_same(film, result, tmp_path):
    stored = DiskSeries.write(tmp_path / "film", [film])
    other = sweep(stored, replace(TINY, n_atoms=(8,)), Run(folder=tmp_path))
    assert other.empty_error == pytest.approx(result.empty_error)
    for null in ("shuffled", "noise"):
        np.testing.assert_allclose(other.null_errors[null][0.1, 8, 24], result.null_errors[null][0.1, 8, 24], rtol=1e-5)


def test_no_null_is_made_where_none_is_asked_for(film, tmp_path):
    assert sweep(film, replace(TINY, n_atoms=(8,), null_windows=0), Run(folder=tmp_path)).null_errors == {}


# Verdicts


def made_up(film_ratio, null_ratio, spread=0.05):
    """Table 1 of one M, whose error at the largest H is so many times that at the smallest, on the film and a null."""
    settings = SweepSettings(n_atoms=(10,), ratios=(2.0, 3.0), lam=(0.1,), null_windows=4)
    rng = np.random.default_rng(0)

    def errors(ratio, segments):
        return {
            (0.1, 10, window): times * np.exp(spread * rng.standard_normal((len(segments(window, 400)), window)))
            for window, times in ((20, 1.0), (30, ratio))
        }

    return SweepResult(
        settings=settings,
        n_frames=400,
        errors=errors(film_ratio, settings.segments),
        null_errors={"shuffled": errors(null_ratio, settings.null_segments)},
    )


@pytest.mark.parametrize(
    ("film_ratio", "null_ratio", "spread", "outcome"),
    [
        (0.7, 1.0, 0.05, "yes"),
        (0.7, 0.9, 0.05, "yes"),
        (0.7, 0.7, 0.01, "inconclusive"),
        (0.7, 0.5, 0.05, "no"),
        (0.7, 0.72, 0.5, "inconclusive"),
        (1.1, 1.3, 0.05, "no"),
    ],
)
def test_a_gain_holds_beyond_its_null_alone(film_ratio, null_ratio, spread, outcome):
    claim = sweep_claims(made_up(film_ratio, null_ratio, spread))[1]
    assert claim.beyond_controls.verdict == outcome
    if spread < 0.1:
        assert claim.as_measured.verdict == ("yes" if film_ratio < 1 else "no")
        assert film_ratio > 1 or "its frames shuffled" in claim.beyond_controls.why
