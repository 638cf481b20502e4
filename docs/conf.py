"""How `scripts/docs` makes the site of these pages."""

from pathlib import Path
from typing import Any

from sphinx.search.en import SearchEnglish

from codex_py.version import __version__

project = "codex_py"
author = "codex_py contributors"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
napoleon_numpy_docstring = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
html_theme = "furo"
html_title = "codex_py"
html_copy_source = False
html_show_copyright = False
html_static_path = ["site"]
html_css_files = ["site.css"]
html_js_files = ["tables.js"]
# An HTML element of the index shows them, which Sphinx does not look into.
html_extra_path = ["demo-dark.svg", "demo-light.svg"]
html_search_scorer = str(Path(__file__).parent / "scorer.js")
myst_heading_anchors = 4
# JSON of the examples is cut, and so is the output of programs.
highlight_options = {"default": {"stripall": False}}
suppress_warnings = ["misc.highlighting_failure"]


class QuestionSearch(SearchEnglish):
    """English, without the words that make a question of some keywords: `how do I resume` is `resume`."""

    stopwords = SearchEnglish.stopwords | {
        "can",
        "don",
        "get",
        "s",
        "t",
        "want",
        "will",
    }


def keep_colons(
    _app: Any, what: str, _name: str, _obj: object, _options: Any, lines: list[str]
) -> None:
    """Keep napoleon from taking the words before the first colon of a field for its type."""
    if what in ("attribute", "data", "property") and lines:
        lines[0] = f": {lines[0]}"


def setup(app: Any) -> None:
    """Connect the hook so that it runs before napoleon's, whose priority is 500."""
    app.add_search_language(QuestionSearch)
    app.connect("autodoc-process-docstring", keep_colons, priority=400)
