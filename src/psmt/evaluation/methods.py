"""Methods that predictions are compared with, as tables and figures call them."""

from __future__ import annotations

METHODS = {
    "psmt": "PSMT",
    "psmt_gain": "PSMT, learned gain",
    "baseline1": "Baseline 1",
    "baseline2": "Baseline 2",
    "copy": "copy last patch",
    "copy_code": "copy last code",
    "mean": "mean patch",
    "mean_code": "mean code",
    "linear": "linear in pixels",
    "ridge": "ridge regression",
}
"""Methods by their name in files, with the name for people."""
