"""Highlights programs, shell commands and changed words with named styles of `Renderer`."""

import re
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
_OPTION: Final = re.compile(r"(?<=\s)--?[A-Za-z][\w-]*")


class _Names(SyntaxTheme):
    def get_style_for_token(self, token_type: tuple[str, ...]) -> Style:
        while token_type and token_type not in _STYLE_OF:
            token_type = token_type[:-1]
        # A style's name, which the console knows, so that texts can be kept for any theme.
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
    if language and len(code) <= _MOST:
        syntax = _syntax(language)
    else:
        syntax = None
    if syntax is None or max(map(len, code.split("\n"))) > _LONGEST_LINE:
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
    for pattern, style in ((_COMMAND_WORD, "syntax name"), (_OPTION, "syntax number")):
        for match in pattern.finditer(text.plain):
            start, end = match.span(pattern.groups)
            if not any(first < end and start < last for first, last in taken):
                text.stylize(style, start, end)


def highlighted(code: str, language: str) -> Text:
    """The code with highlighting; plain if its language is unknown or it is too long."""
    return _highlighted(code, language.lower()).copy()


def language_of(path: str) -> str:
    """The language of a file as a fence would name it; empty if the file's name does not tell."""
    name = path.rpartition("/")[2].lower()
    if name in {"dockerfile", "containerfile", "makefile"}:
        if name != "makefile":
            return "docker"
        return "make"
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
    words = [re.findall(r"\w+|\s+|.", line) for line in (old, new)]
    matcher = SequenceMatcher(None, *words, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return [], []
    places: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for tag, *ends in matcher.get_opcodes():
        for side, (first, last) in enumerate((ends[:2], ends[2:])):
            if tag != "equal" and first < last:
                start = len("".join(words[side][:first]))
                places[side].append(
                    (start, start + len("".join(words[side][first:last])))
                )
    return places
