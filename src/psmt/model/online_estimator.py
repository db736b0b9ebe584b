"""Base class of all models that predict frames, with `partial_fit` and walk-forward scoring."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from itertools import pairwise
from threading import get_ident
from typing import Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from psmt.errors import NotEnoughFramesError, SharedModelError
from psmt.persistence.model_file import SavedModel
from psmt.utils.threads import one_blas_thread

Method = TypeVar("Method", bound=Callable[..., Any])

_USER = "_used_by"  # name of the attribute that marks a model while a thread is inside one of its methods


def by_one_thread(method: Method) -> Method:
    """Decorator: raise `SharedModelError` while another thread is inside a decorated method of the same model."""

    @wraps(method)
    def guarded(model: Forecaster, /, *args: Any, **kwargs: Any) -> Any:
        mark, limit = (get_ident(), object()), one_blas_thread()

        def leave() -> None:
            if model.__dict__.get(_USER) is mark:
                model._roll_back()  # noqa: SLF001
                del model.__dict__[_USER]
            limit.leave()

        # `leave` is called twice, because an interrupt may strike just before the first call.
        try:
            try:
                # `setdefault` is atomic: of two threads, one finds the mark of the other.
                found = model.__dict__.setdefault(_USER, mark)
                if found[0] != mark[0]:
                    raise _shared(model)
                if found is mark:
                    model._roll_back()  # noqa: SLF001
                return method(model, *args, **kwargs)
            finally:
                leave()
        finally:
            leave()

    return cast(Method, guarded)


def as_small_work(method: Method) -> Method:
    """Decorator: limit the BLAS threads of a method, and raise `SharedModelError` if two threads call it at once."""

    @by_one_thread
    @wraps(method)
    def limited(model: Any, /, *args: Any, **kwargs: Any) -> Any:
        with model._engine.small_work():  # noqa: SLF001
            return method(model, *args, **kwargs)

    return cast(Method, limited)


def _shared(model: object) -> SharedModelError:
    return SharedModelError(
        f"another thread is using this {type(model).__name__}; give each thread a copy of its own, or take turns"
    )


class Forecaster(SavedModel, BaseEstimator):
    """A scikit-learn estimator that receives frames, (n_features,) or (height, width), and predicts the next frame."""

    _undo: Callable[[], None] | None = None
    """Function that restores an earlier state. A method sets it before it changes the model, and to None afterwards."""

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        user = state.pop(_USER, None)
        if user is not None and user[0] != get_ident():
            raise _shared(self)
        return state

    def _roll_back(self) -> None:
        """Restore the state before the last method call if that call was interrupted."""
        if self._undo is not None:
            self._undo()
            self._undo = None

    @abstractmethod
    def fit(self, X: ArrayLike, /) -> Self:
        """Learn from the past frames (time, ...)."""

    @abstractmethod
    def update(self, x: ArrayLike, /) -> Self:
        """Receive the next frame, and return the model."""

    @abstractmethod
    def predict(self) -> NDArray[Any]:
        """Return the next frame."""

    @abstractmethod
    def check_next(self, X: ArrayLike) -> NDArray[Any]:
        """Validate the next frames and return them (time, ...) as numbers."""

    @abstractmethod
    def __sklearn_is_fitted__(self) -> bool: ...

    @by_one_thread
    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
        """Receive the next frames (time, ...) one by one, as `update` does. If the model is not fitted, fit it to them.

        If a frame is invalid or the call is interrupted, the model does not change.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X)
        frames = self.check_next(X)
        if len(frames) == 1:
            return self.update(frames[0])
        parameters = {id(value): value for value in self.get_params(deep=False).values()}
        changed = deepcopy(self, parameters)
        for frame in frames:
            changed.update(frame)
        self.__dict__ = changed.__dict__
        return self

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Return -(squared error of predictions) / (squared error of copying the last frame), on frames X (time, ...).

        Copying scores -1, and perfect predictions score 0. The score is measured walk-forward: a copy of the model
        receives the first frame, predicts the second, receives the second, and so on. X need not follow the training
        frames immediately, so ``GridSearchCV(model, grid, cv=TimeSeriesSplit())`` works. The score is NaN if all frames
        of X are equal, because copying then makes no error.
        """
        check_is_fitted(self)
        frames = self.check_next(X)
        if len(frames) < 2:
            raise NotEnoughFramesError(
                f"X has {len(frames)} frames (n_samples={len(frames)}); a score needs 2: one to receive, one to predict"
            )
        walker, missed, copied = deepcopy(self), 0.0, 0.0
        for last, frame in pairwise(frames):
            expected = np.asarray(walker.update(last).predict())
            missed += float(np.sum(np.square(expected - frame), dtype=np.float64))
            copied += float(np.sum(np.square(last - frame), dtype=np.float64))
        return -missed / copied if copied > 0 else float("nan")
