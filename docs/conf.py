"""How `make docs` builds the site: pages are Markdown, the reference is docstrings, the gallery is scripts."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from sphinx.application import Sphinx

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
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "dark_pictures",
]
exclude_patterns = ["_build", "_extensions", "gallery", "pictures"]
templates_path = ["_templates"]
# A page about a module that this tree does not have is left out; the list of modules is a glob and does not miss it.
exclude_patterns += [f"api/modules/{name}.rst" for name in ("plot", "datasets") if not find_spec(f"psmt.{name}")]

# In docstrings single backticks name objects of Python. What is no object is shown as code.
default_role = "py:obj"
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # numpydoc sections have the types
autodoc_member_order = "bysource"
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
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "psmt"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

# These stand in the root of the repository, where people look for them, and are pages of the site as well.
_ROOT_PAGES = {"benchmarks/README.md": "explanation/benchmarks", "CONTRIBUTING.md": "explanation/contributing"}


def _link_to_pages(path: Path, docname: str, text: list[str]) -> None:
    """Let links to files of the root lead to their pages, and links in these files to where they are seen from."""
    up = "../" * docname.count("/")
    for file, page in _ROOT_PAGES.items():
        text[0] = text[0].replace(f"]({up}../{file}", f"]({up}{page}.md")
    if HERE not in path.resolve().parents:
        text[0] = text[0].replace("](docs/", f"]({up}")


_PLUMBING = {"get_header", "get_state", "set_state", "schema", "stored_schema", "from_stored", "check_stored"}


def _skip(_app: object, _what: str, name: str, member: object, skip: bool, _options: object) -> bool:
    """Whether the reference leaves a member out: what scikit-learn adds to estimators, and how models are stored."""
    made_elsewhere = str(getattr(member, "__module__", "")).startswith("sklearn") or name.endswith("_request")
    return skip or made_elsewhere or name in _PLUMBING


def _write_options(_app: object) -> None:
    """Write the page of all options, from the declarations of the commands' parameters."""
    from psmt.cli.app import COMMANDS

    lines = ["# Options", "", "Options of all commands, as their settings declare them."]
    for command in COMMANDS.values():
        lines += ["", f"## psmt {command.name}", "", command.help.partition("\n")[0], ""]
        lines += ["| option | meaning | default |", "| --- | --- | --- |"]
        lines += [f"| `{option}` | {meaning} | {default} |" for option, meaning, default in command.rows()]
    (HERE / "api" / "options.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Register the page of options, the repair of links, in pages and what they include, and the choice of members."""
    app.connect("builder-inited", _write_options)
    app.connect("source-read", lambda app, page, text: _link_to_pages(Path(app.env.doc2path(page)), page, text))
    # MyST gives the last part of the page's name only, so the environment is asked for it.
    app.connect("include-read", lambda app, path, _, text: _link_to_pages(HERE / path, app.env.docname, text))
    app.connect("autodoc-skip-member", _skip)
