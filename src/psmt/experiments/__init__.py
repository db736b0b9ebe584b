"""Experiments on films and series. Each has a folder in this package and an entry in `EXPERIMENTS`.

A folder holds ``settings.py`` (`COMMAND`: its name, help, parameters and options, without heavy imports) and
``report.py`` (`EXPERIMENT`: how it runs, its files and its part in reports), see `psmt.experiments.contract`.
`EXPERIMENTS` has the order of the report. An experiment comes after the experiments whose results it needs.
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
    """Return the command of an experiment. `name` is a folder of this package or the import path of another package."""
    command: Command = import_module(f"{_package(name)}.settings").COMMAND
    return command


def experiment_of(name: str) -> Experiment[Any, Any]:
    """Return an experiment. This imports everything that the experiment needs."""
    experiment: Experiment[Any, Any] = import_module(f"{_package(name)}.report").EXPERIMENT
    return experiment


def chapters() -> tuple[str, ...]:
    """Return the experiments of the paper, which `psmt reproduce` runs."""
    return tuple(name for name in EXPERIMENTS if command_of(name).chapter)


def _package(name: str) -> str:
    return name if "." in name else f"{__name__}.{name}"
