"""What was said in a session, in words and as data.

`saved_conversation` reads a `Conversation` from the file of a session; `find_session` of
`api.session_files` finds the file. Its `items` are those of `api.slash_commands`.

`entries` makes an `Entry` of each item: a title, a remark, and parts that are a `Text` or a `Diff`. Their
texts cannot control a terminal or hide text. A `Diff` has a `ShownFile` for each file, with its
`DiffLine`s. For Markdown, `fenced` makes a block of code, and `closed` ends one that a text leaves open.

`item_data` and `plain_data` return items and other values as JSON has them; `exec --json` prints the
same.
"""

from codex_py.app.views.conversation import Conversation, saved_conversation
from codex_py.app.views.diffs import DiffLine, ShownFile
from codex_py.app.views.entries import Diff, Entry, Part, Text, entries
from codex_py.app.views.fences import closed, fenced
from codex_py.protocol.event_data import item_data, plain_data

__all__ = [
    "Conversation",
    "Diff",
    "DiffLine",
    "Entry",
    "Part",
    "ShownFile",
    "Text",
    "closed",
    "entries",
    "fenced",
    "item_data",
    "plain_data",
    "saved_conversation",
]
