"""Keys hold the code: which modules count, and which do not."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import psmt
from pipeline import example_tasks as example
from psmt.experiments.embedding_tasks import reconstruct_window
from psmt.pipeline import cache

PACKAGE = Path(psmt.__file__).parent


@pytest.fixture
def package(tmp_path):
    """A package: main imports a in a function, b relatively and over lines, f by name; nobody imports d."""
    files = {
        "__init__.py": '__version__ = "1"\n',
        "main.py": "def f():\n    from toy import a\n\nfrom .sub import (\n    b,  # (why)\n    x\n)\nload('toy.f')\n",
        "a.py": "import numpy, toy.c as c\n",
        "c.py": '"""Prose\n\nfrom here on is no statement."""\nif True: import toy.e\n',
        "d.py": "D = 1\n",
        "e.py": "E = 1\n",
        "f.py": "F = 1\n",
        "sub/__init__.py": "",
        "sub/b.py": "from ..a import \\\n    c\n",
        "sub/kernel.cu": "void f();\n",
    }
    for name, text in files.items():
        path = tmp_path / "toy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "toy"


def key(package):
    cache.hash_modules.cache_clear()
    cache._read.cache_clear()
    return cache.hash_modules(frozenset({"toy.main"}), package)


@pytest.mark.parametrize(
    "name", ["main.py", "a.py", "c.py", "e.py", "f.py", "sub/__init__.py", "sub/b.py", "sub/kernel.cu"]
)
def test_what_is_reached_counts(package, name):
    before = key(package)
    path = package / name
    path.write_text(path.read_text() + "\n")
    assert key(package) != before


@pytest.mark.parametrize("name", ["d.py", "__init__.py"])
def test_what_is_not_reached_does_not_count_nor_does_the_version(package, name):
    before = key(package)
    (package / name).write_text("D = __version__ = 2\n")
    assert key(package) == before


def test_a_key_does_not_depend_on_place_newlines_or_time(package, tmp_path):
    before = key(package)
    moved = Path(shutil.copytree(package, tmp_path / "elsewhere" / "toy"))
    for path in moved.rglob("*.py"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert key(moved) == before


def test_every_import_statement_of_the_package_is_found():
    """What is found by its looks is what the parser finds."""
    for path in PACKAGE.rglob("*.py"):
        text, expected = path.read_text(), set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                expected |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                expected |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        assert cache._imports(text, "") >= expected, path


def test_the_real_package(tmp_path):
    """Tasks of the sweep depend on the coder and on kernels, and not on figures or on how tasks are asked for."""
    copied = tmp_path / "psmt"
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__"))

    names = frozenset({reconstruct_window.__module__})

    def sweep_key():
        cache.hash_modules.cache_clear()
        cache._read.cache_clear()
        return cache.hash_modules(names, copied)

    before = sweep_key()
    assert before == cache.hash_modules(names)
    for name, counts in {
        "coding/sparse_coder.py": True,
        "engines/torch/sweep.cu": True,
        "figures/style.py": False,
        "cli/app.py": False,
        "__init__.py": False,
    }.items():
        text = (copied / name).read_text()
        (copied / name).write_text(text + "\n")
        assert (sweep_key() != before) == counts, name
        (copied / name).write_text(text)


def test_functions_of_other_packages_bring_their_module_and_what_it_uses_of_psmt(tmp_path):
    assert cache.hash_code(example.scaled) == cache.hash_code(example.careless)
    script = "import mine; from psmt.pipeline.cache import hash_code; print(hash_code(mine.f))"

    def printed(text):
        (tmp_path / "mine.py").write_text(text)
        path = f"{tmp_path}:{PACKAGE.parent}"
        done = subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": path}, capture_output=True, check=True)
        return done.stdout

    plain = "def f():\n    import psmt.errors\n"
    assert printed(plain) == printed(plain)
    assert len({printed(plain), printed(plain + "\n"), printed(plain.replace("errors", "files"))}) == 3
