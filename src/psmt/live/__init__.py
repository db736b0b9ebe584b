"""Live: a camera or film in a browser and, beside it, what the model expects to come next, while it learns.

    source -> feed (newest frame only) -> session (one worker: predict, receive, learn) -> server (newest snapshot only)

The package is called like a function, ``psmt.live(source)``, which shows the page in a notebook; see
`psmt.live.notebook.live`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Live(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """As `psmt.live.notebook.live`: the function and the package that it lives in share their name."""
        from psmt.live.notebook import live

        return live(*arguments, **options)


sys.modules[__name__].__class__ = _Live
