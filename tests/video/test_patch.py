"""The whole-frame predictor, read at a patch."""

import numpy as np
import pytest

from psmt import open_frames, read_patches
from psmt.data.patches import PatchCutter, read_surroundings
from psmt.evaluation import teacher_forced
from psmt.experiments.phases import FilmPhase
from psmt.experiments.prediction.phase import predict_phase
from psmt.video import FramePredictor, PatchInFrame

FILM = "builtin:glide?frames=90&speed=1.0&size=60"
PLACES = {"centre": {}, "corner": {"position": (0, 2)}, "edge": {"position": (20, 34)}, "large": {"frame_size": 80}}


def around(place, stretch=slice(0, 90)):
    cutter = PatchCutter(**{"frame_size": 50, "patch_size": 16} | PLACES[place])
    ((frames, corner),) = read_surroundings(open_frames(FILM), cutter, [stretch])
    return frames, corner, read_patches(FILM, **{"frame_size": 50, "patch_size": 16} | PLACES[place]).values


@pytest.mark.parametrize("place", PLACES)
def test_the_patch_in_the_surroundings_is_standardised_as_the_patch(place, monkeypatch):
    """A predictor that copies its surroundings copies the patch, to the rounding of single precision."""
    frames, (row, column), patches = around(place)
    assert frames.shape[1] == (48 if place in ("centre", "large") else frames.shape[1])
    monkeypatch.setattr("psmt.video.patch.FramePredictor", lambda **_: FramePredictor(extrapolation="hold"))
    model = PatchInFrame(corner=(row, column), patch_size=16).fit(frames[:50])
    for t in range(50, 60):
        assert np.allclose(model.update(frames[t]).predict(), patches[t], atol=2e-5)
    assert np.allclose(model.predict(3), patches[[59] * 3], atol=2e-5)


def test_context_is_far_better_than_copying_where_the_camera_moves():
    frames, corner, patches = around("centre")
    model = PatchInFrame(corner=tuple(corner), patch_size=16).fit(frames[:59])
    score = teacher_forced(model, patches[59:], patches[59:], received=frames[59:])
    assert score.vs_frame.mean() < 0.1 * np.mean(np.diff(patches[59:], axis=0) ** 2)
    assert np.allclose(score.predicted.mean(axis=1), 0, atol=1e-9)
    assert np.allclose(score.predicted.std(axis=1), 1)


def test_stretches_are_those_of_the_film():
    cutter = PatchCutter(frame_size=50, patch_size=16)
    film = open_frames(FILM)
    whole, *parts = read_surroundings(film, cutter, [slice(0, 90), slice(3, 9), slice(5, 20)])
    assert np.array_equal(parts[0][0], whole[0][3:9])
    assert np.array_equal(parts[1][0], whole[0][5:20])
    wide = cutter.reduce(film[4])
    assert np.allclose(whole[0][4], wide[1:49, 1:49], atol=1e-6)
    assert whole[1] == [16, 16]
    assert read_surroundings(film, cutter, []) == []


@pytest.mark.slow
def test_a_phase_has_it_where_the_surroundings_are_known():
    frames, corner, patches = around("centre")
    sizes = {"horizon": 4, "n_atoms": 12, "window": 40, "n_components": 4, "lam": 0.1, "picture_shape": (16, 16)}
    result = predict_phase(patches, FilmPhase("p", 60), **sizes, surroundings=frames[20:65], corner=corner)
    model = PatchInFrame(corner=tuple(corner), patch_size=16).fit(frames[20:60])
    assert np.allclose(result.rollouts["whole_frame"].predicted, model.update(frames[60]).predict(4))
    assert np.allclose(result.scores["whole_frame"].predicted[0], result.rollouts["whole_frame"].predicted[0])
    without = predict_phase(patches, FilmPhase("p", 60), **sizes | {"picture_shape": None})
    assert not {"whole_frame", "motion"} & set(without.scores)


def test_a_patch_outside_its_surroundings_is_refused():
    with pytest.raises(ValueError, match=r"corner=\(40, 0\) puts a patch of 16 outside surroundings of 48 x 48"):
        PatchInFrame(corner=(40, 0), patch_size=16).fit(np.zeros((5, 48, 48)))
