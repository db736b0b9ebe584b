"""A self-contained HTML page: claims with verdicts, sections with figures and tables, and how they were made."""

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
    """A PNG or JPEG file with alternative text."""

    png: bytes
    alt: str
    caption: str = ""

    @property
    def uri(self) -> str:
        """The picture as a data URI."""
        return _data_uri(self.png)

    @property
    def share(self) -> float:
        """Width of the picture as a fraction of the page, chosen so that text has the same size in all figures."""
        if not is_figure(self.png):
            return 1.0
        image = Image.open(BytesIO(self.png))
        return round(float(min(1.0, image.width / image.info["dpi"][0] / WIDTH)), 3)

    @property
    def dark_uri(self) -> str:
        """The picture for a dark page as a data URI. It is '' for a photograph, because photographs are not changed."""
        dark = darkened(self.png)
        return "" if dark is None else _data_uri(dark)


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section of a page: title, paragraphs, pictures and tables."""

    title: str
    text: Sequence[str] = ()
    """Paragraphs of the section."""
    film: str = ""
    """Name of a film to play, which lies in the folder of the page."""
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    folded: Sequence["Section"] = ()
    """Parts that are shown after a click."""


class Answer(NamedTuple):
    """What a command found, in one or two sentences, and which command to run next."""

    text: str = ""
    command: str = ""
    """The command to run next. An experiment gives the words after ``psmt``, with ``{source}`` for the film. A page has
    the whole command. It is empty if there is none."""
    reason: str = ""
    """What this command does, as the end of a sentence."""
    pictures: Sequence[Picture] = ()


class Fact(NamedTuple):
    """One line of the list "How this page was made"."""

    name: str
    value: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """Content of a page, which `render` writes as HTML."""

    title: str
    lead: str = ""
    """Text that says what the page is about."""
    answer: Answer = field(default_factory=Answer)
    """The answer that the page begins with."""
    claims: Sequence[Claim]
    sections: Sequence[Section]
    facts: Sequence[Fact] = field(default_factory=tuple)


def render(page: Page) -> bytes:
    """Return the page as one HTML file in UTF-8. It loads no other file, except films in its own folder."""
    files = PackageLoader("psmt", "report")
    jinja = Environment(loader=files, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return jinja.get_template("page.html.jinja").render(page=page).encode(errors="surrogateescape")


def _data_uri(png: bytes) -> str:
    kind = "jpeg" if png.startswith(b"\xff\xd8") else "png"
    return f"data:image/{kind};base64,{b64encode(png).decode()}"
