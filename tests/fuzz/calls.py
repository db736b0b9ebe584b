"""Calls of the public classes and functions with odd arrays and odd parameters, in the order of a stream.

A call gives finite numbers, or raises what somebody wrote for its reader: a `PSMTError`, or the ValueError, TypeError
or NotFittedError of an estimator. An error that NumPy, SciPy or numba raise from within is a failure, whatever its
class: nobody can act on "operands could not be broadcast".
"""

from __future__ import annotations

import copy
import linecache
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone

from fuzz.odd_arguments import Told, odd, parameters
from fuzz.saved_models import pictures, series
from psmt import PSMT, FramePredictor, SparseCoder, TemporalEmbedding, datasets, open_frames, read_patches
from psmt.data.patches import standardise
from psmt.errors import PSMTError
from psmt.evaluation import mean_interval, mse, psnr, score_frames, ssim
from psmt.model.baselines import (
    Baseline1,
    Baseline2,
    CodeExtrapolation,
    CopyCode,
    CopyLast,
    LinearTrend,
    MeanCode,
    MeanFrame,
    PixelGain,
    PrincipalComponents,
    RidgeAutoregression,
    SlowFeatures,
)
from psmt.series import join_series
from psmt.video.baselines import FRAME_BASELINES

QUICK: dict[str, Any] = {"n_atoms": 7, "window": 16, "n_components": None, "alpha": 0.1, "lam": 0.01}
SERIES_MODELS = (PSMT, PSMT.for_series, PSMT.literal, Baseline1, Baseline2, MeanCode, CopyCode, CodeExtrapolation)
SERIES_BASELINES = (
    CopyLast,
    MeanFrame,
    LinearTrend,
    RidgeAutoregression,
    PixelGain,
    PrincipalComponents,
    SlowFeatures,
)
HORIZONS = (1, 2, 0, -1, 2.0, None, True, "3", np.int64(2))


def finite(said: Any) -> None:
    """Raise AssertionError unless all numbers that were said are finite."""
    array = said.toarray() if isinstance(said, csr_array) else np.asarray(said)
    assert array.dtype.kind in "fiub" and np.isfinite(array).all(), f"{array.dtype} {array.shape}, not finite"


def changed_hands(rng: np.random.Generator, model: Any) -> Any:
    """The model, or what comes back of it from a pickle or a copy."""
    ways = (lambda it: it, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it)), copy.copy)
    return ways[rng.integers(len(ways))](model)


def _forecast(rng: np.random.Generator, model: Any, past: Told, following: Told) -> None:
    model.fit(past[1])
    finite(model.predict())
    model = changed_hands(rng, model)
    steps = [
        lambda: finite(model.update(following[1]).predict()),
        lambda: finite(model.predict(HORIZONS[rng.integers(len(HORIZONS))])),
        lambda: model.score(past[1]) if hasattr(model, "score") else None,
        lambda: finite(model.partial_fit(past[1]).predict()) if hasattr(model, "partial_fit") else None,
        lambda: finite(model.transform(past[1])) if hasattr(model, "transform") else None,
        lambda: finite(clone(model).fit(past[1]).predict(2)),
        lambda: finite(model.begin(past[1]).predict()) if hasattr(model, "begin") else None,
        lambda: repr(model) and getattr(model, "_repr_html_", str)(),
    ]
    for step in rng.permutation(len(steps))[: rng.integers(1, 5)]:
        _deliberate(steps[step])
        finite(model.predict())  # what was refused has changed nothing


def _layer(rng: np.random.Generator, layer: Any, given: Told) -> None:
    finite(layer.fit(given[1]).transform(given[1]))
    layer = changed_hands(rng, layer)
    codes = layer.transform(given[1])
    finite(layer.inverse_transform(codes))
    finite(layer.partial_fit(given[1]).transform(given[1]))


def call(rng: np.random.Generator) -> tuple[str, Callable[[], None]]:
    """What is called with what, and how it is done."""
    kind = ("model", "model", "frames", "frames", "coder", "embedding", "baseline", "function")[rng.integers(8)]
    if kind in ("model", "baseline", "coder", "embedding"):
        past, following = odd(rng, series()), odd(rng, series()[-1][None])
        if np.ndim(following[1]) != 2 or rng.integers(2) == 0:
            following = ("healthy", series()[-1])
        else:
            following = (following[0], following[1][0] if isinstance(following[1], np.ndarray) else following[1])
        makers = {"model": SERIES_MODELS, "baseline": SERIES_BASELINES, "coder": (SparseCoder,)}
        make = (makers.get(kind) or (TemporalEmbedding,))[rng.integers(len(makers.get(kind) or (1,)))]
        known = list((PSMT if kind == "model" else make)().get_params(deep=False))
        chosen = parameters(rng, known, QUICK if kind != "baseline" else {"window": 5})
        told = f"{getattr(make, '__qualname__', make)}({chosen}) of {past[0]}, then {following[0]}"
        if kind in ("coder", "embedding"):
            return told, lambda: _deliberate(lambda: _layer(rng, make(**chosen), past))
        return told, lambda: _deliberate(lambda: _forecast(rng, make(**chosen), past, following))
    if kind == "frames":
        film, frame = odd(rng, pictures()), ("healthy", pictures()[-1])
        if rng.integers(2):
            frame = odd(rng, pictures()[-1])
        make = (FramePredictor, FramePredictor, *(entry.make for entry in FRAME_BASELINES.values()))[rng.integers(7)]
        chosen = parameters(rng, list(make().get_params(deep=False)), {})
        told = f"{make.__name__}({chosen}) of {film[0]}, then {frame[0]}"
        return told, lambda: _deliberate(lambda: _forecast(rng, make(**chosen), film, frame))
    return _function(rng)


def _function(rng: np.random.Generator) -> tuple[str, Callable[[], None]]:
    one, other = odd(rng, series()), odd(rng, pictures())
    number = (0, 1, 3, -1, 2.5, None, "x", 10**12)[rng.integers(8)]
    functions: dict[str, Callable[[], Any]] = {
        # Errors of huge numbers are huge, and what inconclusive is NaN: what counts here is that they answer.
        "mean_interval": lambda: mean_interval(one[1], block=number) and None,
        "mse": lambda: mse(other[1], pictures()) is None,
        "psnr": lambda: psnr(mse(other[1], pictures())) is None,
        "ssim": lambda: ssim(other[1], pictures()[-1]) is None,
        "score_frames": lambda: score_frames(other[1], pictures()[-1]) is None,
        "standardise": lambda: standardise(one[1]).values,
        "join_series": lambda: join_series([one[1], series()])[0],
        "load": lambda: datasets.load(one[1], stop=number).X,
        "load of a film": lambda: datasets.load(other[1], frame_size=number, patch_size=4).X,
        "load_glide": lambda: datasets.load_glide(number, patch_size=8).X if number != 10**12 else 0.0,
        "load_bold": lambda: datasets.load_bold(40, n_regions=number).X if number != 10**12 else 0.0,
        "open_frames": lambda: np.stack(list(open_frames(other[1], stop=number))),
        "read_patches": lambda: read_patches(other[1], frame_size=None, patch_size=number).values,
        "from_dictionary": lambda: SparseCoder.from_dictionary(one[1], alpha=0.3).transform(series()),
        "inverse_transform": lambda: PSMT(**QUICK).fit(series()).inverse_transform(one[1]),
        "predict of frames": lambda: PSMT(**QUICK).fit(series()).predict(one[1]),
        "lengths": lambda: PSMT(**QUICK).fit(series(), lengths=[30, number]).predict(),
        "before fit": lambda: (PSMT, FramePredictor, CopyLast)[rng.integers(3)]().predict(),
    }
    name = list(functions)[rng.integers(len(functions))]

    def act() -> None:
        said = functions[name]()
        if said is not None:
            finite(said)

    return f"{name} of {one[0]} / {other[0]} / {number!r}", lambda: _deliberate(act)


def _deliberate(act: Callable[[], Any]) -> None:
    """Do it; raise `PSMTError` where it was refused in words of ours, and whatever else comes as it is."""
    try:
        act()
    except PSMTError:
        raise
    except MemoryError as error:  # NumPy says how much was asked for
        raise PSMTError(str(error) or "no memory") from error
    except FileNotFoundError as error:
        raise PSMTError(str(error)) from error
    except (ValueError, TypeError) as error:
        if not _written_for_people(error):
            raise
        raise PSMTError(" ".join(str(error).split())) from error


def _written_for_people(error: Exception) -> bool:
    """Whether a ``raise`` of ours or of scikit-learn's checks gave it, and no library from within."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    assert at is not None
    file = at.tb_frame.f_code.co_filename
    ours = "/psmt/" in file and linecache.getline(file, at.tb_lineno).strip().startswith("raise")
    return ours or "/sklearn/utils/" in file or "/sklearn/base" in file
