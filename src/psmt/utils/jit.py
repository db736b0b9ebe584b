"""Compiled kernels: `njit` of numba, whose cache is a convenience and never a condition.

Numba refuses to compile where it finds no folder for its cache (a read-only installation without a home), and fails
where it cannot write to it any more or cannot read what lies in it. Here the code is then compiled without one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache as once
from typing import Any, TypeVar, cast

import numba

from psmt.errors import CacheWarning

Function = TypeVar("Function", bound=Callable[..., Any])


def njit(*, cache: bool = False, **options: Any) -> Callable[[Function], Function]:
    """Decorator as numba's, but for `cache`: it keeps compiled code where that can be kept."""

    def decorate(function: Function) -> Function:
        kernel = numba.njit(**options)(function)
        if cache and hasattr(kernel, "enable_caching"):  # not so under NUMBA_DISABLE_JIT
            try:
                kernel.enable_caching()
            except RuntimeError:  # no folder may be written to
                _warn_once()
            else:
                # Nothing public lies between compiling and the files.
                kernel._cache = _Forgiving(kernel._cache)  # noqa: SLF001
        return cast(Function, kernel)

    return decorate


class _Forgiving:
    """A cache of numba that is as good as empty where it is damaged, and as good as full where the disk is."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, *args: Any) -> Any:
        """What is kept for these types; None where nothing is, or nothing that can be read."""
        try:
            return self._cache.load_overload(*args)
        except Exception:
            # Its files are unpickled: one flipped bit can raise anything.
            return None

    def save_overload(self, *args: Any) -> None:
        """Keep what was compiled, if there is room."""
        try:
            self._cache.save_overload(*args)
        except OSError:
            _warn_once()
        except Exception:
            # What is there cannot be read, and so not be added to.
            with suppress(OSError):
                self._cache.flush()


@once
def _warn_once() -> None:
    warnings.warn(
        "compiled code cannot be kept, so each start compiles anew and takes up to a minute longer; "
        "set NUMBA_CACHE_DIR to a folder that may be written to",
        CacheWarning,
        stacklevel=2,
    )
