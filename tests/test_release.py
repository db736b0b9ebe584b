"""What is said of a release in several files is the same in all of them."""

import re
import tomllib
from pathlib import Path

import pytest

import psmt

ROOT = Path(__file__).parents[1]
ON_CONDA_FORGE = {"matplotlib": "matplotlib-base"}
"""Names that differ there; `matplotlib` would bring a toolkit of windows."""


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def recipe():
    return (ROOT / "conda/recipe/recipe.yaml").read_text()


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("CHANGELOG.md", r"^## (\d\S*)"),
        ("CITATION.cff", r"^version: (\S+)"),
        ("conda/recipe/recipe.yaml", r'^  version: "(\S+)"'),
    ],
)
def test_every_file_names_the_version_of_the_package(file, pattern):
    found = re.search(pattern, (ROOT / file).read_text(), re.MULTILINE)
    assert found and found[1] == psmt.__version__


def test_conda_asks_for_what_pip_asks_for(project, recipe):
    wanted = {}
    for requirement in project["dependencies"]:
        name, bound = requirement.split(">=")
        wanted[ON_CONDA_FORGE.get(name, name)] = bound
    run = recipe.split("\n  run:\n")[1].split("\n\n")[0]
    given = dict(re.findall(r"- (\S+) >=([\d.]+)$", run, re.MULTILINE))
    assert given == wanted


def test_the_oldest_python_is_the_first_that_is_declared(project, recipe):
    declared = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    oldest = min(declared, key=lambda version: int(version.split(".")[1]))
    assert project["requires-python"] == f">={oldest}"
    assert f'python_min: "{oldest}"' in recipe
