"""What cannot be taken for numbers is refused in words, by every estimator alike."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from psmt import PSMT, FramePredictor, SparseCoder, TemporalEmbedding
from psmt.data.patches import standardise
from psmt.errors import DeviceError
from psmt.evaluation import mean_interval, mse, ssim
from psmt.model.baselines import CopyLast, RidgeAutoregression
from psmt.video.baselines import RidgePixels

SERIES = np.cos(np.arange(60)[:, None] / 5 + np.arange(5))
ESTIMATORS = [
    PSMT(n_atoms=7, window=16, n_components=2, lam=0.1, alpha=0.1),
    SparseCoder(n_atoms=7),
    TemporalEmbedding(),
    CopyLast(),
]
FILM = np.cos(np.arange(8)[:, None, None] + np.add.outer(np.arange(12), np.arange(14)) / 3)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([[1.0, 2.0]] * 59 + [[1.0]], "is no array of numbers"),
        (np.ma.masked_greater(SERIES, 0.5), "masked values"),
        (1e200 * SERIES, "beyond 1e\\+36"),
        (pd.DataFrame(SERIES, columns=list("abcab")), "several columns named 'a'; rename them"),
    ],
    ids=["ragged", "masked", "huge", "names twice"],
)
def test_what_is_no_series_is_refused_in_words(estimator, given, told):
    with pytest.raises(ValueError, match=told):
        estimator.fit(given)


def test_a_masked_array_without_gaps_is_an_array():
    CopyLast().fit(np.ma.masked_invalid(SERIES))


def test_a_tensor_that_is_part_of_a_graph():
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match="detach"):
        SparseCoder(n_atoms=7).fit(torch.from_numpy(SERIES).requires_grad_())


@pytest.mark.parametrize("given", [1e9 * FILM, np.full_like(FILM, np.float64(1e300))])
def test_grey_levels_whose_powers_are_no_numbers(given):
    with pytest.raises(ValueError, match=r"beyond 1e\+06|infinite"):
        FramePredictor().fit(given)


@pytest.mark.parametrize("device", [None, 0, "cuda:" + "9" * 50])
def test_what_is_no_device(device):
    with pytest.raises(DeviceError, match="device="):
        PSMT(device=device).fit(SERIES)


def test_a_count_that_no_memory_holds():
    with pytest.raises(ValueError, match="n_atoms=1000000000000000000000000000000 is too large"):
        SparseCoder(n_atoms=10**30).fit(SERIES)


def test_a_ridge_penalty_below_rounding_divides_by_no_zero():
    still = np.ones_like(SERIES)
    assert np.isfinite(RidgeAutoregression(order=20, penalty=1e-300).fit(still + 1e12).predict(3)).all()
    assert np.isfinite(RidgePixels(penalty=1e-300).fit(FILM).predict()).all()


@pytest.mark.parametrize("scale", [1e-76, 1e-160, 5e-324])
def test_codes_whose_squares_are_no_numbers_do_not_vary(scale):
    layer = TemporalEmbedding().fit(scale * SERIES)
    assert layer.rank_ == 0
    assert layer.transform(scale * SERIES).shape == (60, 0)


def test_errors_of_what_does_not_fit():
    with pytest.raises(ValueError, match="does not fit"):
        mse(FILM[:3], FILM)
    with pytest.raises(ValueError, match="give real numbers"):
        mse(FILM.astype("datetime64[s]"), FILM)
    with pytest.raises(ValueError, match="one \\(height, width\\)"):
        ssim(FILM, FILM)
    with pytest.raises(TypeError, match=r"values is sparse"):
        standardise(csr_array(SERIES))
    with pytest.raises(TypeError, match="not a number"):
        mean_interval(value for value in (1.0, 2.0))
    with pytest.raises(ValueError, match=r"level=1\.5"):
        mean_interval([1.0, 2.0], level=1.5)
    assert np.allclose(ssim(FILM.astype(np.longdouble), FILM[0])[0], 1.0)
