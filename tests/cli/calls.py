"""Calls of the command line in this process, and the tables that they write."""

import csv
import io
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace

from psmt.cli import main


def run(*arguments):
    """Exit code, stdout and stderr of a call."""
    with redirect_stdout(io.StringIO()) as stdout, redirect_stderr(io.StringIO()) as stderr:
        code = main([str(argument) for argument in arguments])
    return SimpleNamespace(code=code, stdout=stdout.getvalue(), stderr=stderr.getvalue())


def run_into(out, *arguments):
    """The same, with the folder of results."""
    return SimpleNamespace(out=out, **vars(run(*arguments, "--out", out)))


def read_csv(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def refused(outcome):
    """The one line that a refused command prints on stderr, beside progress."""
    assert (outcome.code, outcome.stdout) == (2, "")
    (line,) = [
        line
        for line in outcome.stderr.splitlines()
        if not line.startswith(("psmt: read frames: ", "psmt: read rows: ")) and ": load libraries" not in line
    ]
    assert line.startswith("psmt: error: ")
    return line
