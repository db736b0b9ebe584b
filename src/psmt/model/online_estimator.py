"""What every model that predicts frames does with many of them: learns on, is scored walk-forward, shows itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import wraps
from itertools import pairwise
from threading import get_ident
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from psmt.errors import NotEnoughFramesError, SharedModelError
from psmt.model.html_repr import score_fact

Given = ParamSpec("Given")
Model = TypeVar("Model", bound="Forecaster")
Returned = TypeVar("Returned")


def by_one_thread(
    method: Callable[Concatenate[Model, Given], Returned],
) -> Callable[Concatenate[Model, Given], Returned]:
    """The method of a model, which raises `SharedModelError` while another thread is inside one of them."""

    @wraps(method)
    def alone(model: Model, /, *args: Given.args, **kwargs: Given.kwargs) -> Returned:
        mark = (get_ident(), object())
        # One step for the interpreter: of two threads, one finds the mark of the other.
        found = model.__dict__.setdefault(_USER, mark)
        if found[0] != mark[0]:
            raise _shared(model)
        try:
            return method(model, *args, **kwargs)
        finally:
            if found is mark:
                model.__dict__.pop(_USER, None)

    return alone


_USER = "_used_by"
"""Attribute that a model has while a thread is inside one of its methods."""


def _shared(model: object) -> SharedModelError:
    return SharedModelError(
        f"another thread is using this {type(model).__name__}; give each thread a copy of its own, or take turns"
    )


class Forecaster(BaseEstimator, ABC):
    """An estimator of scikit-learn that receives frames, (n_features,) or (height, width), and predicts the next.

    A subclass says how its input is checked and what its card in a notebook holds.
    """

    score_: float | None = None
    """What `score` gave when it was last asked, for the card; it is no part of a saved model."""

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
        """Receive the frame that came next."""

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
        """The frames (time, ..) that came next, as numbers that can be computed with."""

    @abstractmethod
    def _card(self) -> str:
        """The fitted model as HTML."""

    @abstractmethod
    def __sklearn_is_fitted__(self) -> bool: ...

    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
        """Receive the frames (time, ..) that came next, as `update` does one by one; the first call is `fit`.

        Either all frames are received or, where one of them is not as it should be, none.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X)
        for frame in self.check_next(X):
            self.update(frame)
        return self

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Minus the squared error of predicting each next frame of X (time, ..), relative to that of copying the last.

        -1 is as good as copying, 0 is flawless. It is measured walk-forward, on a copy: the first frame is received and
        the second predicted, then received, and so on; X need not follow at once on what was learned from. So
        ``GridSearchCV(model, grid, cv=TimeSeriesSplit())`` chooses by the future of each split. NaN where X stands
        still: copying makes no error there.
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
        """Yield each frame, and what a copy of the model predicts once it has received it."""
        walker = deepcopy(self)
        for frame in frames:
            yield frame, walker.update(frame).predict()

    def _record(self) -> dict[str, str]:
        """What every card says of the frames that came."""
        cut = ", a cut" if self.cut_ else ""
        return {
            "surprise": f"{self.surprise_:.2f} at the last frame{cut}; 1 is usual",
            "score": score_fact(self.score_),
        }

    # scikit-learn shows a diagram, by one of two methods. A fitted model has more to show.

    def _repr_html_inner(self) -> str:
        return self._card() if self.__sklearn_is_fitted__() else str(super()._repr_html_inner())

    def _repr_mimebundle_(self, **options: object) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:  # unless sklearn.set_config(display="text")
            bundle["text/html"] = self._repr_html_inner()
        return bundle
