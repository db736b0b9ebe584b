"""Metrics of whole frames, against scikit-image."""

import numpy as np
import pytest
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from psmt.evaluation import psnr, score_frames, ssim


@pytest.fixture
def frames():
    rng = np.random.default_rng(0)
    truth = np.cumsum(rng.standard_normal((40, 31)), axis=1)
    truth = (truth - truth.min()) / np.ptp(truth)
    return truth, truth + 0.1 * rng.standard_normal((3, 40, 31))


def test_ssim_and_psnr_are_those_of_scikit_image(frames):
    truth, predicted = frames
    for score, prediction in zip(score_frames(predicted, truth), predicted, strict=True):
        assert score.ssim == pytest.approx(
            structural_similarity(
                prediction, truth, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=1.0
            ),
            abs=1e-12,
        )
        assert score.psnr == pytest.approx(peak_signal_noise_ratio(truth, prediction, data_range=1.0), abs=1e-9)
        assert score.mse == pytest.approx(np.mean((prediction - truth) ** 2), rel=1e-12)


def test_single_precision_is_enough(frames):
    truth, predicted = frames
    single = ssim(predicted.astype(np.float32), truth.astype(np.float32))
    np.testing.assert_allclose(single, ssim(predicted, truth), atol=1e-5)


def test_a_flawless_prediction_has_a_finite_score(frames):
    truth, _ = frames
    (score,) = score_frames(truth[None], truth)
    assert score == (0.0, 100.0, pytest.approx(1.0))
    assert psnr([0.0, 1.0]).tolist() == [100.0, 0.0]


def test_frames_smaller_than_the_window_are_refused():
    with pytest.raises(ValueError, match="11 x 11 pixels, but a frame has 10 x 40"):
        ssim(np.zeros((1, 10, 40)), np.zeros((10, 40)))
