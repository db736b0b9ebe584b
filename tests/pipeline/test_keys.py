"""Keys hold the code: which files count, and which do not."""

import importlib
import shutil
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


def test_functions_of_other_packages_bring_their_module(tmp_path, monkeypatch):
    assert cache.hash_code(example.scaled) == cache.hash_code(example.careless) != cache.hash_code(cache.hash_values)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine.py").write_text("def f(): pass\n")
    function = importlib.import_module("mine").f
    before = cache.hash_code(function)
    (tmp_path / "mine.py").write_text("def f(): pass\n\n")
    cache.hash_code.cache_clear()
    assert cache.hash_code(function) != before
    del sys.modules["mine"]
