"""Describes the state of a session, so that a later run can tell whether it is the same."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from codex_py.protocol.extension import Thread
from codex_py.protocol.messages import encode_json
from codex_py.protocol.settings import turn_context
from codex_py.rollout.reader import read_session


def session_state(thread: Thread) -> Mapping[str, Any]:
    """Return the state as JSON.

    It has the id of the `session`, its `cwd`, its `sandbox` in the form of the session file, and a
    hash of its `history`: the instructions and all items, also a call that waits for its output.

    The session must have a file, which is read.

    Raises:
        SessionError: the file cannot be read.
    """
    settings = thread.settings
    assert thread.session_file is not None
    stored = read_session(thread.session_file, leaves_open=True)
    history = sha256(encode_json(stored.meta.base_instructions))
    for item in stored.items:
        history.update(b"\n" + item)
    return {
        "session": thread.thread_id,
        "cwd": str(settings.cwd),
        "sandbox": turn_context(settings)["sandbox_policy"],
        "history": history.hexdigest(),
    }
