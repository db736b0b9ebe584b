"""What built-in sources share: their names on the command line, ``builtin:name?option=value&...``, and their length."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Self, TypeVar
from urllib.parse import parse_qsl

from psmt.data.contract import Film, Opener, check_stop
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
    """Name and options of a built-in source.

    Parameters
    ----------
    name : str
        What follows ``builtin:``.
    make : callable
        Called with the options that are given, it returns the source.
    options : mapping of str to (str, type)
        For each option the parameter of `make`, and int or float.
    """

    def __init__(self, name: str, make: Callable[..., Made], options: Mapping[str, tuple[str, type]]) -> None:
        self.name, self._make, self._options = name, make, options

    def matches(self, spec: object) -> bool:
        """Whether this is the name of such a source."""
        return isinstance(spec, str) and spec.partition("?")[0] == f"builtin:{self.name}"

    def parse(self, source: str) -> Made:
        """Return the source that a name with its options stands for."""
        given: dict[str, Any] = {}
        for key, text in parse_qsl(source.partition("?")[2], keep_blank_values=True):
            if key not in self._options:
                raise FrameSourceError(f"{source!r}: unknown option {key!r}; use {', '.join(self._options)}")
            parameter, kind = self._options[key]
            try:
                given[parameter] = kind(text)
            except ValueError:
                article = "an integer" if kind is int else "a number"
                raise FrameSourceError(f"{source!r}: {key}={text!r} is not {article}") from None
        try:
            return self._make(**given)
        except ValueError as error:
            raise FrameSourceError(f"{source!r}: {error}") from None


def film_opener(name: BuiltinName[Any]) -> Opener[Any]:
    """The `Opener` of a built-in film."""
    return Opener(name.matches, lambda spec, stop: name.parse(spec).head(stop))
