"""Saved models: a zip of plain arrays and one JSON header, readable without running anything in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from psmt.coding import SparseCoder
from psmt.engines import engine_for
from psmt.errors import ModelFileError
from psmt.extrapolation import make_extrapolation
from psmt.files import writing
from psmt.selection import Choice

if TYPE_CHECKING:
    from psmt.model import PSMT

_FORMAT = "psmt-model"
_VERSION = 1

Model = TypeVar("Model", bound="PSMT")


def save_model(model: PSMT, path: str | PathLike[str]) -> None:
    """Write a fitted model to `path`."""
    coder, numpy = model.coder_, engine_for(model.device).numpy
    header = {
        "parameters": _plain(model.get_params(deep=False)) | {"coder": None},
        "coder": _plain(coder.get_params()),
        "coder_given": model.coder is not None,
        "rank": model._embed().rank,
        "choice": _choice_to_json(model.choice_),
    }
    arrays = {
        "dictionary": coder.dictionary_,
        "rest": numpy(model._rest),
        "embedding": numpy(model._embed().matrix),
        "roughness": numpy(model._embed().roughness),
        **{f"moments.{name}": numpy(value) for name, value in model.moments_.state.items()},
        **{f"extrapolation.{name}": value for name, value in model._extrapolation.state.items()},
    }
    write_container(path, type(model).__name__, header, arrays)


def load_model(cls: type[Model], path: str | PathLike[str], device: str, dtype: str) -> Model:
    """The model of class `cls` that `save_model` wrote to `path`."""
    engine_for(device, dtype)
    header, arrays = read_container(path, cls.__name__)
    with damage_named(path):
        return _rebuild(cls, header, arrays, {"device": device, "dtype": dtype})


def write_container(path: str | PathLike[str], kind: str, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write arrays and JSON values, as those of a model of the class named `kind`, to a file: whole or not at all."""
    text = json.dumps({"format": _FORMAT, "version": _VERSION, "class": kind} | header, default=np.generic.item)
    with writing(path) as file:
        np.savez_compressed(file, allow_pickle=False, header=np.array(text), **arrays)


def read_container(path: str | PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of a file that holds a model of the class named `kind`."""
    name = fspath(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
        header = json.loads(str(arrays.pop("header")))
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # numpy, zipfile and zlib have a dozen ways to say that a file is not theirs
        raise ModelFileError(f"{name} is not a saved model, or is damaged ({error}); save the model again") from error
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise ModelFileError(f"{name} is not a saved PSMT model; {kind}.save writes such files")
    if header.get("version") != _VERSION:
        raise ModelFileError(
            f"{name} has format version {header.get('version')}, but this psmt reads version {_VERSION}; "
            "load it with the psmt that wrote it, or upgrade psmt"
        )
    stored = header.get("class")
    if stored != kind:
        raise ModelFileError(f"{name} holds a {stored}, not a {kind}; use {stored}.load")
    return header, arrays


@contextmanager
def damage_named(path: str | PathLike[str]) -> Iterator[None]:
    """Whatever does not fit together inside is the fault of the file."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{fspath(path)} is damaged: its parts do not fit together ({error!r})") from error


def _rebuild(cls: type[Model], header: dict[str, Any], arrays: dict[str, np.ndarray], place: dict[str, Any]) -> Model:
    _check_numbers(arrays)
    engine = engine_for(**place)
    coder = SparseCoder.from_dictionary(arrays["dictionary"], **place).set_params(**header["coder"])
    model = cls(**header["parameters"], **place)
    model._check_parameters()
    model.coder = coder if header["coder_given"] else None
    model.coder_ = coder
    model.n_features_in_ = coder.n_features_in_
    model.choice_ = _choice_from_json(header["choice"])
    model.n_components_, model.lam_ = model.choice_.n_components, model.choice_.lam
    shape = (model.window, len(coder.dictionary_))
    if arrays["moments.codes"].shape != shape or arrays["embedding"].shape[1:] != shape[1:]:
        raise ValueError(f"a window of {shape[0]} codes of {shape[1]} atoms, but arrays of other shapes")
    model.moments_ = engine.moments_from_state(_part(arrays, "moments."))
    model._rest = engine.array(arrays["rest"])
    model._extrapolation = make_extrapolation(model.extrapolation)
    model._extrapolation.state = _part(arrays, "extrapolation.")
    model._embedding = engine.embedding(arrays["embedding"], arrays["roughness"], int(header["rank"]))
    model._start_tracking()
    return model


def _check_numbers(arrays: dict[str, np.ndarray]) -> None:
    for name, array in arrays.items():
        if array.dtype.kind not in "ifc" or not np.isfinite(array).all():
            raise ValueError(f"{name} holds something else than finite numbers")


def _part(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)}


def _plain(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters as JSON holds them, but for where to compute. A generator object is state, and is left out as well."""
    plain = {}
    for key, value in parameters.items():
        if key in ("device", "dtype"):
            continue
        if isinstance(value, np.generic):
            value = value.item()
        plain[key] = value if value is None or isinstance(value, (bool, int, float, str)) else None
    return plain


def _choice_to_json(choice: Choice) -> dict[str, Any]:
    return asdict(choice) | {"scores": [[f, lam, score] for (f, lam), score in choice.scores.items()]}


def _choice_from_json(stored: dict[str, Any]) -> Choice:
    scores = {(f, float(lam)): float(score) for f, lam, score in stored["scores"]}
    return Choice(stored["n_components"], float(stored["lam"]), scores)
