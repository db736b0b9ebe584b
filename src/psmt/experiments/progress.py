"""How long work tells of itself: the library calls, the command line draws."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the stage's name, how much of it is done, and how much there is."""


def silent(stage: str, done: int, total: int) -> None:
    """Progress that nobody watches."""
