"""The command line: one verb per result, each writing a folder of plain files.

Heavy modules are imported where they are used, so that help and mistakes are answered at once.
"""

from psmt.cli.app import app, main

__all__ = ["app", "main"]
