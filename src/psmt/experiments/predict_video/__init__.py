"""Whole frames, each predicted from those before it, and a film of the predictions."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Names of the run itself, imported on first use: `psmt --help` passes by here."""
    from importlib import import_module

    return getattr(import_module(f"{__name__}.run"), name)
