"""Sessions, beside what `Thread` tells about the one of a feature.

`session_state` describes a session with a file, so that a later run can tell whether it is the same.
"""

from codex_py.app.session_state import session_state

__all__ = ["session_state"]
