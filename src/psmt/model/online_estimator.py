"""What all models that predict frames have in common: online learning, walk-forward scoring, HTML repr."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
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

Method = TypeVar("Method", bound=Callable[..., Any])

_USER = "_used_by"
"""Attribute that a model has while a thread is inside one of its methods."""


def by_one_thread(method: Method) -> Method:
    """Reject concurrent callers: raise `SharedModelError` while another thread is inside such a method."""

    @wraps(method)
    def guarded(model: Forecaster, /, *args: Any, **kwargs: Any) -> Any:
        mark = (get_ident(), object())
        # `setdefault` is atomic: of two threads, one finds the mark of the other.
        found = model.__dict__.setdefault(_USER, mark)
        if found[0] != mark[0]:
            raise _shared(model)
        try:
            return method(model, *args, **kwargs)
        finally:
            if found is mark:
                model.__dict__.pop(_USER, None)

    return cast(Method, guarded)


def as_small_work(method: Method) -> Method:
    """Limit the BLAS threads of a method, and reject concurrent callers."""

    @by_one_thread
    @wraps(method)
    def limited(model: Any, /, *args: Any, **kwargs: Any) -> Any:
        with model._engine.small_work():  # noqa: SLF001  it is a method of the model
            return method(model, *args, **kwargs)

    return cast(Method, limited)


def _shared(model: object) -> SharedModelError:
    return SharedModelError(
        f"another thread is using this {type(model).__name__}; give each thread a copy of its own, or take turns"
    )


class Forecaster(SavedModel, BaseEstimator):
    """A scikit-learn estimator that receives frames, (n_features,) or (height, width), and predicts the next.

    A subclass defines how its input is checked and what its HTML repr shows.
    """

    score_: float | None = None
    """The last result of `score`, for the HTML repr; it is not saved."""

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        user = state.pop(_USER, None)
        if user is not None and user[0] != get_ident():
            raise _shared(self)
        return state

    @abstractmethod
    def fit(self, X: ArrayLike, /) -> Self:
        """Learn from the past frames (time, ..)."""

    @abstractmethod
    def update(self, x: ArrayLike, /) -> Self:
        """Receive the next frame."""

    @abstractmethod
    def predict(self) -> NDArray[Any]:
        """The next frame."""

    @property
    @abstractmethod
    def surprise_(self) -> float:
        """How unexpected the last frame was, in units of what is usual."""

    @property
    @abstractmethod
    def cut_(self) -> bool:
        """Whether the last frame began something new."""

    @abstractmethod
    def check_next(self, X: ArrayLike) -> NDArray[Any]:
        """The next frames (time, ..), checked and converted to numbers."""

    @abstractmethod
    def _card(self) -> str:
        """The fitted model as HTML."""

    @abstractmethod
    def __sklearn_is_fitted__(self) -> bool: ...

    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
        """Receive the next frames (time, ..), as `update` does one by one; the first call is `fit`.

        If one of the frames is invalid, none is received.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X)
        for frame in self.check_next(X):
            self.update(frame)
        return self

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Minus the squared error of predicting each next frame of X (time, ..), relative to that of copying the last.

        -1 is the score of copying, 0 that of perfect predictions. It is measured walk-forward on a copy of the model:
        the first frame is received and the second predicted, then received, and so on. X need not follow the training
        frames immediately, so ``GridSearchCV(model, grid, cv=TimeSeriesSplit())`` chooses by the future of each split.
        NaN if X stands still, as copying makes no error then.
        """
        check_is_fitted(self)
        frames = self.check_next(X)
        if len(frames) < 2:
            raise NotEnoughFramesError(
                f"X has {len(frames)} frames (n_samples={len(frames)}); a score needs 2: one to receive, one to predict"
            )
        missed = copied = 0.0
        for (last, expected), (frame, _) in pairwise(self._walk(frames)):
            missed += float(np.sum(np.square(expected - frame), dtype=np.float64))
            copied += float(np.sum(np.square(last - frame), dtype=np.float64))
        self.score_ = -missed / copied if copied > 0 else float("nan")
        return self.score_

    def _walk(self, frames: NDArray[Any]) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield each frame, and the prediction of a copy of the model after it."""
        walker = deepcopy(self)
        for frame in frames:
            yield frame, walker.update(frame).predict()

    def _record(self) -> dict[str, str]:
        """Facts about the frames so far, for the HTML repr."""
        cut = ", a cut" if self.cut_ else ""
        if self.score_ is None:
            score = "not computed yet: score(X)"
        elif np.isnan(self.score_):
            score = "NaN: nothing moved, so copying made no error"
        else:
            score = f"{self.score_:.3f} at the last call; copying has -1"
        return {"surprise": f"{self.surprise_:.2f} at the last frame{cut}; 1 is usual", "score": score}

    # scikit-learn shows a diagram, by one of two methods. A fitted model has more to show.

    def _repr_html_inner(self) -> str:
        return self._card() if self.__sklearn_is_fitted__() else str(super()._repr_html_inner())

    def _repr_mimebundle_(self, **options: object) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:  # unless sklearn.set_config(display="text")
            bundle["text/html"] = self._repr_html_inner()
        return bundle
