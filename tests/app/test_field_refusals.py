"""What servers say of a request that they do not take.

Tests `app/features/field_refusals.py` and `app/features/refusals.py`.
"""

from typing import Any

import pytest

from codex_py.app.features.field_refusals import remedy
from codex_py.errors import ModelError
from codex_py.model.profile import Profile


def changed(message: str) -> Profile:
    found = remedy(ModelError(message), Profile(), may_write_calls=True)
    return Profile() if found is None else found[0]


@pytest.mark.parametrize(
    "message",
    [
        "house-model does not support tools",
        "registry.ollama.ai/library/gemma:2b does not support tools",
        "tools are not supported by this model",
        "`tools` is not supported with this model",
        "tool use is not supported",
        "No endpoints found that support tool use. To learn more about provider routing, visit:",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "tools param requires --jinja flag",
        "unknown field `tools`",
        "Unrecognized request argument supplied: tools",
        "Function calling is not supported for this model.",
        "Function call is not supported for this model.",
        "This model doesn't support tool use.",
    ],
)
def test_a_server_without_tools_is_recognised(message: str) -> None:
    assert changed(message) == Profile(tools="text")
    assert remedy(ModelError(message), Profile(), may_write_calls=False) is None
    assert (
        remedy(ModelError(message), Profile(tools="text"), may_write_calls=True) is None
    )


@pytest.mark.parametrize(
    ("message", "tool_ids"),
    [
        (
            "Invalid 'input[2].call_id': string too long. Expected a maximum length of 64",
            "openai",
        ),
        (
            "Invalid 'messages[1].tool_calls[0].id': string too long. maximum length 40",
            "openai",
        ),
        (
            "messages.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            "openai",
        ),
        (
            "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
            "mistral",
        ),
    ],
)
def test_a_server_that_refuses_the_ids_of_calls_gets_others(
    message: str, tool_ids: Any
) -> None:
    assert changed(message) == Profile(tool_ids=tool_ids)


@pytest.mark.parametrize(
    "message",
    [
        "No tool output found for function call call_1.",
        "tool_call_id 'a' not found in the messages before",
        "Invalid 'metadata.id': string too long",
    ],
)
def test_a_call_without_its_result_has_no_odd_id(message: str) -> None:
    assert changed(message) == Profile()


def test_a_server_that_refuses_the_tools_and_their_choice_has_no_tools() -> None:
    message = (
        "ollama does not support parameters: ['tools', 'tool_choice'], for model=gemma"
    )
    assert changed(message) == Profile(tools="text")


@pytest.mark.parametrize(
    "message",
    [
        "Invalid value: 'namespace'. Supported values are: 'function', 'custom' and 'web_search'.",
        "Input tag 'namespace' found using 'type' does not match any of the expected tags: 'function'",
        "'type' of tool must be 'function'",
    ],
)
def test_a_server_without_namespaces_is_recognised(message: str) -> None:
    assert changed(message) == Profile(tool_namespaces=False)
    known = Profile(tool_namespaces=False)
    assert remedy(ModelError(message), known, may_write_calls=False) is None


@pytest.mark.parametrize(
    ("message", "left_out"),
    [
        ("Unsupported parameter: 'reasoning.effort' is not supported", ["reasoning"]),
        (
            "Unsupported value: 'reasoning.effort' does not support 'xhigh'",
            ["reasoning"],
        ),
        ("Unsupported parameter: 'text.verbosity'", ["text.verbosity", "verbosity"]),
        ("Unknown parameter: 'include'.", ["include"]),
        (
            "Unrecognized request argument supplied: prompt_cache_key",
            ["prompt_cache_key"],
        ),
        ("property 'service_tier' is unsupported", ["service_tier"]),
        ("`reasoning_effort` is not supported with this model", ["reasoning_effort"]),
        (
            '[{"type":"extra_forbidden","loc":["body","stream_options"]}]',
            ["stream_options"],
        ),
        ("parallel_tool_calls is not supported", ["parallel_tool_calls"]),
        ("tool_choice is not supported by this model", ["tool_choice"]),
        (
            "thinking: Extra inputs are not permitted",
            ["thinking", "output_config.effort"],
        ),
    ],
)
def test_a_field_that_is_refused_is_recognised(
    message: str, left_out: list[str]
) -> None:
    assert changed(message) == Profile(left_out=left_out)


@pytest.mark.parametrize(
    "message",
    [
        "unexpected status 404 Not Found: no such model, url: http://tools.example/v1",
        "Invalid schema for function 'include': 'type' is missing",
        "Unsupported tool type: 'web_search'",
        "You must include a reasoning item; an empty list is not supported",
        "maximum context length is 10 tokens",
        "exceeded your current quota",
    ],
)
def test_other_failures_change_nothing(message: str) -> None:
    assert changed(message) == Profile()


def test_a_field_is_left_out_once() -> None:
    profile = Profile(left_out=["include"])
    error = ModelError("Unknown parameter: 'include'.")
    assert remedy(error, profile, may_write_calls=True) is None
