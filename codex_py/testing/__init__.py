"""A scripted model for tests and demonstrations: a fake for an `Agent`, and a server that plays it in any API.

    answer = Agent(FakeModel(call("exec_command", cmd="ls"), "done")).run_sync("What is here?").text

`FakeModel` needs no network, no key and no home. A server plays the same script to programs:

    with ScriptedServer([call("exec_command", cmd="ls"), "done"]) as server:
        (home / "config.toml").write_text(server.config_toml())
        environment = {**os.environ, "CODEX_HOME": str(home), "MOCK_KEY": "any"}
        ...  # run the program, or `load_config` and `open_session`, with this environment

A reply may also be a list of events of the Responses API, such as
`[*ev_custom_tool_call("call_1", "apply_patch", patch), ev_completed()]`.

The server answers at `…/responses`, `…/chat/completions` and `…/messages`.
`config_toml(wire_api="chat")` lets codex-py use Chat Completions. Clients that ask with
`stream=false` get JSON. The server listens on 127.0.0.1 alone.
"""

from codex_py.testing.events import (
    ev_completed,
    ev_created,
    ev_custom_tool_call,
    ev_failed,
    ev_function_call,
    ev_incomplete,
    ev_item_done,
    ev_local_shell_call,
    ev_message,
    ev_reasoning,
    ev_text_deltas,
    ev_web_search_call,
    sse,
)
from codex_py.testing.fake_model import FakeModel
from codex_py.testing.lines import call
from codex_py.testing.reply import Pause, Reply
from codex_py.testing.request import RecordedRequest
from codex_py.testing.rules import Refusal, Rules, pairing_problem, prefix_problem
from codex_py.testing.script import ScriptedModel
from codex_py.testing.server import ScriptedServer

__all__ = [
    "FakeModel",
    "Pause",
    "RecordedRequest",
    "Refusal",
    "Reply",
    "Rules",
    "ScriptedModel",
    "ScriptedServer",
    "call",
    "ev_completed",
    "ev_created",
    "ev_custom_tool_call",
    "ev_failed",
    "ev_function_call",
    "ev_incomplete",
    "ev_item_done",
    "ev_local_shell_call",
    "ev_message",
    "ev_reasoning",
    "ev_text_deltas",
    "ev_web_search_call",
    "pairing_problem",
    "prefix_problem",
    "sse",
]
