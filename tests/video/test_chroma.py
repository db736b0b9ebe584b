"""Colour frames: the luma decides, and the chroma follows it."""

from itertools import pairwise

import numpy as np
import pytest

from psmt import FramePredictor
from psmt.video import CopyLastFrame
from psmt.video.frames import luma
from video.conftest import gliding, texture


@pytest.fixture(scope="module")
def coloured():
    """A film (36, 48, 56, 3) in which a texture in three colours glides by."""
    return np.stack([gliding((0.6, -1.3), 36, texture(seed=seed)) / 255 for seed in range(3)], axis=3)


def test_luma_is_predicted_as_in_grey_and_chroma_moves_with_it(coloured):
    model, grey = FramePredictor().fit(coloured[:24]), FramePredictor().fit(luma(coloured.astype(np.float32))[:24])
    ours, copied = np.zeros((2, 2))
    for last, frame in pairwise(coloured[23:34]):
        predicted = model.predict()
        assert predicted.shape == frame.shape == model.shape_
        np.testing.assert_allclose(luma(predicted), grey.predict(), atol=1e-5)
        for errors, guess in ((ours, predicted), (copied, last)):
            gap = guess - frame
            errors += np.mean(luma(gap) ** 2), np.mean((gap - luma(gap)[:, :, None]) ** 2)
        model.update(frame)
        grey.update(luma(frame.astype(np.float32)))
    # Luma and chroma of a motion that is known.
    assert (ours < [0.04 * copied[0], 0.25 * copied[1]]).all()


def test_rollouts_are_in_colour_and_move_on(coloured):
    model = FramePredictor().fit(coloured[:24])
    rollout = model.predict(horizon=5)
    assert rollout.shape == (5, 48, 56, 3)
    np.testing.assert_array_equal(rollout[0], model.predict())
    later = model.predict_later(5)
    error, copied = (np.mean((one - coloured[28]) ** 2) for one in (rollout[-1], coloured[23]))
    assert error < 0.35 * copied
    model.update(coloured[24])
    np.testing.assert_array_equal(later(), rollout)


@pytest.mark.parametrize("extrapolation", ["phase", "hold"])
def test_a_loaded_model_goes_on_in_colour_bit_for_bit(tmp_path, coloured, extrapolation):
    model = FramePredictor(extrapolation=extrapolation).fit(coloured[:12])
    model.save(tmp_path / "film.psmt")
    again = FramePredictor.load(tmp_path / "film.psmt")
    for frame in coloured[12:16]:
        np.testing.assert_array_equal(again.predict(2), model.predict(2))
        again.update(frame)
        model.update(frame)


@pytest.mark.slow
def test_noise_in_the_chroma_is_not_worse_than_copied():
    rng = np.random.default_rng(0)
    grey = gliding((0.6, -1.3), 40) / 255
    film = grey[..., None] + rng.normal(0, 0.05, (40, 48, 56, 3))
    film += grey[..., None] - luma(film.astype(np.float32))[..., None]
    model, ours, copied = FramePredictor().fit(film[:20]), 0.0, 0.0
    for last, frame in pairwise(film[19:]):
        ours, copied = ours + np.mean((model.predict() - frame) ** 2), copied + np.mean((last - frame) ** 2)
        model.update(frame)
    assert ours < copied


def test_a_cut_begins_again_with_the_colours_of_the_new_scene(coloured):
    model = FramePredictor().fit(coloured[:30])
    other = coloured[:, ::-1, :, ::-1][10]
    model.update(other)
    assert model.cut_
    np.testing.assert_allclose(model.predict(), other, atol=1e-6)


def test_frames_keep_their_number_of_channels(coloured):
    with pytest.raises(ValueError, match=r"frame has shape \(48, 56\); the model was fitted .* \(48, 56, 3\)"):
        FramePredictor().fit(coloured[:3]).update(coloured[3, :, :, 0])


def test_baselines_take_the_luma(coloured):
    film = coloured.astype(np.float32)
    np.testing.assert_array_equal(CopyLastFrame().fit(film[:2]).update(film[2]).predict(), luma(film[2]))
