"""Saved models: a zip archive of plain arrays and one JSON header. Nothing in a file is executed.

Every saved model can return its state and be restored from one. This module writes the state to a file, completely or
not at all, and reads it back. The class of a model declares constraints on its parameters and a schema of its state. A
file is checked against both before any of its numbers is used. docs/how-to/model-files.md describes the format.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from typing import IO, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from psmt.errors import DeviceError, MissingSourceError, ModelFileError
from psmt.persistence.schema import Layout, Schema, SchemaError, State, check_layouts, check_state, check_values
from psmt.persistence.zip_archive import Archive, ArchiveError, trouble_named
from psmt.utils.files import shown, writing
from psmt.utils.threads import one_blas_thread

_FORMAT, _VERSION = "psmt-model", 1
_HEADER = "header"
_LONGEST_HEADER = 1 << 24  # largest accepted number of bytes of a header. Written headers have some thousands.

Header = dict[str, Any]
"""Header of a file: values that JSON can hold."""


class SavedModel(ABC):
    """Base class of all models that can be saved to a file.

    A file holds a header and the arrays of the model's state. The header has the name of the class and the model's
    parameters. Subclasses are registered by name, so that `load_model` can find the class of a file.
    """

    _classes: ClassVar[dict[str, type[SavedModel]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        SavedModel._classes[cls.__name__] = cls

    @abstractmethod
    def get_header(self) -> Header:
        """Return all values that `from_stored` needs and that are not arrays."""

    @abstractmethod
    def get_state(self) -> State:
        """Return copies of all arrays that `from_stored` needs."""

    @classmethod
    @abstractmethod
    def stored_schema(cls, header: Header, layouts: Mapping[str, Layout]) -> Schema:
        """Return the schema that the arrays of a file must match. Raise an error if the file's header is invalid."""

    @classmethod
    @abstractmethod
    def from_stored(cls, header: Header, arrays: State, *args: Any, **place: Any) -> Self:
        """Return the model with this header and these arrays, both already checked. `place` is as in `load_model`."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file of arrays and JSON, without pickle, completely or not at all.

        `ModelFileError` is raised if the model has numbers that `load` would refuse.
        """
        with writing(path) as file:
            self.write_to(file)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Return the model that `save` wrote. Raise `ModelFileError` if the file is damaged or holds another class."""
        return load_model(path, cls)

    def write_to(self, file: IO[bytes]) -> None:
        """Write the model to an open file, in the format of `save`."""
        arrays, header = self.get_state(), self.get_header()
        try:
            check_state(self.stored_schema(header, arrays), arrays)
        except SchemaError as error:
            raise ModelFileError(f"the model cannot be saved, because {error}; fit it again") from error
        origin = {"format": _FORMAT, "version": _VERSION, "class": type(self).__name__}
        text = json.dumps(origin | header, default=np.generic.item)
        np.savez_compressed(file, allow_pickle=False, header=np.array(text), **arrays)


_RENAMED = {"FramePSMT": "FramePredictor"}  # present names of classes that had another name when a file was saved

Model = TypeVar("Model", bound=SavedModel)


def load_model(path: str | PathLike[str], *kinds: type[Model], **place: Any) -> Model:
    """Return the model in a file, of the class that its header names.

    The class must be one of `kinds`. If none are given, it may be any imported subclass of `SavedModel`. `place` holds
    the arguments device and dtype of the class's method `load`. `ModelFileError` is raised if the file is damaged, does
    not match its schema, holds another class, or comes from other software or a newer version.
    """
    name, limit = shown(fspath(path)), one_blas_thread()
    try:
        with Archive.open(path) as archive:
            header = _read_header(archive)
            cls = _class_of(header, kinds)
            own = {key: value for key, value in header.items() if key not in ("format", "version", "class")}
            if archive.others:
                raise ValueError(f"{archive.others[0]} is not an array")
            layouts = {part: archive.layout(part) for part in archive.names if part != _HEADER}
            schema = cls.stored_schema(own, layouts)
            check_layouts(schema, layouts)
            # Arrays get the byte order of this machine. Their memory order is kept, because it affects rounding.
            arrays = {
                part: (array := archive.read(part)).astype(array.dtype.newbyteorder("="), order="K") for part in layouts
            }
            check_values(schema, arrays)
        return cls.from_stored(own, arrays, **place)
    except (DeviceError, MissingSourceError):
        raise
    except ModelFileError as error:
        raise _refusal(f"{name} {error}") from error
    except (ArchiveError, IsADirectoryError) as error:
        raise _refusal(f"{name} is not a saved model, or is damaged ({error}); save the model again") from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        text = str(error) if isinstance(error, ValueError) else repr(error)
        raise _refusal(f"{name} is damaged: its parts do not fit together ({text}); save the model again") from error
    finally:
        limit.leave()  # an interrupt may have left one behind


def _refusal(text: str) -> ModelFileError:
    """Return an error with a printable message of at most 1,000 characters. Values in a file may be anything."""
    return ModelFileError(shown(text, 1000))


def _read_header(archive: Archive) -> Header:
    if _HEADER not in archive.names:
        raise ArchiveError("it has no header")
    layout = archive.layout(_HEADER)
    if layout.dtype.kind != "U" or layout.shape or layout.n_bytes > _LONGEST_HEADER:
        raise ArchiveError(f"its header is {layout.dtype} {layout.shape}, not a text")
    with trouble_named("its header is not JSON"):
        header = json.loads(str(archive.read(_HEADER)))
    return header if isinstance(header, dict) else {}


def _class_of(header: Header, kinds: tuple[type[Model], ...]) -> type[Model]:
    """Return the class that a header names, or raise an error. The caller adds the file's name to its message."""
    wanted = " or ".join(kind.__name__ for kind in kinds) or "model"
    known: dict[str, Any] = {kind.__name__: kind for kind in kinds} or SavedModel._classes  # noqa: SLF001
    if header.get("format") != _FORMAT:
        raise ModelFileError(f"is not a saved PSMT model; {wanted}.save writes such files")
    if header.get("version") != _VERSION:
        raise ModelFileError(
            f"has format version {header.get('version')!r}, but this psmt reads version {_VERSION}; "
            "load it with the psmt that wrote it, or upgrade psmt"
        )
    stored = _RENAMED.get(str(header.get("class")), header.get("class"))
    if not isinstance(stored, str) or not stored.isidentifier():
        raise ModelFileError(f"holds {stored!r:.80}, not a {wanted}; {wanted}.save writes such files")
    if stored not in known:
        raise ModelFileError(f"holds a {stored}, not a {wanted}; use {stored}.load")
    cls: type[Model] = known[stored]
    return cls


@np.errstate(all="ignore")
def check_prediction(predict: Callable[[], NDArray[Any]]) -> None:
    """Raise an error unless a loaded model predicts finite numbers. This is the last check of a file."""
    if not np.isfinite(predict()).all():
        raise ValueError("its prediction is not finite")


def plain(parameters: Mapping[str, Any]) -> Header:
    """Return parameters as JSON values, without device and dtype. Objects that JSON cannot store become None."""
    values = {}
    for key, value in parameters.items():
        if key in ("device", "dtype"):
            continue
        if isinstance(value, np.generic):
            value = value.item()
        values[key] = value if value is None or isinstance(value, bool | int | float | str) else None
    return values
