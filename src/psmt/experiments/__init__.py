"""Experiments on films and series. Each has a folder in this package and an entry in `EXPERIMENTS`.

A folder holds ``settings.py``, with `COMMAND` (name, help, parameters and options; no heavy imports), and
``report.py``, with `EXPERIMENT` (how it runs, its files and its part in reports). `psmt.experiments.contract` defines
both. Reports list experiments in the order of `EXPERIMENTS`. An experiment comes after those whose results it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psmt.experiments.contract import Command, Experiment

EXPERIMENTS = (
    "sweep",
    "topology",
    "reconstruction",
    "prediction",
    "predict_video",
    "brain",
)
"""Names of the folders of all experiments in this package."""


def command_of(name: str) -> Command:
    """Return the command of an experiment. `name` is a folder of this package, or the import path of any package."""
    command: Command = import_module(f"{_package(name)}.settings").COMMAND
    return command


def experiment_of(name: str) -> Experiment[Any, Any]:
    """Return the experiment `name` (as in `command_of`). This imports all modules that it needs."""
    experiment: Experiment[Any, Any] = import_module(f"{_package(name)}.report").EXPERIMENT
    return experiment


def chapters() -> tuple[str, ...]:
    """Return the names of the experiments that `psmt reproduce` runs: those of the paper."""
    return tuple(name for name in EXPERIMENTS if command_of(name).chapter)


def _package(name: str) -> str:
    return name if "." in name else f"{__name__}.{name}"
