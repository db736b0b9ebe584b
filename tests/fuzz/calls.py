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

from fuzz.alterations import ARRAY_WAYS
from fuzz.saved_models import pictures, series
from psmt import PSMT, FramePSMT, SparseCoder, TemporalEmbedding, datasets, open_frames, read_patches
from psmt.baselines import (
    Baseline1,
    Baseline2,
    CopyCode,
    CopyLast,
    LinearTrend,
    MeanCode,
    MeanFrame,
    RidgeAutoregression,
)
from psmt.errors import PSMTError
from psmt.evaluation import mean_interval, mse, psnr, score_frames, ssim
from psmt.patches import standardise
from psmt.regime import measure_regime
from psmt.series import join_series
from psmt.video.baselines import FRAME_BASELINES

_LONG = ("long and thin", "short and tall")
"""Arrays that files are tried with: to be walked through frame by frame they are only long."""

Told = tuple[str, Any]
"""What it is, and the thing."""


class _Subclass(np.ndarray):
    """An array of a class of its own."""


def _pandas(array: np.ndarray) -> Any:
    import pandas as pd

    return pd.DataFrame(array, columns=[f"c{i}" for i in range(array.shape[1])])


def _nullable(array: np.ndarray) -> Any:
    table = _pandas(array).astype("Float64")
    table.iloc[0, 0] = None
    return table


def _torch(array: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(np.ascontiguousarray(array))


def _torch_with_gradient(array: np.ndarray) -> Any:
    return _torch(array).double().requires_grad_()


def _read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.setflags(write=False)
    return array


def _masked(array: np.ndarray) -> np.ma.MaskedArray:
    return np.ma.masked_where(np.arange(array.size).reshape(array.shape) % 7 == 3, array)


def _ragged(array: np.ndarray) -> list[Any]:
    return [*array.tolist()[:-1], [1.0]]


HOLDERS: dict[str, Callable[[np.ndarray], Any]] = {
    "as it is": lambda array: array,
    "read-only": _read_only,
    "backwards by its strides": lambda array: array[::-1, ::-1],
    "every other": lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
    "not aligned": lambda array: np.frombuffer(b"x" + array.tobytes(), array.dtype, offset=1).reshape(array.shape),
    "broadcast": lambda array: np.broadcast_to(array[:1], array.shape),
    "lists": lambda array: array.tolist(),
    "ragged lists": _ragged,
    "tuples": lambda array: tuple(map(tuple, array.tolist())),
    "a generator": lambda array: (row for row in array),
    "masked": _masked,
    "a subclass": lambda array: array.view(_Subclass),
    "a matrix": np.asmatrix,
    "sparse": csr_array,
    "a table": _pandas,
    "a table with a gap": _nullable,
    "a tensor": _torch,
    "a tensor with a gradient": _torch_with_gradient,
    "None": lambda _: None,
    "a number": lambda _: 3.0,
    "a text": lambda _: "series",
    "a mapping": lambda array: {"X": array},
    "the class itself": lambda _: np.ndarray,
}
"""What an array may come as; what cannot be made of it is skipped."""

LEVELS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "1e300": lambda array: 1e300 * array,
    "1e150": lambda array: 1e150 * array,
    "1e80": lambda array: 1e80 * array,
    "1e38": lambda array: 1e38 * array,
    "1e25": lambda array: 1e25 * array,
    "1e-300": lambda array: 1e-300 * array,
    "1e-160": lambda array: 1e-160 * array,
    "denormal": lambda array: 5e-324 * np.sign(array),
    "far from zero": lambda array: 1e12 + array,
    "one peak": lambda array: array + 1e200 * (np.arange(array.size) == array.size // 2).reshape(array.shape),
    "one small peak": lambda array: array + 1e30 * (np.arange(array.size) == array.size // 2).reshape(array.shape),
    "constant": lambda array: np.full(array.shape, 0.7),
    "one column lives": lambda array: array * (np.arange(array.shape[-1]) == 1),
    "equal columns": lambda array: np.repeat(array[..., :1], array.shape[-1], axis=-1),
    "one feature": lambda array: array[..., :1],
    "one of each": lambda array: array[:, :1, :1] if array.ndim == 3 else array[:, :1],
    "three times": lambda array: array[:3],
    "twice": lambda array: array[:2],
    "once": lambda array: array[:1],
    "stands still at the end": lambda array: np.concatenate([array[:-9], np.repeat(array[-1:], 9, axis=0)]),
    "blinks": lambda array: array * (np.arange(len(array)) % 2).reshape(-1, *[1] * (array.ndim - 1)),
    "steps of one bit": lambda array: np.nextafter(np.ones_like(array), 1 + np.sign(array)),
}
"""Numbers that are allowed to be there."""

PARAMETERS: dict[str, tuple[Any, ...]] = {
    "n_atoms": (1, 2, 7, 60, 300, "auto", 0, -1, 2.5, None, "7", True, np.int8(5), 10**30),
    "window": (3, 4, 16, 60, "auto", 2, 61, 10**9, 0, -4, None, 8.0),
    "n_components": (1, 3, 7, None, "auto", 0, 99, -1, 1.5, "all"),
    "alpha": (0.1, 1e-12, 5e-324, 1e99, 1e100, 1e300, "auto", 0.0, -1.0, np.nan, np.inf, None, "x", 1 + 0j),
    "lam": (0.0, 0.1, 1e-300, 1e99, "auto", -0.1, np.nan, np.inf, None),
    "extrapolation": ("linear", "hold", "gain", "phase", "dynamics", "", None, "Linear", 3),
    "standardise": (True, False, 1, None, "yes"),
    "on_cut": ("hold", "ignore", None),
    "centred": (True, False, 0),
    "half_stencils": (True, False, "no"),
    "rank_tol": (0.0, 1e-12, 1e-3, 0.5, 1.0, 10.0, 1e99, -1.0, np.nan),
    "activity_bound": (None, 2.0, 1e-300, 1e99, 0.0, -1.0, np.inf),
    "merge_parallel": (True, False, 2),
    "dictionary_from": ("past", "window", "future"),
    "solver": ("closed", "sgd", "open"),
    "max_epochs": (1, 3, 0, None),
    "batch_size": (1, 7, 10**6, 0),
    "tol": (None, 0.0, 0.01, 1e99, -1.0),
    "sparsity": (0.0, 0.1, 1e99, -1.0),
    "gap_tol": (1e-12, 1e-300, 1.0, 1e99, 0.0),
    "rate": (0.1, 1e-300, 1e99, 0.0),
    "random_state": (0, None, 2**32 - 1, 2**32, -1, 0.5, np.random.RandomState(1), "x"),
    "device": ("cpu", "cuda:99", "tpu", "", None, 0),
    "dtype": ("float64", "float32", "int8", None, np.float64),
    "order": (1, 2, 30, 100, 0, 1.0),
    "penalty": ("auto", 1e-300, 1e99, 0.0, np.nan),
    "prior": ("default", None, "nowhere.prior", 3),
    "rollouts": (True, False, None),
}
"""What parameters may be given: what is allowed, up to its bounds, and what is not."""

QUICK: dict[str, Any] = {"n_atoms": 7, "window": 16, "n_components": None, "alpha": 0.1, "lam": 0.01, "max_epochs": 20}
SERIES_MODELS = (PSMT, PSMT.for_series, PSMT.literal, Baseline1, Baseline2, MeanCode, CopyCode)
SERIES_BASELINES = (CopyLast, MeanFrame, LinearTrend, RidgeAutoregression)
HORIZONS = (1, 2, 0, -1, 2.0, None, True, "3", np.int64(2))


def odd(rng: np.random.Generator, array: np.ndarray) -> Told:
    """An array that is other than it should be in one or two ways, or as it should be."""
    told = []
    given: Any = array
    if rng.integers(2):
        ways = LEVELS if rng.integers(2) else ARRAY_WAYS
        way = [way for way in ways if way not in _LONG][rng.integers(len(ways.keys() - set(_LONG)))]
        with np.errstate(all="ignore"):
            given = ways[way](given)
        told.append(way)
    if rng.integers(3) == 0:
        holder = list(HOLDERS)[rng.integers(len(HOLDERS))]
        given = HOLDERS[holder](given)
        told.append(holder)
    return ", ".join(told) or "healthy", given


def parameters(rng: np.random.Generator, known: list[str], quick: dict[str, Any]) -> dict[str, Any]:
    """Up to three odd values for the parameters that a class has, and quick ones for the rest."""
    chosen = {name: value for name, value in quick.items() if name in known}
    for name in rng.permutation([name for name in known if name in PARAMETERS])[: rng.integers(0, 4)]:
        values = PARAMETERS[str(name)]
        chosen[str(name)] = values[rng.integers(len(values))]
    return chosen


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
        make = (FramePSMT, FramePSMT, *(entry.make for entry in FRAME_BASELINES.values()))[rng.integers(7)]
        chosen = parameters(rng, list(make().get_params(deep=False)), {})
        told = f"{make.__name__}({chosen}) of {film[0]}, then {frame[0]}"
        return told, lambda: _deliberate(lambda: _forecast(rng, make(**chosen), film, frame))
    return _function(rng)


def _function(rng: np.random.Generator) -> tuple[str, Callable[[], None]]:
    one, other = odd(rng, series()), odd(rng, pictures())
    number = (0, 1, 3, -1, 2.5, None, "x", 10**12)[rng.integers(8)]
    functions: dict[str, Callable[[], Any]] = {
        # Errors of huge numbers are huge, and what cannot be told is NaN: what counts here is that they answer.
        "mean_interval": lambda: mean_interval(one[1], block=number) and None,
        "mse": lambda: mse(other[1], pictures()) is None,
        "psnr": lambda: psnr(mse(other[1], pictures())) is None,
        "ssim": lambda: ssim(other[1], pictures()[-1]) is None,
        "score_frames": lambda: score_frames(other[1], pictures()[-1]) is None,
        "measure_regime": lambda: measure_regime(one[1]) and None,
        "standardise": lambda: standardise(one[1]).values,
        "join_series": lambda: join_series([one[1], series()])[0],
        "load": lambda: datasets.load(one[1], stop=number).X,
        "load of a film": lambda: datasets.load(other[1], frame_size=number, patch_size=4).X,
        "load_glide": lambda: datasets.load_glide(number, patch_size=8).X if number != 10**12 else 0.0,
        "load_shapes": lambda: datasets.load_shapes(5, size=number, seed=3).X if number != 10**12 else 0.0,
        "load_bold": lambda: datasets.load_bold(40, n_regions=number).X if number != 10**12 else 0.0,
        "open_frames": lambda: np.stack(list(open_frames(other[1], stop=number))),
        "read_patches": lambda: read_patches(other[1], frame_size=None, patch_size=number).values,
        "from_dictionary": lambda: SparseCoder.from_dictionary(one[1], alpha=0.3).transform(series()),
        "inverse_transform": lambda: PSMT(**QUICK).fit(series()).inverse_transform(one[1]),
        "predict of frames": lambda: PSMT(**QUICK).fit(series()).predict(one[1]),
        "lengths": lambda: PSMT(**QUICK).fit(series(), lengths=[30, number]).predict(),
        "before fit": lambda: (PSMT, FramePSMT, CopyLast)[rng.integers(3)]().predict(),
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
