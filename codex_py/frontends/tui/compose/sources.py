"""Sources of suggestions: the names of commands, skills and files."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from prompt_toolkit.document import Document

from codex_py.config.config import Config
from codex_py.config.skills import Skills, find_skills
from codex_py.frontends.tui.compose.completion import Suggestion, Word, word_after
from codex_py.frontends.tui.compose.files import FileIndex

_MAX_FILES = 50
_PLAIN_PATH = re.compile(r"[\w./@%+=:,~-]+")


@dataclass(frozen=True, slots=True)
class CommandName:
    name: str
    """Without the slash."""
    help: str
    """A short phrase without a full stop."""
    aliases: tuple[str, ...] = field(default=(), kw_only=True)
    argument: str = field(default="", kw_only=True)
    """The argument it takes, as the help shows it: `[NAME]`."""


class CommandSource:
    """`/` at the very beginning.

    Args:
        commands: gives all there are, in the order in which they are listed.
    """

    def __init__(self, commands: Callable[[], Sequence[CommandName]]) -> None:
        self._commands = commands

    def word(self, document: Document) -> Word | None:
        before = document.text_before_cursor
        if not re.fullmatch(r"/[\w:.-]*", before):
            return None
        return Word(0, before[1:])

    def suggestions(self, word: str) -> Sequence[Suggestion]:
        found: list[tuple[int, Suggestion]] = []
        for command in self._commands():
            names = (command.name, *command.aliases)
            ranks = [rank for name in names if (rank := _rank(word, name)) is not None]
            if ranks:
                # A command that needs an argument is not sent without one.
                is_whole = not command.argument or command.argument.startswith("[")
                name = f"/{command.name} {command.argument}".rstrip()
                suggestion = Suggestion(name, f"/{command.name}", command.help, sends=is_whole)
                found.append((min(ranks), suggestion))
        return _best_first(found)


class SkillSource:
    """`$` before a word."""

    def __init__(self) -> None:
        self.skills = Skills()

    def load(self, config: Config, environment: Mapping[str, str]) -> None:
        """Read the skills from their folders. It blocks."""
        self.skills = find_skills(config, environment)

    def word(self, document: Document) -> Word | None:
        return word_after("$", document)

    def suggestions(self, word: str) -> Sequence[Suggestion]:
        found = [
            (rank, Suggestion(f"${skill.name}", f"${skill.name}", skill.description))
            for skill in self.skills.found
            if (rank := _rank(word, skill.name)) is not None
        ]
        return _best_first(found)


class FileSource:
    """`@` before a word."""

    def __init__(self, files: FileIndex) -> None:
        self._files = files

    def word(self, document: Document) -> Word | None:
        return word_after("@", document)

    def suggestions(self, word: str) -> Callable[[], Awaitable[Sequence[Suggestion]]]:
        return partial(self._search, word)

    async def _search(self, word: str) -> Sequence[Suggestion]:
        paths = await self._files.search(word, _MAX_FILES)
        return [Suggestion(path, quoted(path)) for path in paths]


def quoted(path: str) -> str:
    """A path as it stands in a prompt: in quotes, with escapes, where it would not be told apart."""
    return path if _PLAIN_PATH.fullmatch(path) else json.dumps(path, ensure_ascii=False)


def _best_first(ranked: list[tuple[int, Suggestion]]) -> Sequence[Suggestion]:
    return [suggestion for _, suggestion in sorted(ranked, key=lambda pair: pair[0])]


def _rank(typed: str, name: str) -> int | None:
    """How well a name fits, 0 the best; None if it does not."""
    typed, name = typed.lower(), name.lower()
    if name.startswith(typed):
        return 0
    if typed in name:
        return 1
    letters = iter(name)
    return 2 if all(letter in letters for letter in typed) else None
