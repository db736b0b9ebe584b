"""A self-contained HTML page: claims with verdicts, sections with figures and tables, and how it was made."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from PIL import Image

from psmt.figures.dark import darkened, is_figure
from psmt.figures.panels import WIDTH
from psmt.report.claim import Claim
from psmt.report.tables import Table


@dataclass(frozen=True)
class Picture:
    """A PNG file with what it shows, in words."""

    png: bytes
    alt: str
    caption: str = ""

    @property
    def uri(self) -> str:
        """The picture as an address that holds it."""
        return _address(self.png)

    @property
    def share(self) -> float:
        """Of the width of the page, so that all figures are seen at one scale."""
        if not is_figure(self.png):
            return 1.0
        image = Image.open(BytesIO(self.png))
        return round(float(min(1.0, image.width / image.info["dpi"][0] / WIDTH)), 3)

    @property
    def dark_uri(self) -> str:
        """The same for a dark page; empty for a photograph, which looks the same on any page."""
        dark = darkened(self.png)
        return "" if dark is None else _address(dark)


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page. A report is a list of these."""

    title: str
    text: Sequence[str] = ()
    """Paragraphs."""
    film: str = ""
    """Name of a film in the folder of the page, which plays it."""
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()


class Fact(NamedTuple):
    """A line of the list of how the page was made."""

    name: str
    value: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """All that the template needs."""

    title: str
    lead: str
    claims: Sequence[Claim]
    sections: Sequence[Section]
    still: Picture | None = None
    """Of what the page is about, beside its title."""
    facts: Sequence[Fact] = field(default_factory=tuple)


def render(page: Page) -> bytes:
    """The page as one HTML file in UTF-8, which loads nothing from elsewhere, but for films in its own folder."""
    environment = Environment(
        loader=PackageLoader("psmt", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja").render(page=page).encode(errors="surrogateescape")


def _address(png: bytes) -> str:
    return "data:image/png;base64," + b64encode(png).decode()
