"""Pictures of the site in a pair, for the bright and for the dark page; the theme shows one of them.

A figure becomes dark as in reports, see `psmt.figures.dark`. A photograph or a screenshot has no pair, and stays.
The gallery's thumbnails are drawn for their size: the figure of an example without its text, with thick lines.
"""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from sphinx.application import Sphinx
from sphinx_gallery.scrapers import figure_rst

from psmt.figures.dark import darkened
from psmt.figures.style import png

THUMBNAIL = (400, 280)
"""Width and height, as sphinx-gallery has them."""

_IMAGE = re.compile(r'<img\b[^>]*?\bsrc="(?P<folder>[^"]*_images/)(?P<name>[^"/]+\.png)"[^>]*>')


def save_figures(_block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Write the figures that an example drew, each with its dark one and a thumbnail; return their reStructuredText."""
    rst = ""
    for number, name in zip(plt.get_fignums(), block_vars["image_path_iterator"], strict=False):
        figure, path = plt.figure(number), Path(name)
        titles = (axes.get_title(loc=loc) for axes in figure.axes for loc in ("left", "center"))
        rst += figure_rst([name], gallery_conf["src_dir"], ", ".join(filter(None, titles)))
        _save_pair(figure, path)
        simplify(figure)
        _save_pair(figure, _small(path))
    plt.close("all")
    return rst


def _save_pair(figure: Figure, path: Path) -> None:
    bright = png(figure, dpi=round(figure.dpi))
    dark = darkened(bright)
    assert dark is not None, "a figure says where its pictures lie"
    for file, content in ((path, bright), (_dark(path), dark)):
        Image.open(BytesIO(content)).convert("RGB").save(file)  # scaling needs more than a palette


def simplify(figure: Figure) -> None:
    """Turn a figure into its thumbnail: no text, thick lines, and as much of a wall of tiles as fills it."""
    for axes in figure.axes:
        if axes.get_label() == "<colorbar>" or not axes.has_data():
            axes.remove()
            continue
        if axes.get_legend() is not None:
            axes.get_legend().remove()
        for text in list(axes.texts):
            text.remove()
        for place in ("left", "center", "right"):
            axes.set_title("", loc=place)
        axes.set(xlabel="", ylabel="")
        axes.tick_params(which="both", labelbottom=False, labelleft=False, length=0)
        for line in axes.lines:
            line.set_linewidth(max(2.2 * line.get_linewidth(), 2.5))
            line.set_markersize(1.6 * line.get_markersize())
        if not axes.axison and axes.collections:  # a graph without the pictures of its nodes
            for picture in list(axes.artists):
                picture.remove()
            axes.set(xlim=(-1.1, 1.1), aspect="auto")
            for drawn in axes.collections:
                drawn.set_linewidth(2.5)
                if hasattr(drawn, "set_sizes"):
                    drawn.set_sizes([60])
        if axes.images and axes.get_aspect() == 1.0:
            width, height = (abs(np.diff(limits).item()) for limits in (axes.get_xlim(), axes.get_ylim()))
            part = min(width / THUMBNAIL[0], height / THUMBNAIL[1])
            left, top = axes.get_xlim()[0], axes.get_ylim()[1]
            axes.set_xlim(left, left + THUMBNAIL[0] * part)
            axes.set_ylim(top + THUMBNAIL[1] * part, top)
    figure.set_size_inches(THUMBNAIL[0] / 100, THUMBNAIL[1] / 100)
    figure.set_dpi(100)
    figure.set_layout_engine("constrained", w_pad=0.06, h_pad=0.06)


def use_thumbnails(app: Sphinx) -> None:
    """Put the thumbnails that were drawn into the place of those that sphinx-gallery made by scaling."""
    images = Path(app.srcdir) / "auto_gallery" / "images"
    for scaled in (images / "thumb").glob("*_thumb.png"):
        drawn = _small(images / scaled.name.replace("_thumb", "_001"))
        if drawn.exists():
            scaled.write_bytes(drawn.read_bytes())


def pair_pictures(app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: object) -> None:
    """Let each figure of a page be followed by its dark one, which is written to the site."""

    def paired(tag: re.Match[str]) -> str:
        name = tag["name"]
        target = Path(app.outdir) / "_images" / _dark(Path(name)).name
        if not _write_dark(app, name, target):
            return tag[0]
        dark = re.sub(r'\bsrcset="[^"]*"', "", tag[0]).replace(f"/{name}", f"/{target.name}")
        pair = _with_class(tag[0], "only-light") + _with_class(dark, "only-dark")
        return pair if name.endswith("_thumb.png") else f'<span class="figure">{pair}</span>'

    if "body" in context:
        context["body"] = _IMAGE.sub(paired, context["body"])


def _write_dark(app: Sphinx, name: str, target: Path) -> bool:
    """Whether a picture of the site has a dark one, which is then in the file `target`."""
    gallery = Path(app.srcdir) / "auto_gallery" / "images"
    drawn = gallery / name.replace("_thumb.png", "_001.png")
    drawn = _dark(_small(drawn) if name.endswith("_thumb.png") else drawn)
    target.parent.mkdir(exist_ok=True)
    if drawn.exists():
        target.write_bytes(drawn.read_bytes())
    else:
        source = next((path for path, (_, own) in app.env.images.items() if own == name), None)
        dark = darkened((Path(app.srcdir) / source).read_bytes()) if source else None
        if dark is None:
            return False
        target.write_bytes(dark)
    return True


def _dark(path: Path) -> Path:
    return path.with_stem(f"{path.stem}-dark")


def _small(path: Path) -> Path:
    return path.with_stem(f"{path.stem}-small")


def _with_class(tag: str, name: str) -> str:
    if 'class="' in tag:
        return tag.replace('class="', f'class="{name} ', 1)
    return tag.replace("<img ", f'<img class="{name}" ', 1)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the pairing; each page is paired by itself, so that several may be written at once."""
    app.connect("builder-inited", use_thumbnails, priority=900)  # after the gallery
    app.connect("html-page-context", pair_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
