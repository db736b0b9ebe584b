"""`FramePredictor`: the estimator that predicts whole frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from psmt.data import FrameSource
from psmt.engines import engine_for
from psmt.errors import ModelFileError
from psmt.model.online_estimator import Forecaster, by_one_thread
from psmt.persistence.model_file import Header, check_prediction, load_model
from psmt.persistence.schema import Field, Layout, State, check_state
from psmt.types import Array, Levels, Progress, silent
from psmt.utils.constraints import Constraint, by_name, check_horizon, check_parameters, choice, mapping, truth
from psmt.utils.threads import one_blas_thread
from psmt.video.candidates import PLANES, Candidates
from psmt.video.cells import Grid
from psmt.video.frames import check_each, check_film, check_next_frame
from psmt.video.learner import FrameLearner, Rule
from psmt.video.prior import Prior, check_prior, read_prior

FRAME_EXTRAPOLATIONS = {"phase": Rule(PLANES), "gain": Rule(), "linear": Rule(share=1.0), "hold": Rule(share=0.0)}
"""Extrapolations of `FramePredictor`, by name."""


@by_name
class FramePredictor(Forecaster):
    """Predict whole frames: the last frame plus a learned blend of candidate changes.

    Frames are grey (height, width) or colour (height, width, 3), and predictions have the same shape. The model learns
    from the luma of colour frames. The chroma is predicted with the motion and the weights of the luma.

    The interface is that of `PSMT`, the model of the paper, but there are neither sparse codes nor an embedding. The
    predicted frame is the last frame plus a weighted sum (blend) of candidates, which are predictions of the change:

    - motion: phase extrapolation of local Fourier transforms (tiles of two sizes), optical flow, and the last change;
    - memory: running means of each pixel, at rest and along the flow, and the motion of earlier frames;
    - the neighbouring pixels of the last two frames.

    The model learns online how to combine the candidates, in four stages:

    - weights of the candidates for each cell of 8 x 8 pixels, in three bands of detail, by least squares with
      exponential forgetting. A prior, learned on other films, gives the weights in the first frames of a scene;
    - a gain in [0, 1] for each cell, by regression of true changes on the changes that were predicted;
    - experts: the blend, the blend with the prior's weights, optical flow and copying are averaged with exponential
      weights, so that the model is never much worse than the best of them;
    - a correction of each pixel: a small network, trained by Adam on pixels of the last frames, predicts the remaining
      error. A second gain scales its output. On a GPU the network is convolutional and is trained on small crops. A
      saved model keeps its kind of network on every device.

    Changes are normalised, so that frames with little motion weigh as much as others. A predicted change with far more
    energy than the last change is scaled down, because motion may have stopped. Every 20 to 80 frames, a prediction of
    several frames (rollout) is compared with the film. Its errors determine the weight of predictions beyond the next
    frame, and `expected_mse` reports them.

    A frame is a cut or a flash if the prediction failed and no motion explains the frame. The model then starts again
    from this frame with its prior, and what the cells have learned counts a tenth as much as before.

    Memory and time per frame do not grow with the film. `fit` is the same as `update` for each of the frames.

    Parameters
    ----------
    extrapolation : {'phase', 'gain', 'linear', 'hold'}, default 'phase'
        How the next change is predicted. 'phase' uses everything above. 'gain' uses only the last change, with learned
        gains. 'linear' repeats the last change, as in the paper. 'hold' copies the last frame.
    prior : 'default', None, Prior or path, default 'default'
        Weights learned on other films, used by 'phase'. 'default' is the prior of the package, learned on built-in
        films. A path or `Prior` comes from `psmt learn`. With None, the first frames of a new scene are copied.
        Candidates that a prior does not contain get no weight from it.
    rollouts : bool, default True
        Whether rollouts are compared with the film. This may be changed at any time, and is not saved. If False, a
        frame takes a tenth less time, but `expected_mse` and the weight of predictions beyond the next frame are not
        updated.
    correction : bool, default True
        Whether a network corrects the next frame. This may be changed at any time, and is not saved. If False, a frame
        takes a fifth less time, and the error is 2 to 14% larger.
    device : str, default 'cpu'
        Where to compute: 'cpu' or 'cuda'.

    Attributes
    ----------
    shape_ : (height, width) or (height, width, 3)
        Shape of the frames.
    surprise_ : float
        Error of the last prediction, relative to the usual error.
    cut_ : bool
        Whether the last frame was classified as a cut.
    candidate_errors_ : dict of str to float
        Mean squared error on the last frame of each candidate that predicts the whole change by itself, such as
        optical flow. Empty after a cut.

    Examples
    --------
    >>> import numpy as np
    >>> from psmt import FramePredictor
    >>> x = np.arange(32)
    >>> film = [np.add.outer(np.sin(x / 3), np.sin((x - t) / 2)) for t in range(40)]
    >>> model = FramePredictor().fit(film[:30])
    >>> model.predict(horizon=3).shape
    (3, 32, 32)
    >>> bool(np.mean((model.predict() - film[30]) ** 2) < 0.05 * np.mean((film[29] - film[30]) ** 2))
    True
    """

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {
        "extrapolation": choice(*FRAME_EXTRAPOLATIONS),
        "prior": check_prior,
        "rollouts": truth,
        "correction": truth,
    }

    shape_: tuple[int, ...]
    _learner: FrameLearner

    def __init__(
        self,
        *,
        extrapolation: str = "phase",
        prior: str | PathLike[str] | Prior | None = "default",
        rollouts: bool = True,
        correction: bool = True,
        device: str = "cpu",
    ) -> None:
        self.extrapolation = extrapolation
        self.prior = prior
        self.rollouts = rollouts
        self.correction = correction
        self.device = device

    # Predict, receive, learn

    @by_one_thread
    def fit(self, frames: ArrayLike | FrameSource, y: object = None, *, progress: Progress = silent) -> Self:
        """Learn from at least two past frames, given as an array or as a source.

        A source is read in grey, one frame at a time, so that a film may be of any length. If reading fails, the model
        does not change.

        Parameters
        ----------
        frames : (time, height, width) or (time, height, width, 3) array, or a source from `psmt.open_frames`
            Grey levels, or levels of red, green and blue, in the order of time.
        y : object
            Ignored.
        progress : callable, optional
            Called as ``progress("frames", n_received, n_frames)``.

        Raises
        ------
        NotEnoughFramesError, ValueError
            If there are fewer than two frames, if they differ in shape, or if a value is not finite.
        """
        check_parameters(self, self._parameter_constraints)
        kernels, rule = engine_for(self.device).frames, FRAME_EXTRAPOLATIONS[self.extrapolation]
        if isinstance(frames, FrameSource):
            n_frames, past = frames.n_frames or 0, check_each(frames, minimum=2)
        else:
            film = check_film(frames, minimum=2)
            n_frames, past = len(film), iter(film)
        first, done = next(past).copy(), 1
        prior = None
        if self.prior is not None and rule.planes:
            prior = read_prior(self.prior, Candidates((1, 1), rule.planes).names)
        learner = FrameLearner(rule, prior, Grid((first.shape[0], first.shape[1]), kernels), first)
        with one_blas_thread():
            for done, frame in enumerate(past, 2):
                progress("frames", done - 1, max(n_frames, done))
                learner.receive(frame.copy(), rollouts=self.rollouts, correct=self.correction)
        self.__dict__.update(_learner=learner, shape_=learner.shape)  # both, or none if interrupted
        progress("frames", done, done)
        return self

    @by_one_thread
    def update(self, frame: ArrayLike) -> Self:
        """Learn from the next true frame, which has the shape `shape_`."""
        check_is_fitted(self)
        received = check_next_frame(frame, self.shape_)
        self._undo = self._learner.undo()
        with one_blas_thread():
            # A copy: the caller may read the next frame into the same array.
            self._learner.receive(received.copy(), rollouts=self.rollouts, correct=self.correction)
        self._undo = None
        return self

    @by_one_thread
    def predict(self, horizon: int | None = None) -> Levels:
        """Predict the next frame, of shape `shape_`, or the next frames (horizon, ...) if a `horizon` is given.

        Frames beyond the first are predicted from the predictions before them. Predicted grey levels stay in the range
        seen so far, except for 'linear'.
        """
        check_is_fitted(self)
        frames = self._learner.predict(1 if horizon is None else check_horizon(horizon))
        return frames[0] if horizon is None else np.stack(frames)

    def predict_later(self, horizon: int) -> Callable[[], Levels]:
        """Return a function that computes ``predict(horizon)`` from the present state of the model.

        Later calls of `update` do not change its result. It may be called in any thread.
        """
        check_is_fitted(self)
        snapshot, n_steps = self._learner.snapshot(), check_horizon(horizon)
        return lambda: np.stack(snapshot.predict(n_steps))

    def expected_mse(self, horizon: int) -> Array:
        """Return the mean squared errors (horizon,) to expect from ``predict(horizon)``, one for each frame ahead.

        They are the mean errors of recent rollouts, scaled to the present energy of the film's changes. They are NaN
        before the first rollout has been scored, and for 'linear' and 'hold', which do not learn.
        """
        check_is_fitted(self)
        return self._learner.record.expected(check_horizon(horizon))

    def check_next(self, X: ArrayLike) -> Levels:
        """Check the next true frames and return them as finite levels (time, ...), each of the shape `shape_`."""
        check_is_fitted(self)
        film = check_film(X, minimum=1)
        if film.shape[1:] != self.shape_:
            raise ValueError(f"frames has shape {film.shape}; the model was fitted with frames of {self.shape_}")
        return film

    # What it has learned

    @property
    def surprise_(self) -> float:
        """Return the error of the last prediction, relative to the usual error."""
        check_is_fitted(self)
        return self._learner.cut_detector.surprise

    @property
    def cut_(self) -> bool:
        """Return whether the last frame was classified as a cut."""
        check_is_fitted(self)
        return self._learner.cut_detector.cut

    @property
    def candidate_errors_(self) -> dict[str, float]:
        """Return the mean squared error on the last frame of each candidate that predicts the whole change, by name."""
        check_is_fitted(self)
        return self._learner.candidate_errors

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "shape_")

    # State and files

    @classmethod
    def load(cls, path: str | PathLike[str], *, device: str = "cpu") -> Self:
        """Return the model that `save` wrote. Its predictions are the same as those of the saved model, bit for bit.

        Its `prior` is read from the file. See docs/how-to/model-files.md for the format.

        Raises
        ------
        ModelFileError
            If the file is damaged, holds another class, or does not match the schema of this class.
        """
        return load_model(path, cls, device=device)

    def get_header(self) -> Header:
        """Return the parameters for the header of a file. The prior is saved with the state, not as a path."""
        return {"parameters": {"extrapolation": self.extrapolation}}

    @classmethod
    def stored_schema(cls, header: Header, layouts: Mapping[str, Layout]) -> dict[str, Field]:
        """Check the header of a file, and return the schema (shape, type and range) of the file's arrays."""
        if "dictionary" in layouts or ("places.gram" in layouts and len(layouts["places.gram"].shape) < 5):
            raise ModelFileError("was saved by an old psmt, which learned frames otherwise; fit the model again")
        extrapolation = {"extrapolation": cls._parameter_constraints["extrapolation"]}
        mapping({"parameters": mapping(extrapolation)})("header", header)
        return cls(**header["parameters"]).schema(layouts)

    @classmethod
    def from_stored(cls, header: Header, arrays: State, *, device: str = "cpu") -> Self:
        """Return the model, given the header and the arrays of a file."""
        model = cls(**header["parameters"], device=device)
        model._restore(arrays)
        check_prediction(model.predict)
        return model

    @by_one_thread
    def get_state(self) -> State:
        """Return copies of the arrays from which `set_state` restores the fitted model."""
        check_is_fitted(self)
        return self._learner.get_state()

    def schema(self, layouts: Mapping[str, Layout]) -> dict[str, Field]:
        """Return the schema (shape, type and range) of the arrays of `get_state`.

        `layouts` are the shapes and types of the arrays in a file. Those of `current` give the size of the frames. The
        schema includes a prior and chroma if the file has them.
        """
        return FrameLearner.schema(FRAME_EXTRAPOLATIONS[self.extrapolation], layouts)

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> Self:
        """Restore the fitted model from arrays that `get_state` of a model with the same parameters returned."""
        check_parameters(self, self._parameter_constraints)
        check_state(self.schema(state), state)
        self._restore(state)
        return self

    def _restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the fitted model from arrays that were checked against the schema."""
        rule, kernels = FRAME_EXTRAPOLATIONS[self.extrapolation], engine_for(self.device).frames
        learner = FrameLearner.from_state(rule, kernels, state, correct=self.correction)
        prior = {} if learner.prior is None else {"prior": learner.prior}
        self.__dict__.update(_learner=learner, shape_=learner.shape, **prior)
