"""Tables in, tables out: columns, continued index, set_output, and scikit-learn's scorers."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score

from psmt import PSMT
from psmt.model.tables import TableForm

ROWS = np.cumsum(np.random.default_rng(1).standard_normal((120, 3)), axis=0)
NAMES = ["temp", "wind", "rain"]


def table(index=None):
    return pd.DataFrame(ROWS, columns=NAMES, index=index)


def small():
    return PSMT.for_series(n_atoms=16, n_components=4, lam=0.1, random_state=0)


@pytest.fixture(scope="module")
def of_rows():
    """The next three rows, predicted from an array."""
    return small().fit(ROWS).predict(3)


@pytest.mark.parametrize(
    ("index", "following"),
    [
        (pd.date_range("2026-01-01", periods=120, freq="D"), pd.date_range("2026-05-01", periods=3, freq="D")),
        (pd.bdate_range("2026-01-01", periods=120), pd.bdate_range("2026-06-18", periods=3)),
        (
            pd.date_range("2026-03-01", periods=120, freq="h", tz="Europe/Berlin"),
            pd.date_range("2026-03-06", periods=3, freq="h", tz="Europe/Berlin"),
        ),
        (pd.period_range("2000-01", periods=120, freq="M"), pd.period_range("2010-01", periods=3, freq="M")),
        (pd.RangeIndex(120), pd.RangeIndex(120, 123)),
        (np.arange(120) * 0.5, pd.Index([60.0, 60.5, 61.0])),
        (list(map("row {}".format, range(120))), pd.RangeIndex(1, 4)),
        ([7] * 120, pd.RangeIndex(1, 4)),
    ],
    ids=["days", "business days", "hours with a zone", "months", "numbers", "halves", "labels", "one number"],
)
def test_a_forecast_continues_the_table(index, following, of_rows, tmp_path):
    model = small().fit(table(index))
    forecast = model.predict(3)
    assert list(forecast.columns) == NAMES
    pd.testing.assert_index_equal(forecast.index, following, check_exact=True)
    row = model.predict()
    assert isinstance(row, pd.Series) and list(row.index) == NAMES and row.name == following[0]
    interval = model.predict(3, interval=0.8)
    assert all(one.index.equals(following) for one in interval) and (interval.lower < interval.upper).all(axis=None)
    model.save(tmp_path / "model.psmt")
    pd.testing.assert_frame_equal(PSMT.load(tmp_path / "model.psmt").predict(3), forecast)
    np.testing.assert_allclose(forecast, of_rows, rtol=1e-9)


def test_the_index_moves_on_with_each_row():
    model = small().fit(table(pd.date_range("2026-01-01", periods=120, freq="D")))
    row = model.predict()
    assert model.update(row).predict().name == pd.Timestamp("2026-05-02")
    assert model.partial_fit(model.predict(4)).predict().name == pd.Timestamp("2026-05-06")


def test_rows_give_the_rows_that_follow_them():
    days = pd.date_range("2026-01-01", periods=120, freq="D")
    whole = table(days)
    found = small().fit(whole[:80]).predict(whole[80:])
    assert found.index.equals(pd.date_range("2026-03-23", periods=40, freq="D"))
    np.testing.assert_allclose(found, small().fit(ROWS[:80]).predict(ROWS[80:]), rtol=1e-9)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize(
    "index",
    [
        pd.bdate_range("2026-01-01", periods=120),
        pd.date_range("2026-03-01", periods=120, freq="h", tz="Europe/Berlin"),
        pd.period_range("2000-01", periods=120, freq="M"),
        pd.Index(np.arange(120) * 0.5),
    ],
    ids=["business days", "hours with a zone", "months", "halves"],
)
def test_one_row_continues_by_the_step_of_the_fitted_table(index, n):
    whole = table(index)
    found = small().fit(whole[:80]).predict(whole.iloc[list(range(80, 80 + n))])  # a list of rows has no frequency
    pd.testing.assert_index_equal(found.index, index[81 : 81 + n], check_exact=True)


def test_one_row_with_another_index_is_counted():
    whole = table(pd.date_range("2026-01-01", periods=120, freq="D"))
    assert list(small().fit(whole[:80]).predict(table()[80:82]).index) == [1, 2]


def test_set_output_is_obeyed():
    assert isinstance(small().fit(table()).set_output(transform="default").predict(2), np.ndarray)
    found = small().set_output(transform="pandas").fit(ROWS).predict(2)
    assert list(found.columns) == ["x0", "x1", "x2"] and list(found.index) == [1, 2]
    with config_context(transform_output="pandas"):
        assert isinstance(small().fit(ROWS).predict(2), pd.DataFrame)
    assert isinstance(small().fit(ROWS).predict(2), np.ndarray)


@pytest.mark.slow
def test_scorers_of_scikit_learn_take_rows_shifted_by_one():
    expected = []
    for stop in (79, 99):
        predicted = small().fit(ROWS[:stop]).predict(ROWS[stop : stop + 20])
        expected.append(-np.mean((predicted - ROWS[stop + 1 : stop + 21]) ** 2))
    for X in (ROWS, table()):
        past, following = X[:-1], X[1:]
        scores = cross_val_score(
            small(), past, following, scoring="neg_mean_squared_error", cv=TimeSeriesSplit(2, test_size=20)
        )
        np.testing.assert_allclose(scores, expected)
    search = GridSearchCV(small(), {"alpha": ["auto", 0.5]}, cv=TimeSeriesSplit(2), scoring="r2").fit(past, following)
    assert np.isfinite(search.best_score_)


@pytest.mark.filterwarnings("error::DeprecationWarning")
def test_dates_without_a_frequency_cause_no_warning_of_pandas():
    dates = pd.DatetimeIndex(list(pd.date_range("2024-01-01", periods=9, freq="D")))
    assert TableForm.of(pd.DataFrame({"a": range(9)}, index=dates)).step == "D"
