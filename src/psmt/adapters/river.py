"""PSMT as an online regressor of river. It needs the extra ``psmt[river]``; docs/how-to/river.md shows its use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from river.base import MultiTargetRegressor
from sklearn.base import clone

from psmt.model import PSMT
from psmt.types import Array
from psmt.utils.constraints import check_count


class PSMTRegressor(MultiTargetRegressor):
    """A river regressor that predicts the next row of a stream from the rows before it.

    A row is the target `y`, a mapping of names to numbers. The features `x` are ignored, and may be ``{}``. While the
    first `warm_up` rows are collected, the prediction is the last row. Then the model is fitted to these rows. From
    then on it learns from each new row, with constant memory.

    Parameters
    ----------
    model : PSMT or None
        The model, which is cloned before it is fitted. None uses ``PSMT.for_series(random_state=0)``.
    warm_up : int, default 200
        Number of rows that the model is fitted to, at least 10.

    Examples
    --------
    >>> import math
    >>> model = PSMTRegressor(warm_up=60)
    >>> for t in range(100):
    ...     expected = model.predict_one({})
    ...     model.learn_one({}, {"sine": math.sin(t / 5), "cosine": math.cos(t / 5)})
    >>> round(expected["sine"], 1) == round(math.sin(99 / 5), 1)
    True
    """

    def __init__(self, model: PSMT | None = None, warm_up: int = 200) -> None:
        self.model = model
        self.warm_up = warm_up
        self._fitted: PSMT | None = None
        self._names: list[Any] = []
        self._rows: list[Array] = []

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"warm_up": 10}

    def learn_one(self, x: Mapping[Any, Any], y: Mapping[Any, float], **_: Any) -> None:
        """Receive the row `y`, whose names must be those of the first row. `x` is ignored."""
        names = self._names or list(y)
        if missing := [name for name in names if name not in y]:
            raise ValueError(f"y has no value for {missing}; give all of {names} in each row")
        row = np.array([y[name] for name in names], dtype=np.float64)
        self._names = names
        if self._fitted is not None:
            self._fitted.update(row)
            return
        self._rows.append(row)
        if len(self._rows) >= check_count("warm_up", self.warm_up, minimum=10):
            model = PSMT.for_series(random_state=0) if self.model is None else clone(self.model)
            self._fitted, self._rows = model.fit(np.stack(self._rows)), []

    def predict_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        """Return the predicted next row: empty before the first row, and the last row during the warm-up."""
        return self.forecast(1)[0]

    def forecast(self, horizon: int) -> list[dict[Any, float]]:
        """Return the predictions of the next `horizon` rows, as a list of mappings of names to numbers."""
        steps = check_count("horizon", horizon)
        rows = self._rows[-1:] * steps if self._fitted is None else self._fitted.predict(steps)
        return [dict(zip(self._names, row.tolist(), strict=True)) for row in rows] or [{}] * steps
