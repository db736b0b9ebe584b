"""Automatic n_components and lam: chosen by walk-forward error inside the past window.

The last codes of the window are predicted one after the other, each from what lies before it alone, with every
candidate. The dictionary that made these codes must not have seen their frames, else they are smoother than the future
will be; the model takes care of that. It goes on learning from them once the choice is made.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

import numpy as np

from psmt.embedding import embed_window
from psmt.embedding.moments import WindowMoments
from psmt.engines import engine_for
from psmt.extrapolation import Dynamics, Extrapolation
from psmt.extrapolation.dynamics import Fold
from psmt.recovery import ACTIVITY_FACTOR, Recovery, activity_limit, recover_next
from psmt.types import Array, Mask, Progress, silent
from psmt.utils.validation import allowing, count, each, mapping, real

Auto = Literal["auto"]

LAMBDAS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Candidates for lam."""

_TIE = 1e-9
"""Relative difference of errors that does not count."""

_SCORED = 12
"""How many of the held-out codes are predicted, each with an embedding of codes before it: as many as `fit` has time
for. At nine places of highway.mp4, 32 chose no better, by the errors of the 192 frames that followed."""

_SERVED = 4
"""How many of these one embedding serves in a window that is long enough to score a part of its codes: the next ones
know a few codes less than they might, of hundreds."""


@dataclass(frozen=True)
class Choice:
    """What the walk found best, and the whole table."""

    n_components: int | None
    lam: float
    scores: dict[tuple[int | None, float], float]
    """Mean squared error for each (n_components, lam)."""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self) | {"scores": [[f, lam, score] for (f, lam), score in self.scores.items()]}

    @staticmethod
    def check_stored(name: str, values: object) -> None:
        """Raise unless `values`, which errors call `name`, are what `to_json` gives."""
        size = allowing(None, count())
        mapping({"n_components": size, "lam": real(), "scores": each(_check_score)})(name, values)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Self:
        """The choice that `to_json` was taken from."""
        scores = {(f, float(lam)): float(score) for f, lam, score in stored["scores"]}
        return cls(stored["n_components"], float(stored["lam"]), scores)


def _check_score(name: str, value: object) -> None:
    if not isinstance(value, list) or len(value) != 3 or not isinstance(value[2], float):
        raise TypeError(f"{name} has {value!r}, which is no list of n_components, lam and error")
    allowing(None, count())(name, value[0])
    real()(name, value[1])


def held_out(window: int) -> int:
    """How many codes at the end of a window are predicted to choose by."""
    return max(window // 8, 1)


def component_candidates(rank: int) -> list[int | None]:
    """16, 32, 64, .. below the rank, and None: all directions, whatever the rank will be."""
    return [f for f in (2**k for k in range(4, 20)) if f < rank] + [None]


def walk_forward(
    codes: Array,
    dictionary: Array,
    extrapolation: Extrapolation,
    *,
    n_components: int | Auto | None,
    lam: float | Auto,
    centred: bool,
    half_stencils: bool,
    rank_tol: float,
    activity_bound: float | None = ACTIVITY_FACTOR,
    merge_parallel: bool = True,
    device: str = "cpu",
    begins: Mask | None = None,
    progress: Progress = silent,
) -> Choice:
    """Best (n_components, lam) for the window's codes (time, n_atoms); what is not 'auto' is not varied.

    `extrapolation` learns on the way, from steps that the embedding had not seen. A code that `begins` a series
    (time,) is not foretold from what lies before it, nor is the one after it.
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
            embedding = embed_window(
                moments,
                None if n_components == "auto" else n_components,
                centred=centred,
                half_stencils=half_stencils,
                rank_tol=rank_tol,
            )
            if not errors:
                sizes = component_candidates(len(embedding)) if n_components == "auto" else [n_components]
                errors = {f: [] for f in sizes}
            # What serves several predictions is made once for them.
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
    # Of candidates that differ by rounding alone the first is taken, wherever it is computed.
    best = min(scores.values()) * (1.0 + _TIE)
    chosen = next((key for key, score in scores.items() if score <= best), next(iter(scores)))
    return Choice(*chosen, scores=scores)


POINTS = (8, 16, 32)
"""Candidates for the number of points that a dynamics sees, where n_components='auto'."""


def choose_dynamics(
    dynamics: Dynamics,
    frames: Array,
    codes: Array,
    dictionary: Array,
    *,
    n_components: int | Auto | None,
    lam: float | Auto,
    centred: bool,
    half_stencils: bool,
    rank_tol: float,
    activity_bound: float | None,
    merge_parallel: bool,
    device: str,
    begins: Mask,
    progress: Progress = silent,
) -> Choice:
    """Best (n_components, lam) for a dynamics of frames (time, n_features) and codes (time, n_atoms), which is set too.

    The last quarter of the window is foretold in two halves, each with the embedding of what lies before it. Then lam
    is the one at which predicted points give back the codes that came.
    """
    engine = engine_for(device)
    own, length = engine.array(codes), held_out(len(codes))
    how: dict[str, Any] = {"centred": centred, "half_stencils": half_stencils, "rank_tol": rank_tol}
    folds, embedding = [], own[:0]
    for stop in (len(codes) - length, len(codes)):
        start = stop - length
        if start < 3:
            continue
        moments = WindowMoments.of(own[:start], engine, begins=begins[:start])
        embedding = embed_window(moments, None if isinstance(n_components, str) else n_components, **how).matrix
        folds.append(Fold(start, stop, engine.numpy(own @ embedding.T)))
        progress("choice", len(folds), 3)
    rank = len(embedding)
    sizes = [f for f in POINTS if f < rank] or [rank] if n_components == "auto" else [rank]
    dynamics.choose(frames, begins, folds, sizes)
    progress("choice", 3, 3)
    f = dynamics.n_points = dynamics.n_points or sizes[0]
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
