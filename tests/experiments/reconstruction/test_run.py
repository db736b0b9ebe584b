"""Reconstruction through the embedding of all frames, and the stretches it finds."""

from types import SimpleNamespace

import numpy as np
import pytest

from oracles import literal
from oracles.solvers import descent_codes, recover_code
from psmt import SparseCoder
from psmt.errors import NotEnoughFramesError
from psmt.experiments.film_tasks import pack_codes, reconstruct_window
from psmt.experiments.phases import (
    FilmPhase,
    Stretch,
    error_memory,
    find_phases,
    least_window,
    phase_segment,
)
from psmt.experiments.reconstruction.report import EXPERIMENT
from psmt.experiments.reconstruction.report import reconstruct as run_reconstruction
from psmt.experiments.reconstruction.settings import ReconstructionSettings
from psmt.pipeline.run import Run


def reconstruct(X, coder, *, n_components, lam):
    """MSE (time,) of each patch after coding, embedding, recovery and decoding."""
    given = {"n_components": n_components, "lam": lam, "device": coder.device}
    codes = pack_codes(coder.transform(X))
    return reconstruct_window(patches=X, dictionary=coder.dictionary_, codes=codes, **given)["mse"]


def test_agrees_with_a_plain_recomputation(engine, glide):
    X = glide[100:200]
    coder = SparseCoder(n_atoms=16, alpha=0.3, random_state=0, device=engine.device).fit(X)
    errors = reconstruct(X, coder, n_components=8, lam=0.05)
    A = descent_codes(X, coder.dictionary_, 0.3).T
    P = literal.embedding(A, 8, centred=True, full=False)
    for t in range(0, 100, 9):
        code = recover_code(P, P @ A[:, t], 0.05)
        assert code.sum() < 2 * A.sum(axis=0).max()
        assert errors[t] == pytest.approx(np.mean((code @ coder.dictionary_ - X[t]) ** 2), abs=1e-6)


def test_all_directions_without_a_price_give_what_layer_1_gives(engine, glide):
    X = glide[100:200]
    coder = SparseCoder(n_atoms=16, alpha=0.3, random_state=0, device=engine.device).fit(X)
    shown = coder.inverse_transform(coder.transform(X))
    errors = reconstruct(X, coder, n_components=16, lam=0.0)
    assert np.allclose(errors, np.mean((X - shown) ** 2, axis=1), atol=1e-5)


def test_the_original_transform_is_not_centred(glide, tmp_path):
    X = glide[100:200]
    result = run_reconstruction(
        X, ReconstructionSettings(n_atoms=16, n_components=8, alpha=0.3, lam=0.05), Run(folder=tmp_path)
    )
    coder = SparseCoder(n_atoms=16, alpha=0.3, random_state=0).fit(X)
    A = descent_codes(X, coder.dictionary_, 0.3).T
    P = literal.embedding(A, 8, centred=False, full=False)
    for t in range(0, 100, 9):
        code = recover_code(P, P @ A[:, t], 0.05)
        assert result.errors[t] == pytest.approx(np.mean((code @ coder.dictionary_ - X[t]) ** 2), abs=1e-6)


# Phases


def test_the_calmest_and_the_liveliest_stretch_are_found():
    errors = np.ones(100)
    errors[5:10] = 0.0  # calmer still, but too early: no window lies before it
    errors[40:46] = 0.1
    errors[70:76] = 9.0
    errors[98:] = 50.0  # too late: a whole horizon has to follow
    errors[90:] = 1.0
    found = find_phases(errors, window=20, horizon=5, search="film")
    assert found == [FilmPhase("calm", 40), FilmPhase("lively", 70)]


def test_phases_lie_inside_the_segment_of_least_error():
    errors = np.ones(200)
    errors[60:80] = 0.2
    errors[63:69], errors[72:78] = 0.1, 0.4
    errors[150:156] = 9.0  # livelier, but elsewhere
    assert phase_segment(errors, window=20, horizon=5)[:2] == (60, 80)
    assert find_phases(errors, window=20, horizon=5) == [FilmPhase("calm", 63), FilmPhase("lively", 72)]
    assert find_phases(errors, window=20, horizon=5, search="film")[1] == FilmPhase("lively", 150)


def test_a_segment_in_the_first_window_has_no_room_for_phases():
    errors = np.ones(100)
    errors[:20] = 0.0
    errors[55:75] = 0.5
    segment = phase_segment(errors, window=20, horizon=5)
    assert segment[:2] == (55, 75)
    assert all(55 <= phase.start <= 69 for phase in find_phases(errors, window=20, horizon=5))


@pytest.mark.parametrize("search", ["segment", "film"])
def test_phases_never_overlap_and_differ_as_much_as_can_be(search):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        errors = np.convolve(rng.uniform(size=80), np.ones(7), mode="valid")
        calm, lively = find_phases(errors, window=20, horizon=5, search=search)
        assert abs(calm.start - lively.start) > 5
        means = [errors[s : s + 6].mean() for s in range(len(errors) - 5)]
        segment = phase_segment(errors, window=20, horizon=5)
        first, stop = (20, len(errors)) if search == "film" else (max(20, segment.start), segment.stop)
        places = range(first, stop - 5)
        apart = max(means[j] - means[i] for i in places for j in places if abs(i - j) > 5)
        assert means[lively.start] - means[calm.start] == pytest.approx(apart)


def test_stretches_at_the_borders_are_found():
    errors = np.ones(60)
    errors[20:26], errors[54:] = 0.0, 2.0
    assert find_phases(errors, window=20, horizon=5, search="film") == [FilmPhase("calm", 20), FilmPhase("lively", 54)]
    assert find_phases(errors[:26], window=20, horizon=5) == [FilmPhase("only", 20)]
    assert [phase.name for phase in find_phases(errors[:32], window=20, horizon=5)] == ["calm", "lively"]


def test_a_film_that_is_too_short_is_told_what_it_needs():
    with pytest.raises(NotEnoughFramesError, match="has 25 frames; window=20 and horizon=5 need at least 26"):
        find_phases(np.ones(25), window=20, horizon=5)


def test_the_segment_is_a_window_of_the_sweep_if_there_is_one(glide, tmp_path):
    settings = ReconstructionSettings(n_atoms=16, n_components=8, alpha=0.3, window=40, horizon=4)
    errors = {(0.1, 16, 40): np.array([[0.1], [0.4], [0.2], [0.3]])}
    places = [(0, 40), (40, 80), (80, 120), (120, 160)]
    swept = SimpleNamespace(
        settings=SimpleNamespace(segments=lambda window, n_frames: places), n_frames=160, errors=errors
    )
    result = EXPERIMENT.run(glide[:160], settings, Run(folder=tmp_path), {"sweep": swept})
    assert result.segment == Stretch(80, 120, 0.2)  # the first window has none before it
    assert all(phase.start >= 80 and phase.start + 5 <= 120 for phase in result.phases)
    assert result.summary()["segment_of"] == "windows of the sweep"
    alone = EXPERIMENT.run(glide[:160], settings, Run(folder=tmp_path), {})
    assert alone.sweep_segment is None
    assert alone.summary()["segment_of"] == "whole-film errors"


def test_a_window_without_room_for_two_phases_is_no_segment():
    assert least_window([Stretch(0, 40, 0.1), Stretch(30, 39, 0.1)], window=40, horizon=4) is None


def test_memory_of_errors():
    slow = np.convolve(np.random.default_rng(0).standard_normal(2000), np.ones(40), "valid")
    assert error_memory(np.random.default_rng(0).standard_normal(500)) == 1
    assert 15 <= error_memory(slow) <= 35
    assert error_memory(np.ones(50)) == 25
