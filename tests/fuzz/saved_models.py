"""Small models of every kind, and the files that they save."""

from __future__ import annotations

import io
import json
import zipfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from psmt import PSMT, FramePredictor, SparseCoder
from psmt.brain import GroupModel, fit_group
from psmt.model.baselines import Baseline2, MeanCode
from psmt.video.prior import Prior, learn_prior


def series(n_frames: int = 60, n_features: int = 5) -> np.ndarray:
    """A smooth series (n_frames, n_features) with a cut, so that all records have something in them."""
    t, k = np.arange(n_frames)[:, None], np.arange(n_features)
    values = np.cos(t / 5 + k) + 0.5 * np.sin(t / 3 + k**2)
    values[n_frames // 2 :] = 2.0 - values[n_frames // 2 :]
    return values


def pictures(n_frames: int = 14) -> np.ndarray:
    """A film (n_frames, 17, 26) of a moving pattern."""
    y, x = np.mgrid[:17, :26]
    return np.array([0.5 + 0.3 * np.sin((x - t) / 3) * np.cos(y / 4) for t in range(n_frames)], np.float32)


def _psmt(cls=PSMT, **parameters):
    common = {"n_atoms": 7, "window": 16, "n_components": 3, "alpha": 0.1, "lam": 0.01, "random_state": 0}
    model = cls(**common | parameters).fit(series()[:50])
    for x in series()[50:55]:
        model.update(x)
    return model


def _with_interval(model):
    model.predict(interval=0.8)
    return model.update(series()[55])


def _frames(**parameters):
    return FramePredictor(**parameters).fit(pictures())


KINDS = {
    "linear": _psmt,
    "chosen": lambda: _psmt(n_components="auto", lam="auto"),
    "gain": lambda: _psmt(extrapolation="gain"),
    "phase": lambda: _psmt(extrapolation="phase"),
    "literal": lambda: PSMT.literal(n_atoms=7, window=16, n_components=3, alpha=0.1, lam=0.01).fit(series()[:50]),
    "given coder": lambda: _psmt(
        coder=SparseCoder.from_dictionary(np.random.default_rng(0).standard_normal((6, 5)), alpha=0.2)
    ),
    "hold": lambda: _psmt(extrapolation="hold"),
    "dynamics": lambda: _psmt(extrapolation="dynamics", window=40),
    "series": lambda: PSMT.for_series(random_state=0).fit(series(), lengths=[25, 35]).update(series()[-1]),
    "intervals": lambda: _with_interval(_psmt(window=40)),
    "table": lambda: PSMT.for_series(random_state=0).fit(
        pd.DataFrame(series(), columns=list("abcde"), index=pd.date_range("2026-01-01", periods=60))
    ),
    "static": lambda: _psmt(Baseline2),
    "mean": lambda: _psmt(MeanCode),
    "frames phase": _frames,
    "frames without a prior": lambda: _frames(prior=None),
    "frames gain": lambda: _frames(extrapolation="gain"),
    "frames linear": lambda: _frames(extrapolation="linear"),
    "prior": lambda: learn_prior([pictures(20)]),
    "group": lambda: fit_group([series(), series()[::-1]], n_atoms=4, n_components=2, n_states=2),
}
"""Every class that saves, and every parameter that changes what is saved."""


@cache
def saved(kind: str):
    """Class, header and arrays of a saved model."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model = KINDS[kind]()
        model.save(path)
        with np.load(path, allow_pickle=False) as archive:
            parts = {name: archive[name] for name in archive.files}
    return type(model), json.loads(str(parts.pop("header"))), parts


def write(path: Path, header: str, parts: dict[str, np.ndarray]) -> None:
    """A file with a header and parts that have their checksums right, whatever they hold."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in {"header": np.array(header), **parts}.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.asanyarray(array), allow_pickle=True)
            archive.writestr(f"{name}.npy", content.getvalue())


def use(kind: str, path: Path) -> None:
    """Load a file, predict, go on and predict again; raise unless all that is said is finite."""
    cls, _, _ = saved(kind)
    if cls is Prior:
        cls, model = FramePredictor, FramePredictor(prior=path).fit(pictures()[:4])
    else:
        model = cls.load(path)
    if cls is GroupModel:
        # A file may have other regions than the series, as anybody's model may.
        own = series(n_features=len(model.regions))
        assert np.isfinite(model.transform([own])[0].probabilities).all()
        return
    frame = pictures()[-1] if cls is FramePredictor else series()[-1]
    said = [model.predict(2), model.update(frame).predict(), model.update(frame).predict(2)]
    if not all(np.isfinite(np.asarray(frames)).all() for frames in said):
        raise AssertionError("a prediction that is not finite")
