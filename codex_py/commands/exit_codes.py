"""`codex-py exit-codes`: the meaning of each exit code. docs/exec.md has the same table."""

from collections.abc import Mapping, Sequence
from typing import Final

from codex_py.command_line.subcommand import command_parser, print_table
from codex_py.errors import ExitCode
from codex_py.streams.standard import READER_LEFT, print_json

MEANINGS: Final[dict[int, str]] = {
    ExitCode.DONE: "done",
    ExitCode.TURN_FAILED: "the turn failed; the folder is neither trusted nor in a git repository; what a command names"
    " or needs is not there, or in use (a patch, a session, a server, a login); a file could"
    " not be read or written; `doctor` found a failure",
    ExitCode.USAGE: "the command line is wrong: an option; a folder or file that it names, or"
    " the session to go on with; no prompt,"
    " or one that cannot fit into the model's window",
    ExitCode.GATE: "a gate failed, also in the run that made a change bundle; a hook, or another"
    " extension, let no prompt go to the model, or still refused the result after its last round",
    ExitCode.SCHEMA: "the final answer breaks `--output-schema`",
    ExitCode.DENIED: "something was refused, with `--fail-on denied`",
    ExitCode.SANDBOX: "nothing on this machine can hold a command (`codex-py sandbox`), or the"
    " sandbox refused a call, with `--fail-on sandbox`",
    ExitCode.PATCH: "a patch does not fit, or not all of it",
    ExitCode.SUSPENDED: "a call waits for an approval, with `--on-approval suspend`",
    ExitCode.TURN_LIMIT: "the model was not done after `--max-turns` responses, or 1,000 in one turn; or it made the"
    " same call ten times in a row",
    ExitCode.BUDGET: "`--max-tokens` or `--max-cost` is reached",
    ExitCode.WALL_CLOCK: "`--max-time` is up",
    ExitCode.INPUT: "there is no patch in what was given, or a damaged one; a change bundle is damaged, or not"
    " signed with the key; the session to import is damaged",
    ExitCode.UNAVAILABLE: "the provider cannot be reached, or answers with a server error",
    ExitCode.TEMPORARY: "the provider asks to try later",
    ExitCode.AUTHENTICATION: "there is no key, or the provider refuses it",
    ExitCode.CONFIGURATION: "the configuration is wrong",
    129: "hung up",
    ExitCode.INTERRUPTED: "interrupted with Ctrl-C",
    READER_LEFT: "the reader of standard output went away",
    143: "terminated",
}


def run_exit_codes(argv: Sequence[str], environment: Mapping[str, str]) -> int:  # noqa: ARG001 - every command gets it
    """Print the table; the exit code."""
    options = command_parser("--json").parse_args(list(argv))
    if options.json:
        return print_json(
            [{"code": int(c), "meaning": text} for c, text in MEANINGS.items()], indent=2
        )
    return print_table((str(int(code)), text) for code, text in MEANINGS.items())
