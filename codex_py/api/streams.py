"""Standard output and standard error, and text that is safe for a terminal.

An `OutputStream` keeps a failure for its owner instead of raising it: `READER_LEFT` is the exit code
if the reader of standard output has left. `some_of` lists the first of many names, `shortened` cuts a
text in the middle, and `cut` its end. `on_one_line` replaces control characters and line breaks.
"""

from codex_py.errors import CodexError
from codex_py.protocol.calls import shortened
from codex_py.streams.plain_text import cut
from codex_py.streams.standard import READER_LEFT, OutputStream, print_out, tell
from codex_py.streams.terminal import on_one_line, some_of

__all__ = [
    "READER_LEFT",
    "CodexError",
    "OutputStream",
    "cut",
    "on_one_line",
    "print_out",
    "shortened",
    "some_of",
    "tell",
]
