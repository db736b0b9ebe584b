"""A self-contained HTML page: claims with verdicts, sections with figures and tables, and how they were made."""

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
    """A PNG file with alternative text."""

    png: bytes
    alt: str
    caption: str = ""

    @property
    def uri(self) -> str:
        """The picture as a data URI."""
        return _data_uri(self.png)

    @property
    def share(self) -> float:
        """Width relative to the page, so that all figures have one scale."""
        if not is_figure(self.png):
            return 1.0
        image = Image.open(BytesIO(self.png))
        return round(float(min(1.0, image.width / image.info["dpi"][0] / WIDTH)), 3)

    @property
    def dark_uri(self) -> str:
        """The picture for a dark page; empty for a photograph, which is the same on any page."""
        dark = darkened(self.png)
        return "" if dark is None else _data_uri(dark)


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page."""

    title: str
    text: Sequence[str] = ()
    """Paragraphs."""
    film: str = ""
    """Name of a film to play, in the folder of the page."""
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()


class Fact(NamedTuple):
    """One line of "How this page was made"."""

    name: str
    value: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """Content of a page, for the template."""

    title: str
    lead: str
    claims: Sequence[Claim]
    sections: Sequence[Section]
    still: Picture | None = None
    """Picture beside the title."""
    facts: Sequence[Fact] = field(default_factory=tuple)


def render(page: Page) -> bytes:
    """The page as one HTML file in UTF-8. It loads nothing but films in its own folder."""
    environment = Environment(
        loader=PackageLoader("psmt", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja").render(page=page).encode(errors="surrogateescape")


def _data_uri(png: bytes) -> str:
    return "data:image/png;base64," + b64encode(png).decode()
