"""The command line: one verb per result, each writing a folder of plain files.

Heavy modules are imported where they are used, so that help and mistakes are answered at once.
"""

import sys

TYPE_CHECKING = False  # as `typing` has it: no import comes before somebody can answer Ctrl-C
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run a command; return its exit code, after a line on stderr where it is not 0 (see docs/api/exit-codes.md).

    Without arguments, those of the process; then its signals and streams are settled too.
    """
    try:
        # Here, and not above: somebody who interrupts at once is answered in the same way.
        if arguments is not None:
            from psmt.cli.app import run

            return run(arguments)
        from psmt.cli import process

        with process.settled():
            try:
                # It takes most of a second, in which signals may come too.
                from psmt.cli.app import run

                return run(sys.argv[1:])
            except process.TerminatedError as error:
                print(error.text(sys.argv[1:]), file=sys.stderr)
                return error.exit_code
    except KeyboardInterrupt:
        print("psmt: interrupted", file=sys.stderr)
        return 130
