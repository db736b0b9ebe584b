"""`FramePSMT`: the estimator that predicts whole frames."""

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
from psmt.model.html_repr import card, frame_picture
from psmt.model.online_estimator import Forecaster, by_one_thread
from psmt.persistence.model_file import Header, check_prediction, load_model
from psmt.persistence.schema import Field, Layout, State, check_state
from psmt.types import Array, Levels, Progress, silent
from psmt.utils.constraints import Constraint, check_count, check_parameters, choice, mapping, truth
from psmt.utils.threads import one_blas_thread
from psmt.video.candidates import PLANES, Candidates
from psmt.video.cells import Grid
from psmt.video.frames import check_each, check_film, check_next_frame
from psmt.video.learner import FrameLearner, Rule
from psmt.video.prior import Prior, check_prior, read_prior

FRAME_EXTRAPOLATIONS = {"phase": Rule(PLANES), "gain": Rule(), "linear": Rule(share=1.0), "hold": Rule(share=0.0)}
"""Extrapolations of `FramePSMT`, by name."""


class FramePSMT(Forecaster):
    """Whole-frame predictor: candidate changes, blended by recursive least squares; grey levels in, grey levels out.

    It shares the loop of predicting, receiving and learning with the model of the paper, `PSMT`, but neither of its
    layers: weights from sparse codes were tried and did not reduce the error (docs/explanation/frames.md). The next
    frame is the last one plus a blend of candidate changes:

    - motion: local Fourier planes (tiles of two sizes, whose coefficients are rotated by the phase step of the last
      frames), optical flow, and the last change;
    - memory: running means of each pixel, at rest and along the flow, and the motion of earlier frames;
    - the neighbouring pixels of the last two frames.

    How they are combined is learned online, by least squares with exponential forgetting except for the last two:

    - weights by place: moments per cell of 8 x 8 pixels, in three bands of detail. A prior, learned on other films,
      gives the weights of a scene that has just begun;
    - a gain per cell in [0, 1], from predictions made before the truth was known;
    - experts: the blend, the prior's blend, optical flow and copying are averaged with exponential weights, so that the
      model is never much worse than the best of them;
    - a correction by pixel: a small network, trained by Adam on pixels of the last frames, predicts the remaining
      error. It has a gain of its own.

    Calm frames weigh as much as lively ones. A predicted change with far more energy than the last one is scaled down:
    motion may stop at once. Every 20 to 80 frames a rollout is compared with the film; the errors decide how far ahead
    predictions are used, and `expected_mse` reports them.

    A cut or a flash is a prediction that failed and that no motion explains: the model then starts again from the new
    frame, with its prior and a tenth of the weight of what it had learned by place.

    Memory and time per frame do not grow with the film. `fit` is `update` for each of the frames.

    Parameters
    ----------
    extrapolation : {'phase', 'gain', 'linear', 'hold'}, default 'phase'
        How the change is predicted: 'phase' by all of the above; 'gain' from the last change alone, with learned gains;
        'linear' as the last change once more, as in the paper; 'hold' as zero, so that the last frame is copied.
    prior : 'default', None, Prior or path, default 'default'
        What was learned on other films, for 'phase': the prior that comes with the package, learned on built-in films;
        None, so that a new scene is copied until the model has a record; or one made by `psmt learn`. Candidates that
        a prior does not know get no weight from it.
    rollouts : bool, default True
        Whether rollouts are compared with the film. It may be changed at any time, and is not saved. Without it a frame
        takes a tenth less time, and `expected_mse` and the use of predictions beyond the next frame are not updated.
    correction : bool, default True
        Whether a network corrects the next frame. It may be changed at any time, and is not saved. Without it a frame
        takes a sixth less time, and the error is 2 to 14% larger.
    device : str, default 'cpu'
        Where to compute: 'cpu' or 'cuda'.

    Attributes
    ----------
    shape_ : (height, width)
    surprise_ : float
        Error of the last prediction, relative to the usual error.
    cut_ : bool
        Whether the last frame was classified as a cut.
    candidate_errors_ : dict of str to float
        Mean squared error of each candidate that is a prediction by itself, for the last frame; empty after a cut.

    Examples
    --------
    >>> import numpy as np
    >>> from psmt import FramePSMT
    >>> x = np.arange(32)
    >>> film = [np.add.outer(np.sin(x / 3), np.sin((x - t) / 2)) for t in range(40)]
    >>> model = FramePSMT().fit(film[:30])
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

    shape_: tuple[int, int]
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
        """Learn from the past frames (time, height, width), at least two; or from all frames of `psmt.open_frames`.

        A source is read one frame at a time, so that a film may be of any length. If reading fails, the model stays as
        it was.

        Parameters
        ----------
        frames : (time, height, width) array, or what `psmt.open_frames` returns
            Grey levels, in the order of time.
        y : object
            Ignored.
        progress : callable, optional
            Called with the stage, 'frames', the number of frames received, and the number of all frames.

        Raises
        ------
        NotEnoughFramesError, ValueError
            Where there are fewer than two frames; where they differ in shape or have values that are not finite.
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
        self._learner, self.shape_ = learner, learner.grid.shape
        progress("frames", done, done)
        return self

    @by_one_thread
    def update(self, frame: ArrayLike) -> Self:
        """Receive the frame (height, width) that came next, of the same shape as those of `fit`."""
        check_is_fitted(self)
        received = check_next_frame(frame, self.shape_)
        with one_blas_thread():
            # A copy: the caller may read the next frame into the same array.
            self._learner.receive(received.copy(), rollouts=self.rollouts, correct=self.correction)
        return self

    @by_one_thread
    def predict(self, horizon: int | None = None) -> Levels:
        """Return the next frame (height, width), or with a `horizon` the next frames (horizon, height, width).

        Frames beyond the first are predicted from the predictions before them. Levels stay in the range seen so far,
        except for 'linear'.
        """
        check_is_fitted(self)
        frames = self._learner.predict(1 if horizon is None else check_count("horizon", horizon))
        return frames[0] if horizon is None else np.stack(frames)

    def predict_later(self, horizon: int) -> Callable[[], Levels]:
        """Return a function that returns what ``predict(horizon)`` would return now, whatever is learned meanwhile.

        The function may be called in any thread.
        """
        check_is_fitted(self)
        snapshot, n_steps = self._learner.snapshot(), check_count("horizon", horizon)
        return lambda: np.stack(snapshot.predict(n_steps))

    def expected_mse(self, horizon: int) -> Array:
        """Return the expected mean squared error (horizon,) of `predict`, by frames ahead.

        It is that of the model's late rollouts, in proportion to the energy of the film's changes. It is NaN before the
        first rollout has been scored, and where nothing is learned ('linear', 'hold').
        """
        check_is_fitted(self)
        return self._learner.record.expected(check_count("horizon", horizon))

    def check_next(self, X: ArrayLike) -> Levels:
        """Return the frames (time, height, width) that came next, as finite grey levels."""
        check_is_fitted(self)
        film = check_film(X, minimum=1)
        if film.shape[1:] != self.shape_:
            raise ValueError(f"frames has shape {film.shape}; the model was fitted with frames of {self.shape_}")
        return film

    # What it has learned

    @property
    def surprise_(self) -> float:
        """Error of the last prediction, relative to the usual error."""
        check_is_fitted(self)
        return self._learner.cut_detector.surprise

    @property
    def cut_(self) -> bool:
        """Whether the last frame was classified as a cut."""
        check_is_fitted(self)
        return self._learner.cut_detector.cut

    @property
    def candidate_errors_(self) -> dict[str, float]:
        """Mean squared error of each candidate that is a prediction by itself, for the last frame."""
        check_is_fitted(self)
        return self._learner.candidate_errors

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "shape_")

    def _card(self) -> str:
        height, width = self.shape_
        facts = {"frames": f"{height} x {width} pixels", "extrapolation": self.extrapolation, **self._record()}
        return card(type(self).__name__, facts, frame_picture(self.predict()), "the frame that is expected next")

    # State and files

    @classmethod
    def load(cls, path: str | PathLike[str], *, device: str = "cpu") -> Self:
        """Return the model that `save` wrote; it continues as that one does, bit for bit.

        Its `prior` is the one in the file. See docs/how-to/model-files.md for the format.

        Raises
        ------
        ModelFileError
            Where the file is damaged, of another class, or not as the model's schema declares.
        """
        return load_model(path, cls, device=device)

    def get_header(self) -> Header:
        """Return the parameters of a file. The prior is part of the state: a file never refers to another file."""
        return {"parameters": {"extrapolation": self.extrapolation}}

    @classmethod
    def stored_schema(cls, header: Header, layouts: Mapping[str, Layout]) -> dict[str, Field]:
        """Check the header of a file, and declare its arrays."""
        if "dictionary" in layouts:
            raise ModelFileError("was saved by a psmt whose FramePSMT had sparse codes; fit the model again")
        extrapolation = {"extrapolation": cls._parameter_constraints["extrapolation"]}
        mapping({"parameters": mapping(extrapolation)})("header", header)
        return cls(**header["parameters"]).schema(layouts)

    @classmethod
    def from_stored(cls, header: Header, arrays: State, *, device: str = "cpu") -> Self:
        """Return the model of a file."""
        model = cls(**header["parameters"], device=device)
        model._restore(arrays)
        check_prediction(model.predict)
        return model

    @by_one_thread
    def get_state(self) -> State:
        """Return copies of all that changes from frame to frame, as arrays, without what can be computed from it."""
        check_is_fitted(self)
        return self._learner.get_state()

    def schema(self, layouts: Mapping[str, Layout]) -> dict[str, Field]:
        """Declare the arrays of `get_state`, for these parameters and frames of the size of `current` in `layouts`.

        Fields of a prior are declared if the layouts have some.
        """
        return FrameLearner.schema(FRAME_EXTRAPOLATIONS[self.extrapolation], layouts)

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> Self:
        """Continue as the model with the same parameters that returned this state, bit for bit."""
        check_parameters(self, self._parameter_constraints)
        check_state(self.schema(state), state)
        self._restore(state)
        return self

    def _restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state that was checked against the schema."""
        rule, kernels = FRAME_EXTRAPOLATIONS[self.extrapolation], engine_for(self.device).frames
        self._learner = FrameLearner.from_state(rule, kernels, state, correct=self.correction)
        self.shape_ = self._learner.grid.shape
        if self._learner.prior is not None:
            self.prior = self._learner.prior
