"""How `scripts/docs` makes the site of these pages."""

from codex_py.version import __version__

project = "codex_py"
author = "codex_py contributors"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
html_theme = "furo"
html_title = f"codex_py {release}"
html_copy_source = False
myst_heading_anchors = 4
# JSON of the examples is cut, and so is the output of programs.
highlight_options = {"default": {"stripall": False}}
suppress_warnings = ["misc.highlighting_failure"]
