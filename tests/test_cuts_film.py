"""The film of cuts and pans: they are where it says."""

import numpy as np
import pytest
from benchmarks.cuts_film import CutsFilm


@pytest.fixture(scope="module")
def film():
    return CutsFilm(n_cuts=4, n_pans=4, size=64, noise=0.0)


@pytest.fixture(scope="module")
def changes(film):
    frames = np.array(list(film))
    return np.concatenate([[0.0], np.mean(np.diff(frames, axis=0) ** 2, axis=(1, 2))]) / frames.var()


def test_cuts_show_something_else_and_calm_frames_do_not(film, changes):
    busy = set(film.cuts.tolist()).union(*(range(first, last + 1) for first, last in film.pans))
    calm = [change for index, change in enumerate(changes) if index not in busy]
    assert changes[film.cuts].min() > 0.5
    assert max(calm) < 0.2 < changes[film.cuts].min()


def test_pans_move_on_to_what_they_show(film):
    frames = list(film)
    for first, last in film.pans:
        middle = (first + last) // 2
        before, after = (np.fft.fft2(frames[k] - frames[k].mean()) for k in (middle - 1, middle))
        cross = after * before.conj()
        peak = np.fft.ifft2(cross / (np.abs(cross) + 1e-9)).real
        shift = (np.array(np.unravel_index(peak.argmax(), peak.shape)) + 32) % 64 - 32
        moved = film._plan.motion.speed[middle]
        assert moved >= 0.04 * 64 * 0.7
        assert np.hypot(*shift) == pytest.approx(moved, abs=1.6)


def test_it_is_the_same_every_time_and_each_head_is_its_beginning(film):
    again = CutsFilm(n_cuts=4, n_pans=4, size=64, noise=0.0).head(70)
    assert again.n_frames == 70 and len(list(again)) == 70
    assert all(np.array_equal(one, other) for one, other in zip(film, again, strict=False))
    assert again.checksum() != film.checksum()
    assert len(again.cuts) + len(again.pans) <= len(film.cuts) + len(film.pans)
