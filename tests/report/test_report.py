"""The page says what the numbers say, and carries all it shows."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from psmt.evaluation import Score
from psmt.experiments.prediction import METHODS
from psmt.report import Cell, Fact, Page, Picture, Section, Table, prediction_sections, prediction_verdicts, render

PNG = b"\x89PNG\r\n\x1a\n"


def with_errors(result, **errors: float):
    """The result with constant errors for some methods, vs code and vs frame."""
    scores = dict(result.scores)
    for method, error in errors.items():
        constant = np.full(len(result.frames), error)
        scores[method] = Score(scores[method].frames, scores[method].predicted, constant, constant)
    return replace(result, scores=scores)


@pytest.mark.parametrize(
    ("errors", "outcome"),
    [
        ({"psmt": 0.1, "baseline2": 0.2, "baseline1": 0.3}, "holds"),
        ({"psmt": 0.2, "baseline2": 0.1, "baseline1": 0.3}, "does not hold"),
        ({"psmt": 0.1, "baseline2": 0.3, "baseline1": 0.2}, "does not hold"),
    ],
)
def test_ranking_of_the_paper(make_result, errors, outcome):
    verdict = prediction_verdicts([with_errors(make_result(), **errors)])[0]
    assert verdict.outcome == outcome
    assert f"PSMT {np.log(errors['psmt']):.2f}".replace("-", "−") in verdict.evidence[0]


@pytest.mark.parametrize(
    ("error", "outcome"), [(0.1, "holds"), (0.2, "does not hold"), (0.19999, "does not hold"), (0.3, "does not hold")]
)
def test_copying_must_be_beaten_by_more_than_rounding(make_result, error, outcome):
    result = with_errors(make_result(), copy=0.2, copy_code=0.2, psmt=error, psmt_gain=error)
    assert [verdict.outcome for verdict in prediction_verdicts([result])[1:]] == [outcome, outcome]


def test_a_claim_that_one_phase_denies_holds_in_part(make_result):
    good = with_errors(make_result(), psmt=0.1, baseline2=0.2, baseline1=0.3)
    bad = with_errors(make_result("lively"), psmt=0.3, baseline2=0.2, baseline1=0.1)
    verdict = prediction_verdicts([good, bad])[0]
    assert verdict.outcome == "holds in part"
    assert len(verdict.evidence) == 2


def test_sections_hold_a_figure_and_a_table_per_phase(make_result):
    results = [with_errors(make_result(), psmt=0.4, copy=0.2, copy_code=0.2), make_result("lively", seed=1)]
    sections = prediction_sections(results, [PNG + b"1", PNG + b"2"], PNG + b"3")
    assert [section.title for section in sections[:2]] == ["Phase “calm”", "Phase “lively”"]
    assert [section.pictures[0].png for section in (*sections[:2], sections[-1])] == [
        PNG + b"1",
        PNG + b"2",
        PNG + b"3",
    ]
    rows = {row[0].text: row for row in sections[0].tables[0].rows}
    assert set(rows) == set(METHODS.values())
    assert rows["PSMT"][3] == rows["PSMT"][5] == Cell("2.00", "loses")
    assert rows["copy last patch"][5] == Cell("1")
    assert sum(row[1].mark == "best" for row in rows.values()) == 1
    assert len(prediction_sections(results, [PNG, PNG], None)) == len(sections) - 1


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
    page = Page(title="T", lead="L", verdicts=(), sections=[section], facts=[Fact("Film", "a<b>.mp4")])
    html = render(page).decode()
    outline = Outline()
    outline.feed(html)
    assert outline.open == []
    for text in ("&lt;b&gt;A &amp; B&lt;/b&gt;", "a &lt; b", "a&lt;b&gt;.mp4", 'class="loses">9', 'class="best">0.1'):
        assert text in html
    assert not re.search(r"https?://|<script|<link|@import|url\(", html)
    assert re.findall(r'src="([^"]{22})', html) == ["data:image/png;base64,"]
    for feature in ("prefers-color-scheme: dark", "@media print", 'name="viewport"'):
        assert feature in html
