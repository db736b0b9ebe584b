"""Numbers of the pages come from one file, `benchmarks/README.md`, whose tables the benchmarks write.

    python -m benchmarks.numbers    # write the present numbers into all pages

A page marks a number with a comment that names its table, row and column, each by the words of `benchmarks/README.md`:

    0.41<!-- frames / highway, 200 x 200 / PSMT / mean -->

The first word is the section, the second the heading inside it where there is one. A number keeps its decimals when it
is written anew. `tests/test_docs.py` fails when a page and the tables disagree.
"""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.page import PAGE

ROOT = Path(__file__).parents[1]
MARKED = re.compile(r"(?P<number>-?\d[\d,]*(?:\.\d+)?)(?P<bold>\*{0,2})<!-- (?P<key>[^<>]+?/[^<>]+?) -->")
_SECTION = re.compile(r"<!-- ([\w -]+) -->\n(.*?)<!-- /\1 -->", re.DOTALL)
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?")


def pages() -> list[Path]:
    """Return all pages that may have marked numbers."""
    found = [*ROOT.glob("*.md"), PAGE, *(ROOT / "docs").rglob("*.md")]
    return sorted(page for page in found if "_build" not in page.parts and "auto_gallery" not in page.parts)


def measured(text: str) -> dict[str, float]:
    """Return the numbers of all tables in the marked sections of a text, by section, heading, row and column."""
    numbers = {}
    for name, section in _SECTION.findall(text):
        heading, table = "", list[list[str]]()
        for line in [*section.splitlines(), ""]:
            if line.startswith("### "):
                heading = line.removeprefix("### ")
            if line.startswith("|"):
                table.append([cell.strip().replace("**", "") for cell in line.strip("|").split("|")])
            elif table:
                place = " / ".join(filter(None, (name, heading)))
                numbers |= {f"{place} / {key}": value for key, value in _cells(table).items()}
                table = []
    return numbers


def _cells(table: list[list[str]]) -> dict[str, float]:
    """Return the first number of each cell. A row is named by as many of its first cells as tell it from the others."""
    head, _, *rows = table
    width = next((w for w in range(1, len(head)) if len({tuple(row[:w]) for row in rows}) == len(rows)), 1)
    found = {}
    for row in rows:
        for column, cell in zip(head[width:], row[width:], strict=False):
            if number := _NUMBER.match(cell):
                found[f"{', '.join(row[:width])} / {column}"] = float(number[0].replace(",", ""))
    return found


def refreshed(text: str, numbers: dict[str, float]) -> str:
    """Return the text of a page with its marked numbers as they were measured, each with its decimals."""

    def write(mark: re.Match[str]) -> str:
        if mark["key"] not in numbers:
            raise KeyError(f"benchmarks/README.md has no number {mark['key']!r}; name its section, row and column")
        decimals = len(mark["number"].partition(".")[2])
        return f"{numbers[mark['key']]:,.{decimals}f}{mark['bold']}<!-- {mark['key']} -->"

    return MARKED.sub(write, text)


def main() -> None:
    """Write the measured numbers into the pages."""
    numbers = measured(PAGE.read_text(encoding="utf-8"))
    for page in pages():
        old = page.read_text(encoding="utf-8")
        if (new := refreshed(old, numbers)) != old:
            page.write_text(new, encoding="utf-8")
            print(f"{page.relative_to(ROOT)} has new numbers")


if __name__ == "__main__":
    main()
