"""Commands that are prompts: ready-made ones, and the user's own of `$CODEX_HOME/prompts`, as `/prompts:NAME ARGUMENTS`.

In the text of an own prompt, `$1` to `$9` are the words behind the name, `$ARGUMENTS` is all of them, `$NAME` is what
`NAME=value` gives, and `$$` is a dollar. As in Codex.
"""

import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.config.front_matter import front_matter
from codex_py.errors import CodexError
from codex_py.filesystem.ordinary import read_whole
from codex_py.frontends.tui.commands.registry import Command, CommandContext, Work
from codex_py.frontends.tui.composer import Submission
from codex_py.frontends.tui.panel import Choice, Option
from codex_py.instructions import instruction_text

_MAX_BYTES: Final = 256 * 1024
_PLACE: Final = re.compile(r"\$(?:(\$)|([1-9])(?!\d)|([A-Z][A-Z0-9_]*)\b)")
_NAMED: Final = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)", re.DOTALL)

_UNCOMMITTED = (
    "all that is not committed: what is staged, what is not, and files that are not tracked"
)


async def _init(context: CommandContext, _: str) -> None:
    context.conversation.send(Submission(instruction_text("commands/init.md").strip()))


async def _review(context: CommandContext, argument: str) -> None:
    what = argument or await context.surface.panels.show(
        Choice(
            [("bold", "What is to be reviewed?")],
            [
                Option("What is not committed", _UNCOMMITTED, "u"),
                Option(
                    "This branch",
                    "all that this branch has and the main branch has not, from their merge base on",
                    "b",
                ),
                Option("The last commit", "the last commit", "c"),
            ],
            cancelled="",
        )
    )
    if what:
        text = instruction_text("commands/review.md").strip().replace("{what}", what)
        context.conversation.send(Submission(text))


PROMPTS = [
    Command("init", "have AGENTS.md written", _init),
    Command("review", "have a change reviewed", _review, argument="[WHAT]"),
]


def custom_commands(home: Path) -> list[Command]:
    """One for each file, by name. What cannot be read is left out."""
    found: list[Command] = []
    try:
        paths = sorted((home / "prompts").glob("*.md"))
    except OSError:
        return []
    for path in paths:
        fields: Mapping[str, str] = {}
        # Damaged, it is a command all the same, and says what is wrong when it is used.
        with suppress(OSError, ValueError):
            fields, _ = _read(path)
        if re.fullmatch(r"[\w.-]+", path.stem):
            found.append(
                Command(
                    f"prompts:{path.stem}",
                    " ".join(fields.get("description", "").split()) or "a prompt of yours",
                    _sends(path),
                    argument=" ".join(fields.get("argument-hint", "").split()),
                )
            )
    return found


def expanded(template: str, arguments: str) -> str:
    """The text of a prompt with its arguments in their places.

    Raises:
        CodexError: one that the text names is not given, or quotes are not closed.
    """
    try:
        words = shlex.split(arguments)
    except ValueError as error:
        raise CodexError(f"the arguments cannot be read: {error}", code="usage") from error
    wanted = {match[3] for match in _PLACE.finditer(template) if match[3]} - {"ARGUMENTS"}
    named: dict[str, str] = {}
    plain: list[str] = []
    for word in words:
        match = _NAMED.fullmatch(word)
        if match is not None and match[1] in wanted:
            named[match[1]] = match[2]
        else:
            plain.append(word)
    if missing := sorted(wanted - named.keys()):
        raise CodexError(f"give it {', '.join(f'{name}=…' for name in missing)}", code="usage")

    def value(match: re.Match[str]) -> str:
        dollar, number, name = match.groups()
        if dollar:
            return "$"
        if number:
            return plain[int(number) - 1] if int(number) <= len(plain) else ""
        return " ".join(plain) if name == "ARGUMENTS" else named[name]

    return _PLACE.sub(value, template)


def _sends(path: Path) -> Work:
    async def send(context: CommandContext, argument: str) -> None:
        try:
            _, text = _read(path)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise CodexError(f"{path} cannot be used: {reason}", code="prompt") from error
        context.conversation.send(Submission(expanded(text, argument).strip()))

    return send


def _read(path: Path) -> tuple[Mapping[str, str], str]:
    return front_matter(read_whole(path, _MAX_BYTES).decode())
