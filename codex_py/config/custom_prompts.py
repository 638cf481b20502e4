"""Finds the prompts of users, projects and plugins: files that are sent as slash commands.

The folders and the form of the files are those of Codex for `prompts`, and those of Claude Code for
`.claude/commands`.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from codex_py.config.config import Config
from codex_py.config.definition_folders import Folder, project_folders
from codex_py.config.definitions import definitions, front_matter, read_definition
from codex_py.config.paths import user_home
from codex_py.config.role_files import named_model
from codex_py.errors import CodexError, ConfigError
from codex_py.filesystem.denials import denials_of
from codex_py.protocol.frozen import frozen

_MAX_BYTES: Final = 256 * 1024
_MAX_DEPTH: Final = 6
_FILES: Final = r"[^.].*\.md"
_NAME: Final = re.compile(r"[\w.-]+(?::[\w.-]+)*")
_PLACE: Final = re.compile(
    r"\$(?:(?P<dollar>\$)|(?P<number>[1-9])(?!\d)|(?P<name>[A-Z][A-Z0-9_]*)\b)"
)
_CLAUDE_PLACE: Final = re.compile(r"(?<!\$)\$(?:(?P<number>[1-9])(?!\d)|ARGUMENTS\b)")
_NAMED: Final = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)", re.DOTALL)
_CLAUDE_COMMAND: Final = re.compile(r"!`[^`\n]+`")


@frozen
class CustomPrompt:
    name: str
    """`prompts:NAME`, `project:NAME`, `user:NAME` or `PLUGIN:NAME`; NAME is `sub:name` for a file
    in the folder `sub`."""
    description: str
    argument_hint: str
    text: str
    model: str | None
    """A model or `provider/model`; None: the session's model."""
    without_effect: tuple[str, ...]
    """The requests of a prompt for Claude Code that have no effect here."""
    is_claude: bool

    @property
    def short_name(self) -> str | None:
        """The name of the prompt in Claude Code; None if it is not a prompt of Claude Code."""
        if self.name.startswith(("project:", "user:")):
            return self.name.rpartition(":")[2]
        return None

    def filled(self, arguments: str) -> str:
        """Fill the arguments into the text. Raises the errors of `expanded`."""
        if self.is_claude:
            text = claude_expanded(self.text, arguments)
        else:
            text = expanded(self.text, arguments)
        return text.strip()


@frozen
class CustomPrompts:
    found: tuple[CustomPrompt, ...]
    """The prompts. If several have one name, only the nearest to the working directory is here."""
    warnings: tuple[str, ...]
    """One sentence for each prompt that cannot be used."""


def find_custom_prompts(
    config: Config, environment: Mapping[str, str]
) -> CustomPrompts:
    """All prompts that can be sent here; a project's prompts only if it is trusted."""
    found: dict[str, CustomPrompt] = {}
    warnings: list[str] = []
    denials = denials_of(config.files)
    for name, path, folder in _files(config, environment, warnings):
        if name in found or not _NAME.fullmatch(name):
            continue
        if denials.refuses(path):
            continue
        try:
            found[name] = _parsed(name, path, folder)
        except ConfigError as error:
            warnings.append(f"The command /{name} cannot be used: {error}.")
    return CustomPrompts(tuple(found.values()), tuple(warnings))


def _files(
    config: Config,
    environment: Mapping[str, str],
    warnings: list[str],
) -> Iterator[tuple[str, Path, Folder]]:
    """Yield the name and the file of each prompt, with the folder that it was found in."""
    folders = _claude_folders(config, environment)
    prompts = [Folder(config.home / "prompts", "user", prefix="prompts:")]
    found = [
        *definitions(folders, _FILES, "commands", warnings, max_depth=_MAX_DEPTH),
        *definitions(prompts, _FILES, "commands", warnings),
    ]
    for path, folder in found:
        inner = path.relative_to(folder.path).with_suffix("").parts
        yield folder.prefix + ":".join(inner), path, folder
    for plugin in config.plugins:
        for name, (path, text) in plugin.commands.items():
            folder = Folder(plugin.root, "plugin", texts={path: text})
            yield f"{plugin.name}:{name}", path, folder


def _claude_folders(config: Config, environment: Mapping[str, str]) -> list[Folder]:
    """The folders in Claude Code's form: those of a trusted project, then the user's."""
    path = user_home(environment) / ".claude" / "commands"
    own = Folder(path, "user", prefix="user:")
    if config.trust != "trusted":
        return [own]
    project = project_folders(config, ".claude/commands", prefix="project:")
    # In the user's home folder, the commands are the user's own.
    return [*(each for each in project if each.path != path), own]


def _parsed(
    name: str,
    path: Path,
    folder: Folder,
) -> CustomPrompt:
    text = read_definition(path, folder, _MAX_BYTES)
    fields, body = front_matter(text, path)
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


def _word(words: Sequence[str], number: int) -> str:
    """Return a word by its number, which begins at 1. Empty if there are fewer words."""
    if number > len(words):
        return ""
    return words[number - 1]


def claude_expanded(template: str, arguments: str) -> str:
    """Fill the arguments into a prompt of Claude Code.

    `$1` to `$9` are the words, and `$ARGUMENTS` is all of them. If the prompt has none of these,
    the arguments are appended to it.
    """
    try:
        words = shlex.split(arguments)
    except ValueError:
        # An apostrophe is not a mistake.
        words = arguments.split()
    if arguments and not _CLAUDE_PLACE.search(template):
        return f"{template.rstrip()}\n\nARGUMENTS: {arguments}"

    def value(match: re.Match[str]) -> str:
        number = match["number"]
        if number is None:
            return arguments
        return _word(words, int(number))

    return _CLAUDE_PLACE.sub(value, template)


def expanded(template: str, arguments: str) -> str:
    """Fill the arguments into a prompt of Codex.

    `$1` to `$9` are the words, `$ARGUMENTS` is all of them, `$NAME` is the value that `NAME=value`
    gives, and `$$` is a dollar sign.

    Raises:
        CodexError: an argument that the text names is missing, or a quote is not closed.
    """
    try:
        words = shlex.split(arguments)
    except ValueError as error:
        raise CodexError(
            f"the arguments cannot be read: {error}", code="usage"
        ) from error
    names = {match["name"] for match in _PLACE.finditer(template)}
    wanted = names - {None, "ARGUMENTS"}
    named: dict[str, str] = {}
    plain: list[str] = []
    for word in words:
        match = _NAMED.fullmatch(word)
        if match is not None and match[1] in wanted:
            named[match[1]] = match[2]
        else:
            plain.append(word)
    missing = sorted(wanted - named.keys())
    if missing:
        examples = ", ".join(f"{name}=…" for name in missing)
        raise CodexError(f"give it {examples}", code="usage")

    def value(match: re.Match[str]) -> str:
        dollar, number, name = match.groups()
        if dollar:
            return "$"
        if number:
            return _word(plain, int(number))
        if name == "ARGUMENTS":
            return " ".join(plain)
        return named[name]

    return _PLACE.sub(value, template)
