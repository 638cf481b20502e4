"""Prints the meaning of each exit code: `codex-py exit-codes`. docs/exec.md has the same table."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from codex_py.command_line.subcommand import command_parser
from codex_py.streams.standard import print_json, print_table


def meanings() -> dict[int, str]:
    """Read the meaning of each exit code from `exit_codes.txt`, which has a line for each."""
    table = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    found: dict[int, str] = {}
    for line in table.splitlines():
        code, _, text = line.partition(" ")
        found[int(code)] = text
    return found


def run_exit_codes(
    argv: Sequence[str],
    environment: Mapping[str, str],  # noqa: ARG001 - every command gets it
) -> int:
    """Print the table of exit codes, or JSON with `--json`. Returns this command's exit code."""
    options = command_parser("--json").parse_args(list(argv))
    table = meanings().items()
    if options.json:
        rows = [{"code": code, "meaning": text} for code, text in table]
        return print_json(rows, indent=2)
    return print_table((str(code), text) for code, text in table)
