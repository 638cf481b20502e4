"""The files of sessions, those of Codex too.

`find_session` finds the file of a session by its id or name, and `named_session` the one that a command
line means, which may say `--last`. `files_of_thread` yields all files of one id. `read_meta` reads the first
line: the id, the folder, the provider and the commit at its start. `turn_starts` reads its prompts with
their times and models; `title_of` shortens a prompt. `thread_names` has the names that users gave. A file
that cannot be read raises a `SessionError`, or an `OSError` where a function says so.

A new file needs an id of `new_thread_id`, and `session_path` says where it belongs. No line may have more
than `MAX_LINE_BYTES`. `rename_thread` gives the session a name. `thread_id_of` and `home_of` read the id in
the name of a file, and the `$CODEX_HOME` that it is in.
"""

from codex_py.command_line.named_session import named_session
from codex_py.errors import SessionError
from codex_py.protocol.ids import is_thread_id, new_thread_id
from codex_py.rollout.index import (
    files_of_thread,
    find_session,
    rename_thread,
    thread_names,
)
from codex_py.rollout.listing import ListedTurn, title_of, turn_starts
from codex_py.rollout.records import (
    MAX_LINE_BYTES,
    SessionMeta,
    home_of,
    read_meta,
    session_path,
    thread_id_of,
)

__all__ = [
    "MAX_LINE_BYTES",
    "ListedTurn",
    "SessionError",
    "SessionMeta",
    "files_of_thread",
    "find_session",
    "home_of",
    "is_thread_id",
    "named_session",
    "new_thread_id",
    "read_meta",
    "rename_thread",
    "session_path",
    "thread_id_of",
    "thread_names",
    "title_of",
    "turn_starts",
]
