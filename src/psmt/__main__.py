"""Run the command line: ``python -m psmt``."""

import sys

from psmt.cli import main

if __name__ == "__main__":
    sys.exit(main())
