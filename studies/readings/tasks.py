"""Tasks: one window of Table 1, and one start of Fig. 4. Readings that differ only in λ share a task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from psmt.coding import SparseCoder
from psmt.embedding import embed_window
from psmt.embedding.moments import WindowMoments
from psmt.engines import engine_for
from psmt.evaluation import mse, teacher_forced
from psmt.experiments.film_tasks import round_trip
from psmt.model import PSMT
from psmt.model.baselines import Baseline1, Baseline2
from psmt.numerics.arrays import array_namespace
from psmt.types import Array, Result

MODELS: dict[str, type[PSMT]] = {"psmt": PSMT, "baseline2": Baseline2, "baseline1": Baseline1}
METHODS = (*MODELS, "copy", "mean")
"""Methods in Fig. 4. Copying and the mean use codes for errors vs code, and frames for errors vs frame."""


def reconstruct_frames(
    *, patches: Array, dictionary: Array, n_window: int, alpha: float, device: str = "cpu", **given: Any
) -> Result:
    """Reconstruct patches through the embedding of one window.

    Return the MSE ``inside`` the window (n_lam, n_window) and ``after`` it (n_lam, ..). The patches (n_window + ..,
    n_features) begin with those of the window. Other parameters are those of `through_embedding`.
    """
    codes = SparseCoder.from_dictionary(dictionary, alpha=alpha, device=device).transform(patches)
    errors = mse(through_embedding(codes, dictionary, n_window=n_window, device=device, **given), patches)
    return {"inside": errors[:, :n_window], "after": errors[:, n_window:]}


def through_embedding(
    codes: Any, dictionary: Array, *, n_window: int | None = None, device: str = "cpu", **given: Any
) -> Array:
    """Embed codes (time, n_atoms), recover them, and return the frames (.., time, n_features) of the recovered codes.

    The embedding is that of the first `n_window` codes, or of all codes. Later codes are recovered as in a prediction:
    an atom that did not change in the window keeps the activity that it had there. If there are several `lam`, the
    first axis of the result is that of `lam`. The codes may be an array of the engine. Other parameters are those of
    `PSMT`.
    """
    own = engine_for(device).array(codes)
    xp, n_window = array_namespace(own), len(own) if n_window is None else n_window
    later = xp.broadcast_to(own[n_window - 1], (len(own) - n_window, own.shape[1]))
    frames_of = round_trip(own[:n_window], dictionary, device=device, **given)
    return frames_of(own, xp.concat([own[:n_window], later]))


def predict_start(
    *,
    patches: Array,
    dictionary: Array,
    window: int,
    alpha: float,
    n_components: int | None,
    lam: Sequence[float],
    centred: bool,
    half_stencils: bool,
    rank_tol: float,
    device: str = "cpu",
    **recovery: Any,
) -> Result:
    """Make one-step predictions after one start of Fig. 4.

    Return the MSE ``vs_code`` and ``vs_frame`` (n_lam, n_methods, horizon). The patches (window + 1 + horizon,
    n_features) are those around the start. Other parameters are those of `PSMT`.
    """
    coder = SparseCoder.from_dictionary(dictionary, alpha=alpha, device=device)
    past, delayed = patches[:window], patches[window:]
    codes = coder.transform(past)
    estimates = coder.inverse_transform(coder.transform(delayed))
    how: dict[str, Any] = {"centred": centred, "half_stencils": half_stencils, "rank_tol": rank_tol}
    if n_components is not None:
        rank = len(embed_window(WindowMoments.of(codes), None, **how))
        if not rank:
            raise ValueError(
                f"the {window} codes of a window never change, so there is no embedding; use a livelier film, or a "
                "larger window"
            )
        n_components = min(n_components, rank)
    given = how | recovery | {"window": window, "n_components": n_components, "coder": coder, "device": device}
    copying_and_mean = {
        "vs_code": [
            mse(estimates[:-1], estimates[1:]),
            mse(coder.inverse_transform(codes).mean(axis=0), estimates[1:]),
        ],
        "vs_frame": [mse(delayed[:-1], delayed[1:]), mse(past.mean(axis=0), delayed[1:])],
    }
    errors: dict[str, list[list[Array]]] = {"vs_code": [], "vs_frame": []}
    for penalty in lam:
        scores = [teacher_forced(kind(**given, lam=penalty).fit(past), delayed, estimates) for kind in MODELS.values()]
        for target, own in errors.items():
            own.append([*(getattr(score, target) for score in scores), *copying_and_mean[target]])
    return {target: np.array(own) for target, own in errors.items()}
