"""What the command line of a session asks for, as values. `cli/arguments.py` reads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from codex_py.frontends.command_parser import UsageError


@dataclass(frozen=True, slots=True)
class Arguments:
    """The words and options of a command. Paths are as the user wrote them."""

    words: tuple[str, ...] = ()
    """The command and its arguments: all that is neither an option nor a value of one."""
    literal_words: tuple[str, ...] = ()
    """The words after `--`, none of which is a command or an option."""
    version: bool = False

    overrides: Sequence[str] = ()
    """`key=value`, weakest first; `--enable`, `--disable` and `--search` are among them."""
    model: str | None = None
    profile: str | None = None
    sandbox: Literal["read-only", "workspace-write", "danger-full-access"] | None = None
    bypass: bool = False
    """Neither sandbox nor approvals."""
    full_auto: bool = False
    approval: str | None = None
    oss: bool = False
    local_provider: str | None = None
    strict_config: bool = False
    ignore_user_config: bool = False
    ignore_rules: bool = False
    allow_unenforced: Sequence[str] = ()
    """Names of protections to start without."""

    cd: str | None = None
    add_dir: Sequence[str] = ()
    skip_git_repo_check: bool = False
    trust: bool = False

    image: Sequence[str] = ()
    output_schema: str | None = None
    output_last_message: str | None = None
    json: bool = False
    experimental_json: bool = False
    """The spelling of the SDKs of Codex; `json` is set too."""
    color: Literal["always", "never", "auto"] = "auto"
    fail_on: Literal["denied"] | None = None

    ephemeral: bool = False
    last: bool = False
    all: bool = False
    record: str | None = None
    replay: str | None = None

    bypass_hook_trust: bool = False
    """This option of Codex has no effect, as the ones below."""
    no_alt_screen: bool = False
    no_daemon: bool = False
    thread_source: str | None = None
    cyber_access_program: str | None = None


@dataclass(frozen=True, slots=True)
class ExecTarget:
    """The prompt of `exec`, and the session that it continues."""

    prompt: str | None
    """None, or `-` if the user asked for standard input."""
    resume: str | None = None
    """Id or name of a thread."""
    resume_last: bool = False
    resume_all: bool = False
    """With `resume_last`: sessions of any folder count."""


def exec_target(words: Sequence[str], arguments: Arguments) -> ExecTarget:
    """Read the words after `exec`: `[PROMPT]`, or `resume [SESSION] [PROMPT]`.

    Raises:
        UsageError: there are too many words or too few, or a command that is not supported.
    """
    command, *rest = words or ("",)
    if command in {"fork", "review"}:
        raise UsageError(f"`exec {command}` is not supported yet")
    if command != "resume":
        if arguments.last or arguments.all:
            raise UsageError("--last and --all belong to `exec resume`")
        return ExecTarget(_only([*words, *arguments.literal_words]))
    rest += arguments.literal_words
    if arguments.last:
        return ExecTarget(_only(rest), resume_last=True, resume_all=arguments.all)
    if not rest:
        raise UsageError("say which session to resume: its id, its name, or --last")
    return ExecTarget(_only(rest[1:]), resume=rest[0])


@dataclass(frozen=True, slots=True)
class TerminalTarget:
    """What the interactive terminal begins with."""

    prompt: str | None = None
    resume: str | None = None
    """Id or name of a thread."""
    resume_last: bool = False
    resume_all: bool = False
    pick: bool = False
    """Let the user choose a thread."""
    fork: bool = False
    """Continue a copy of the thread."""


def terminal_target(arguments: Arguments) -> TerminalTarget:
    """Read `[PROMPT]`, `resume [SESSION] [PROMPT]` or `fork [SESSION] [PROMPT]`.

    Raises:
        UsageError: there are too many words.
    """
    words = arguments.words
    if not words or words[0] not in {"resume", "fork"}:
        if arguments.last or arguments.all:
            raise UsageError("--last and --all belong to `resume` and `fork`")
        return TerminalTarget(_only([*words, *arguments.literal_words]))
    rest = [*words[1:], *arguments.literal_words]
    fork = words[0] == "fork"
    if arguments.last:
        return TerminalTarget(_only(rest), resume_last=True, resume_all=arguments.all, fork=fork)
    if not rest:
        return TerminalTarget(pick=True, resume_all=arguments.all, fork=fork)
    return TerminalTarget(_only(rest[1:]), resume=rest[0], fork=fork)


def _only(words: Sequence[str]) -> str | None:
    if len(words) > 1:
        raise UsageError(f"unexpected argument {words[1]!r}; put quotes around the prompt")
    return words[0] if words else None
