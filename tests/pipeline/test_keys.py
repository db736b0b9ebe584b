"""Keys hold the code: which files count, and which do not."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import psmt
from pipeline import example_tasks as example
from psmt.pipeline import cache

PACKAGE = Path(psmt.__file__).parent


@pytest.fixture
def package(tmp_path):
    return Path(
        shutil.copytree(PACKAGE, tmp_path / "psmt", ignore=shutil.ignore_patterns("__pycache__", "*.json", "*.js"))
    )


def test_what_computes_counts_and_what_presents_does_not(package):
    before = cache.hash_package(package)
    assert before == cache.hash_package()
    for name, counts in {
        "coding/sparse_coder.py": True,
        "engines/torch/sweep.cu": True,
        "experiments/__init__.py": True,
        "figures/style.py": False,
        "cli/app.py": False,
        "__init__.py": False,
    }.items():
        text = (package / name).read_text()
        (package / name).write_text(text + "\n")
        cache.hash_package.cache_clear()
        assert (cache.hash_package(package) != before) == counts, name
        (package / name).write_text(text)
    # Nor do the place and the newlines.
    for path in package.rglob("*.py"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    cache.hash_package.cache_clear()
    assert cache.hash_package(package) == before


def test_functions_of_other_packages_bring_their_module(tmp_path):
    assert cache.hash_code(example.scaled) == cache.hash_code(example.careless) != cache.hash_code(cache.hash_values)
    script = "import mine; from psmt.pipeline.cache import hash_code; print(hash_code(mine.f))"

    def printed(text):
        (tmp_path / "mine.py").write_text(text)
        path = f"{tmp_path}:{PACKAGE.parent}"
        done = subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": path}, capture_output=True, check=True)
        return done.stdout

    assert printed("def f(): pass\n") != printed("def f(): pass\n\n")
