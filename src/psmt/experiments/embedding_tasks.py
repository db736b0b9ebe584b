"""Frames through the embedding of a window and back: what the sweep and the reconstruction ask, as one task."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.embedding import embed_window
from psmt.engines import engine_for
from psmt.evaluation import mse
from psmt.experiments.coding_tasks import unpack_codes
from psmt.experiments.running.tasks import Task, on_device
from psmt.moments import WindowMoments
from psmt.recovery import ACTIVITY_FACTOR, Recovery
from psmt.types import Array, Result


def window_task(
    name: str,
    patches: Array,
    dictionary: Array,
    codes: Result,
    *,
    n_components: int,
    lam: float,
    centred: bool = True,
    device: str = "cpu",
) -> Task:
    """Task whose ``mse`` (window,) is that of the patches (window, n_features) with these packed codes.

    V is the paper's centred covariance, or the uncentred second moment of the original sparse manifold transform.
    """
    inputs = {
        "patches": patches,
        "dictionary": dictionary,
        **codes,
        "n_components": n_components,
        "lam": lam,
        "centred": centred,
    }
    return Task(name, reconstruct_window, inputs | on_device(device))


def reconstruct_window(
    *,
    patches: Array,
    dictionary: Array,
    values: Array,
    columns: NDArray[Any],
    offsets: NDArray[Any],
    n_components: int,
    lam: float,
    centred: bool = True,
    device: str = "cpu",
) -> Result:
    """``mse`` (window,) of the patches (window, n_features) through the window's embedding and back; ``rank`` of V.

    Their packed codes come with them, see `psmt.experiments.coding_tasks`.
    """
    codes = engine_for(device).dense(unpack_codes(values, columns, offsets, len(dictionary)))
    given: dict[str, Any] = {"n_components": n_components, "lam": lam, "centred": centred, "device": device}
    frames, rank = through_embedding(codes, dictionary, **given)
    return {"mse": mse(frames, patches), "rank": np.array(rank)}


def through_embedding(
    codes: Any, dictionary: Array, *, n_components: int, lam: float, centred: bool = True, device: str = "cpu"
) -> tuple[Array, int]:
    """What the codes (time, n_atoms) stand for after the embedding of all of them and recovery, and the rank of V.

    The codes may be an array of the engine; the frames (time, n_features) are those of the dictionary's atoms.
    """
    engine = engine_for(device)
    own = engine.array(codes)
    moments = WindowMoments.of(own, engine)
    embedding = embed_window(moments, n_components, centred=centred)
    recover = Recovery(embedding.matrix, lam, activity=ACTIVITY_FACTOR * moments.peak_activity, engine=engine)
    del moments  # as large as the codes several times over
    recovered = recover.many(own @ embedding.matrix.T, own)
    return engine.numpy(recovered @ engine.array(dictionary)), embedding.rank
