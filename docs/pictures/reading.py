"""Make the tables of docs/notes/reading.md: Table 1 and Fig. 4 of the paper under each reading.

    python docs/pictures/reading.py CSV

CSV is the readings.csv that `python -m studies.readings FILM` wrote.
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "notes" / "reading.md"
WORDS = {"yes": "**yes**", "no": "no", "inconclusive": "?", "True": "**yes**", "False": "no"}
METHODS = ("psmt", "baseline2", "baseline1", "copy", "mean")


def tables(rows: list[dict[str, str]]) -> dict[str, str]:
    """Both tables in Markdown, by the name of their place on the page."""
    sizes = [name for name in rows[0] if name.startswith("mse_")]
    heads = [name.removeprefix("mse_").replace("_", " ").replace("M", "M ").replace("H", "H ") for name in sizes]
    verdicts = ["more_atoms", "more_frames", "table_1_size"]
    order = ["psmt_below_baseline2", "baseline2_below_baseline1", "psmt_below_copy", "psmt_below_mean", "fig_4_size"]
    logs = [f"log_mse_vs_code_{method}" for method in METHODS]
    return {
        "table 1": _table(
            ["reading", *heads, "more atoms help", "more frames help", "size"],
            [[row["reading"], *(_number(row[name]) for name in sizes), *_words(row, verdicts)] for row in rows],
        ),
        "fig 4": _table(
            [
                "reading",
                "PSMT",
                "B 2",
                "B 1",
                "copying",
                "mean",
                "PSMT < B 2",
                "B 2 < B 1",
                "< copying",
                "< mean",
                "size",
            ],
            [[row["reading"], *(f"{float(row[name]):.2f}" for name in logs), *_words(row, order)] for row in rows],
        ),
    }


def _table(heads: list[str], rows: list[list[str]]) -> str:
    rules = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, rules, *rows))


def _words(row: dict[str, str], names: list[str]) -> list[str]:
    return [WORDS[row[name]] for name in names]


def _number(text: str) -> str:
    return f"{float(text):.3f}"


def main(path: str) -> None:
    """Write the tables into their places on the page."""
    with open(path, newline="", encoding="utf-8") as file:
        made = tables(list(csv.DictReader(file)))
    page = PAGE.read_text(encoding="utf-8")
    for name, table in made.items():
        page, found = re.subn(f"(<!-- {name} -->\n).*?(<!-- end -->)", rf"\g<1>{table}\n\2", page, flags=re.DOTALL)
        if found != 1:
            raise SystemExit(
                f"{PAGE} has no place for {name!r}: write <!-- {name} --> and <!-- end -->, each in a line"
            )
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
