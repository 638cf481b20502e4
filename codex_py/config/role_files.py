"""Reads the file of one agent role. LIGHT.

The file is TOML as in Codex, or Markdown with front matter as in Claude Code.
"""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from codex_py.config.check import problems
from codex_py.config.declared.role import RoleFile
from codex_py.config.declared.section import names_of
from codex_py.config.definitions import front_matter
from codex_py.config.files import parse_toml
from codex_py.config.lines import key_lines
from codex_py.errors import ConfigError
from codex_py.protocol.approval import SandboxMode
from codex_py.protocol.frozen import frozen
from codex_py.protocol.tools import (
    AGENT_TOOLS,
    COMMAND_TOOLS,
    MCP_PREFIX,
    RESOURCE_TOOLS,
)

_OTHERS: Final = (
    *AGENT_TOOLS,
    *RESOURCE_TOOLS,
    "apply_patch",
    "update_plan",
    "view_image",
    "web_search",
    "request_user_input",
)
"""Our tools besides those of commands and of MCP servers."""
_READING: Final = frozenset(("Read", "Grep", "Glob", "LS", "NotebookRead", "Skill"))
"""Tools of Claude Code for which models use commands here."""
_RUNNING: Final = ("Bash", "BashOutput", "KillBash", "KillShell", *COMMAND_TOOLS)
_EDITING: Final = ("Edit", "Write", "MultiEdit", "NotebookEdit")
_RESOURCES: Final = ("ListMcpResourcesTool", "ReadMcpResourceTool")
_TOOLS: Final[Mapping[str, frozenset[str]]] = {
    **{name: frozenset((name,)) for name in _OTHERS},
    **dict.fromkeys(_READING, COMMAND_TOOLS | {"view_image"}),
    # A role has all of the command tools or none.
    **dict.fromkeys(_RUNNING, COMMAND_TOOLS),
    **dict.fromkeys(_EDITING, frozenset(("apply_patch",))),
    **dict.fromkeys(("Task", "Agent"), AGENT_TOOLS),
    **dict.fromkeys(("WebSearch", "WebFetch"), frozenset(("web_search",))),
    **dict.fromkeys(("TodoWrite", "TodoRead"), frozenset(("update_plan",))),
    **dict.fromkeys(_RESOURCES, frozenset(RESOURCE_TOOLS)),
    "AskUserQuestion": frozenset(("request_user_input",)),
}
"""The tools that a name in a role stands for. The name is one of ours or of Claude Code's."""
_SAME_MODEL: Final = frozenset(
    ("inherit", "default", "best", "sonnet", "opus", "haiku", "opusplan", "fable")
)
"""Names in Markdown files for a model of Claude, or for the parent's own model."""
_NAME: Final = re.compile(r"\w[\w .:-]{0,63}")
_NICKNAME: Final = re.compile(r"[A-Za-z0-9 _-]{1,64}")
_MAX_DESCRIPTION: Final = 1024
"""The length limit in characters: the descriptions of all roles are part of every request."""
_MARKDOWN: Final = frozenset(
    ("name", "description", "tools", "model", "isolation", "permissionMode", "color")
)
"""The known fields of Markdown files."""


@frozen
class Role:
    """The instructions and the permissions of a child session of an agent type."""

    name: str
    description: str
    """One line; empty if the role has no description."""
    instructions: str | None = None
    """The first part of the child's instructions."""
    model: str | None = None
    """A model or `provider/model`; None: the parent's."""
    reasoning_effort: str | None = None
    """None: the parent's."""
    sandbox_mode: SandboxMode | None = None
    """A mode that can narrow the parent's sandbox, but never widens it."""
    tools: frozenset[str] | None = None
    """The only tools that the child may call, by the names from `called_tool`, or `mcp__server` for
    all tools of a server. None: all tools."""
    reads_only: bool = False
    """True: commands stay in a read-only sandbox, whatever the user's rules allow, because the only
    tools of the role that use commands are for reading files."""
    isolation: Literal["worktree"] | None = None
    nicknames: tuple[str, ...] = ()
    source: Path | None = None
    """The file of the role; None for a built-in one."""


def toml_role(
    text: str,
    path: Path,
    declared: Mapping[str, Any] | None = None,
) -> tuple[Role, str]:
    """Read a role from TOML; also returns a remark on its settings without effect.

    The remark is to be read after "has"; it is empty if all settings have an effect.

    Args:
        declared: the table `[agents.NAME]`, with its `name`. A file that it declares need not have
            a name or a description.

    Raises:
        ConfigError: the file is not valid.
    """
    values = parse_toml(text, path)
    for problem in problems(values, RoleFile):
        line = key_lines(text).get(problem.key[:1], 1)
        raise ConfigError(f"{path}:{line}: `{problem.key[0]}` {problem.text}")
    given = {**(declared or {}), **values}
    if declared is not None:
        given["name"] = declared["name"]
    elif not values.get("developer_instructions", "").strip():
        raise ConfigError(f"{path}:1: it has no `developer_instructions`")
    role = Role(
        *_names(given, path),
        instructions=_text(given.get("developer_instructions")),
        model=_text(given.get("model")),
        reasoning_effort=_text(given.get("model_reasoning_effort")),
        sandbox_mode=given.get("sandbox_mode"),
        nicknames=_nicknames(given.get("nickname_candidates", ()), path),
        source=path,
    )
    return role, _lacks(values, names_of(RoleFile))


def markdown_role(text: str, path: Path) -> tuple[Role, str]:
    """Read a role from Markdown; the result and the errors are those of `toml_role`."""
    fields, body = front_matter(text, path)
    if not fields:
        raise ConfigError(f"{path}:1: it has no front matter")
    isolation = fields.get("isolation") or None
    if isolation not in {None, "worktree"}:
        raise ConfigError(f"{path}: `isolation` must be `worktree`, not {isolation!r}")
    if "disallowedTools" in fields:
        # If it were ignored, the tools that it forbids would be allowed.
        raise ConfigError(
            f"{path}: `disallowedTools` is not supported; list the others in `tools`"
        )
    listed = _tools(fields.get("tools"))
    may_edit = listed.allowed is not None and "apply_patch" in listed.allowed
    may_write = may_edit or not listed.reads_only
    sandbox_mode = None
    if not may_write or fields.get("permissionMode") == "plan":
        # A child without a tool that writes is told that it cannot write.
        sandbox_mode = "read-only"
    role = Role(
        *_names({"name": path.stem, **fields}, path),
        instructions=_text(body),
        model=named_model(fields.get("model")),
        sandbox_mode=sandbox_mode,
        tools=listed.allowed,
        reads_only=listed.reads_only,
        isolation="worktree" if isolation else None,
        source=path,
    )
    return role, _lacks(fields, _MARKDOWN, listed.unknown)


def _lacks(
    given: Iterable[str],
    known: Container[str],
    tools: Sequence[str] = (),
) -> str:
    """Write the remark on settings without effect, and on unknown tools."""
    parts: list[str] = []
    keys = [f"`{key}`" for key in given if key not in known]
    if keys:
        parts.append(f"settings without effect: {', '.join(keys)}")
    if tools:
        parts.append(f"unknown tools: {', '.join(tools)}")
    return "; ".join(parts)[:_MAX_DESCRIPTION]


def named_model(value: str | None) -> str | None:
    """Return the model that a Markdown file names.

    None stands for the session's model, which is also used for a class of Claude models.
    """
    model = (_text(value) or "").removesuffix("[1m]")
    if model in _SAME_MODEL:
        return None
    return model or None


def _names(given: Mapping[str, Any], path: Path) -> tuple[str, str]:
    """Return the name and the description. Raises a `ConfigError` if one is missing."""
    name = str(given.get("name", "")).strip()
    description = " ".join(str(given.get("description", "")).split())
    for key, value in (("name", name), ("description", description)):
        if not value:
            raise ConfigError(f"{path}:1: it has no `{key}`")
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{path}: {name[:80]!r} is not a name for a role")
    return name, _printable(description)[:_MAX_DESCRIPTION]


def _printable(text: str) -> str:
    """Replace the characters that are not printable by U+FFFD."""
    shown = ""
    for character in text:
        if character.isprintable():
            shown += character
        else:
            shown += "\ufffd"
    return shown


def _nicknames(given: Iterable[str], path: Path) -> tuple[str, ...]:
    names = tuple(name.strip() for name in given)
    for name in names:
        if not _NICKNAME.fullmatch(name):
            raise ConfigError(
                f"{path}: the nickname {name[:80]!r} may have letters, digits, spaces, `-` and `_` only"
            )
    return tuple(dict.fromkeys(names))


def _text(value: str | None) -> str | None:
    """The text without the space around it; None if nothing is left."""
    return (value or "").strip() or None


@frozen
class _ListedTools:
    """The tools that a role lists. The default stands for all tools."""

    allowed: frozenset[str] | None = None
    """See `Role.tools`."""
    reads_only: bool = False
    """See `Role.reads_only`."""
    unknown: Sequence[str] = ()


def _tools(text: str | None) -> _ListedTools:
    """Read `tools: Read, Bash(git:*)`, with or without brackets; None: there is no such field."""
    # A pattern without an end takes the rest of the text: if it were cut off, its name would allow
    # more.
    names = re.findall(r"[^\s,()\[\]\"']+(?:\([^)]*\)?)?", text or "")
    if text is None or "*" in names:
        return _ListedTools()
    tools: set[str] = set()
    unknown: list[str] = []
    may_run_all = False
    for written in names:
        name, pattern, _ = written.partition("(")
        name = name.removeprefix("functions.")
        if name in _TOOLS:
            tools |= _TOOLS[name]
            # `Bash(git diff:*)` allows some commands. We cannot tell which commands a shell runs,
            # but we can prevent them from writing.
            if name in _RUNNING and not pattern:
                may_run_all = True
        elif name.startswith(MCP_PREFIX):
            tools.add(name.removesuffix("*").rstrip("_"))
        else:
            tools.add(name)
            unknown.append(name)
    reads_only = "exec_command" in tools and not may_run_all
    return _ListedTools(frozenset(tools), reads_only, unknown)
