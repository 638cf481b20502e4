"""The files of sessions, those of Codex too.

`find_session` finds the file of a session by its id or name, and `read_meta` reads its first line:
the id, the folder, the provider and the commit at its start. `turn_starts` reads its prompts with their
times and models; `title_of` shortens a prompt. `thread_names` has the names that users gave. A file
that cannot be read raises a `SessionError`, or an `OSError` where a function says so.
"""

from codex_py.errors import SessionError
from codex_py.rollout.index import find_session, thread_names
from codex_py.rollout.listing import ListedTurn, title_of, turn_starts
from codex_py.rollout.records import SessionMeta, read_meta

__all__ = [
    "ListedTurn",
    "SessionError",
    "SessionMeta",
    "find_session",
    "read_meta",
    "thread_names",
    "title_of",
    "turn_starts",
]
