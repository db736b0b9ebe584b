"""The page says what the numbers say, and carries all it shows."""

import re
from html.parser import HTMLParser

from matplotlib.figure import Figure

from psmt.figures import png
from psmt.figures.panels import WIDTH
from psmt.report import Answer, Cell, Claim, Fact, Judgement, Page, Picture, Section, Table, render

PNG = b"\x89PNG\r\n\x1a\n"


class Outline(HTMLParser):
    """Tags that are open, to find any that is not closed."""

    def __init__(self):
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "img", "br", "source"):
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
        key="k",
        text="1 < 2",
        rule="so",
        as_measured=Judgement("yes", 0.5, 0.4, 0.6, "w<"),
        beyond_controls=Judgement("no", why="z"),
        support=("a",),
        against=("b",),
        notes=("c",),
        paper=False,
    )
    page = Page(
        title="T",
        answer=Answer("A < B", "psmt predict 'a<b>'", "predicts", [Picture(PNG, alt="what is best")]),
        lead="L",
        claims=[claim],
        sections=[section],
        facts=[Fact("Film", "a<b>.mp4")],
    )
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
    assert lines == [("for", "a"), ("against", "b"), ("note", "c"), ("outcome yes", "yes"), ("outcome no", "no")]
    assert "1 &lt; 2" in html and "beyond the paper" in html and "w&lt;" in html
    # The answer, the command, the picture, and then the claims.
    order = [
        "A &lt; B",
        "psmt predict &#39;a&lt;b&gt;&#39;",
        'alt="what is best"',
        "as measured",
        "0.50 (0.40 to 0.60)",
    ]
    assert sorted(order, key=html.index) == order
    assert not re.search(r"https?://|<script|<link|@import|url\(", html)
    assert re.findall(r'src="([^"]{22})', html) == ["data:image/png;base64,"] * 2
    for feature in ("prefers-color-scheme: dark", "@media print", 'name="viewport"'):
        assert feature in html


def test_the_first_screen_has_contents_and_the_size_of_each_effect():
    claim = Claim(key="k", text="it helps", rule="so", as_measured=Judgement("yes"), size="0.37 × the error")
    sections = [Section(title="First"), Section(title="Second")]
    html = render(Page(title="T", lead="L", claims=[claim], sections=sections, facts=[Fact("a", "b")])).decode()
    links = re.findall(r'<a href="#([\w-]+)">([^<]+)</a>', html)
    assert [title for _, title in links] == ["First", "Second", "How this page was made"]
    assert [target for target, _ in links] == re.findall(r'<h2 id="([\w-]+)">', html)
    assert re.search(r'yes</span>\s*<div class="size">0.37 × the error</div>', html)
    assert "beyond controls" not in html  # there are none
    assert claim.summary()["size"] == "0.37 × the error"


def test_figures_have_a_dark_side_and_photographs_do_not():
    figure = png(Figure(figsize=(1, 1)))
    section = Section(title="S", pictures=[Picture(figure, alt="a"), Picture(PNG, alt="b")])
    html = render(Page(title="T", lead="L", claims=[], sections=[section])).decode()
    assert len(re.findall(r'<source media="\(prefers-color-scheme: dark\)" srcset="data:image/png', html)) == 1
    assert len(re.findall("<img ", html)) == 2


def test_figures_are_seen_at_one_scale_whatever_their_resolution():
    half, whole = Figure(figsize=(WIDTH / 2, 1)), Figure(figsize=(WIDTH, 1))
    assert [Picture(png(half, dpi=dpi), alt="").share for dpi in (50, 110)] == [0.5, 0.5]
    assert Picture(png(whole), alt="").share == 1.0
    section = Section(title="s", pictures=[Picture(png(half), alt="half")])
    html = render(Page(title="T", lead="L", claims=[], sections=[section])).decode()
    assert '--share: 0.5"' in html


def test_an_interval_is_cut_from_its_number_and_nowhere_else():
    table = Table("t", ("m", "v"), [[Cell("x"), Cell("0.57 (0.48 to 0.69)")], [Cell("y"), Cell("never", "missing")]])
    html = render(Page(title="T", lead="L", claims=[], sections=[Section(title="s", tables=[table])])).decode()
    assert '<td class="range"><span>0.57</span> <span>(0.48 to 0.69)</span></td>' in html
    assert '<td class="missing">never</td>' in html


def test_what_is_folded_is_there_after_a_click():
    table = Table("t", ("m", "v"), [[Cell("x"), Cell("1")]])
    section = Section(title="s", folded=[Section(title="others", tables=[table])])
    html = render(Page(title="T", claims=[], sections=[section])).decode()
    assert re.search(r'<details class="fold">\s*<summary>others</summary>.*<table>.*</details>', html, re.DOTALL)
