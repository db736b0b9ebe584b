"""Predictions of `PSMT` in the form that users get: arrays or tables, for several steps or rows, with intervals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from copy import copy, deepcopy
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.utils.validation import check_is_fitted

from psmt.changes import FrameWatch
from psmt.embedding.moments import WindowMoments
from psmt.errors import NotEnoughFramesError
from psmt.model.fitting import Learning
from psmt.model.intervals import CALIBRATED, FEWEST, ForecastErrors, Interval
from psmt.model.online_estimator import as_small_work
from psmt.model.tables import TableForm, as_table
from psmt.types import Array
from psmt.utils.constraints import check_horizon
from psmt.utils.validation import as_array


class Forecasting(Learning):
    """Base class of `PSMT` with `predict` and `predict_quantiles`."""

    @abstractmethod
    def _receive(self, given: Array, frame: Array, code: Array) -> None:
        """Receive a frame (n_features,), as NumPy array and as engine array, together with its code (n_atoms,)."""

    @abstractmethod
    def _ahead(self, steps: int) -> Array:
        """Return the next frames (steps, n_features) in standardised units."""

    def predict(self, horizon: int | ArrayLike | None = None, *, interval: float | None = None) -> Any:
        """Return the next frame, the next `horizon` frames, or the frames that follow each of the given rows.

        Parameters
        ----------
        horizon : int, (time, n_features) array or table, optional
            None predicts the next frame (n_features,). A number predicts as many next frames (horizon, n_features),
            each from the predictions before it, with the present embedding. An array of rows is what scikit-learn
            passes to `predict`. A copy of the model then receives the rows one by one, and the result (time,
            n_features) holds the prediction made after each row. Compare it with the rows shifted by one.
        interval : float, optional
            Coverage of prediction intervals, such as 0.9. The result is then an `Interval` with the fields
            ``predicted``, ``lower`` and ``upper``. Bounds hold for each feature and each step separately. They are
            quantiles of walk-forward errors, whose level adapts so that the coverage is kept while the series changes;
            see `psmt.model.intervals`. The first call measures these errors on up to 100 frames at the end of the
            past, which takes as long as as many updates. From then on, every `update` adds one.

        Returns
        -------
        array, pandas Series or data frame, or `Interval` of these
            A model that was fitted to a data frame returns data frames, and one frame as a Series. Their index
            continues that of `fit` if this has a frequency; otherwise it counts steps. ``set_output`` changes this.
        """
        if interval is None:
            return self._predicted(horizon, ())[0]
        if not isinstance(interval, Real) or not 0 < interval < 1:
            raise ValueError(f"interval={interval!r} is not a coverage; use a number between 0 and 1, such as 0.9")
        tail = round((1 - float(interval)) / 2, 12)  # so that it equals the same quantile of `predict_quantiles`
        return Interval(*self._predicted(horizon, (tail, round(1 - tail, 12))))

    def predict_quantiles(
        self, quantiles: Sequence[float] = (0.05, 0.5, 0.95), horizon: int | ArrayLike | None = None
    ) -> dict[float, Any]:
        """Return quantiles of the next frames, as a mapping from each of `quantiles` (between 0 and 1) to an array.

        Each array has the shape that `predict` returns. It is the prediction plus a quantile of walk-forward errors.
        """
        if not isinstance(quantiles, Iterable):
            raise TypeError(
                f"quantiles={quantiles!r} is not a list; give numbers between 0 and 1, such as [0.05, 0.95]"
            )
        for one in quantiles:
            if not isinstance(one, Real) or not 0 < one < 1:
                raise ValueError(f"quantile {one!r} is out of range; use numbers between 0 and 1, such as 0.05")
        ordered = sorted(set(map(float, quantiles)))
        found = dict(zip(ordered, self._predicted(horizon, ordered)[1:], strict=True))
        return {one: found[one] for one in map(float, quantiles)}

    @as_small_work
    def _predicted(self, horizon: int | ArrayLike | None, quantiles: Sequence[float]) -> list[Any]:
        """Return the prediction and its quantiles, in the form that `predict` promises."""
        check_is_fitted(self, "moments_")
        form = self._table
        if horizon is not None and (horizon if hasattr(horizon, "ndim") else as_array(horizon, name="horizon")).ndim:
            frames, walker, form = self.check_next(horizon), deepcopy(self), TableForm.of(horizon)
            walked = [Forecasting._with_quantiles(walker.update(frame), 1, quantiles)[:, 0] for frame in frames]
            found, single = np.swapaxes(walked, 0, 1), False
            index = form and form.following(horizon)
        else:
            single = horizon is None
            found = self._with_quantiles(1 if single else check_horizon(horizon), quantiles)
            index = form and form.after(found.shape[1])
        own = getattr(self, "_sklearn_output_config", {}).get("transform")
        library = own or get_config()["transform_output"]
        if library == "default":
            library = form.library if form is not None and own is None else ""
        if not library:
            return [one[0] if single else one for one in found]
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])
        return [as_table(one, names, library, index, single=single) for one in found]

    def _with_quantiles(self, steps: int, quantiles: Sequence[float]) -> Array:
        """Return the next frames and their quantiles (1 + n_quantiles, steps, n_features)."""
        if quantiles and self._intervals.n_ahead < steps:
            self._intervals = self._calibrate(steps)
        predicted = self._ahead(steps)
        bounds = self._intervals.bounds(quantiles, steps) if quantiles else np.zeros((0, *predicted.shape))
        return self._scaling.restore(np.concatenate([predicted[None], predicted + bounds]))

    def _calibrate(self, n_ahead: int) -> ForecastErrors:
        """Return the errors of predicting the last frames of the past, by a copy of the model that forgets them."""
        n_known, window = len(self._watch.frames), len(self.moments_)
        n = min(CALIBRATED + n_ahead - 1, n_known - 3, window // 2)
        if n - n_ahead + 1 < FEWEST:
            raise NotEnoughFramesError(
                f"intervals for {n_ahead} steps need a window of at least {2 * (FEWEST + n_ahead - 1)} frames, and "
                f"{FEWEST + n_ahead + 2} that are kept, but window is {window} and {n_known} are kept (at most 151); "
                f"use a longer window, more frames, or a shorter horizon (at most {max(n - FEWEST + 1, 0)} here)"
            )
        return Forecasting._receive_again(copy(self), n, n_ahead)

    def _receive_again(self, n: int, n_ahead: int) -> ForecastErrors:
        """Forget the last `n` frames, receive them again, and return the errors of predicting them."""
        frames, codes, begins = self._watch.frames, self.codes_, self.moments_.begins
        self.moments_ = WindowMoments.of(self._engine.array(codes[:-n]), self._engine, begins=begins[:-n])
        self.followed_, self._embedding, self._forecast = self._start_following(), None, None
        self._watch = FrameWatch(frames[:-n], self.window_)
        self._extrapolation = deepcopy(self._extrapolation)
        if self._extrapolation.n_folds:
            self._extrapolation.rewind(n, codes[:-n], self.embedding_)
        self._keep_residual(self._engine.array(frames[-n - 1]))
        self._intervals = ForecastErrors(n_ahead, self.n_features_in_)
        for frame, code in zip(frames[-n:], self._engine.array(codes[-n:]), strict=True):
            self._receive(frame, self._engine.array(frame), code)
        return self._intervals
