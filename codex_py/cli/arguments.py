"""Reading the command line of a session: one set of options for all its commands.

Codex takes some options before the command word, some after it and some on both sides of `resume`;
here each may stand anywhere, which accepts all of that. The commands themselves are the first words.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from codex_py.cli.commands import help_text
from codex_py.command_line.arguments import Arguments
from codex_py.command_line.parser import CommandParser, given, not_there_yet, suggestion
from codex_py.errors import UsageError
from codex_py.protocol.ids import is_thread_id

_NOT_YET = {"--approve-for-me", "--remote"}
"""Options of Codex that this program knows of and does not have."""

_FLAG = re.compile(r"--?[A-Za-z][\w-]*")


def parse_arguments(argv: Sequence[str]) -> Arguments:
    """Read a command line, without the name of the program.

    Raises:
        UsageError: an option is unknown, is not supported, lacks a good value, or contradicts another.
        HelpRequested: `--help` is among the options.
    """
    # Split here, because argparse forgets where the `--` was, and a prompt after it may be "resume".
    end = argv.index("--") if "--" in argv else len(argv)
    # Its name is optional, and the prompt may be the next word.
    before = ["--worktree=" if word == "--worktree" else word for word in argv[:end]]
    found, words = CommandParser(Arguments).parse_known_args(before)
    if words[1:2] == ["review"] and words[0] in {"exec", "e"}:
        # Before its options are read, which are unknown here.
        raise not_there_yet("exec review")
    for word in words:
        # argparse gives unknown options back among the words.
        if (flag := _FLAG.match(word)) and " " not in word.partition("=")[0]:
            if flag[0] in _NOT_YET:
                raise UsageError(f"{flag[0]} is not supported yet")
            # The help texts leave hidden spellings out, which are not worth suggesting.
            known = sorted(set(re.findall(r"--[a-z-]+", help_text("exec"))))
            raise UsageError(f"unknown option {flag[0]}.{suggestion(flag[0], known)}")
    options = given(found)
    images: list[str] = options.get("image", [])
    # Client libraries put `resume ID` behind the words of `--image`.
    for at, (word, thread_id) in enumerate(pairwise(images)):
        if word == "resume" and is_thread_id(thread_id):
            words += images[at : at + 2]
            del images[at : at + 2]
            break
    arguments = Arguments(words=tuple(words), literal_words=tuple(argv[end + 1 :]), **options)
    if arguments.experimental_json:
        arguments = replace(arguments, json=True)
    if arguments.record is not None and arguments.replay is not None:
        raise UsageError("--record and --replay exclude each other: a replay asks no model")
    if arguments.with_changes and arguments.worktree is None:
        raise UsageError("--with-changes has no effect without --worktree")
    return arguments
