"""What built-in sources share: their names on the command line, ``builtin:name?option=value&...``, and their length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, Self, TypeVar, cast
from urllib.parse import parse_qsl

import numpy as np

from psmt.data.contract import Film, check_stop
from psmt.errors import FrameSourceError

Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True)
class BuiltinFilm(Film):
    """A film of square frames that is computed, not read. Subclasses have a field `size`."""

    shape: tuple[int, int] = field(init=False)
    fps: float = field(default=25.0, init=False)
    stop: None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        size: int = getattr(self, "size")  # noqa: B009  a field of the subclass
        object.__setattr__(self, "shape", (size, size))

    def head(self, stop: int | None) -> Self:
        """Return the film without the frames from ``stop`` on."""
        check_stop(stop)
        return self if stop is None else replace(self, n_frames=min(self.n_frames or stop, stop))


class BuiltinName(Generic[Made]):
    """Name of a built-in source. Its options are the fields of the dataclass `kind`, without the prefix ``n_``."""

    def __init__(self, name: str, kind: Callable[..., Made]) -> None:
        self.name, self._kind = name, kind
        fields_given = [field for field in fields(cast(Any, kind)) if field.init]
        self._options = {field.name.removeprefix("n_"): field for field in fields_given}

    def matches(self, spec: object) -> bool:
        """Whether this is the name of such a source."""
        return isinstance(spec, str) and spec.partition("?")[0] == f"builtin:{self.name}"

    def parse(self, source: str) -> Made:
        """Return the source that a name with its options stands for."""
        given: dict[str, Any] = {}
        for key, text in parse_qsl(source.partition("?")[2], keep_blank_values=True):
            if key not in self._options:
                raise FrameSourceError(f"{source!r}: unknown option {key!r}; use {', '.join(self._options)}")
            is_real = "float" in str(self._options[key].type)
            try:
                given[self._options[key].name] = float(text) if is_real else int(text)
            except ValueError:
                article = "a number" if is_real else "an integer"
                raise FrameSourceError(f"{source!r}: {key}={text!r} is not {article}") from None
        try:
            return self._kind(**given)
        except ValueError as error:
            raise FrameSourceError(f"{source!r}: {error}") from None

    def open(self, source: str, stop: int | None) -> Any:
        """Return the first ``stop`` frames of a built-in film."""
        return cast(Any, self.parse(source)).head(stop)


def check_integers(source: object, **bounds: tuple[int, ...]) -> None:
    """Raise unless fields of a source are integers within their bounds, ``(lowest,)`` or ``(lowest, highest)``."""
    for key, bound in bounds.items():
        value, (low, high) = getattr(source, key), (*bound, np.inf)[:2]
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
            allowed = f"of at least {low}" if high == np.inf else f"from {low} to {high}"
            raise ValueError(f"{key}={value!r} is out of range; use an integer {allowed}")
