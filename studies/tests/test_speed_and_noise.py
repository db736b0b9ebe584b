"""Speed and noise of a film, against films whose speed and noise are known."""

import numpy as np
import pytest
from studies.regimes.run import noisy_patches
from studies.regimes.speed_and_noise import Regime, measure_regime

from psmt.data import GlideFilm


def measured(speed, noise=0.0, *, seed=1, n_frames=500):
    film = GlideFilm(n_frames=n_frames, seed=seed, speed=speed, size=16)
    regime = measure_regime(noisy_patches(film, noise), n_samples=60)
    assert isinstance(regime, Regime)
    return regime


@pytest.mark.parametrize("speed", [0.05, 0.2, 1.0, 2.5, 4.0])
def test_the_speed_of_a_clean_film_is_found_within_a_tenth(speed):
    regime = measured(speed)
    assert regime.speed == pytest.approx(speed, rel=0.1)
    assert regime.slow <= regime.speed <= regime.fast
    assert regime.noise < 0.04


@pytest.mark.parametrize("speed", [0.1, 0.7, 3.0])
def test_noise_is_found_and_does_not_pass_for_motion(speed):
    regime = measured(speed, 0.1, seed=2)
    assert regime.noise == pytest.approx(0.1, abs=0.03)
    assert regime.speed == pytest.approx(speed, rel=0.1)
    loud = measured(speed, 0.3, seed=2)
    assert loud.noise == pytest.approx(0.3, abs=0.06)
    assert loud.speed == pytest.approx(speed, rel=0.5)


def test_a_film_that_stands_still_has_no_speed_however_noisy():
    assert measured(0.0).speed < 1e-6
    regime = measured(0.0, 0.1)
    assert regime.speed < 0.01
    assert regime.noise == pytest.approx(0.1, abs=0.02)


def test_calm_and_lively_stretches_show_in_the_quartiles():
    film = GlideFilm(n_frames=2000, size=16)
    speeds = film.motion().speed
    regime = measure_regime(noisy_patches(film, 0.0))
    slow, fast = np.quantile(speeds, [0.25, 0.75])
    assert regime.slow < 2 * slow
    assert regime.fast > 0.5 * fast
    assert regime.fast / regime.slow > 2


def test_shuffled_frames_share_nothing_with_the_next():
    film = GlideFilm(n_frames=400, speed=1.0, size=16)
    patches = noisy_patches(film, 0.0)
    shuffled = np.random.default_rng(0).permutation(patches)
    assert measure_regime(shuffled).noise > 3 * measure_regime(patches).noise + 0.3


def test_a_series_has_neither():
    rng = np.random.default_rng(0)
    assert measure_regime(rng.standard_normal((200, 64))) is None
    assert measure_regime(rng.standard_normal((200, 60))) is None
    walks = np.cumsum(rng.standard_normal((200, 100)), axis=0)
    assert measure_regime(walks) is None


def test_a_short_film_and_a_small_patch_have_neither():
    patches = noisy_patches(GlideFilm(n_frames=40, speed=0.5, size=16), 0.0)
    assert measure_regime(patches) is not None
    assert measure_regime(patches[:31]) is None
    small = patches.reshape(-1, 16, 16)[:, :7, :7].reshape(len(patches), -1)
    assert measure_regime(small) is None


def test_flat_frames_do_no_harm():
    patches = noisy_patches(GlideFilm(n_frames=400, speed=1.0, size=16), 0.0)
    patches[100:130] = 0.0
    regime = measure_regime(patches)
    assert regime.speed == pytest.approx(1.0, rel=0.1)
    assert measure_regime(np.zeros((100, 256))) is None
