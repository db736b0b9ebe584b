"""The page says what the numbers say, and carries all it shows."""

import re
from html.parser import HTMLParser

import pytest
from psmt.report.prediction import prediction_sections
from psmt.report.sweep import PAPER, table_1

from psmt.experiments.prediction import METHODS
from psmt.report import Cell, Claim, Fact, Page, Picture, Section, Table, render

PNG = b"\x89PNG\r\n\x1a\n"


def test_sections_hold_a_figure_and_a_table_per_phase(make_result, with_errors):
    results = [with_errors(make_result(), psmt=0.4, copy=0.2, copy_code=0.2), make_result("lively", seed=1)]
    sections = prediction_sections(results, [PNG + b"1", PNG + b"2"])
    assert [section.title for section in sections[:2]] == ["Prediction, phase “calm”", "Prediction, phase “lively”"]
    assert [section.pictures[0].png for section in sections[:2]] == [PNG + b"1", PNG + b"2"]
    rows = {row[0].text: row for row in sections[0].tables[0].rows}
    assert set(rows) == set(METHODS.values())
    assert rows["PSMT"][3] == rows["PSMT"][5] == Cell("2.00", "loses")
    assert rows["copy last patch"][5] == Cell("1")
    assert sum(row[1].mark == "best" for row in rows.values()) == 1
    assert [table.caption for table in sections[2].tables] == ["Rollouts, phase “calm”", "Rollouts, phase “lively”"]


def test_table_1_stands_beside_the_papers_and_names_what_is_missing(make_sweep):
    table = table_1(make_sweep({(512, 1024): 0.2, (512, 1280): 0.1}, n_atoms=(512, 1024)))
    cells = [[cell.text for cell in row] for row in table.rows]
    assert [row[0] for row in cells] == [
        "512, 1,024",
        "512, 1,280",
        "512, 1,536",
        "1,024, 2,048",
        "1,024, 2,560",
        "1,024, 3,072",
    ]
    assert cells[0][2:4] == ["0.2000 ± 0.0000", "0.2000 ± 0.0000"]
    assert table.rows[1][2].mark == "best"
    assert [row[-1] for row in cells[:2]] == ["0.925 ± 0.129", "0.734 ± 0.125"]
    assert [row[2] for row in cells[2:]] == 4 * ["film too short"]
    assert sum(mean for mean, _ in PAPER.values()) == pytest.approx(4.052)  # the nine means of the paper's Table 1


class Outline(HTMLParser):
    """Tags that are open, to find any that is not closed."""

    def __init__(self):
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_is_whole_escaped_and_loads_nothing():
    section = Section(
        title="<b>A & B</b>",
        text=["a < b"],
        pictures=[Picture(PNG, alt='say "x"', caption="what is seen")],
        tables=[
            Table("numbers", ("method", "MSE"), [[Cell("x"), Cell("0.1", "best")], [Cell("y"), Cell("9", "loses")]])
        ],
    )
    claim = Claim(
        key="k", text="1 < 2", rule="so", outcome="holds", support=("a",), against=("b",), notes=("c",), paper=False
    )
    page = Page(title="T", lead="L", claims=[claim], sections=[section], facts=[Fact("Film", "a<b>.mp4")])
    html = render(page).decode()
    outline = Outline()
    outline.feed(html)
    assert outline.open == []
    for text in ("&lt;b&gt;A &amp; B&lt;/b&gt;", "a &lt; b", "a&lt;b&gt;.mp4", 'class="loses">9', 'class="best">0.1'):
        assert text in html
    lines = [
        *re.findall(r'<ul class="(\w+)">\s*<li>(\w)</li>', html),
        *re.findall(r'class="(outcome \w+)">(\w+)', html),
    ]
    assert lines == [("for", "a"), ("against", "b"), ("note", "c"), ("outcome holds", "holds")]
    assert "1 &lt; 2" in html and "beyond the paper" in html and "Holds if so." in html
    assert not re.search(r"https?://|<script|<link|@import|url\(", html)
    assert re.findall(r'src="([^"]{22})', html) == ["data:image/png;base64,"]
    for feature in ("prefers-color-scheme: dark", "@media print", 'name="viewport"'):
        assert feature in html
