"""The recipes of CONTRIBUTING.md and engines.md, carried out on a copy of the tree.

A block of Python that begins with the path of a file is written to it. A block of ``diff`` adds its lines marked with
``+`` beside the unmarked ones; an unmarked line that ends with ``...`` may go on. Shell commands must succeed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^( *)```(python|diff|sh)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


def recipes() -> dict[str, list[tuple[str, str]]]:
    """Blocks (kind, text) of each recipe that ends in a command, by its title."""
    parts = re.split(r"^### ", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    engine = (ROOT / "docs" / "explanation" / "engines.md").read_text(encoding="utf-8").partition("## The steps")[2]
    parts.append("An engine\n" + engine.partition("\n## ")[0])
    found = {part.partition("\n")[0]: [(kind, dedent(text)) for _, kind, text in BLOCK.findall(part)] for part in parts}
    return {title: blocks for title, blocks in found.items() if any(kind == "sh" for kind, _ in blocks)}


RECIPES = recipes()


def add_lines(text: str, change: str) -> str:
    """The text with the added lines of a change, whose other lines must stand in it exactly once."""
    lines, marked = text.splitlines(), change.splitlines()
    kept = [line[1:] for line in marked if not line.startswith("+")]

    def fits(start: int) -> bool:
        there = lines[start : start + len(kept)]
        pairs = zip(there, kept, strict=False)
        return len(there) == len(kept) and all(
            own.startswith(known[:-3]) if known.endswith("...") else own == known for own, known in pairs
        )

    places = [start for start in range(len(lines)) if fits(start)]
    assert len(places) == 1, f"{kept} stands {len(places)} times in the file"
    old = iter(lines[places[0] : places[0] + len(kept)])
    new = [line[1:] if line.startswith("+") else next(old) for line in marked]
    return "\n".join([*lines[: places[0]], *new, *lines[places[0] + len(kept) :]]) + "\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the tree, with the compiled kernels, which are found by the times of files."""
    shutil.copytree(ROOT / "src", tmp_path / "src")
    shutil.copytree(ROOT / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "conftest.py"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def test_all_recipes_with_code_end_in_a_command() -> None:
    assert {"An extrapolation (step 6)", "A source", "An experiment", "An option", "A baseline", "An engine"} <= set(
        RECIPES
    )


@pytest.mark.slow
@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_works_as_it_is_written(title: str, tree: Path) -> None:
    touched = set()
    for kind, block in RECIPES[title]:
        path, _, text = block.removeprefix("# ").partition("\n")
        if kind == "sh":
            continue
        touched.add(path)
        file = tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            text if kind == "python" else add_lines(file.read_text(encoding="utf-8"), text), encoding="utf-8"
        )
    commands = "\n".join(block for kind, block in RECIPES[title] if kind == "sh")
    variables = os.environ | {
        "PYTHONPATH": str(tree / "src"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LOKY_MAX_CPU_COUNT": "1",  # no worker processes, which would load everything again
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=tree,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{title}: {sorted(touched)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
