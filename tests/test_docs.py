"""The pages: what they print is true, and their links lead somewhere."""

from __future__ import annotations

import doctest
import json
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from benchmarks.numbers import MARKED, measured, refreshed
from benchmarks.page import PAGE as BENCHMARKS

import psmt
from psmt.evaluation import FrameRow, Step
from psmt.experiments.predict_video.result import FRAME_METHODS

ROOT = Path(__file__).parents[1]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md"])
PAGES = [page for page in PAGES if "_build" not in page.parts]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s#:]*)(?:#([^)\s]+))?\)")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def anchors(page: Path) -> set[str]:
    """Names of the headings of a page, as GitHub and MyST make them."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def session(page: Path) -> str:
    """The blocks of a page with prompts, one after the other: names that are made in one are there in the next."""
    return "\n".join(block for block in BLOCK.findall(page.read_text(encoding="utf-8")) if block.startswith(">>>"))


def with_sessions():
    """Pages with prompts; tutorials take seconds."""
    for page in PAGES:
        if session(page):
            slow = [pytest.mark.slow] if page.parent.name in ("tutorials", "docs") or page.stem == "brain" else []
            yield pytest.param(page, id=name(page), marks=slow)


@pytest.mark.parametrize("page", [*with_sessions()])
def test_a_page_prints_what_it_says(page: Path) -> None:
    for library in re.findall(r"from psmt\.adapters\.(\w+)", session(page)):
        pytest.importorskip(library)
    test = doctest.DocTestParser().get_doctest(session(page), {}, name(page), str(page), 0)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(test, out=report.append)
    assert test.examples
    assert not report, "".join(report)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), f"{name(page)} links to {target}, which is not there"
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there), f"{name(page)} links to #{anchor} of {target}, which has no such heading"


def test_no_text_names_a_page_that_is_not_there() -> None:
    texts = [*(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py"), *(ROOT / "docs").rglob("*.py"), *PAGES]
    for text in texts:
        for path in re.findall(r"\bdocs/[\w/-]+\.(?:md|png|py)\b", text.read_text(encoding="utf-8")):
            assert (ROOT / path).exists(), f"{name(text)} names {path}, which is not there"


def test_each_promise_names_a_test_that_is_there() -> None:
    page = (ROOT / "docs" / "explanation" / "reliability.md").read_text(encoding="utf-8")
    promises = page.partition("## Promises")[2].partition("\n## ")[0].split("\n### ")[1:]
    assert len(promises) >= 20
    for promise in promises:
        assert "\n- `tests/" in promise, f"no test shows that {promise.partition(chr(10))[0]}"
    for file, test in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page):
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file} has no {test}"


def test_help_names_all_that_is_public() -> None:
    missing = [public for public in psmt.__all__ if f"`{public}`" not in (psmt.__doc__ or "")]
    assert not missing, f"help(psmt) does not name {missing}"


def test_the_reference_has_all_that_is_public() -> None:
    reference = (ROOT / "docs" / "api" / "index.rst").read_text(encoding="utf-8")
    modules = {page.stem for page in (ROOT / "docs" / "api" / "modules").glob("*.rst")}
    listed = modules | {line.strip().split(".")[-1] for line in reference.splitlines()}
    assert set(psmt.__all__) <= listed, f"docs/api/index.rst does not list {set(psmt.__all__) - listed}"


def test_numbers_are_those_of_the_benchmarks() -> None:
    numbers = measured(BENCHMARKS.read_text(encoding="utf-8"))
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert refreshed(text, numbers) == text, f"{name(page)} has old numbers; run python -m benchmarks.numbers"


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/is-it-for-me.md",
        "docs/explanation/beats.md",
        "docs/how-to/brain.md",
        "docs/how-to/estimator.md",
        "docs/tutorials/surprise.md",
    ],
)
def test_every_measured_number_in_a_table_names_its_benchmark(page: str) -> None:
    rows = [line for line in (ROOT / page).read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert any(MARKED.search(row) for row in rows)
    for row in rows:
        rest = re.findall(r"\b\d+\.\d{2,}", re.sub(r"`[^`]+`", "", MARKED.sub("", row)))
        assert not rest, f"{page}: {rest} have no comment that names their benchmark, in {row[:60]}"


def test_a_new_number_is_written_with_the_decimals_of_the_old_one() -> None:
    table = "### sea\n\n| method | mean |\n| --- | --- |\n| **PSMT** | 1,234.567 (missed) |"
    numbers = measured(f"<!-- films -->\n{table}\n<!-- /films -->")
    assert numbers == {"films / sea / PSMT / mean": 1234.567}
    page = "has **1.2**<!-- films / sea / PSMT / mean --> and 3<!-- films / sea / PSMT / mean -->"
    assert MARKED.sub("", refreshed(page, numbers)) == "has ** and "
    assert "**1,234.6**<!--" in refreshed(page, numbers)
    assert "and 1,235<!--" in refreshed(page, numbers)
    with pytest.raises(KeyError, match="sea / DMD"):
        refreshed("0.5<!-- films / sea / DMD / mean -->", numbers)


# Words that people type into the search, and a page that it must find for each.
SEARCHED = {
    "nifti": "tutorials/brain",
    "hmm": "how-to/brain",
    "forecast": "tutorials/series",
    "anomaly": "tutorials/surprise",
    "surprise": "tutorials/surprise",
    "optical flow": "explanation/frames",
    "dmd": "is-it-for-me",
}


@pytest.mark.parametrize(("words", "page"), SEARCHED.items())
def test_pages_have_the_words_that_people_search(words: str, page: str) -> None:
    text = BLOCK.sub("", (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")).lower()
    assert re.search(rf"\b{words}s?\b", text), f"a search for {words!r} does not find {page}"


def test_the_built_search_finds_these_pages() -> None:
    index = ROOT / "docs" / "_build" / "html" / "searchindex.js"
    if not index.exists() or index.stat().st_mtime < max(page.stat().st_mtime for page in PAGES):
        pytest.skip("make docs has not been run since a page was changed")
    found = json.loads(index.read_text(encoding="utf-8").removeprefix("Search.setIndex(").removesuffix(")"))
    for words, page in SEARCHED.items():
        for word in words.split():
            # The index has the stems of words: "anomali" for "anomaly".
            terms = [t for t in {**found["terms"], **found["titleterms"]} if t[:5] == word[:5] and len(t) <= len(word)]
            places = [found[kind].get(term, []) for term in terms for kind in ("terms", "titleterms")]
            pages = {found["docnames"][i] for place in places for i in (place if isinstance(place, list) else [place])}
            assert page in pages, f"a search for {words!r} does not find {page}"


def test_scripts_of_pictures_draw_what_the_package_gives_them() -> None:
    scripts = {name: runpy.run_path(str(ROOT / "docs" / "pictures" / f"{name}.py")) for name in ("frames", "moving")}
    rng = np.random.default_rng(0)
    step = Step(0, *rng.random((2, 8, 8)), {method: rng.random((8, 8)) for method in FRAME_METHODS}, {}, [], {})
    rows = [FrameRow(t, method, *rng.random(6), 0) for t in range(240) for method in FRAME_METHODS]
    assert scripts["frames"]["draw"](rows, dict.fromkeys(range(4), step)).axes
    assert scripts["moving"]["sheet"](*rng.random((3, 96, 96))).width > 2 * 96
