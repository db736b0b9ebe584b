"""Predictors of the same patches that are not rules of `studies.layers.rules`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from psmt import PSMT
from psmt.data.patches import standardise
from psmt.types import Array, Levels, Mask
from psmt.video import FramePredictor
from studies.layers.stretches import BLOCK, PATCH, SCORED, Stretch, blocks_of, cut

N_COMPONENTS, PENALTIES = (4, 16, 64), 10.0 ** np.arange(-5, 3)  # PCA + VAR chooses from these


def frame_predictor(stretch: Stretch) -> Levels:
    """The whole-frame predictor, which goes on learning, read at the patches."""
    model = FramePredictor().fit(stretch.frames[: stretch.n_past])
    predicted = []
    for frame in stretch.frames[stretch.n_past :]:
        predicted.append(model.predict())
        model.update(frame)
    return cut(np.array(predicted), blocks_of(SCORED), BLOCK) - stretch.scored.block("x")


def motion_in_patch(stretch: Stretch) -> Levels:
    """The patch moved on by the flow inside it, with a gain per pixel that is learned from its past."""
    scored, predicted = stretch.scored, []
    for patch in range(len(SCORED)):
        own = stretch.own(patch)
        w, y = (z.reshape(-1, 4 * BLOCK**2) for z in (own.w_patch, own.y))
        gains = (w * y).sum(axis=0) / ((w * w).sum(axis=0) + 1e-9)
        predicted.append(gains * scored.w_patch.reshape(scored.shape[0], len(SCORED), -1)[:, patch])
    return np.stack(predicted, axis=1).reshape(scored.y.shape).astype(np.float32)


def pca_var(stretch: Stretch) -> Levels:
    """Principal components of the patch's past and a vector autoregression of order 2 on them; the rest is copied."""
    return _by_patch(stretch, _var)


def _var(past: Array, present: Array) -> Array:
    mean = past.mean(axis=0)
    axes = np.linalg.svd(past - mean, full_matrices=False)[2].T
    changes = np.diff(past, axis=0)[1:]
    held_out = np.arange(len(changes)) // 12 % 5 == 4

    def predicted(n: int, penalty: float, shown: Mask, frames: Array) -> Array:
        """Changes after the second and later ones of the frames, with what is learned from the changes shown."""
        z, now = (past - mean) @ axes[:, :n], (frames - mean) @ axes[:, :n]
        known = np.concatenate([z[1:-1], z[:-2]], axis=1)[shown]
        gram = known.T @ known
        gram += penalty * np.trace(gram) / len(gram) * np.eye(len(gram))
        weights = np.linalg.solve(gram, known.T @ np.diff(z, axis=0)[1:][shown])
        return np.asarray(np.concatenate([now[1:], now[:-1]], axis=1) @ weights @ axes[:, :n].T)

    def error(choice: tuple[int, float]) -> float:
        return float(np.sum((predicted(*choice, ~held_out, past)[:-1] - changes)[held_out] ** 2))

    choices = [(n, penalty) for n in N_COMPONENTS for penalty in PENALTIES if n <= len(past) // 3]
    return predicted(*min(choices, key=error), np.ones(len(changes), dtype=bool), present)


def psmt(extrapolation: str) -> Callable[[Stretch], Levels]:
    """The paper's model on the patch, with its own dictionary; mean and contrast of the last patch are kept."""

    def changes(past: Array, present: Array) -> Array:
        known, shown = standardise(past), standardise(present)
        window = min(len(past), 288)
        model = PSMT(
            n_atoms=window // 3,
            window=window,
            n_components=16,
            lam=0.1,
            extrapolation=extrapolation,
            random_state=0,
        )
        model.fit(known.values)
        predicted = [model.update(x).predict() for x in shown.values[1:]]
        return np.array(predicted) * shown.contrast[1:, None] + shown.mean[1:, None] - present[1:]

    return lambda stretch: _by_patch(stretch, changes)


def _by_patch(stretch: Stretch, changes: Callable[[Array, Array], Array]) -> Levels:
    """Changes (n, 64) of the blocks, from a function of the grey levels of a patch.

    The function is given the past and, from its last frame but one, the frames that predictions start from.
    """
    predicted = []
    for corner in SCORED:
        patches = cut(stretch.frames, corner[None], PATCH).astype(np.float64)
        found = changes(patches[: stretch.n_past - 1], patches[stretch.n_past - 2 : -1])
        squares = found.reshape(-1, 2, BLOCK, 2, BLOCK).swapaxes(2, 3)
        predicted.append(squares.reshape(len(found), 4, BLOCK**2))
    return np.stack(predicted, axis=1).reshape(stretch.scored.y.shape).astype(np.float32)


RIVALS: Mapping[str, Callable[[Stretch], Levels]] = {
    "motion in the patch": motion_in_patch,
    "PCA + VAR": pca_var,
    "PSMT, the paper's line": psmt("linear"),
    "PSMT, phase": psmt("phase"),
    "whole-frame predictor": frame_predictor,
}
