"""Automatic choice of n_components and lam, by the walk-forward error at the end of the past window.

Every candidate pair of values predicts the last codes of the window one after the other, each from the codes before it.
The dictionary must not have been learned from the predicted frames, because their codes would then be smoother than
future codes. `PSMT.fit` ensures this, and lets the dictionary learn from these frames after the choice.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

import numpy as np

from psmt.embedding import embed_window
from psmt.embedding.moments import WindowMoments
from psmt.engines import engine_for
from psmt.extrapolation.contract import Extrapolation, Fold
from psmt.recovery import ACTIVITY_FACTOR, Recovery, activity_limit, recover_next
from psmt.types import Array, Mask, Progress, silent
from psmt.utils.constraints import allowing, count, each, mapping, real

Auto = Literal["auto"]

LAMBDAS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Values of lam that lam='auto' chooses from."""

_TIE = 1e-9  # two choices whose errors differ by less than this fraction count as equally good
_SCORED = 12
"""Number of held-out codes that are predicted. At nine places of highway.mp4, predicting 32 codes gave no better choice
for the following 192 frames."""

_SERVED = 4
"""Number of predictions that share one embedding if only some of the held-out codes are predicted. For the later of
these predictions, the embedding then lacks the last few of hundreds of codes."""

POINTS = (8, 16, 32)
"""Values of n_components that 'auto' chooses from if the extrapolation chooses its parameters on folds."""


@dataclass(frozen=True)
class Choice:
    """The chosen values of n_components and lam, and the errors of all values that were tried."""

    n_components: int | None
    lam: float
    scores: dict[tuple[int | None, float], float]
    """Mean squared error for each (n_components, lam)."""

    def to_json(self) -> dict[str, Any]:
        """Return the choice as a dictionary that JSON can store."""
        return asdict(self) | {"scores": [[f, lam, score] for (f, lam), score in self.scores.items()]}

    @staticmethod
    def check_stored(name: str, values: object) -> None:
        """Raise an error unless `values` has the entries that `to_json` returns. The message calls it `name`."""
        size = allowing(None, count())
        mapping({"n_components": size, "lam": real(), "scores": each(_check_score)})(name, values)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Self:
        """Return the `Choice` that `to_json` converted."""
        scores = {(f, float(lam)): float(score) for f, lam, score in stored["scores"]}
        return cls(stored["n_components"], float(stored["lam"]), scores)


def _check_score(name: str, value: object) -> None:
    if not isinstance(value, list) or len(value) != 3 or not isinstance(value[2], float):
        raise TypeError(f"{name} has {value!r}, which is not a list of n_components, lam and error")
    allowing(None, count())(name, value[0])
    real()(name, value[1])


def held_out(window: int) -> int:
    """Return the number of codes at the end of a window that are held out for the choice of parameters."""
    return max(window // 8, 1)


def component_candidates(rank: int) -> list[int | None]:
    """Return the values of n_components to try: 16, 32, 64, .. below the rank, and None, which keeps all directions."""
    return [f for f in (2**k for k in range(4, 20)) if f < rank] + [None]


def walk_forward(
    codes: Array,
    dictionary: Array,
    extrapolation: Extrapolation,
    *,
    n_components: int | Auto | None,
    lam: float | Auto,
    activity_bound: float | None = ACTIVITY_FACTOR,
    merge_parallel: bool = True,
    device: str = "cpu",
    begins: Mask | None = None,
    progress: Progress = silent,
    **embedding_options: Any,
) -> Choice:
    """Return the n_components and lam that predict the last codes best. Only 'auto' parameters are varied.

    An adaptive extrapolation learns meanwhile, from steps to which the embedding was not fitted. `codes` are (time,
    n_atoms). `begins` (time,) marks the first code of each series. The first two codes of a series are not predicted.
    `embedding_options` are those of `embed_window`.
    """
    first = np.zeros(len(codes), dtype=bool) if begins is None else begins
    start = len(codes) - held_out(len(codes))
    skip = -(-(len(codes) - start) // _SCORED)
    renewed = skip * (_SERVED if skip > 1 else 1)
    engine = engine_for(device)
    own, atoms = engine.array(codes), engine.array(dictionary)
    moments = WindowMoments.of(own[:start], engine, begins=first[:start])
    lams = LAMBDAS if lam == "auto" else (lam,)
    errors: dict[int | None, list[Array]] = {}
    for t in range(start, len(codes)):
        within = not (first[t] or first[t - 1])
        if (t - start) % renewed == 0:
            wanted = None if n_components == "auto" else n_components
            embedding = embed_window(moments, wanted, **embedding_options)
            if not errors:
                sizes = component_candidates(len(embedding)) if n_components == "auto" else [n_components]
                errors = {f: [] for f in sizes}
            # One recovery is used for several predictions.
            activity = activity_limit(activity_bound, moments.peak_activity)
            recoveries = {
                f: Recovery(embedding.matrix[:f], lams, activity=activity, merge_parallel=merge_parallel, engine=engine)
                for f in (errors if len(errors) * len(lams) > 1 else ())
            }
        if (t - start) % skip == 0 and within:
            for f, recover in recoveries.items():
                expected = recover_next(recover, extrapolation, own[t - 2], own[t - 1])
                errors[f].append(engine.numpy((((expected - own[t]) @ atoms) ** 2).mean(1)))
        if extrapolation.adaptive and within:
            latest = own[t - 2 : t + 1]
            extrapolation.observe(engine.numpy(latest @ embedding.matrix.T), engine.numpy(latest @ atoms))
        moments.update(own[t], begins=bool(first[t]))
        progress("choice", t + 1 - start, len(codes) - start)
    means = {f: np.mean(found, axis=0).tolist() if found else [np.nan] * len(lams) for f, found in errors.items()}
    scores = {(f, value): mean for f, found in means.items() for value, mean in zip(lams, found, strict=True)}
    # If candidates differ only by rounding, the first is chosen, so that all machines agree.
    best = min(scores.values()) * (1.0 + _TIE)
    chosen = next((key for key, score in scores.items() if score <= best), next(iter(scores)))
    return Choice(*chosen, scores=scores)


def choose_by_folds(
    extrapolation: Extrapolation,
    frames: Array,
    codes: Array,
    dictionary: Array,
    *,
    n_components: int | Auto | None,
    lam: float | Auto,
    activity_bound: float | None,
    merge_parallel: bool,
    device: str,
    begins: Mask,
    progress: Progress = silent,
    **embedding_options: Any,
) -> Choice:
    """Let an extrapolation choose its parameters on held-out folds. Return the best n_components and lam for it.

    The folds lie at the end of the window of frames (time, n_features) and codes (time, n_atoms). Each fold has an
    embedding that was learned from the codes before it. lam is chosen so that codes of the last fold are recovered from
    their own points with the least error. `embedding_options` are those of `embed_window`.
    """
    engine, n_folds = engine_for(device), extrapolation.n_folds
    own, length = engine.array(codes), held_out(len(codes))
    wanted = None if isinstance(n_components, str) else n_components
    folds, embedding = [], own[:0]
    for stop in range(len(codes) - (n_folds - 1) * length, len(codes) + 1, length):
        start = stop - length
        if start < 3:
            continue
        moments = WindowMoments.of(own[:start], engine, begins=begins[:start])
        embedding = embed_window(moments, wanted, **embedding_options).matrix
        folds.append(Fold(start, stop, engine.numpy(own @ embedding.T)))
        progress("choice", len(folds), n_folds + 1)
    rank = len(embedding)
    sizes = [f for f in POINTS if f < rank] or [rank] if n_components == "auto" else [rank]
    extrapolation.choose(frames, begins, folds, sizes)
    progress("choice", n_folds + 1, n_folds + 1)
    f = extrapolation.n_points = extrapolation.n_points or sizes[0]
    chosen = f if isinstance(n_components, str) else n_components
    if not isinstance(lam, str):
        return Choice(chosen, float(lam), scores={})
    limit = activity_limit(activity_bound, WindowMoments.of(own, engine).peak_activity)
    recover = Recovery(embedding[:f], LAMBDAS, activity=limit, merge_parallel=merge_parallel, engine=engine)
    skip = -(-length // _SCORED)
    errors = [
        engine.numpy((((recover(embedding[:f] @ own[t], own[t - 1]) - own[t]) @ engine.array(dictionary)) ** 2).mean(1))
        for t in range(len(codes) - length, len(codes), skip)
    ]
    scores: dict[tuple[int | None, float], float] = {
        (chosen, value): float(mean) for value, mean in zip(LAMBDAS, np.mean(errors, axis=0), strict=True)
    }
    return Choice(chosen, min(scores, key=lambda key: scores[key])[1], scores=scores)
