"""PSMT as a forecaster of sktime. It needs the extra ``psmt[sktime]``; docs/how-to/sktime.md shows its use."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import clone
from sktime.forecasting.base import BaseForecaster, ForecastingHorizon

from psmt.model import PSMT


class PSMTForecaster(BaseForecaster):
    """An sktime forecaster of series with one or several columns, with quantiles, intervals and online learning.

    `update` passes new rows to the model, which learns from them without being fitted again. With
    ``update_params=False`` the model learns too, because it can predict only from rows that it has received. Rows that
    it already has are skipped. Exogenous data are ignored, and there are no predictions of past rows.

    Parameters
    ----------
    model : PSMT or None
        The model, which is cloned before it is fitted. None uses ``PSMT.for_series(random_state=0)``.

    Attributes
    ----------
    model_ : PSMT
        The fitted model.

    Examples
    --------
    >>> from psmt.adapters.sktime import PSMTForecaster
    >>> from sktime.datasets import load_airline
    >>> PSMTForecaster().fit(load_airline()).predict(fh=[1, 3]).shape
    (2,)
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": "The PSMT developers",
        "python_dependencies": ["psmt"],
        "capability:multivariate": True,
        "capability:exogenous": False,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:update": True,
        "y_inner_mtype": "pd.DataFrame",
        "requires-fh-in-fit": False,
    }

    def __init__(self, model: PSMT | None = None) -> None:
        self.model = model
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # sktime 1.2 announces a default of 1.3
            super().__init__()

    def _fit(self, y: pd.DataFrame, X: object, fh: object) -> Self:
        model = PSMT.for_series(random_state=0) if self.model is None else clone(self.model)
        self.model_ = model.fit(y.to_numpy(dtype=np.float64))
        self._columns, self._last = y.columns, y.index[-1]
        return self

    def _update(self, y: pd.DataFrame, X: object = None, update_params: bool = True) -> Self:
        rows = y.loc[y.index > self._last]
        if len(rows):
            self.model_.partial_fit(rows.to_numpy(dtype=np.float64))
            self._last = rows.index[-1]
        return self

    def _predict(self, fh: ForecastingHorizon, X: object) -> pd.DataFrame:
        steps = self._steps(fh)
        values = self.model_.predict(int(steps.max()))[steps - 1]
        return pd.DataFrame(values, index=fh.to_absolute_index(self.cutoff), columns=self._columns)

    def _predict_quantiles(self, fh: ForecastingHorizon, X: object, alpha: Sequence[float]) -> pd.DataFrame:
        steps = self._steps(fh)
        found = self.model_.predict_quantiles(alpha, int(steps.max()))
        columns = pd.MultiIndex.from_product([self._get_varnames(), alpha])
        values = np.stack([found[one][steps - 1] for one in alpha], axis=2).reshape(len(steps), -1)
        return pd.DataFrame(values, index=fh.to_absolute_index(self.cutoff), columns=columns)

    def _steps(self, fh: ForecastingHorizon) -> Any:
        """Return the horizon as an array of integers: the numbers of steps after the last row."""
        return fh.to_relative(self.cutoff).to_numpy().astype(np.int64)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:  # noqa: ARG003
        """Return parameters for sktime's tests."""
        return [{}, {"model": PSMT.for_series(n_atoms=8, random_state=1, lam=0.1)}]
