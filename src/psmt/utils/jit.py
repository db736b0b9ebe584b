"""Numba's `njit`, with a cache whose failures are ignored.

With ``cache=True``, Numba fails if it finds no folder for its cache, as in a read-only installation, or if it cannot
read or write files there. In these cases, this `njit` compiles without a cache.
"""

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache as once
from typing import Any, TypeVar, cast

import numba

from psmt.errors import CacheWarning

Function = TypeVar("Function", bound=Callable[..., Any])


def njit(*, cache: bool = False, **options: Any) -> Callable[[Function], Function]:
    """Return Numba's decorator `njit`. If compiled code cannot be stored, `cache` is ignored."""

    def decorate(function: Function) -> Function:
        kernel = numba.njit(**options)(function)
        if cache and hasattr(kernel, "enable_caching"):  # missing under NUMBA_DISABLE_JIT
            try:
                kernel.enable_caching()
            except RuntimeError:  # no folder is writable
                _warn_once()
            else:
                # Numba has no public hook between compiling and storing.
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
        """Return the compiled code for these types, or None if there is none or it cannot be read."""
        try:
            return self._cache.load_overload(*args)
        except Exception:
            # Cache files are unpickled, so a damaged file can raise anything.
            return None

    def save_overload(self, *args: Any) -> None:
        """Store compiled code, if possible."""
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
