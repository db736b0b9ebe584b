"""The regressor of river: river's own checks, and the same numbers as the model's."""

import numpy as np
import pytest

from psmt import PSMT

pytest.importorskip("river")
from river.checks import yield_checks

from psmt.adapters.river import PSMTRegressor

pytestmark = pytest.mark.filterwarnings("ignore")

T = np.arange(100)
ROWS = np.column_stack([np.sin(T / 7), 5 + np.cos(T / 7)])


def test_predictions_are_those_of_the_model():
    regressor = PSMTRegressor(warm_up=60)
    assert regressor.predict_one({}) == {}
    for t, (a, b) in enumerate(ROWS):
        regressor.learn_one({}, {"a": a, "b": b} if t % 2 else {"b": b, "a": a})
        if t == 30:
            assert regressor.predict_one({}) == {"a": a, "b": b}
    model = PSMT.for_series(random_state=0).fit(ROWS[:60, ::-1])
    for row in ROWS[60:, ::-1]:
        model.update(row)
    assert [list(row.values()) for row in regressor.forecast(3)] == model.predict(3).tolist()


def test_bad_rows_and_sizes_are_named():
    regressor = PSMTRegressor()
    regressor.learn_one({}, {"a": 1.0, "b": 2.0})
    with pytest.raises(ValueError, match=r"no value for \['b'\]; give all of \['a', 'b'\]"):
        regressor.learn_one({}, {"a": 1.0})
    with pytest.raises(ValueError, match="warm_up=3"):
        PSMTRegressor(warm_up=3).learn_one({}, {"a": 1.0})


@pytest.mark.parametrize("check", yield_checks(PSMTRegressor(warm_up=10)), ids=lambda check: check.__name__)
def test_its_own_checks_pass(check):
    check(PSMTRegressor(warm_up=10))
