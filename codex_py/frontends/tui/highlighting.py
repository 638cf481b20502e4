"""Highlights programs, shell commands and changed words with named styles of `Renderer`."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

from rich.style import Style
from rich.syntax import Syntax, SyntaxTheme
from rich.text import Text

_MOST: Final = 20_000
"""Characters of code that are highlighted. Lexers are slow, and some of them very slow."""
_LONGEST_LINE: Final = 2_000
_MOST_COMPARED: Final = 300
"""Characters of a line that is searched for changed words."""
_ALIKE: Final = 0.5
"""The least similarity of two lines whose changed words are marked."""

_KINDS: Final = {
    "syntax comment": "Comment",
    "syntax keyword": "Keyword Operator.Word Name.Decorator Name.Tag",
    "syntax type": "Keyword.Type Name.Class Name.Exception",
    "syntax name": "Name.Function Name.Namespace Name.Attribute Name.Builtin",
    "syntax string": "Literal.String",
    "syntax number": "Literal.Number Name.Variable Name.Constant Keyword.Constant",
    "syntax markup": "Generic.Heading Generic.Subheading Generic.Strong",
    "removed": "Generic.Deleted",
    "added": "Generic.Inserted",
}
"""The token types of pygments for each style."""
_STYLE_OF: Final = {
    tuple(kind.split(".")): style
    for style, kinds in _KINDS.items()
    for kind in kinds.split()
}
_ALIASES: Final = {
    **dict.fromkeys(("yml", "lock"), "yaml"),
    **dict.fromkeys(("h", "hpp", "cc", "cxx"), "cpp"),
    **dict.fromkeys(("mjs", "cjs"), "js"),
    **dict.fromkeys(("jsonl", "jsonc", "json5"), "json"),
    "htm": "html",
    "pyi": "python",
    "mk": "make",
    "ps1": "powershell",
    "svelte": "html",
}
"""The names of pygments for languages as fences and file names give them."""
_SHELLS: Final = {"bash", "sh", "shell", "zsh"}
_COMMAND_WORD: Final = re.compile(
    r"(?:^|\|\|?|&&|;|\$\(|\b(?:then|do|else)\b)[ \t]*(?:\w+=\S*[ \t]+)*([^\s=|;&()<>'\"$#`]+)",
    re.MULTILINE,
)
"""Group 1 is the name of a program: at the start of a line, or behind `|`, `&&`, `;`, `$(` or `then`,
and behind the variables that are set for it."""
_OPTION: Final = re.compile(r"(?<=\s)--?[A-Za-z][\w-]*")


class _Names(SyntaxTheme):
    """A theme of names: it gives each token the name of its style, instead of a style."""

    def get_style_for_token(self, token_type: tuple[str, ...]) -> Style:
        while token_type and token_type not in _STYLE_OF:
            token_type = token_type[:-1]
        # The console takes the name of a style for the style. So a text that is kept fits each theme.
        return _STYLE_OF.get(token_type, "")  # pyright: ignore[reportReturnType]

    def get_background_style(self) -> Style:
        return Style.null()


@lru_cache(maxsize=200)
def _syntax(language: str) -> Syntax | None:
    lexer = Syntax("", _ALIASES.get(language, language)).lexer
    if lexer is None:
        return None
    return Syntax("", lexer, theme=_Names())


@lru_cache(maxsize=200)
def _highlighted(code: str, language: str) -> Text:
    if not language or len(code) > _MOST:
        return Text(code)
    longest = max(map(len, code.split("\n")))
    syntax = _syntax(language)
    if syntax is None or longest > _LONGEST_LINE:
        return Text(code)
    text = syntax.highlight(code)
    text.no_wrap = None
    # Drop the newline that a lexer may have added at the end.
    text = text[: len(code)]
    if text.plain != code:
        return Text(code)
    if language in _SHELLS:
        _mark_commands(text)
    return text


def _mark_commands(text: Text) -> None:
    """Style the names of programs and options in a shell command, which pygments leaves plain."""
    taken = [(span.start, span.end) for span in text.spans]

    def mark(
        start: int,
        end: int,
        style: str,
    ) -> None:
        if not any(first < end and start < last for first, last in taken):
            text.stylize(style, start, end)

    for match in _COMMAND_WORD.finditer(text.plain):
        mark(match.start(1), match.end(1), "syntax name")
    for match in _OPTION.finditer(text.plain):
        mark(match.start(), match.end(), "syntax number")


def highlighted(code: str, language: str) -> Text:
    """The code with highlighting; plain if its language is unknown or it is too long."""
    return _highlighted(code, language.lower()).copy()


def language_of(path: str) -> str:
    """The language of a file as a fence would name it; empty if the file's name does not tell."""
    name = path.rpartition("/")[2].lower()
    if name == "makefile":
        return "make"
    if name in {"dockerfile", "containerfile"}:
        return "docker"
    if "." in name:
        return name.rpartition(".")[2]
    return ""


@lru_cache(maxsize=500)
def changed_words(
    old: str, new: str
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The places of changed words in the old line and in the new one.

    Both are empty if the lines are too long or have little in common.
    """
    if max(len(old), len(new)) > _MOST_COMPARED:
        return [], []
    old_words = re.findall(r"\w+|\s+|.", old)
    new_words = re.findall(r"\w+|\s+|.", new)
    matcher = SequenceMatcher(None, old_words, new_words, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return [], []
    in_old: list[tuple[int, int]] = []
    in_new: list[tuple[int, int]] = []
    for tag, old_first, old_last, new_first, new_last in matcher.get_opcodes():
        if tag == "equal":
            continue
        if old_first < old_last:
            in_old.append(_place(old_words, old_first, old_last))
        if new_first < new_last:
            in_new.append(_place(new_words, new_first, new_last))
    return in_old, in_new


def _place(
    words: Sequence[str],
    first: int,
    last: int,
) -> tuple[int, int]:
    """The start and end of some of the words in their line."""
    start = len("".join(words[:first]))
    return start, start + len("".join(words[first:last]))
