"""Configuration of `make docs`: pages in Markdown, a reference from docstrings, a gallery from scripts."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE / "_extensions")]

from psmt import __version__  # noqa: E402

project = "psmt"
author = "The PSMT developers"
copyright = author
release = version = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "dark_pictures",
]
exclude_patterns = ["_build", "_extensions", "gallery", "pictures"]
templates_path = ["_templates"]
# Leave out pages of modules that this tree does not have; the list of modules is a glob.
exclude_patterns += [f"api/modules/{name}.rst" for name in ("plot", "datasets") if not find_spec(f"psmt.{name}")]

# Single backticks in docstrings name Python objects. Other text in them is shown as code.
default_role = "py:obj"
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # the types are in the numpydoc sections
autodoc_member_order = "bysource"
autodoc_mock_imports = ["river", "sktime"]  # the site is built without the libraries of the adapters
toc_object_entries_show_parents = "hide"  # "predict" and not "PSMT.predict", which does not fit into the margin
StandaloneHTMLBuilder.supported_image_types.append("image/webp")  # the moving picture of the first page
numpydoc_show_class_members = False  # the template lists them
numpydoc_class_members_toctree = False

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 10,
    "abort_on_example_error": True,
    "reset_modules": ("matplotlib",),
    "capture_repr": (),
    "image_scrapers": ("dark_pictures.save_figures",),
}

html_theme = "pydata_sphinx_theme"
html_title = f"psmt {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {page: [] for page in ("index", "installation", "is-it-for-me")}  # they are not in a section
html_last_updated_fmt = None
html_theme_options = {
    "logo": {"text": f"psmt {release}"},
    "secondary_sidebar_items": ["page-toc", "sourcelink"],
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

# Files in the root of the repository that are also pages of the site.
_ROOT_PAGES = {"benchmarks/README.md": "explanation/benchmarks", "CONTRIBUTING.md": "explanation/contributing"}


def _link_to_pages(path: Path, docname: str, text: list[str]) -> None:
    """Rewrite links to the root files so that they lead to their pages, and the links inside these files."""
    up = "../" * docname.count("/")
    for file, page in _ROOT_PAGES.items():
        text[0] = text[0].replace(f"]({up}../{file}", f"]({up}{page}.md")
    if HERE not in path.resolve().parents:
        text[0] = text[0].replace("](docs/", f"]({up}")


# Members that other parts of psmt use: they store models, or say what kind of method a class is.
_PLUMBING = {"get_header", "get_state", "set_state", "schema", "stored_schema", "from_stored", "check_stored"}
_PLUMBING |= {"write_to", "state_arrays", "check_next", "static_window", "static_embedding", "uses_embedding"}
_PLUMBING |= {"extrapolates", "score_"}


def _skip(_app: object, _what: str, name: str, member: object, skip: bool, _options: object) -> bool:
    """Skip members that scikit-learn adds to estimators, and those that only psmt itself uses."""
    made_elsewhere = str(getattr(member, "__module__", "")).startswith("sklearn") or name.endswith("_request")
    return skip or made_elsewhere or name in _PLUMBING


def _tidy(_app: object, _what: str, _name: str, _obj: object, _options: object, lines: list[str]) -> None:
    """Turn the paths of pages in docstrings into links. Remove what Python says about fields without a docstring."""
    if any(line.startswith("Alias for field number") for line in lines):
        lines[:] = [""]
    lines[:] = [re.sub(r"`*\bdocs/([\w/-]+)\.md\b`*", r":doc:`/\1`", line) for line in lines]


def _shorten(
    _app: object, what: str, _name: str, _obj: object, _options: object, signature: str | None, returns: str | None
) -> tuple[str, str | None] | None:
    """Shorten a long signature of a class, so that its purpose is seen first. All parameters are listed below it."""
    parts = (signature or "").split(", ")
    return (", ".join(parts[:6]) + ", ...)", returns) if what == "class" and len(parts) > 8 else None


def _write_options(_app: object) -> None:
    """Write the page of all options, from the declarations of the commands' parameters."""
    from psmt.cli.app import COMMANDS

    lines = ["# Options", "", "Options of all commands, as their settings declare them."]
    for command in COMMANDS.values():
        lines += ["", f"## psmt {command.name}", "", command.help.partition("\n")[0], ""]
        lines += ["| option | meaning | default |", "| --- | --- | --- |"]
        lines += [f"| `{option}` | {meaning} | {default} |" for option, meaning, default in command.rows()]
    text = re.sub(r"\bdocs/([\w/-]+)\.md\b", r"[](../\1.md)", "\n".join(lines))
    (HERE / "api" / "options.md").write_text(text + "\n", encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Register the page of options, the rewriting of links in pages and included files, and the choice of members."""
    app.connect("builder-inited", _write_options)
    app.connect("source-read", lambda app, page, text: _link_to_pages(Path(app.env.doc2path(page)), page, text))
    # MyST passes only the last part of the page's name, so take it from the environment.
    app.connect("include-read", lambda app, path, _, text: _link_to_pages(HERE / path, app.env.docname, text))
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-signature", _shorten)
    app.connect("autodoc-process-docstring", _tidy)
