"""Standard output and standard error, and text that is safe for a terminal.

An `OutputStream` keeps a failure for its owner instead of raising it: `READER_LEFT` is the exit code
if the reader of standard output has left. `some_of` lists the first of many names, `shortened` cuts a
text in the middle, and `cut` its end. `printable` replaces control characters,
and `on_one_line` line breaks too. `aligned` makes the lines of a table. `command_text` makes the message of a
workflow command of GitHub Actions.
"""

from codex_py.errors import CodexError
from codex_py.protocol.calls import shortened
from codex_py.streams.plain_text import cut
from codex_py.streams.standard import READER_LEFT, OutputStream, print_out, tell
from codex_py.streams.terminal import aligned, on_one_line, printable, some_of
from codex_py.streams.workflow_commands import command_text

__all__ = [
    "READER_LEFT",
    "CodexError",
    "OutputStream",
    "aligned",
    "command_text",
    "cut",
    "on_one_line",
    "print_out",
    "printable",
    "shortened",
    "some_of",
    "tell",
]
