"""The official SDKs read what the scripted server answers, which says that real services answer so."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from codex_py.testing import (
    Reply,
    ev_completed,
    ev_created,
    ev_custom_tool_call,
    ev_failed,
    ev_function_call,
    ev_incomplete,
    ev_message,
    ev_reasoning,
)
from codex_py.testing.events import Event
from tests.support.server import ScriptedServer

ANSWER = [
    ev_created(),
    *ev_reasoning("Look first.", index=0),
    *ev_message("Hello there.", index=1, pieces=3),
    *ev_function_call("call_1", "shell", {"cmd": "ls"}, index=2),
    *ev_function_call("call_2", "shell", {"cmd": "pwd"}, index=3),
    *ev_custom_tool_call("call_3", "apply_patch", 'a "b"\n', index=4),
    ev_completed(input_tokens=9, cached=4, output_tokens=7),
]
PARAMETERS: Event = {"type": "object", "properties": {}}
ASKED: Event = {"role": "user", "content": "go"}


def says(*events: Any) -> list[Any]:
    return [ev_created(), *ev_message("Hello"), *events]


@pytest.fixture
def openai() -> Any:
    """Imported when it is needed: that takes seconds."""
    return pytest.importorskip("openai")


@pytest.fixture
def anthropic() -> Any:
    return pytest.importorskip("anthropic")


def openai_client(server: ScriptedServer) -> Any:
    openai = pytest.importorskip("openai")
    return openai.OpenAI(base_url=server.base_url, api_key="any", max_retries=0)


def anthropic_client(server: ScriptedServer) -> Any:
    anthropic = pytest.importorskip("anthropic")
    base_url = server.base_url.removesuffix("/v1")
    return anthropic.Anthropic(base_url=base_url, api_key="any", max_retries=0)


@contextmanager
def chat(server: ScriptedServer) -> Generator[Any]:
    """The stream of an answer in Chat Completions."""
    function = {"name": "shell", "parameters": PARAMETERS}
    with (
        openai_client(server) as client,
        client.chat.completions.stream(
            model="m",
            messages=[ASKED],
            tools=[{"type": "function", "function": function}],
            stream_options={"include_usage": True},
        ) as stream,
    ):
        yield stream


@contextmanager
def messages(server: ScriptedServer, *history: Any) -> Generator[Any]:
    """The stream of an answer in Anthropic's Messages API."""
    with (
        anthropic_client(server) as client,
        client.messages.stream(
            model="m",
            max_tokens=100,
            messages=history or [ASKED],
            tools=[{"name": "shell", "input_schema": PARAMETERS}],
        ) as stream,
    ):
        yield stream


def test_the_responses_sdk_reads_all_items():
    with (
        ScriptedServer([ANSWER]) as server,
        openai_client(server) as client,
        client.responses.stream(model="m", input=[]) as stream,
    ):
        response = stream.get_final_response()
    reasoning, text, *calls = response.output
    assert (reasoning.summary[0].text, text.content[0].text) == (
        "Look first.",
        "Hello there.",
    )
    assert [call.call_id for call in calls] == ["call_1", "call_2", "call_3"]
    assert (calls[1].arguments, calls[2].input) == ('{"cmd": "pwd"}', 'a "b"\n')
    assert response.usage.total_tokens == 16


def test_the_chat_sdk_reads_text_reasoning_and_parallel_calls():
    with ScriptedServer([ANSWER]) as server, chat(server) as stream:
        completion = stream.get_final_completion()
    (choice,) = completion.choices
    assert (choice.message.content, choice.finish_reason) == (
        "Hello there.",
        "tool_calls",
    )
    assert choice.message.reasoning_content == "Look first."
    calls = [
        (call.id, call.function.name, call.function.arguments)
        for call in choice.message.tool_calls
    ]
    assert calls == [
        ("call_1", "shell", '{"cmd": "ls"}'),
        ("call_2", "shell", '{"cmd": "pwd"}'),
        ("call_3", "apply_patch", '{"input": "a \\"b\\"\\n"}'),
    ]
    usage = completion.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (
        9,
        7,
        16,
    )
    assert usage.prompt_tokens_details.cached_tokens == 4
    assert usage.completion_tokens_details.reasoning_tokens == 5


def test_the_anthropic_sdk_reads_text_thinking_and_parallel_calls():
    with ScriptedServer([ANSWER]) as server, messages(server) as stream:
        message = stream.get_final_message()
    thinking, text, *calls = message.content
    assert (thinking.type, thinking.thinking) == ("thinking", "Look first.")
    assert thinking.signature.startswith("sig_")
    assert (text.type, text.text, message.stop_reason) == (
        "text",
        "Hello there.",
        "tool_use",
    )
    assert [(call.id, call.name, call.input) for call in calls] == [
        ("call_1", "shell", {"cmd": "ls"}),
        ("call_2", "shell", {"cmd": "pwd"}),
        ("call_3", "apply_patch", {"input": 'a "b"\n'}),
    ]
    usage = message.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (
        5,
        4,
        7,
    )


def test_the_rules_let_through_what_the_anthropic_sdk_sends_back():
    with ScriptedServer([ANSWER, says(ev_completed())]) as server:
        with messages(server) as stream:
            content = stream.get_final_message().content
        calls = [block.id for block in content if block.type == "tool_use"]
        results = [
            {"type": "tool_result", "tool_use_id": call, "content": "ok"}
            for call in calls
        ]
        said = {"role": "assistant", "content": content}
        with messages(
            server, ASKED, said, {"role": "user", "content": results}
        ) as stream:
            assert stream.get_final_text() == "Hello"


def test_the_sdks_see_an_answer_that_was_cut_off(openai: Any):
    script = says(ev_incomplete())
    with ScriptedServer([script, script]) as server:
        with chat(server) as stream, pytest.raises(openai.LengthFinishReasonError):
            stream.get_final_completion()
        with messages(server) as stream:
            assert stream.get_final_message().stop_reason == "max_tokens"


def test_the_sdks_raise_a_failure_within_a_stream(openai: Any, anthropic: Any):
    script = says(ev_failed("server_is_overloaded", "Busy."))
    with ScriptedServer([script, script]) as server:
        with (
            chat(server) as stream,
            pytest.raises(openai.APIError, match="Busy") as from_chat,
        ):
            stream.until_done()
        with (
            messages(server) as stream,
            pytest.raises(anthropic.APIStatusError) as from_messages,
        ):
            stream.until_done()
    assert from_chat.value.code == "server_is_overloaded"
    assert from_messages.value.body["error"] == {
        "type": "overloaded_error",
        "message": "Busy.",
    }


def test_the_sdks_raise_a_status(openai: Any, anthropic: Any):
    body = b'{"error": {"message": "Slow down.", "type": "x", "code": null}}'
    reply = Reply(status=429, body=body)
    with ScriptedServer([reply, reply]) as server:
        with pytest.raises(openai.RateLimitError, match="Slow down"), chat(server):
            pass
        with pytest.raises(anthropic.RateLimitError) as raised, messages(server):
            pass
    assert raised.value.body["error"]["type"] == "rate_limit_error"


def test_the_sdks_raise_a_broken_rule(anthropic: Any):
    server = ScriptedServer()
    server.start()
    wrong = {"role": "assistant", "content": "hm"}
    with (
        pytest.raises(anthropic.BadRequestError, match="first message"),
        messages(server, wrong),
    ):
        pass
    with pytest.raises(AssertionError, match="first message"):
        server.close()


def test_openai_reads_a_whole_response(openai: Any) -> None:
    with ScriptedServer([ANSWER]) as server, openai_client(server) as client:
        response = client.responses.create(model="m", input=[])
    assert response.output_text == "Hello there."
    assert [item.type for item in response.output][-1] == "custom_tool_call"
    assert response.usage.total_tokens == 16


def test_openai_reads_a_whole_completion(openai: Any) -> None:
    with ScriptedServer([ANSWER]) as server, openai_client(server) as client:
        completion = client.chat.completions.create(
            model="m", messages=[ASKED], stream=False
        )
    (choice,) = completion.choices
    assert (choice.message.role, choice.message.content) == (
        "assistant",
        "Hello there.",
    )
    assert choice.finish_reason == "tool_calls"
    first, second, _ = choice.message.tool_calls
    assert (first.id, first.function.arguments) == ("call_1", '{"cmd": "ls"}')
    assert (second.type, second.function.name) == ("function", "shell")
    assert completion.usage.prompt_tokens_details.cached_tokens == 4


def test_anthropic_reads_a_whole_message(anthropic: Any) -> None:
    with ScriptedServer([ANSWER]) as server, anthropic_client(server) as client:
        message = client.messages.create(model="m", max_tokens=9, messages=[ASKED])
    thinking, text, first, second, _ = message.content
    assert (thinking.thinking, text.text) == ("Look first.", "Hello there.")
    assert thinking.signature
    assert (first.id, first.input, second.input) == (
        "call_1",
        {"cmd": "ls"},
        {"cmd": "pwd"},
    )
    assert (message.stop_reason, message.usage.output_tokens) == ("tool_use", 7)


def test_an_error_in_a_stream_is_one_of_http_without_it(
    openai: Any, anthropic: Any
) -> None:
    failure = ev_failed("server_error", "oh")
    with ScriptedServer([says(failure)] * 2) as server:
        with openai_client(server) as client, pytest.raises(openai.InternalServerError):
            client.chat.completions.create(model="m", messages=[ASKED])
        with (
            anthropic_client(server) as client,
            pytest.raises(anthropic.InternalServerError),
        ):
            client.messages.create(model="m", max_tokens=9, messages=[ASKED])
