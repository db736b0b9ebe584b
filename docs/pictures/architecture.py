"""Draw architecture.png, the layers of the package and their imports, from the source.

    python docs/pictures/architecture.py

Every arc is an import, from the importing subpackage down to the imported one. The order is that of the import-linter
contract in pyproject.toml; `make lint` fails on an import that goes up.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from pathlib import Path
from textwrap import shorten

import grimp
from matplotlib.figure import Figure
from matplotlib.patches import Arc

from psmt.figures.style import png

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "psmt"
INK, QUIET, LINE, ACCENT = "#1b1f24", "#6a737d", "#d5dae0", "#0072b2"


def subpackages() -> list[str]:
    """Return the names of the subpackages and modules of the contract, top layer first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [name.strip() for layer in layers for name in layer.split("|")]


def purpose(name: str) -> str:
    """Return the first sentence of the docstring of a subpackage or module."""
    path = SOURCE / name
    first = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = (ast.get_docstring(ast.parse(first.read_text())) or "").splitlines()[0]
    return shorten(text.split(". ")[0].rstrip(".").replace("`", ""), 112, placeholder=" ...")


def imports(names: list[str]) -> Counter[tuple[str, str]]:
    """Count the modules of one subpackage that import from another, by (importer, imported)."""
    graph, found = grimp.build_graph("psmt", exclude_type_checking_imports=True), Counter[tuple[str, str]]()
    for module in graph.modules:
        for needed in graph.find_modules_directly_imported_by(module):
            pair = tuple([*name.split("."), ""][1] for name in (module, needed))
            if pair[0] != pair[1] and set(pair) <= set(names):
                found[pair] += 1
    return found


def main() -> None:
    names = subpackages()
    place = {name: -i for i, name in enumerate(names)}
    figure = Figure(figsize=(10.5, 0.3 * len(names) + 0.5))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(-5.2, 20.0)
    axes.set_ylim(-len(names) + 0.3, 1.4)
    axes.set_axis_off()
    axes.text(0.15, 0.85, "package", fontsize=8.5, color=QUIET)
    axes.text(3.1, 0.85, "purpose", fontsize=8.5, color=QUIET)
    axes.text(-0.35, 0.85, "imports (downwards only)", fontsize=8.5, color=QUIET, ha="right")
    for name in names:
        axes.plot([0.05, 19.8], [place[name] - 0.5] * 2, color=LINE, linewidth=0.6)
        axes.text(0.15, place[name], name, fontsize=10, fontweight="bold", color=INK, va="center")
        axes.text(3.1, place[name], purpose(name), fontsize=8.5, color=INK, va="center")
        axes.plot([0], [place[name]], "o", color=ACCENT, markersize=4)
    for (importer, imported), count in imports(names).items():
        up = place[importer] < place[imported]
        height = abs(place[importer] - place[imported])
        axes.add_patch(
            Arc(
                (0, (place[importer] + place[imported]) / 2),
                min(0.52 * height, 9.8),
                height,
                theta1=90,
                theta2=270,
                color="#d55e00" if up else ACCENT,
                linewidth=0.5 + 0.25 * min(count, 12),
                alpha=0.45,
            )
        )
    Path(__file__).with_suffix(".png").write_bytes(png(figure))


if __name__ == "__main__":
    main()
