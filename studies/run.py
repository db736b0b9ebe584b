"""Run studies as commands, such as `python -m studies.readings FILM`, with the options that their settings declare."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from psmt.cli import process
from psmt.cli.app import new_app, run
from psmt.cli.commands import of_experiment


def run_study(package: str, arguments: Sequence[str]) -> int:
    """Run the study in a package, and return the exit code."""
    command = of_experiment(package)
    app = new_app(f"python -m {package}", command.help)
    app.default(command.function())
    return run(arguments, app, command)


def main(package: str) -> None:
    """Run the study in a package with the arguments of the process."""
    with process.settled():
        try:
            sys.exit(run_study(package, sys.argv[1:]))
        except process.TerminatedError as error:
            print(error.text(sys.argv), file=sys.stderr)
            sys.exit(error.exit_code)
