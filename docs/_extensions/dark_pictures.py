"""Pictures of the site in a pair, for the bright and for the dark page; the theme shows one of them.

A figure becomes dark as in reports, see `psmt.figures.dark`. A photograph or a screenshot has no pair, and stays.
"""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from PIL import Image
from sphinx.application import Sphinx
from sphinx_gallery.scrapers import figure_rst
from sphinx_gallery.utils import scale_image

from psmt.figures.dark import darkened
from psmt.figures.style import png

THUMBNAIL = (400, 280)
"""Width and height, as sphinx-gallery has them."""

_IMAGE = re.compile(r'<img\b[^>]*?\bsrc="(?P<folder>[^"]*_images/)(?P<name>[^"/]+\.png)"[^>]*>')


def save_figures(_block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """reStructuredText of the figures that an example drew; each is written with its dark one beside it."""
    rst = ""
    for number, name in zip(plt.get_fignums(), block_vars["image_path_iterator"], strict=False):
        figure = plt.figure(number)
        bright = png(figure, dpi=round(figure.dpi))
        dark = darkened(bright)
        assert dark is not None, "a figure says where its pictures lie"
        for path, content in ((Path(name), bright), (_dark(Path(name)), dark)):
            # Thumbnails are made from these by scaling, which needs more than a palette.
            Image.open(BytesIO(content)).convert("RGB").save(path)
        titles = (axes.get_title(loc=loc) for axes in figure.axes for loc in ("left", "center"))
        rst += figure_rst([name], gallery_conf["src_dir"], ", ".join(filter(None, titles)))
    plt.close("all")
    return rst


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
    drawn = _dark(gallery / name.replace("_thumb.png", "_001.png"))
    target.parent.mkdir(exist_ok=True)
    if drawn.exists() and name.endswith("_thumb.png"):
        scale_image(drawn, target, *THUMBNAIL)
    elif drawn.exists():
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


def _with_class(tag: str, name: str) -> str:
    if 'class="' in tag:
        return tag.replace('class="', f'class="{name} ', 1)
    return tag.replace("<img ", f'<img class="{name}" ', 1)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the pairing; each page is paired by itself, so that several may be written at once."""
    app.connect("html-page-context", pair_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
