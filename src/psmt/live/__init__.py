"""A live page: a camera or film in the browser, beside the predictions of a model that learns from it.

    source -> feed (newest frame only) -> session (one thread: predict, score, learn) -> server (newest snapshot only)

``psmt.live(source)`` shows the page in a notebook: the package can be called, see `psmt.live.notebook.live`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Live(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call `psmt.live.notebook.live`, which has the same name as its package."""
        from psmt.live.notebook import live

        return live(*arguments, **options)


sys.modules[__name__].__class__ = _Live
