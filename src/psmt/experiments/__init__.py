"""What is asked of films and series: one folder per experiment, and one line here.

A folder holds ``command.py`` (`COMMAND`: name, help and options, without heavy imports) and ``experiment.py``
(`EXPERIMENT`: run, files, and its chapter in the report of the paper), both as `psmt.experiments.contract` says.
The order is that of the report; an experiment comes after those that it needs.
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
    """Name, help and options of an experiment's command."""
    command: Command = import_module(f"{__name__}.{name}.command").COMMAND
    return command


def experiment_of(name: str) -> Experiment[Any, Any]:
    """The experiment itself, with all that it imports."""
    experiment: Experiment[Any, Any] = import_module(f"{__name__}.{name}.experiment").EXPERIMENT
    return experiment
