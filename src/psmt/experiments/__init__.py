"""Experiments on films and series: one folder each, and one line here.

A folder holds ``settings.py`` (`COMMAND`: its name, help, parameters and options, without heavy imports) and
``report.py`` (`EXPERIMENT`: how it runs, its files and its part in reports), see `psmt.experiments.contract`.
The order is that of the report; an experiment comes after those whose results it needs.
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
"""The registration: folders of this package."""


def command_of(name: str) -> Command:
    """Name, help, parameters and options of an experiment: a folder of this package, or the path of another package."""
    command: Command = import_module(f"{_package(name)}.settings").COMMAND
    return command


def experiment_of(name: str) -> Experiment[Any, Any]:
    """The experiment itself, with everything that it imports."""
    experiment: Experiment[Any, Any] = import_module(f"{_package(name)}.report").EXPERIMENT
    return experiment


def chapters() -> tuple[str, ...]:
    """The experiments of the paper: those that `psmt reproduce` runs."""
    return tuple(name for name in EXPERIMENTS if command_of(name).chapter)


def _package(name: str) -> str:
    return name if "." in name else f"{__name__}.{name}"
