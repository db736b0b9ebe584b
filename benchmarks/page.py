"""The page of results, `benchmarks/README.md`: each benchmark writes its own section of it and leaves the rest alone.

A section stands between two markers, ``<!-- NAME -->`` and ``<!-- /NAME -->``. What people write about the figures
stands outside them, so that it survives the next run.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

from psmt.utils.files import writing

PAGE = Path(__file__).with_name("README.md")
DATA = Path(__file__).parents[2] / "shared" / "data"
FILM = DATA / "highway.mp4"


def default_film() -> str:
    """The highway film where it is there, else the built-in one."""
    return str(FILM) if FILM.exists() else "builtin:glide"


def write_section(name: str, text: str, page: Path = PAGE) -> None:
    """Put the text between the markers of `name`; a section that is new goes to the end of the page."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    section = f"{begin}\n{text.strip()}\n{end}"
    text = page.read_text(encoding="utf-8")
    if begin not in text:
        text = f"{text.rstrip()}\n\n{begin}{end}\n"
    text = re.sub(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: section, text, flags=re.DOTALL)
    with writing(page) as file:
        file.write(text.encode())


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; cells are shown as `str` shows them."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def machine(*packages: str) -> str:
    """One line on the machine, Python and the packages that matter: numpy, scipy, numba and those named."""
    names = ("numpy", "scipy", "numba", *packages)
    software = [f"CPython {platform.python_version()}", *(f"{name} {version(name)}" for name in names)]
    return f"Machine: {os.cpu_count()} cores, {processor()}, {_memory()}, {', '.join(software)}."


def processor() -> str:
    """The name of the processor, as far as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _memory() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
