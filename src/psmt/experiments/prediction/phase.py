"""Predict one phase, a short stretch of a film, with PSMT and the methods that it is compared with."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray

from psmt.coding import SparseCoder
from psmt.errors import SeriesWarning
from psmt.evaluation import METHODS, Score, error_ratio, free_running, log_mse, teacher_forced
from psmt.evaluation.null_models import NULLS
from psmt.experiments.phases import FilmPhase
from psmt.experiments.prediction.settings import check_start
from psmt.model import PSMT, baselines
from psmt.model.intervals import FEWEST
from psmt.model.paper_options import OURS
from psmt.pipeline.run import Run
from psmt.series import Scaling
from psmt.types import Array, Predictor, Progress, Result, silent
from psmt.video import PatchInFrame

Mode = Literal["scores", "rollouts"]
"""Kind of prediction: 'scores' are one-step predictions after true frames, 'rollouts' are free-running predictions."""

Truth = Literal["code", "frame"]
"""What errors are measured against: the patch reconstructed from the true code, or the frame itself."""

NO_ERROR = 1e-6
"""Smallest MSE that is compared, relative to the variance of the frames. Smaller values are replaced by it, because
they are rounding errors."""

INTERVAL = 0.9
"""Coverage of the intervals in forecast.csv."""


class PredictionRow(NamedTuple):
    """One line of prediction.csv."""

    phase: str
    method: str
    step: int
    frame: int
    mse_vs_code: float
    mse_vs_frame: float


class MethodErrors(NamedTuple):
    """Mean errors of a method, over the predicted frames of one phase or of several."""

    method: str
    log_mse_vs_code: float
    """Mean logarithm of the MSE against the reconstructed codes, which the paper reports."""
    mse_vs_code: float
    mse_vs_frame: float
    vs_copy: float
    """``mse_vs_frame`` divided by that of copying the last patch. A value below 1 is better than copying."""
    vs_copy_code: float
    """``mse_vs_code`` divided by that of copying the last code."""


def rank_methods(scores: Sequence[Mapping[str, Score]]) -> list[MethodErrors]:
    """Return each method's mean errors over phases, lowest `mse_vs_frame` first. `scores` has a mapping per phase."""
    errors = {
        method: np.concatenate([[own[method].vs_code, own[method].vs_frame] for own in scores], axis=1)
        for method in scores[0]
        if all(method in own for own in scores)
    }
    means: dict[str, tuple[float, float]] = {method: own.mean(axis=1).tolist() for method, own in errors.items()}
    copied, copied_code = means["copy"][1], means["copy_code"][0]
    logs = {method: float(np.mean(log_mse(own[0]))) for method, own in errors.items()}
    found = [
        MethodErrors(name, logs[name], code, frame, error_ratio(frame, copied), error_ratio(code, copied_code))
        for name, (code, frame) in means.items()
    ]
    return sorted(found, key=lambda own: own.mse_vs_frame)


class PipelineStep(NamedTuple):
    """Intermediate values of PSMT when it receives the first frame of a phase, for `pipeline_figure`."""

    frame: Array
    """(n_features,): the received frame. `estimate` (n_features,) is its reconstruction from its code."""
    estimate: Array
    recent: Array
    """(n, n_features): the latest frames of a series. It is empty for a film."""
    activities: Array
    """(n_active,): the non-zero activities, largest first. `atoms` (n, n_features) are the atoms of the largest."""
    atoms: Array
    path: Array
    """(n, 2): the latest points of the trajectory in the two slowest directions of the embedding."""
    expected: Array
    """(2,): the predicted next point. `following` (2,) is the point of the true next frame."""
    following: Array


N_STEP_ATOMS, N_STEP_POINTS, N_RECENT = 8, 12, 60
"""Numbers of atoms, points and frames in a `PipelineStep`."""


@dataclass(frozen=True)
class PhaseResult:
    """Predictions of all methods in one phase."""

    phase: FilmPhase
    n_components: int
    lam: float
    frames: Array
    """(horizon, n_features): the patches to predict."""
    estimates: Array
    """(horizon, n_features): reconstructions of these patches from their codes."""
    scores: dict[str, Score]
    """One-step predictions after true frames, by method."""
    rollouts: dict[str, Score]
    """Free-running predictions, by method."""
    picture_shape: tuple[int, int] | None = None
    """Height and width of the frames if they are pictures, else None."""
    step: PipelineStep | None = None
    """Intermediate values of PSMT in its first step, for the figure of the pipeline."""
    forecast: Array | None = None
    """(4, horizon, n_features): true frames, PSMT's one-step predictions, and lower and upper bounds of `INTERVAL`."""

    def rows(self, mode: Mode = "scores") -> Iterator[PredictionRow]:
        """Yield the rows of prediction.csv ('scores': one-step predictions) or of rollout.csv ('rollouts')."""
        for method, score in getattr(self, mode).items():
            for step, (code, frame) in enumerate(zip(score.vs_code, score.vs_frame, strict=True), start=1):
                yield PredictionRow(self.phase.name, method, step, self.phase.start + step, float(code), float(frame))

    def method_errors(self, mode: Mode = "scores") -> list[MethodErrors]:
        """Return the mean errors of one-step predictions ('scores') or of 'rollouts', see `rank_methods`."""
        return rank_methods([getattr(self, mode)])


def error_floor(result: PhaseResult) -> float:
    """Return the smallest MSE that is compared in a phase: smaller ones are rounding errors (see `NO_ERROR`)."""
    return max(NO_ERROR * float(np.var(result.frames)), np.finfo(float).tiny)


def mean_log_error(result: PhaseResult, method: str, truth: Truth) -> float:
    """Return a method's mean log MSE over the frames of a phase, as in the paper. MSEs are clipped at `error_floor`."""
    return float(np.mean(np.log(np.maximum(getattr(result.scores[method], f"vs_{truth}"), error_floor(result)))))


def mean_error(result: PhaseResult, method: str, truth: Truth) -> float:
    """Return the larger of `error_floor` and a method's mean MSE over the frames of a phase."""
    return max(float(np.mean(getattr(result.scores[method], f"vs_{truth}"))), error_floor(result))


class SharingPSMT(PSMT):
    """A PSMT that shares dictionaries with other models of the same film. Each dictionary is learned only once."""

    def share(self, learned: dict[int, SparseCoder]) -> Self:
        """Set the mapping that the models share: fitted coders by the number of frames that they learned from."""
        self._learned = learned
        return self

    def fit_coder(
        self, samples: Array, learned: SparseCoder | None = None, *, progress: Progress = silent
    ) -> SparseCoder:
        """Return the shared coder for this number of samples. If there is none, fit one and store it."""
        if len(samples) not in self._learned:
            self._learned[len(samples)] = super().fit_coder(samples, learned, progress=progress)
        return self._learned[len(samples)]

    def describe_step(self, frame: Array, following: Array, recent: Array) -> PipelineStep:
        """Receive a frame. Return the intermediate values of the next prediction. `following` is the true next code."""
        self.update(frame)
        codes, rule = self.codes_[-N_STEP_POINTS:], self._extrapolation
        embedding = self.embedding_ if rule.embedding is None else rule.embedding
        path, ahead = codes @ embedding.T, None if self._holds else rule.predict_points(1)
        expected = rule.advance(path[-2], path[-1]) if ahead is None else ahead[0]
        points = [*path, path[-1] if self._holds else expected, embedding @ following]
        shown = np.zeros((len(points), 2))  # a second direction of zeros if there is only one
        shown[:, : len(embedding)] = np.stack(points)[:, :2]
        active = np.argsort(-codes[-1], kind="stable")[: np.count_nonzero(codes[-1])]
        estimate, atoms = self.coder_.inverse_transform(codes[-1:])[0], self.dictionary_[active[:N_STEP_ATOMS]]
        return PipelineStep(frame, estimate, recent, codes[-1][active], atoms, shown[:-2], shown[-2], shown[-1])


def methods_of(psmt: PSMT, psmt_gain: PSMT, picture_shape: tuple[int, int] | None = None) -> dict[str, Predictor]:
    """Return all methods by name, except the whole-frame predictor. Only `psmt` is already fitted.

    `psmt_gain` is a PSMT with the extrapolation 'gain'. Baselines with a dictionary use that of `psmt`. The method
    `motion` is included only if there is a `picture_shape`.
    """
    shared: dict[str, Any] = {"n_components": psmt.n_components_, "lam": psmt.lam_, "coder": psmt.coder_}
    shared |= {name: getattr(psmt, name) for name in ("window", "device", "random_state", *OURS.parameters)}
    methods: dict[str, Predictor] = {
        "psmt": psmt,
        "psmt_gain": psmt_gain,
        "baseline1": baselines.Baseline1(**shared),
        "baseline2": baselines.Baseline2(**shared),
        "code_line": baselines.CodeExtrapolation(**shared),
        "code_gain": baselines.CodeExtrapolation(**shared, extrapolation="gain"),
        "copy": baselines.CopyLast(),
        "copy_code": baselines.CopyCode(**shared),
        "mean": baselines.MeanFrame(window=psmt.window_),
        "mean_code": baselines.MeanCode(**shared),
        "linear": baselines.LinearTrend(),
        "pixel_gain": baselines.PixelGain(),
        "ridge": baselines.RidgeAutoregression(order="auto"),
        "pca_var": baselines.PrincipalComponents(),
        "sfa": baselines.SlowFeatures(),
    }
    if picture_shape is not None:
        methods["motion"] = baselines.PatchMotion(picture_shape=picture_shape)
    return methods


BEFORE = 100
"""Number of frames before a start from which the whole-frame predictor learns. It is small, because learning is slow.
On highway, errors with 150, 300 and 600 frames differed by less than 1%. 100 frames were not compared."""


def read_whole_frames(run: Run, starts: Sequence[int], *, horizon: int) -> dict[int, dict[str, Any]]:
    """Return, for each start, the arguments `surroundings` and `corner` of `predict_phase`, or {} without a film."""
    if run.surroundings is None:
        return {}
    found = run.surroundings([slice(max(start - BEFORE, 0), start + horizon + 1) for start in starts])
    return {start: {"surroundings": around, "corner": at} for start, (around, at) in zip(starts, found, strict=True)}


def predict_phase(
    patches: Array,
    phase: FilmPhase,
    *,
    horizon: int,
    window: int,
    seed: int = 0,
    extrapolation: str = "linear",
    series: bool = False,
    picture_shape: tuple[int, int] | None = None,
    surroundings: NDArray[Any] | None = None,
    corner: Sequence[int] = (0, 0),
    interval: float | None = None,
    **model: Any,
) -> PhaseResult:
    """Predict the `horizon` frames after ``phase.start`` with all methods.

    Everything is learned from the `patches` (time, n_features) before the start. Baselines 1 and 2 use the dictionary,
    n_components and lam of PSMT. If `series` is True, features are standardised by their past, and errors are those of
    standardised features. `model` are further parameters of PSMT.

    A `picture_shape` adds the method `motion`. `surroundings` (time, height, width) add the whole-frame predictor. They
    are the pixels around the patch, up to the last predicted frame. `corner` is the (row, column) of the patch in them.
    An `interval`, such as 0.9, adds bounds of this coverage to PSMT's predictions, in the units of `patches`.
    """
    check_start(phase.start, len(patches), window=window, horizon=horizon)
    scaling = Scaling.of(patches[: phase.start]) if series else Scaling.none(patches.shape[1])
    if series:
        patches = scaling.standardise(patches)
    past, delayed = patches[: phase.start], np.asarray(patches[phase.start : phase.start + horizon + 1])
    model |= {"window": window, "random_state": seed}
    learned: dict[int, SparseCoder] = {}
    psmt = SharingPSMT(extrapolation=extrapolation, **model).share(learned).fit(past)
    methods = methods_of(psmt, SharingPSMT(extrapolation="gain", **model).share(learned), picture_shape)
    forecast = None
    if interval is not None and window >= 2 * FEWEST:
        bounded = deepcopy(psmt).predict(delayed[:-1], interval=interval)
        forecast = scaling.restore(np.stack([delayed[1:], *bounded]))
    codes = psmt.coder_.transform(delayed)
    estimates = psmt.coder_.inverse_transform(codes)
    recent = np.asarray(patches[max(phase.start + 1 - N_RECENT, 0) : phase.start + 1][: N_RECENT * series])
    step = deepcopy(psmt).describe_step(delayed[0], codes[1], recent)
    sizes = len(psmt.embedding_), psmt.lam_
    scores, rollouts = {}, {}
    for name, method in methods.items():
        # Baseline 1 receives nothing after training. So its training window includes the first frame that the others
        # receive: every method begins with the same frames.
        received = getattr(method, "static_window", False)
        fitted = psmt if method is psmt else method.fit(patches[: phase.start + received])
        rollouts[name] = free_running(deepcopy(fitted), delayed, estimates)
        scores[name] = teacher_forced(fitted, delayed, estimates)
    if surroundings is not None and picture_shape is not None:
        before, received = np.split(surroundings, [-len(delayed)])
        whole = PatchInFrame(corner=(corner[0], corner[1]), patch_size=picture_shape[0]).fit(before)
        rollouts["whole_frame"] = free_running(deepcopy(whole), delayed, estimates, received=received)
        scores["whole_frame"] = teacher_forced(whole, delayed, estimates, received=received)
    return PhaseResult(phase, *sizes, delayed[1:], estimates[1:], scores, rollouts, step=step, forecast=forecast)


def predict_patches(*, patches: Array, start: int, departures: Mapping[str, Any], null: str = "", **how: Any) -> Result:
    """Run `predict_phase` on patches, or on a `null` model of them. Return its result as arrays, for `unpack_phase`."""
    if null:
        # Each start draws its own null, so that its errors are independent of those at other starts.
        patches = NULLS[null](patches, np.random.default_rng([how["seed"], start]))
    with warnings.catch_warnings():
        # The command has warned of mistakes in a table. Patches of a short film have more columns than rows.
        warnings.simplefilter("ignore", SeriesWarning)
        result = predict_phase(patches, FilmPhase("phase", start), **departures, **how)
    arrays = {name: np.asarray(getattr(result, name)) for name in ("n_components", "lam", "frames", "estimates")}
    if result.step is not None:
        arrays |= {f"step-{name}": values for name, values in result.step._asdict().items()}
    if result.forecast is not None:
        arrays["forecast"] = result.forecast
    for mode in get_args(Mode):
        for method, score in getattr(result, mode).items():
            arrays |= {f"{mode}-{method}-{name}": values for name, values in vars(score).items()}
    return arrays


def unpack_phase(phase: FilmPhase, arrays: Result) -> PhaseResult:
    """Return the `PhaseResult` that `predict_patches` stored in arrays."""
    fields = Score.__dataclass_fields__
    scores, rollouts = (
        {
            method: Score(**{name: arrays[f"{mode}-{method}-{name}"] for name in fields})
            for method in METHODS
            if f"{mode}-{method}-predicted" in arrays
        }
        for mode in get_args(Mode)
    )
    sizes = int(arrays["n_components"]), float(arrays["lam"])
    found = PhaseResult(phase, *sizes, arrays["frames"], arrays["estimates"], scores, rollouts)
    step = PipelineStep(**{name: arrays[f"step-{name}"] for name in PipelineStep._fields})
    return replace(found, step=step, forecast=arrays.get("forecast"))
