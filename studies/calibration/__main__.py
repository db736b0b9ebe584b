"""`python -m studies.calibration`: measure the intervals and write the tables as a page of the documentation."""

from __future__ import annotations

import argparse
from pathlib import Path

from studies.calibration.page import page


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m studies.calibration", description=__doc__)
    parser.add_argument("--draws", type=int, default=4000, help="Samples for each number in the tables.")
    parser.add_argument("--films", type=int, default=400, help="Null films of each kind.")
    parser.add_argument("--quick", action="store_true", help="Use 400 draws and 20 films.")
    parser.add_argument("--out", type=Path, default=Path("calibration.md"), help="The page that is written.")
    options = parser.parse_args()
    draws, films = (400, 20) if options.quick else (options.draws, options.films)
    if min(draws, films) < 1:
        parser.error(f"--draws {draws} and --films {films} must be at least 1")
    text = page(draws, films)
    options.out.write_text(text, encoding="utf-8")
    print(f"{text}\nwritten to {options.out}")


main()
