"""Experiments on one film: the settings that fit it, and the results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from typing import Any

import numpy as np

from psmt.errors import NotEnoughFramesError
from psmt.experiments import command_of, experiment_of
from psmt.experiments.options.declaration import Settings
from psmt.pipeline.run import Run
from psmt.types import Array
from psmt.utils.disk_series import blocks

SettingsByName = Mapping[str, Settings]
"""Settings by experiment."""


def fit_settings(
    asked: SettingsByName, n_frames: int, *, fixed: bool = False, required: bool = False
) -> tuple[dict[str, Any], dict[str, str]]:
    """What of the settings fits into a film of `n_frames`, None if nothing does; and why it is not as asked.

    `fixed` sizes are not changed. Raises `NotEnoughFramesError` if they do not fit, or if no size of a `required`
    experiment fits.
    """
    used: dict[str, Any] = {}
    notes: dict[str, str] = {}
    for name, own in asked.items():
        if fixed:
            own.check(n_frames)
        used[name], note = (own, "") if fixed else own.fitted(n_frames)
        if used[name] is None and required:
            raise NotEnoughFramesError(f"{note}; use a longer film, or give --atoms and --window that fit")
        if note:
            notes[name] = note
    return used, notes


def with_needed(used: SettingsByName) -> dict[str, Settings]:
    """The settings, each after those of the experiments whose results it needs and that are not there."""
    found: dict[str, Settings] = {}
    for name, own in used.items():
        for need in () if own is None else experiment_of(name).needs(own):
            if need not in used:
                found |= with_needed({need: own.shared_with(command_of(need).settings)})
        found[name] = own
    return found


def run_experiments(material: Any, used: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """Results by experiment, without those whose settings are None: they do not fit."""
    results: dict[str, Any] = {}
    for name, own in used.items():
        if own is not None:
            results[name] = experiment_of(name).run(material, own, run, results)
    return results


def run_key(values: Array, settings: SettingsByName) -> str:
    """Short hash of the values and the settings."""
    described = repr({name: asdict(own) for name, own in settings.items()})
    digest = sha256()
    for block in blocks(values):
        digest.update(np.ascontiguousarray(block).data)
    digest.update(described.encode())
    return digest.hexdigest()[:16]
