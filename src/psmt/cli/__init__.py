"""The command line. Each command computes one result and writes a folder of plain files.

Heavy modules are imported where they are used, so that help and errors appear quickly.
"""

import sys

TYPE_CHECKING = False  # not imported from `typing`, because nothing may be imported before Ctrl-C is handled
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run a command and return its exit code. Unless the code is 0, print one line on stderr.

    docs/api/exit-codes.md lists the codes. If `arguments` is None, use the arguments of the process, and set up signal
    handlers and standard streams.
    """
    try:
        # Imported here, so that an interrupt during the import is handled too.
        if arguments is not None:
            from psmt.cli.app import run

            return run(arguments)
        from psmt.cli import process

        with process.settled():
            try:
                # This import takes a while, and signals may arrive meanwhile.
                from psmt.cli.app import run

                return run(sys.argv[1:])
            except process.TerminatedError as error:
                print(error.text(sys.argv[1:]), file=sys.stderr)
                return error.exit_code
    except KeyboardInterrupt:
        print("psmt: interrupted", file=sys.stderr)
        return 130
