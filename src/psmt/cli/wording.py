"""Errors in the words of who typed the command: one line, with options for parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from cyclopts import CycloptsError, UnknownOptionError

from psmt.errors import FrameSourceError, PSMTError
from psmt.experiments import EXPERIMENTS, command_of
from psmt.experiments.options import ModelFlags
from psmt.experiments.reproduce.command import ReproduceOptions

PARAMETERS = {
    "n_atoms": "atoms",
    "n_components": "components",
    "n_starts": "starts",
    "n_states": "states",
    "n_surrogates": "surrogates",
    "patch_size": "patch",
    "frame_size": "size",
    "speeds": "speed",
    "noises": "noise",
    "chosen": "atom",
}
"""Options of parameters that the library calls by another name."""


def one_line(error: Exception, arguments: Sequence[str]) -> str:
    """What is wrong with a command, in one line."""
    if isinstance(error, CycloptsError):
        error.verbose = False
        return _no_departures(error, arguments) or _flat(error)
    if isinstance(error, OSError) and error.strerror and not isinstance(error, PSMTError):
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError) and not str(error):
        return "the memory is used up, or what this process may have of it; use fewer --workers or a smaller film"
    # Names of files may look like parameters.
    return _flat(error) if isinstance(error, FrameSourceError) else as_typed(_flat(error), arguments)


def as_typed(text: str, arguments: Sequence[str]) -> str:
    """The text with the options of the command in place of parameters and their values.

    >>> as_typed("n_atoms=(64, 128) is too large; use n_atoms <= 40", ["sweep", "film.mp4"])
    '--atoms 64 --atoms 128 is too large; use --atoms <= 40'
    >>> as_typed("half_stencils=True needs window > 3", ["predict", "film.mp4"])
    '--half-stencils needs --window > 3'
    """
    known = {name: name for name in _options_of(arguments[0] if arguments else "")}
    # An option of the same name means itself: `--starts` of predict is a number, `starts` of its settings are places.
    known = {name: option for name, option in PARAMETERS.items() if option in known} | known
    if not known:
        return text
    names = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
    given = rf"(?<![\w./-])({names})(?:=(\([^)]*\)|'[^']*'|[^\s,;:()]+)|(?=\s*[<>]))"
    text = re.sub(given, lambda found: _option(known[found[1]], found[2]), text)
    # Words of the language, such as window, stay words; others are names in any place.
    others = "|".join(name for name in PARAMETERS if name in known and "_" in name)
    return (
        re.sub(rf"(?<![\w./-])({others})(?!\w)", lambda found: _option(known[found[1]], None), text) if others else text
    )


def _option(name: str, value: str | None) -> str:
    """An option as it is typed, with a value."""
    option = "--" + name.replace("_", "-")
    if value is None:
        return option
    if value in ("True", "False"):
        return option if value == "True" else f"--no-{option[2:]}"
    items = [item.strip(" '") for item in value.strip("()").split(",")]
    return " ".join(f"{option} {item}" for item in items if item)


def _options_of(command: str) -> list[str]:
    """Names of a command's options, those of groups too; nothing for a command that has no film."""
    known: dict[str, Any] = {command_of(name).name: command_of(name).options for name in EXPERIMENTS}
    kind = known.get(command, ReproduceOptions if command in ("reproduce", "demo") else None)
    return [] if kind is None else list(_names(kind()))


def _names(options: Any) -> Iterable[str]:
    for field in fields(options):
        value = getattr(options, field.name)
        if is_dataclass(value):
            yield from _names(value)
        elif field.name != "series":
            yield field.name


def _no_departures(error: CycloptsError, arguments: Sequence[str]) -> str:
    """Why a command has no such flag as --literal, where others have it; empty for any other error."""
    if not isinstance(error, UnknownOptionError) or not arguments:
        return ""
    typed = str(error.token.keyword or error.token.value).partition("=")[0]
    flags = {"--" + field.name.replace("_", "-") for field in fields(ModelFlags)}
    for name in EXPERIMENTS:
        known = command_of(name)
        if known.name == arguments[0] and known.undeparted and typed.replace("--no-", "--") in flags:
            return f"psmt {known.name} takes no {typed}: {known.undeparted}"
    return ""


def _flat(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
