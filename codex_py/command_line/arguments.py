"""The command line of a session: one set of options for all its commands, and reading it.

Codex takes some options before the command word, some after it and some on both sides of `resume`;
here each may stand anywhere, which accepts all of that. The commands themselves are the first words.
"""

import json
import re
from collections.abc import Callable, Collection, Coroutine, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_type_hints

from codex_py.command_line.extension_values import OneOfExtensions
from codex_py.command_line.parser import (
    OneOf,
    flag,
    not_empty,
    option,
    suggestion,
)
from codex_py.config.declared.names import feature_names
from codex_py.config.limits import LIMITS, amount
from codex_py.config.unenforced import PROTECTION_NAMES
from codex_py.errors import ConfigError, UsageError
from codex_py.protocol.approval import ApprovalPolicy, SandboxMode
from codex_py.protocol.frozen import frozen
from codex_py.protocol.provider_ids import LOCAL_PROVIDERS
from codex_py.protocol.stream import ToolChoice
from codex_py.registry import FAILURES, REVIEW_FORMATS

FLAG = re.compile(r"--?[A-Za-z][\w-]*")
"""The beginning of a word that has the form of an option."""


def unknown_feature(name: str, known: Collection[str]) -> str:
    """The message about a feature that does not exist. It begins with the words of Codex."""
    return (
        f"Unknown feature flag: {name}.{suggestion(name, sorted(known))}"
        " `codex-py features list` shows all."
    )


def _feature(value: str) -> Callable[[str], str]:
    """Make the `type` of an option that sets a feature to `value`. It returns an override."""

    def setting(name: str) -> str:
        known = feature_names()
        if name not in known:
            raise UsageError(unknown_feature(name, known))
        return f"features.{name}={value}"

    return setting


def _limit(name: str) -> Callable[[str], str]:
    """Make the `type` of an option that sets a limit of the budget. It returns an override."""

    def setting(text: str) -> str:
        try:
            limit = amount(name, text)
        except ConfigError as error:
            raise UsageError(f"{option_of(name)}: {error}") from None
        return f"budget.{name}={limit}"

    return setting


def option_of(field: str) -> str:
    """The option whose field has this name."""
    return f"--{field.replace('_', '-')}"


def _tool_choice(text: str) -> str:
    ToolChoice.parse(text)
    return f"tool_choice={json.dumps(text)}"


def _worktree_name(name: str) -> str:
    if name and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise UsageError(
            f"--worktree: {name!r} cannot name a folder here; use letters, digits, `.`, `_` and `-`"
        )
    return name


OF_REVIEW = ("uncommitted", "base", "commit", "title", "format")
"""Options that only `review` has."""
_OVERRIDE = "KEY=VALUE; to continue a session, use `codex-py resume`"
"""The value of `-c`. In Claude Code, this option continues a session."""
Overrides: TypeAlias = Annotated[
    Sequence[str],
    option("-c", "--config", action="append", metavar=_OVERRIDE),
    option("--enable", action="append", type=_feature("true")),
    option("--disable", action="append", type=_feature("false")),
    option("--search", action="append_const", const='web_search="live"'),
    option("--tool-choice", action="append", type=_tool_choice),
]
"""`key=value`, weakest first. Every command of Codex takes these options."""
PRIORITIES = ("p0", "p1", "p2")
"""The values of `--fail-on` for `review`: priorities of findings."""


_OF_ONE_RUN = ("output_last_message", "worktree")
"""Options with the place or a file of one run."""
_OTHER_COMMANDS = ("review", "acp", "app-server", "mcp-server")
"""The commands with sessions besides `exec` and the terminal."""


@frozen
class Arguments:
    """The words and options of a command. Paths are as the user wrote them."""

    words: tuple[str, ...] = ()
    """The command and its arguments: all that is neither an option nor a value of one."""
    literal_words: tuple[str, ...] = ()
    """The words after `--`, none of which is a command or an option."""
    of_extensions: tuple[Any, ...] = ()
    """Options of extensions: an instance of each class with one; see `command_line.options`."""
    version: Annotated[bool, flag("-V", "--version")] = False

    overrides: Overrides = ()
    limits: Annotated[
        Sequence[str],
        {
            (option_of(name),): {"action": "append", "type": _limit(name)}
            for name in LIMITS
        },
    ] = ()
    """More overrides, which count for sessions alone."""
    model: Annotated[str | None, option("-m", "--model")] = None
    profile: Annotated[
        str | None, option("-p", "--profile", metavar="the name of a profile")
    ] = None
    sandbox: Annotated[SandboxMode | None, option("-s", "--sandbox")] = None
    bypass: Annotated[
        bool, flag("--dangerously-bypass-approvals-and-sandbox", "--yolo")
    ] = False
    full_auto: Annotated[bool, flag("--full-auto")] = False
    approval: Annotated[
        str | None, option("-a", "--ask-for-approval", type=OneOf(*ApprovalPolicy))
    ] = None
    oss: Annotated[bool, flag("--oss")] = False
    local_provider: Annotated[
        str | None, option("--local-provider", type=OneOf(*LOCAL_PROVIDERS))
    ] = None
    strict_config: Annotated[bool, flag("--strict-config")] = False
    ignore_user_config: Annotated[bool, flag("--ignore-user-config")] = False
    ignore_rules: Annotated[bool, flag("--ignore-rules")] = False
    bypass_hook_trust: Annotated[bool, flag("--dangerously-bypass-hook-trust")] = False
    allow_unenforced: Annotated[
        Sequence[str],
        option("--allow-unenforced", action="append", type=OneOf(*PROTECTION_NAMES)),
    ] = ()
    """Names of protections to start without. A misspelled one is refused: otherwise it would
    silently have no effect."""

    deny: Annotated[
        Sequence[str], option("--deny", action="append", type=not_empty)
    ] = ()
    """Paths and patterns that commands and the agent may not read."""

    allow_domain: Annotated[
        Sequence[str], option("--allow-domain", action="append", type=not_empty)
    ] = ()
    """Patterns of hosts that commands may reach; they reach no others."""

    cd: Annotated[str | None, option("-C", "--cd")] = None
    add_dir: Annotated[Sequence[str], option("--add-dir", action="append")] = ()
    worktree: Annotated[str | None, option("--worktree", type=_worktree_name)] = None
    """The name of a new git worktree to work in; empty for any name. Only `--worktree=NAME` sets
    it: a word after `--worktree` is the prompt."""
    with_changes: Annotated[bool, flag("--with-changes")] = False
    skip_git_repo_check: Annotated[bool, flag("--skip-git-repo-check")] = False
    trust: Annotated[bool, flag("--trust")] = False
    trust_client: Annotated[bool, flag("--trust-client")] = False
    """True if calls of an MCP client may set anything; for `mcp-server`."""
    listen: Annotated[
        str,
        option("--listen"),
        option("--stdio", action="store_const", const="stdio://"),
    ] = "stdio://"
    """The address to listen at; for `app-server`, as the next two."""
    out: Annotated[str | None, option("--out")] = None
    experimental: Annotated[bool, flag("--experimental")] = False
    """Accepted without effect."""

    # Takes every word up to the next option, a prompt too, because Codex does.
    image: Annotated[
        Sequence[str], option("-i", "--image", nargs="+", action="extend")
    ] = ()
    output_schema: Annotated[str | None, option("--output-schema")] = None
    output_last_message: Annotated[
        str | None, option("-o", "--output-last-message")
    ] = None
    json: Annotated[bool, flag("--json")] = False
    experimental_json: Annotated[bool, flag("--experimental-json")] = False
    """The spelling of the SDKs of Codex; `json` is set too."""
    agent_events: Annotated[bool, flag("--agent-events")] = False
    usage_events: Annotated[bool, flag("--usage-events")] = False
    color: Annotated[Literal["always", "never", "auto"], option("--color")] = "auto"
    answers: Annotated[str | None, option("--answers")] = None
    plan: Annotated[bool, flag("--plan")] = False

    fail_on: Annotated[
        Sequence[str],
        option(
            "--fail-on",
            action="append",
            type=OneOfExtensions(FAILURES, *PRIORITIES),
        ),
    ] = ()
    """Priorities of findings, for `review`, and names of extensions; see `api.options`."""

    uncommitted: Annotated[bool, flag("--uncommitted")] = False
    base: Annotated[str | None, option("--base")] = None
    commit: Annotated[str | None, option("--commit")] = None
    title: Annotated[str | None, option("--title")] = None
    format: Annotated[
        str | None, option("--format", type=OneOfExtensions(REVIEW_FORMATS, "text"))
    ] = None

    ephemeral: Annotated[bool, flag("--ephemeral")] = False
    last: Annotated[bool, flag("--last")] = False
    all: Annotated[bool, flag("--all")] = False
    log: Annotated[str | None, option("--log")] = None

    # These options of Codex have no effect.
    no_alt_screen: Annotated[bool, flag("--no-alt-screen")] = False
    no_daemon: Annotated[bool, flag("--no-daemon")] = False
    thread_source: Annotated[str | None, option("--thread-source")] = None
    cyber_access_program: Annotated[
        str | None,
        option(
            "--cyber-access-program",
            type=OneOf("standard", "daybreak_blue", "daybreak_red"),
        ),
    ] = None

    @property
    def command(self) -> str:
        """The command that has the session, named as in `Options.commands`."""
        word = "".join(self.words[:1])
        if word in {"exec", "e"}:
            is_review = self.words[1:2] == ("review",)
            return "review" if is_review else "exec"
        if word in _OTHER_COMMANDS:
            return word
        return "terminal"

    @property
    def images(self) -> tuple[Path, ...]:
        """The files of `--image`, absolute; a value may hold several, split by commas."""
        names: list[str] = []
        for value in self.image:
            names += value.split(",")
        return tuple(Path(name).absolute() for name in names if name)


def given_options(options: Any) -> str:
    """Name the options of an extension that were given, for messages: `--record, --replay`."""
    names = [word.partition("=")[0] for word in option_words(options)]
    return ", ".join(dict.fromkeys(names))


def checked_result(
    options: Any, method: str, value: Any, kind: type[Any], wanted: str
) -> Any:
    """Return what a method of the options of an extension has returned.

    Args:
        kind: the type that it must have.
        wanted: the type in words, for the message.

    Raises:
        ConfigError: it has another type.
    """
    if isinstance(value, kind) and not isinstance(value, bool):
        return value
    returned: Any = value
    if isinstance(value, Coroutine):
        returned.close()
    found = "None" if returned is None else type(returned).__name__
    owner: Any = options.__class__
    place = f"{owner.__module__}:{owner.__qualname__}"
    names = given_options(options) or "the options"
    raise ConfigError(
        f"{names} ({place}) cannot be used: `{method}` returned {found}, not {wanted}"
    )


def unshared_options(arguments: Arguments) -> list[str]:
    """List the options that several runs side by side cannot share, because they are for one."""
    names = [name for name in _OF_ONE_RUN if getattr(arguments, name) is not None]
    found = [option_of(name) for name in names]
    for_one = [each for each in arguments.of_extensions if not each.is_repeated]
    return [*found, *map(given_options, for_one)]


def option_words(options: Any, names: Collection[str] | None = None) -> list[str]:
    """Write the options that were given as words for another command line.

    Args:
        options: `Arguments`, or the `Options` of an extension.
        names: the fields to write. None: all of them.
    """
    words: list[str] = []
    kind: Any = options.__class__
    defaults = kind()
    for name, declared in get_type_hints(kind, include_extras=True).items():
        spellings = getattr(declared, "__metadata__", ())
        is_wanted = names is None or name in names
        if not spellings or not is_wanted:
            continue
        value = getattr(options, name)
        if value == getattr(defaults, name):
            continue
        if name == "limits":
            option = "--config"
        else:
            option = next(iter(spellings[0]))[-1]
        if value is True:
            words.append(option)
        elif isinstance(value, str | int):
            words.append(f"{option}={value}")
        else:
            words += [f"{option}={one}" for one in value]
    return words
