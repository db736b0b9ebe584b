"""Errors in one line, with the options that were typed in place of parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cyclopts import CycloptsError, UnknownOptionError

from psmt.cli.commands import CommandLine
from psmt.errors import FrameSourceError, PSMTError
from psmt.experiments.options.parameters import FLAG_NAMES


def one_line(error: Exception, command: CommandLine | None) -> str:
    """What is wrong with a command, in one line."""
    if isinstance(error, CycloptsError):
        error.verbose = False
        return _no_departures(error, command) or _flat(error)
    if isinstance(error, OSError) and error.strerror and not isinstance(error, PSMTError):
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError) and not str(error):
        return "no memory is left, or this process may not have more; use fewer --workers or a smaller film"
    # Names of files may look like parameters.
    literally = command is None or isinstance(error, FrameSourceError)
    return _flat(error) if literally else as_typed(_flat(error), command.names)  # type: ignore[union-attr]


def as_typed(text: str, names: Mapping[str, str]) -> str:
    """The text with options, which are given by the name of their parameter, in place of parameters and their values.

    >>> names = {"n_atoms": "--atoms", "window": "--window", "half_stencils": "--half-stencils"}
    >>> as_typed("n_atoms=(64, 128) is too large; use n_atoms <= 40", names)
    '--atoms 64 --atoms 128 is too large; use --atoms <= 40'
    >>> as_typed("half_stencils=True needs window > 3", names)
    '--half-stencils needs --window > 3'
    """
    known = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    given = rf"(?<![\w./-])({known})(?:=(\([^)]*\)|'[^']*'|[^\s,;:()]+)|(?=\s*[<>]))"
    text = re.sub(given, lambda found: _option(names[found[1]], found[2]), text)
    # Words of the language, such as window, stay words; names that no option has are replaced in any place.
    others = "|".join(name for name in names if "_" in name and names[name] != "--" + name.replace("_", "-"))
    return re.sub(rf"(?<![\w./-])({others})(?!\w)", lambda found: names[found[1]], text) if others else text


def _option(option: str, value: str | None) -> str:
    """An option as it is typed, with a value."""
    if value is None:
        return option
    if value in ("True", "False"):
        return option if value == "True" else f"--no-{option[2:]}"
    items = [item.strip(" '") for item in value.strip("()").split(",")]
    return " ".join(f"{option} {item}" for item in items if item)


def _no_departures(error: CycloptsError, command: CommandLine | None) -> str:
    """Why a command has no such flag as --literal, if others have it; empty for any other error."""
    if not isinstance(error, UnknownOptionError) or command is None or not command.no_departures:
        return ""
    typed = str(error.token.keyword or error.token.value).partition("=")[0]
    flag = typed.replace("--no-", "--")[2:].replace("-", "_")
    return f"psmt {command.name} takes no {typed}: {command.no_departures}" if flag in FLAG_NAMES else ""


def _flat(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
