import json
import re
import subprocess
import sys
from typing import Any

import pytest

from codex_py.model.profile import Profile
from codex_py.model.responses.wire import ResponsesWire
from codex_py.protocol.messages import EncodedItem, encode_json, input_text, message
from codex_py.protocol.stream import Prompt, Wire
from codex_py.protocol.tools import FreeformSpec, FunctionSpec, HostedSpec

HELLO = message("user", [input_text("hello")])


def test_a_bare_prompt_makes_the_smallest_body() -> None:
    body = ResponsesWire().body(Prompt(model="m", input=[HELLO], cache_key="thread"))
    assert json.loads(body) == {
        "model": "m",
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "thread",
        "input": [json.loads(HELLO)],
    }


def test_a_prompt_with_everything_makes_the_largest_body() -> None:
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: line"}
    tools: list[dict[str, Any]] = [
        {
            "type": "function",
            "name": "shell",
            "description": "Run.",
            "strict": False,
            "parameters": {},
        },
        {
            "type": "custom",
            "name": "apply_patch",
            "description": "Edit.",
            "format": grammar,
        },
        {"type": "web_search", "filters": []},
    ]
    body = ResponsesWire().body(
        Prompt(
            model="m",
            input=[],
            cache_key="thread",
            tools=[
                FunctionSpec("shell", "Run.", {}),
                FreeformSpec("apply_patch", "Edit.", "start: line"),
                HostedSpec("web_search", {"filters": []}),
            ],
            parallel_tool_calls=False,
            reasoning={"effort": "high"},
            verbosity="low",
            output_schema=False,
            service_tier="fast",
        )
    )
    assert json.loads(body) == {
        "model": "m",
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "thread",
        "reasoning": {"effort": "high"},
        "text": {
            "verbosity": "low",
            "format": {
                "type": "json_schema",
                "strict": True,
                "name": "codex_output_schema",
                "schema": False,
            },
        },
        "service_tier": "priority",
        "tools": tools,
        "input": [],
    }


def test_other_service_tiers_go_out_as_they_are() -> None:
    prompt = Prompt(model="m", input=[], cache_key="t", service_tier="flex")
    assert json.loads(ResponsesWire().body(prompt))["service_tier"] == "flex"


def test_items_are_copied_and_a_longer_prompt_begins_with_the_shorter() -> None:
    odd = EncodedItem(b'{ "type":"news", "n": 1.0 }')
    short = ResponsesWire().body(Prompt(model="m", input=[HELLO, odd], cache_key="t"))
    long = ResponsesWire().body(
        Prompt(model="m", input=[HELLO, odd, HELLO], cache_key="t")
    )
    assert odd in short
    assert long.startswith(short.removesuffix(b"]}"))


def test_wire_is_made_and_used_without_pydantic() -> None:
    wire: Wire = ResponsesWire()
    assert wire.path == "/responses"
    program = (
        "import sys\n"
        "import codex_py.model.failures, codex_py.http.sse\n"
        "from codex_py.model.responses.wire import ResponsesWire\n"
        "from codex_py.protocol.stream import Prompt\n"
        "ResponsesWire().body(Prompt(model='m', input=[], cache_key='t'))\n"
        "prompt = Prompt(model='m', input=[], cache_key='t')\n"
        'ResponsesWire().decoder(prompt).feed(\'{"type": "response.created"}\')\n'
        "assert 'pydantic' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def called(name: str, call_id: str) -> list[EncodedItem]:
    """A call and its output, as the history has them."""
    call = {
        "type": "function_call",
        "name": name,
        "arguments": "{}",
        "call_id": call_id,
    }
    output = {"type": "function_call_output", "call_id": call_id, "output": "x"}
    return [EncodedItem(encode_json(call)), EncodedItem(encode_json(output))]


@pytest.mark.parametrize(
    "name", ["a b", "functions.exec", "naïve", "n" * 200, 'q"', ""]
)
def test_a_name_that_no_server_takes_is_mapped(name: str) -> None:
    body = json.loads(ResponsesWire().body(Prompt("m", called(name, "c1"), "t")))
    sent = body["input"][0]["name"]
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", sent)


def test_ids_of_calls_are_mapped_for_a_server_that_wants_it() -> None:
    odd = "c" * 100 + "|x"
    items = [*called("a", odd), *called("a", "good"), *called("a", odd)]
    wire = ResponsesWire(profile=Profile(tool_ids="openai"))
    sent = json.loads(wire.body(Prompt("m", items, "t")))["input"]
    ids = [item["call_id"] for item in sent]
    assert ids[::2] == ids[1::2]
    assert len(set(ids)) == 3
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", call_id) for call_id in ids)
    assert ids[2] == "good"
    longer = json.loads(wire.body(Prompt("m", [*items, HELLO], "t")))["input"]
    assert longer[:-1] == sent
    verbatim = json.loads(ResponsesWire().body(Prompt("m", items, "t")))["input"]
    assert verbatim == [json.loads(item) for item in items]


def test_the_tools_of_a_request_are_those_that_it_offers() -> None:
    wire = ResponsesWire()
    shell = FunctionSpec("shell", "Run.", {})
    tools = [shell]

    def sent() -> list[str]:
        body = wire.body(Prompt(model="m", input=[], cache_key="t", tools=tools))
        return [tool["description"] for tool in json.loads(body).get("tools", [])]

    assert sent() == sent() == ["Run."]
    # Also if the list itself is another one now.
    tools.append(FunctionSpec("look", "Look.", {}))
    assert sent() == ["Run.", "Look."]
    tools[:] = [FunctionSpec("shell", "Run it.", {})]
    assert sent() == ["Run it."]
    tools.clear()
    assert sent() == []
    tools.append(shell)
    assert sent() == ["Run."]
