"""Numba's `njit` with a cache that may fail.

Numba refuses to compile if it finds no folder for its cache (a read-only installation without a home), and fails if it
cannot write to the cache or read its files. Here the code is then compiled without a cache.
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
    """Numba's decorator, except that `cache` stores compiled code only if that is possible."""

    def decorate(function: Function) -> Function:
        kernel = numba.njit(**options)(function)
        if cache and hasattr(kernel, "enable_caching"):  # missing under NUMBA_DISABLE_JIT
            try:
                kernel.enable_caching()
            except RuntimeError:  # no folder is writable
                _warn_once()
            else:
                # Numba has no public hook between compiling and the files.
                kernel._cache = _SafeCache(kernel._cache)  # noqa: SLF001
        return cast(Function, kernel)

    return decorate


class _SafeCache:
    """Numba cache that ignores read and write failures."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, *args: Any) -> Any:
        """The compiled code for these types; None if there is none, or it cannot be read."""
        try:
            return self._cache.load_overload(*args)
        except Exception:
            # Cache files are unpickled, so a damaged file can raise anything.
            return None

    def save_overload(self, *args: Any) -> None:
        """Store compiled code, if that is possible."""
        try:
            self._cache.save_overload(*args)
        except OSError:
            _warn_once()
        except Exception:
            # The index cannot be read, so nothing can be added to it.
            with suppress(OSError):
                self._cache.flush()


@once
def _warn_once() -> None:
    warnings.warn(
        "compiled code cannot be cached, so each start compiles again and takes up to a minute longer; "
        "set NUMBA_CACHE_DIR to a writable folder",
        CacheWarning,
        stacklevel=2,
    )
