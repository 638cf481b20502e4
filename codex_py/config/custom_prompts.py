"""Finds prompts that people keep in files, to be sent as slash commands: their own, a project's, and those of plugins.

Source of the folders and of the form: Codex for `prompts`, Claude Code for `.claude/commands`.
"""

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from codex_py.config.config import Config
from codex_py.config.front_matter import FrontMatterError, front_matter
from codex_py.config.paths import folders_between, user_home
from codex_py.config.role_files import named_model
from codex_py.errors import CodexError
from codex_py.filesystem.ordinary import read_whole
from codex_py.protocol.frozen import frozen

_MAX_BYTES: Final = 256 * 1024
_MAX_ENTRIES: Final = 500
"""Files of one place, and its folders."""
_NAME: Final = re.compile(r"[\w.-]+(?::[\w.-]+)*")
_PLACE: Final = re.compile(r"\$(?:(\$)|([1-9])(?!\d)|([A-Z][A-Z0-9_]*)\b)")
_CLAUDE_PLACE: Final = re.compile(r"(?<!\$)\$(?:([1-9])(?!\d)|ARGUMENTS\b)")
_NAMED: Final = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)", re.DOTALL)
_CLAUDE_COMMAND: Final = re.compile(r"!`[^`\n]+`")


@frozen
class CustomPrompt:
    name: str
    """`prompts:NAME`, `project:NAME`, `user:NAME` or `PLUGIN:NAME`; NAME is `sub:name` for a file in a folder."""
    description: str
    argument_hint: str
    text: str
    model: str | None
    """Also `provider/model`; None: that of the session."""
    without_effect: tuple[str, ...]
    """What a prompt for Claude Code asks for and does not get here."""
    is_claude: bool

    @property
    def short_name(self) -> str | None:
        """The name that Claude Code gives it; None if it is not Claude's."""
        is_short = self.name.startswith(("project:", "user:"))
        return self.name.rpartition(":")[2] if is_short else None

    def filled(self, arguments: str) -> str:
        """The text with its arguments in their places. Raises a `CodexError` if one that it needs is not given."""
        fill = claude_expanded if self.is_claude else expanded
        return fill(self.text, arguments).strip()


@frozen
class CustomPrompts:
    found: tuple[CustomPrompt, ...]
    """Of several with one name, the first: the one nearest to the working directory."""
    warnings: tuple[str, ...]
    """One sentence for each that cannot be used."""


def find_custom_prompts(config: Config, environment: Mapping[str, str]) -> CustomPrompts:
    """All prompts that can be sent here; those of a project only if it is trusted."""
    found: dict[str, CustomPrompt] = {}
    warnings: list[str] = []
    for name, path, read in _files(config, environment):
        if name in found or not _NAME.fullmatch(name):
            continue
        try:
            found[name] = _parsed(name, read())
        except FrontMatterError as error:
            warnings.append(f"The command /{name} of {path}:{error.line} cannot be used: {error}.")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            warnings.append(f"The command /{name} of {path} cannot be used: {reason}.")
    return CustomPrompts(tuple(found.values()), tuple(warnings))


def _files(
    config: Config, environment: Mapping[str, str]
) -> Iterator[tuple[str, Path, Callable[[], str]]]:
    """Names, files, and what reads them."""
    user = user_home(environment)
    root, *_ = folders = folders_between(config.project_root, config.cwd)
    places: list[tuple[str, Path, Path | None]] = []
    if config.trust == "trusted":
        places += [
            ("project", folder / ".claude" / "commands", root)
            for folder in reversed(folders)
            if folder != user
        ]
    places += [
        ("user", user / ".claude" / "commands", None),
        ("prompts", config.home / "prompts", None),
    ]
    for prefix, top, within in places:
        for path in _markdown(top):
            inner = path.relative_to(top).with_suffix("").parts
            if prefix != "prompts" or len(inner) == 1:
                yield ":".join((prefix, *inner)), path, partial(_text, path, within)
    for plugin in config.plugins:
        for name, (path, text) in plugin.commands.items():
            yield f"{plugin.name}:{name}", path, lambda text=text: text


def _markdown(top: Path) -> list[Path]:
    """The Markdown files in a folder and below it, sorted. Folders that are links are left out."""
    folders = islice(os.walk(top), _MAX_ENTRIES)
    paths = (Path(folder, name) for folder, _, names in folders for name in names)
    return sorted(islice((path for path in paths if path.suffix == ".md"), _MAX_ENTRIES))


def _text(path: Path, root: Path | None) -> str:
    return read_whole(path, _MAX_BYTES, root=root).decode()


def _parsed(name: str, text: str) -> CustomPrompt:
    fields, body = front_matter(text)
    is_claude = not name.startswith("prompts:")
    without_effect: list[str] = []
    if "allowed-tools" in fields:
        without_effect.append("`allowed-tools`, as no file can approve calls")
    if is_claude and _CLAUDE_COMMAND.search(body):
        without_effect.append("commands as !`COMMAND`, which are sent as text")
    return CustomPrompt(
        name=name,
        description=" ".join(fields.get("description", "").split()),
        argument_hint=" ".join(fields.get("argument-hint", "").split()),
        text=body,
        model=named_model(fields.get("model")),
        without_effect=tuple(without_effect),
        is_claude=is_claude,
    )


def claude_expanded(template: str, arguments: str) -> str:
    """The text of a prompt with `$ARGUMENTS` and `$1` to `$9` in it filled in. Without any, the arguments follow it."""
    try:
        words = shlex.split(arguments)
    except ValueError:
        # An apostrophe is no mistake.
        words = arguments.split()
    if arguments and not _CLAUDE_PLACE.search(template):
        return f"{template.rstrip()}\n\nARGUMENTS: {arguments}"

    def value(match: re.Match[str]) -> str:
        if match[1] is None:
            return arguments
        return words[int(match[1]) - 1] if int(match[1]) <= len(words) else ""

    return _CLAUDE_PLACE.sub(value, template)


def expanded(template: str, arguments: str) -> str:
    """The text of a prompt of Codex with its arguments in their places.

    `$1` to `$9` are the words, `$ARGUMENTS` is all of them, `$NAME` is what `NAME=value` gives, and `$$` is a dollar.

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
