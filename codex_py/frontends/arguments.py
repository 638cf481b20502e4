"""The command line as a value: one set of options for every command, wherever an option stands.

Codex takes some options before the command word, some after it and some on both sides of `resume`;
here each may stand anywhere, which accepts all of that. The commands themselves are the first words.
"""

import argparse
import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Literal, NoReturn

from codex_py.config.features import FEATURES
from codex_py.errors import CodexError, ConfigError, ExitCode
from codex_py.protocol.ids import is_thread_id

_NOT_YET = {"--worktree", "--approve-for-me", "--remote"}
"""Options of Codex that this program knows of and does not have."""

_FLAG = re.compile(r"--?[A-Za-z][\w-]*")


class UsageError(CodexError):
    """The command line can not be understood."""

    code = "usage"
    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class Arguments:
    """What was asked for. Paths are as they were written."""

    words: tuple[str, ...] = ()
    """Everything that is no option and no value of one: the command, then what it takes."""
    literal_words: tuple[str, ...] = ()
    """Words after `--`, where nothing is a command or an option."""
    help: bool = False
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
    bypass_hook_trust: bool = False
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
    """Asked for by the spelling of the SDKs of Codex; `json` is set too."""
    color: Literal["always", "never", "auto"] = "auto"
    fail_on: Literal["denied"] | None = None

    no_alt_screen: bool = False
    """What happens anyway, as the next."""
    no_daemon: bool = False

    ephemeral: bool = False
    last: bool = False
    all: bool = False
    record: str | None = None
    replay: str | None = None
    thread_source: str | None = None
    cyber_access_program: str | None = None


def parse_arguments(argv: Sequence[str]) -> Arguments:
    """Read a command line, without the name of the program.

    Raises:
        UsageError: an option is unknown, not there yet, lacks a good value, or contradicts another.
    """
    # Split by hand: argparse forgets where the `--` was, and a prompt after it may be "resume".
    end = argv.index("--") if "--" in argv else len(argv)
    parser = exec_parser()
    found, words = parser.parse_known_args(list(argv[:end]))
    for word in words:
        # argparse gives unknown options back among the words.
        if (
            word.startswith("-")
            and (flag := _FLAG.match(word))
            and " " not in word.partition("=")[0]
        ):
            raise UsageError(_unknown_option(flag[0]))
    images: list[str] = vars(found).get("image", [])
    if (at := _resumed_among(images)) is not None:
        words += images[at : at + 2]
        del images[at : at + 2]
    arguments = Arguments(words=tuple(words), literal_words=tuple(argv[end + 1 :]), **vars(found))
    if arguments.experimental_json:
        arguments = replace(arguments, json=True)
    if arguments.record is not None and arguments.replay is not None:
        raise UsageError("--record and --replay exclude each other: a replay asks no model")
    return arguments


def _resumed_among(images: Sequence[str]) -> int | None:
    """Where `resume ID` stands among the words of `--image`: client libraries put it behind them."""
    pairs = enumerate(pairwise(images))
    return next((at for at, pair in pairs if pair[0] == "resume" and is_thread_id(pair[1])), None)


@dataclass(frozen=True, slots=True)
class ExecTarget:
    """What `exec` is to work on."""

    prompt: str | None
    """None, or `-` where standard input was asked for by name."""
    resume: str | None = None
    """Id or name of a thread."""
    resume_last: bool = False
    resume_all: bool = False
    """With `resume_last`: sessions of any folder count."""


def exec_target(words: Sequence[str], arguments: Arguments) -> ExecTarget:
    """What follows `exec`: `[PROMPT]`, or `resume [SESSION] [PROMPT]`.

    Raises:
        UsageError: there are too many words or too few, or a command that is not there yet.
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
    """Have the user choose a thread."""
    fork: bool = False
    """Go on with a copy."""


def terminal_target(arguments: Arguments) -> TerminalTarget:
    """What `[PROMPT]`, `resume [SESSION] [PROMPT]` or `fork [SESSION] [PROMPT]` asks for.

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


def suggestion(word: str, known: Sequence[str]) -> str:
    """` Did you mean …?` for the nearest known word, or an empty string."""
    # Loaded on the way to an error alone: 4 ms.
    from difflib import get_close_matches  # noqa: PLC0415

    near = get_close_matches(word, known, n=1, cutoff=0.6)
    return f" Did you mean {near[0]}?" if near else ""


def exec_parser() -> argparse.ArgumentParser:
    """Every option. Help texts are in `frontends.help`, defaults in `Arguments`."""
    parser = CommandParser(argument_default=argparse.SUPPRESS)
    add = parser.add_argument
    add("-h", "--help", action="store_true")
    add("-V", "--version", action="store_true")

    add_overrides(parser)
    add("--search", dest="overrides", action="append_const", const='web_search="live"')
    add("-m", "--model")
    add("-p", "--profile")
    add("-s", "--sandbox", type=_one_of("read-only", "workspace-write", "danger-full-access"))
    add("--dangerously-bypass-approvals-and-sandbox", "--yolo", dest="bypass", action="store_true")
    add("--full-auto", action="store_true")
    add(
        "-a",
        "--ask-for-approval",
        dest="approval",
        type=_one_of("untrusted", "on-failure", "on-request", "never"),
    )
    add("--oss", action="store_true")
    add("--local-provider", type=_one_of("lmstudio", "ollama"))
    add("--strict-config", action="store_true")
    add("--ignore-user-config", action="store_true")
    add("--ignore-rules", action="store_true")
    add("--dangerously-bypass-hook-trust", dest="bypass_hook_trust", action="store_true")
    add("--allow-unenforced", type=protection, action="append")

    add("-C", "--cd")
    add("--add-dir", action="append")
    add("--skip-git-repo-check", action="store_true")
    add("--trust", action="store_true")

    # Takes every word up to the next option, a prompt too, because Codex does.
    add("-i", "--image", nargs="+", action="extend")
    add("--output-schema")
    add("-o", "--output-last-message")
    add("--json", action="store_true")
    add("--experimental-json", action="store_true")
    add("--color", type=_one_of("always", "never", "auto"))
    add("--fail-on", type=_one_of("denied"))

    add("--no-alt-screen", action="store_true")
    add("--no-daemon", action="store_true")

    add("--ephemeral", action="store_true")
    add("--last", action="store_true")
    add("--all", action="store_true")
    add("--record")
    add("--replay")
    add("--thread-source")
    add("--cyber-access-program", type=_one_of("standard", "daybreak_blue", "daybreak_red"))
    return parser


def add_overrides(parser: argparse.ArgumentParser) -> None:
    """The options of Codex that every command takes, as `overrides`: `key=value`, weakest first."""
    add = parser.add_argument
    add("-c", "--config", dest="overrides", action="append")
    add("--enable", dest="overrides", action="append", type=_feature("true"))
    add("--disable", dest="overrides", action="append", type=_feature("false"))


def first_word(argv: Sequence[str], with_value: Container[str]) -> int:
    """Where the first word stands that is no option and no value of one; `--` counts as one.

    `with_value`: the options that take the next word.
    """
    index = 0
    while index < len(argv) and argv[index].startswith("-") and argv[index] != "--":
        index += 2 if argv[index] in with_value else 1
    return min(index, len(argv))


class CommandParser(argparse.ArgumentParser):
    """Raises `UsageError` where the parsers of the standard library leave the program.

    Every option is one of ours: there are no abbreviations, and no help text that is made of them.
    """

    def __init__(self, *, argument_default: str | None = None) -> None:
        super().__init__(
            add_help=False,
            allow_abbrev=False,
            argument_default=argument_default,
            # It is asked for each option, and without a width imports `shutil` to find it: 2 ms.
            formatter_class=partial(argparse.HelpFormatter, width=80),
        )

    def error(self, message: str) -> NoReturn:
        raise UsageError(message.removeprefix("argument "))


def _one_of(*allowed: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value not in allowed:
            names = ", ".join(allowed)
            raise argparse.ArgumentTypeError(f"{value!r} is not a possible value: {names}")
        return value

    return check


def protection(name: str) -> str:
    """An argument of `--allow-unenforced`, for `argparse`. A name with a mistake in it would accept nothing."""
    # Only where the option is given; what has no configuration to read does without.
    from codex_py.config.unenforced import PROTECTION_NAMES  # noqa: PLC0415

    return _one_of(*PROTECTION_NAMES)(name)


def _feature(value: str) -> Callable[[str], str]:
    def setting(name: str) -> str:
        if name not in FEATURES:
            raise ConfigError(f"unknown feature {name!r}.{suggestion(name, sorted(FEATURES))}")
        return f"features.{name}={value}"

    return setting


def _unknown_option(flag: str) -> str:
    if flag in _NOT_YET:
        return f"{flag} is not supported yet"
    # What the help texts name is what is worth suggesting: they leave hidden spellings out.
    from codex_py.frontends.help import EXEC, TOP  # noqa: PLC0415

    known = sorted(set(re.findall(r"--[a-z-]+", EXEC + TOP)))
    return f"unknown option {flag}.{suggestion(flag, known)}"
