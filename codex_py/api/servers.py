"""Servers that a package adds: a session for another program, in the server's own protocol.

The package adds a command, as `api.commands` says, whose function serves until the client leaves:

    def run(options: None, environment: Mapping[str, str]) -> int:
        return run_server("chat", lambda rpc: ChatServer(rpc, environment), jsonrpc="2.0")

`run_server` connects a `JsonRpc` to standard input and output, and asks a `Service` for the answers:

- Requests begin in the order in which they arrive, and run side by side. Each gets one answer.
  An `RpcError` becomes its error; any other exception is a bug, which costs this request alone.
- Messages are sent in the order of the calls. A client that does not read misses live
  notifications first; later it counts as gone.
- When the client leaves, open requests are cancelled, and the service is closed.

`JsonRpc` also serves other streams, and `ServedThread` needs no JSON-RPC.

A `ServedThread` holds one session. The server makes a subclass, whose `show` sends what an `Event`
becomes; `events` and `event_items` have their classes, and `event_json` is the form that
`codex-py exec --json` prints. Its docstring says how a server is written. In short, it promises:

- One turn runs at a time, and the others wait in the order of their beginning. A protocol may let a
  prompt join the running turn instead, or refuse it.
- Each turn that begins has one terminal event. A `ServedTurn` can be waited for at its beginning
  and at its end, and raises a `TurnAborted` if it was cancelled before it began.
- A cancellation is for the turns so far. When they have ended, no command of theirs runs.
- Notices are sent in order, and can wait until a request is answered.
- A closed session is opened again for its next turn, with its conversation and its choices.

`ServedThreads` finds threads by their ids, and closes the sessions that were used longest ago.

An `Approver` asks the client's user about a call. `offered_answers` returns the answers to a
request, each with an id and a label, and `answer_by_id` reads the user's choice: an answer that was
not offered means no. A server that cannot ask has no approver, and such calls are refused. An
`Elicitor` asks the questions of MCP servers and of the model. Both are cancelled when the question
is withdrawn.
"""

from codex_py.app.approval_answers import (
    ApprovalAnswer,
    answer_by_id,
    offered_answers,
)
from codex_py.app.json_rpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    JsonRpc,
    RpcError,
    Service,
)
from codex_py.app.options import SessionOptions
from codex_py.app.served_thread import ServedThread, ServedTurn
from codex_py.app.served_threads import ServedThreads
from codex_py.app.session import Session, TurnResult
from codex_py.command_line.serving import run_server
from codex_py.config.config import Config, load_config
from codex_py.errors import CodexError, TurnAborted
from codex_py.protocol import event_items, events
from codex_py.protocol.approval import ApprovalRequest, Approver, Review
from codex_py.protocol.event_data import event_json
from codex_py.protocol.events import Event
from codex_py.protocol.mcp import (
    Elicitation,
    ElicitationAnswer,
    Elicitor,
    UserQuestion,
)

__all__ = [
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "ApprovalAnswer",
    "ApprovalRequest",
    "Approver",
    "CodexError",
    "Config",
    "Elicitation",
    "ElicitationAnswer",
    "Elicitor",
    "Event",
    "JsonRpc",
    "Review",
    "RpcError",
    "ServedThread",
    "ServedThreads",
    "ServedTurn",
    "Service",
    "Session",
    "SessionOptions",
    "TurnAborted",
    "TurnResult",
    "UserQuestion",
    "answer_by_id",
    "event_items",
    "event_json",
    "events",
    "load_config",
    "offered_answers",
    "run_server",
]
