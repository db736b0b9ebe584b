"""Replace words for films by words for series: reports are written for films, and a series has no frames or pixels."""

import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

T = TypeVar("T")

_WORDS = {"film": "series", "frame": "row", "patch": "row", "pixel": "feature"}
_FILM_WORD = re.compile(rf"(?<![\w./:-])({'|'.join(_WORDS)})((?:e?s)?)(?![\w/-]|\.\w)", re.IGNORECASE)


def in_rows(thing: T) -> T:
    """Return a text, table, claim, section or page, or a sequence of these, with words for series.

    "Film" becomes "series", "frame" and "patch" become "row", and "pixel" becomes "feature".

    >>> in_rows(["Patches of film.mp4: the last patch", 3])
    ['Rows of film.mp4: the last row', 3]
    """
    return cast(T, _in_rows(thing))


def _in_rows(thing: Any) -> Any:
    if isinstance(thing, str):
        return _FILM_WORD.sub(_replaced, thing)
    if is_dataclass(thing) and not isinstance(thing, type):
        return replace(thing, **{own.name: _in_rows(getattr(thing, own.name)) for own in fields(thing) if own.init})
    if isinstance(thing, tuple) and hasattr(thing, "_fields"):
        return type(thing)(*map(_in_rows, thing))
    if isinstance(thing, Sequence) and not isinstance(thing, bytes):
        return type(thing)(map(_in_rows, thing))  # type: ignore[call-arg]
    return thing


def _replaced(found: re.Match[str]) -> str:
    word = _WORDS[found[1].lower()]
    word += "s" if found[2] and not word.endswith("s") else ""
    return word.capitalize() if found[0][0].isupper() else word
