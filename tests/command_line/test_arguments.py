"""Also tests `command_line/target.py`.

Also tests `command_line/parsing.py`.
"""

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pytest

from codex_py.cli.commands import COMMANDS, find_command
from codex_py.cli.help_pages import help_text
from codex_py.command_line import arguments as arguments_module
from codex_py.command_line.arguments import Arguments, option_words, unshared_options
from codex_py.command_line.extension_options import session_parser
from codex_py.command_line.options import Options
from codex_py.command_line.parser import flag, option
from codex_py.command_line.parsing import parse_arguments
from codex_py.command_line.target import SessionTarget, exec_target, terminal_target
from codex_py.errors import UsageError
from codex_py.registry import own_texts

THREAD = "0199a213-81c0-7800-8aa1-bbab2a035a53"


def parse_exec(*argv: str) -> tuple[Arguments, SessionTarget]:
    arguments = parse_arguments(["exec", *argv])
    return arguments, exec_target(arguments)


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["exec"], Arguments(words=("exec",))),
        (
            ["exec", "-"],
            Arguments(
                words=(
                    "exec",
                    "-",
                )
            ),
        ),
        (
            ["-m", "x", "exec", "hi"],
            Arguments(
                words=(
                    "exec",
                    "hi",
                ),
                model="x",
            ),
        ),
        (
            ["exec", "hi", "-m", "x"],
            Arguments(
                words=(
                    "exec",
                    "hi",
                ),
                model="x",
            ),
        ),
        (["exec", "-mx", "--model=y"], Arguments(words=("exec",), model="y")),
        (
            [
                "exec",
                "-c",
                "a=1",
                "--enable",
                "goals",
                "--disable",
                "apps",
                "--search",
                "-c",
                "b=x=y",
            ],
            Arguments(
                words=("exec",),
                overrides=[
                    "a=1",
                    "features.goals=true",
                    "features.apps=false",
                    'web_search="live"',
                    "b=x=y",
                ],
            ),
        ),
        (
            ["-c", "a=1", "exec", "-c", "b=2"],
            Arguments(words=("exec",), overrides=["a=1", "b=2"]),
        ),
        (["exec", "--yolo"], Arguments(words=("exec",), bypass=True)),
        (
            ["exec", "--dangerously-bypass-approvals-and-sandbox"],
            Arguments(words=("exec",), bypass=True),
        ),
        (
            ["exec", "--experimental-json"],
            Arguments(words=("exec",), json=True, experimental_json=True),
        ),
        # An image takes every word up to the next option, as in Codex: the prompt too.
        (
            ["exec", "-i", "a.png", "hi"],
            Arguments(words=("exec",), image=["a.png", "hi"]),
        ),
        # Not so in Codex: the client `openai-codex-sdk` continues a thread with an image this way.
        (
            ["exec", "--json", "-i", "a.png", "--image", "b.png", "resume", THREAD],
            Arguments(
                words=("exec", "resume", THREAD), image=["a.png", "b.png"], json=True
            ),
        ),
        (
            ["exec", "-i", "resume", "a"],
            Arguments(words=("exec",), image=["resume", "a"]),
        ),
        (
            ["exec", "-i", "a.png,b.png", "-i", "c.png", "--", "hi"],
            Arguments(
                words=("exec",), literal_words=("hi",), image=["a.png,b.png", "c.png"]
            ),
        ),
        (
            ["exec", "--", "--json"],
            Arguments(words=("exec",), literal_words=("--json",)),
        ),
        (
            ["exec", "- first\n- second"],
            Arguments(
                words=(
                    "exec",
                    "- first\n- second",
                )
            ),
        ),
        (
            ["exec", "-5 degrees"],
            Arguments(
                words=(
                    "exec",
                    "-5 degrees",
                )
            ),
        ),
        (
            ["exec", "--add-dir", "a", "--add-dir", "b"],
            Arguments(words=("exec",), add_dir=["a", "b"]),
        ),
        (["-a", "never", "exec"], Arguments(words=("exec",), approval="never")),
    ],
)
def test_options_stand_anywhere(argv: list[str], expected: Arguments) -> None:
    assert parse_arguments(argv) == expected


def test_the_typescript_sdk_is_understood() -> None:
    # The order in which @openai/codex-sdk 0.163 writes its options.
    arguments, target = parse_exec(
        *(
            "--experimental-json",
            "--config",
            'a.b="c"',
            "--config",
            'openai_base_url="http://x"',
        ),
        *(
            "--model",
            "m",
            "--thread-source",
            "user",
            "--sandbox",
            "workspace-write",
            "--cd",
            "/r",
        ),
        *(
            "--add-dir",
            "/a",
            "--add-dir",
            "/b",
            "--skip-git-repo-check",
            "--output-schema",
            "/s",
        ),
        *(
            "--cyber-access-program",
            "standard",
            "--config",
            'model_reasoning_effort="high"',
        ),
        *("--config", "sandbox_workspace_write.network_access=true"),
        *("--config", 'web_search="live"', "--config", 'approval_policy="never"'),
        *("resume", THREAD, "--image", "/1.png", "--image", "/2"),
    )
    assert target == SessionTarget(None, resume=THREAD)
    assert arguments == Arguments(
        words=(
            "exec",
            "resume",
            THREAD,
        ),
        overrides=[
            'a.b="c"',
            'openai_base_url="http://x"',
            'model_reasoning_effort="high"',
            "sandbox_workspace_write.network_access=true",
            'web_search="live"',
            'approval_policy="never"',
        ],
        model="m",
        thread_source="user",
        sandbox="workspace-write",
        cd="/r",
        add_dir=["/a", "/b"],
        skip_git_repo_check=True,
        output_schema="/s",
        cyber_access_program="standard",
        json=True,
        experimental_json=True,
        image=["/1.png", "/2"],
    )


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ([], SessionTarget(None)),
        (["hi"], SessionTarget("hi")),
        (["-"], SessionTarget("-")),
        (["--", "resume"], SessionTarget("resume")),
        (["resume", "ID"], SessionTarget(None, resume="ID")),
        (["resume", "ID", "--json", "hi"], SessionTarget("hi", resume="ID")),
        (["resume", "ID", "--", "--hi"], SessionTarget("--hi", resume="ID")),
        (["resume", "--last"], SessionTarget(None, resume_last=True)),
        (
            ["resume", "--last", "--all"],
            SessionTarget(None, resume_last=True, resume_all=True),
        ),
        (["resume", "--last", "-m", "x", "hi"], SessionTarget("hi", resume_last=True)),
        (
            ["-s", "read-only", "resume", "hi", "--last"],
            SessionTarget("hi", resume_last=True),
        ),
    ],
)
def test_words_after_exec_say_what_to_work_on(
    argv: list[str], expected: SessionTarget
) -> None:
    assert parse_exec(*argv)[1] == expected


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--jsn"], "unknown option --jsn. Did you mean --json?"),
        (["--sandbx=read-only"], "unknown option --sandbx. Did you mean --sandbox?"),
        (["-Z"], "unknown option -Z."),
        (["--with-changes"], "--with-changes has no effect without --worktree"),
        (
            ["--worktree=../up"],
            "--worktree: '../up' cannot name a folder here; use letters, digits, `.`, `_` and `-`",
        ),
        (["--remote"], "--remote is not supported yet"),
        (
            ["-s", "foo"],
            "-s/--sandbox: 'foo' is not a possible value:"
            " read-only, workspace-write, danger-full-access",
        ),
        (["-m"], "-m/--model: expected one argument"),
        (
            ["-c"],
            "-c/--config: expected one argument: KEY=VALUE; to continue a session, use"
            " `codex-py resume`",
        ),
        (["-p"], "-p/--profile: expected one argument: the name of a profile"),
        (
            ["-s"],
            "-s/--sandbox: expected one argument:"
            " read-only, workspace-write, danger-full-access",
        ),
        (["--verify="], "--verify: it is empty"),
        (["--forbid-path", ""], "--forbid-path: it is empty"),
        (["--require-evidence="], "--require-evidence: it is empty"),
        (["--json=yes"], "--json: ignored explicit argument 'yes'"),
        (["fix", "it"], "unexpected argument 'it'; put quotes around the prompt"),
        (["resume"], "say which session to resume: its id, its name, or --last"),
        (
            ["resume", "--last", "a", "b"],
            "unexpected argument 'b'; put quotes around the prompt",
        ),
        (["--last", "hi"], "--last and --all belong to `exec resume` and `exec fork`"),
        (["fork"], "say which session to fork: its id, its name, or --last"),
        (["--base", "main", "hi"], "--base belongs to `codex-py review`"),
        (["--fail-on", "p1", "hi"], "--fail-on p1 belongs to `codex-py review`"),
        (
            ["--enable", "gols"],
            "Unknown feature flag: gols. Did you mean goals? `codex-py features list` shows all.",
        ),
        (
            ["--enable", "x9"],
            "Unknown feature flag: x9. `codex-py features list` shows all.",
        ),
    ],
)
def test_mistakes_are_told_in_a_sentence(argv: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_exec(*argv)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("argv", "advice"),
    [
        (
            ["--dangerously-skip-permissions"],
            "Use --dangerously-bypass-approvals-and-sandbox",
        ),
        (["--resume"], "codex-py exec resume SESSION"),
        (["--continue"], "codex-py exec resume --last"),
        (["--effort", "high"], "-c model_reasoning_effort=high"),
        (["--print"], "codex-py exec PROMPT"),
        (["--max-budget-usd=2"], "--max-cost USD"),
        (["--timeout", "5"], "--max-time TIME"),
        (["--output-format", "json"], "Use --json"),
        (["--allowedTools", "Bash"], "rules for commands"),
        (["--provider", "x"], "-m PROVIDER/MODEL"),
        (["--yes-always"], "-a never"),
        (["--approval-mode=auto_edit"], "-s"),
        (["--append-system-prompt", "x"], "developer_instructions"),
        (["--cwd", "/"], "-C DIR"),
        (["-r"], "codex-py exec resume SESSION"),
        (["-y"], "-a never"),
        (["-v"], "codex-py --version"),
        (["-w"], "--worktree"),
        (["--sandbox-mode", "read-only"], "-s"),
        (["--model-provider", "x"], "-m PROVIDER/MODEL"),
        (["--no-git"], "--skip-git-repo-check"),
        (["--map-tokens", "1024"], "no map of the repository"),
        (["--no-auto-commits"], "commits nothing"),
        (["--no-color"], "--color never"),
        (["--list-models"], "codex-py models list"),
        (["--acp"], "codex-py acp"),
        (["--permission-prompt-tool", "x"], "--on-approval suspend"),
        (["--bare"], "--ignore-user-config"),
    ],
)
def test_options_of_other_agents_are_answered_with_what_does_the_same(
    argv: list[str], advice: str
) -> None:
    with pytest.raises(UsageError) as caught:
        parse_exec(*argv)
    name = argv[0].partition("=")[0]
    assert str(caught.value).startswith(f"unknown option {name}. ")
    assert advice in str(caught.value)
    assert "Did you mean" not in str(caught.value)


def test_advice_for_other_agents_names_only_what_there_is() -> None:
    of_program = Path(arguments_module.__file__).with_name("foreign_options.txt")
    texts = [of_program.read_text(encoding="utf-8"), *own_texts("foreign_options.txt")]
    lines = [line for text in texts for line in text.splitlines()]
    rows = [line.split(" | ") for line in lines if line and line[0] != "#"]
    own = set(session_parser()._option_string_actions)  # pyright: ignore[reportPrivateUsage]
    foreign = [name for names, _ in rows for name in names.split(", ")]
    assert len(foreign) == len(set(foreign))
    assert own.isdisjoint(foreign)
    for _, advice in rows:
        assert advice.endswith(".")
        assert set(re.findall(r"--[a-z][a-z-]+", advice)) <= own
        for command in re.findall(r"`codex-py ([a-z]+)", advice):
            assert find_command(command), command


@pytest.mark.parametrize(
    "name",
    [
        "--verbos",
        "--colour-scheme",
        "--source",
        "--turns",
        "--frob",
        "--cd-dir",
        "--logon",
        "--exec",
    ],
)
def test_an_option_that_is_unlike_every_known_one_gets_no_suggestion(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_exec(name)
    assert str(caught.value) == f"unknown option {name}."


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("--modle", "--model"),
        ("--verfy", "--verify"),
        ("--ouput-schema", "--output-schema"),
        ("--skip-git-check", "--skip-git-repo-check"),
        ("--max-turn", "--max-turns"),
        ("--ephemral", "--ephemeral"),
        ("--jsno", "--json"),
        ("--colour", "--color"),
    ],
)
def test_a_mistyped_option_is_suggested(typed: str, meant: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_exec(typed)
    assert str(caught.value) == f"unknown option {typed}. Did you mean {meant}?"


@pytest.mark.parametrize(
    "name",
    [
        "--dangerously-bypass-approvals",
        "--dangerously-bypass-approvals-and-sandbx",
        "--dangerously-bypass-hooks-trust",
        "--yol",
        "--ful-auto",
        "--exprimental",
        "--experimental-jsn",
    ],
)
def test_no_spelling_leads_to_an_option_without_protection_or_in_no_help(
    name: str,
) -> None:
    with pytest.raises(UsageError) as caught:
        parse_exec(name)
    assert str(caught.value) == f"unknown option {name}."


@pytest.mark.parametrize("argv", [["--ephemeral"], ["--json"]])
def test_the_terminal_refuses_options_that_it_would_ignore(argv: list[str]) -> None:
    with pytest.raises(UsageError, match=r"^--[a-z]+ needs `codex-py exec`$"):
        terminal_target(parse_arguments(argv))


def test_help_names_every_option_and_no_other() -> None:
    hidden = {"--yolo", "--experimental-json"}
    # They have options that `exec` has not.
    commands = ("exec", "mcp-server", "app-server", "review")
    text = "".join(map(help_text, commands))
    named = set(re.findall(r"(?<![\w-])--?[A-Za-z][a-z-]*", text)) - {
        "-py",
        "-reply",
        "-server",
    }
    accepted = {
        flag
        for line in session_parser().format_help().splitlines()
        for flag in re.findall(r"(?<![\w-])--?[A-Za-z][a-z-]*", line)
    }
    assert named == accepted - hidden


@pytest.mark.parametrize("word", ["", *(command.names[0] for command in COMMANDS)])
def test_help_fits_a_terminal(word: str) -> None:
    assert max(map(len, help_text(word).splitlines())) <= 80


def test_an_absent_feature_need_not_be_switched_off() -> None:
    found = parse_arguments(["--no-alt-screen", "--no-daemon"])
    assert (found.no_alt_screen, found.no_daemon) == (True, True)


def test_options_are_words_again() -> None:
    argv = [
        "exec",
        "-m",
        "gpt",
        "-s",
        "read-only",
        "--json",
        "--verify",
        "a b",
        "--verify=c",
    ]
    arguments = parse_arguments([*argv, "-c", "a=1", "--max-tokens", "2k", "--yolo"])
    names = {field.name for field in dataclasses.fields(arguments)} - {"words"}
    words = option_words(arguments, names)
    for options in arguments.of_extensions:
        words += option_words(options)
    assert parse_arguments(["exec", *words]) == dataclasses.replace(
        arguments, overrides=["a=1", "budget.max_tokens=2000"], limits=()
    )


class ShoutOptions(Options):
    shout_words: Annotated[int | None, option("--shout-words", type=int)] = None
    shout_at: Annotated[Sequence[str], option("--shout-at", action="append")] = ()
    loud: Annotated[bool, flag("--loud")] = False


def test_options_of_an_extension_are_words_again() -> None:
    options = ShoutOptions(shout_words=2, shout_at=["a b", "c"], loud=True)
    options.kept_for_later = 1  # pyright: ignore[reportAttributeAccessIssue] -- a method may do so
    assert option_words(options) == [
        "--shout-words=2",
        "--shout-at=a b",
        "--shout-at=c",
        "--loud",
    ]
    assert option_words(options, {"loud"}) == ["--loud"]
    assert option_words(ShoutOptions()) == []


class FileOptions(Options):
    is_repeated = False

    words_file: Annotated[str | None, option("--words-file")] = None


def test_options_for_one_run_are_named() -> None:
    arguments = parse_arguments(["exec", "--model", "m", "-o", "x"])
    options = (ShoutOptions(loud=True), FileOptions(words_file="w"))
    arguments = dataclasses.replace(arguments, of_extensions=options)
    assert unshared_options(arguments) == [
        "--output-last-message",
        "--words-file",
    ]


def test_the_order_of_the_words_means_nothing_to_extensions() -> None:
    options = ["--on-approval=suspend", "--approve-for-me"]
    found = parse_arguments(["exec", *options]).of_extensions
    again = parse_arguments(["exec", *reversed(options)]).of_extensions
    assert len(found) == 2
    assert list(map(type, found)) == list(map(type, again))


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["exec", "go"], "exec"),
        (["e", "resume", "x"], "exec"),
        (["exec", "review"], "review"),
        (["review", "--uncommitted"], "review"),
        (["acp"], "acp"),
        (["go"], "terminal"),
        (["resume", "x"], "terminal"),
        (["--", "exec"], "terminal"),
        ([], "terminal"),
    ],
)
def test_the_first_words_are_the_command(argv: list[str], command: str) -> None:
    assert parse_arguments(argv).command == command


@pytest.mark.parametrize("option", ["--deny", "--allow-domain"])
def test_an_empty_pattern_is_a_mistake_of_the_command_line(option: str) -> None:
    with pytest.raises(UsageError, match=f"^{option}: it is empty$"):
        parse_arguments(["exec", option, "", "hi"])
