"""The forecaster of sktime: sktime's own checks, and the same numbers as the model's."""

import warnings

import numpy as np
import pandas as pd
import pytest

from psmt import PSMT

pytest.importorskip("sktime")
from sktime.utils.estimator_checks import check_estimator

from psmt.adapters.sktime import PSMTForecaster

pytestmark = pytest.mark.filterwarnings("ignore")

T = np.arange(120)
Y = pd.DataFrame({"a": np.sin(T / 7), "b": 5 + np.cos(T / 7)}, index=pd.date_range("2024-01-01", periods=120, freq="h"))


def test_forecasts_quantiles_and_updates_are_those_of_the_model():
    model, forecaster = PSMT.for_series(random_state=0).fit(Y[:100].to_numpy()), PSMTForecaster().fit(Y[:100])
    found = forecaster.predict(fh=[1, 4])
    np.testing.assert_array_equal(found, model.predict(4)[[0, 3]])
    assert list(found.columns) == ["a", "b"]
    assert found.index.equals(Y.index[[100, 103]])
    quantiles = forecaster.predict_quantiles(fh=[2], alpha=[0.1, 0.9])
    expected = model.predict_quantiles([0.1, 0.9], 2)
    assert list(quantiles.columns) == [("a", 0.1), ("a", 0.9), ("b", 0.1), ("b", 0.9)]
    np.testing.assert_array_equal(quantiles["b", 0.9], expected[0.9][1:, 1])
    forecaster.update(Y[95:110])  # five of these rows are known already
    np.testing.assert_array_equal(forecaster.predict(fh=[1]), model.partial_fit(Y[100:110].to_numpy()).predict(1))


@pytest.mark.slow
def test_its_own_checks_pass():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(PSMTForecaster, raise_exceptions=False, verbose=False)
    assert len(found) > 500
    assert {name: why for name, why in found.items() if why != "PASSED"} == {}
