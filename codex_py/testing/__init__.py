"""A scripted model for tests and demonstrations: a fake for an `Agent`, and a server that plays it in any API.

    answer = Agent(FakeModel(call("exec_command", cmd="ls"), "done")).run_sync("What is here?").text

`FakeModel` needs no network, no key and no home. The server takes events of the Responses API:

    with ScriptedServer([[*ev_function_call("call_1", "exec_command", {"cmd": "ls"}), ev_completed()],
                         [*ev_message("done"), ev_completed()]]) as server:
        (home / "config.toml").write_text(server.config_toml())
        environment = {**os.environ, "CODEX_HOME": str(home), "MOCK_KEY": "any"}
        ...  # run the program, or `load_config` and `open_session`, with this environment

The server answers at `…/responses`, `…/chat/completions` and `…/messages`; `config_toml(wire_api="chat")` has
codex-py ask there; clients that ask with `stream=false` get JSON. It listens on 127.0.0.1 alone.
"""

from codex_py.testing.events import ev_completed as ev_completed
from codex_py.testing.events import ev_created as ev_created
from codex_py.testing.events import ev_custom_tool_call as ev_custom_tool_call
from codex_py.testing.events import ev_failed as ev_failed
from codex_py.testing.events import ev_function_call as ev_function_call
from codex_py.testing.events import ev_incomplete as ev_incomplete
from codex_py.testing.events import ev_item_done as ev_item_done
from codex_py.testing.events import ev_local_shell_call as ev_local_shell_call
from codex_py.testing.events import ev_message as ev_message
from codex_py.testing.events import ev_reasoning as ev_reasoning
from codex_py.testing.events import ev_text_deltas as ev_text_deltas
from codex_py.testing.events import ev_web_search_call as ev_web_search_call
from codex_py.testing.events import sse as sse
from codex_py.testing.fake_model import FakeModel as FakeModel
from codex_py.testing.fake_model import call as call
from codex_py.testing.reply import Pause as Pause
from codex_py.testing.reply import Reply as Reply
from codex_py.testing.request import RecordedRequest as RecordedRequest
from codex_py.testing.rules import Refusal as Refusal
from codex_py.testing.rules import Rules as Rules
from codex_py.testing.rules import pairing_problem as pairing_problem
from codex_py.testing.rules import prefix_problem as prefix_problem
from codex_py.testing.script import ScriptedModel as ScriptedModel
from codex_py.testing.server import ScriptedServer as ScriptedServer
