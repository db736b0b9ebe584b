"""`FrameForecaster`: what makes a model of whole frames an estimator, whatever it predicts by."""

from __future__ import annotations

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from psmt.model.html_repr import card, frame_picture
from psmt.model.online_estimator import Forecaster
from psmt.types import Levels
from psmt.video.checks import check_film


class FrameForecaster(Forecaster):
    """A forecaster of frames (height, width) that are all as large as those of `fit`."""

    shape_: tuple[int, int]
    extrapolation: str

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "shape_")

    def check_next(self, X: ArrayLike) -> Levels:
        """The frames (time, height, width) that came next, as grey levels that can be computed with."""
        check_is_fitted(self)
        film = check_film(X, minimum=1)
        if film.shape[1:] != self.shape_:
            raise ValueError(f"frames has shape {film.shape}; the model was fitted with frames of {self.shape_}")
        return film

    def _card(self) -> str:
        height, width = self.shape_
        facts = {
            "frames": f"{height} x {width} pixels",
            "extrapolation": self.extrapolation,
            **self._record(),
        }
        return card(type(self).__name__, facts, frame_picture(self.predict()), "the frame that is expected next")
