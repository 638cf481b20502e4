"""What providers say, and what the table of their wordings makes of it."""

import json
import re
from itertools import product
from typing import Any

import pytest

from codex_py.errors import ModelError
from codex_py.model.failures import http_failure
from codex_py.model.wordings import (
    Wording,
    is_too_long,
    may_be_too_long,
    means,
    stated_limit,
    wordings,
)

ROWS = wordings()


def of(*meanings: str) -> list[Wording]:
    return [row for row in ROWS if row.meaning in meanings]


def failure(body: object, status: int = 400) -> ModelError:
    return http_failure(status, {}, json.dumps(body).encode(), "http://x/v1")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.meaning}-{row.provider}")
def test_each_row_fits_its_own_example(row: Wording) -> None:
    assert re.search(f"(?is){row.pattern}", row.example)


@pytest.mark.parametrize("row", of("too_long", "no_room"), ids=lambda row: row.provider)
def test_each_example_of_a_lack_of_room_is_one(row: Wording) -> None:
    assert (
        failure({"error": {"message": row.example}}).code == "context_length_exceeded"
    )


@pytest.mark.parametrize(
    "row", of("throttled", "other", "no_tools", "no_images", "bad_schema")
)
def test_no_other_example_is_a_lack_of_room(row: Wording) -> None:
    assert not failure({"error": {"message": row.example}}).is_too_long


def in_envelopes(message: str) -> list[object]:
    """The body as gateways wrap it."""
    inner = {"error": {"message": message, "type": "invalid_request_error"}}
    text = json.dumps(inner)
    return [
        inner,
        [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}],
        {"error": message},
        {"message": message},
        {"detail": message},
        {
            "detail": [
                {"loc": ["body", "messages"], "msg": message, "type": "value_error"}
            ]
        },
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {"raw": text},
            }
        },
        {"error": {"message": "Provider returned error", "metadata": {"raw": message}}},
        {"error": {"message": f"litellm.BadRequestError: AnthropicException - {text}"}},
        {"error": {"message": text, "type": "BadRequestError", "code": "400"}},
        {"errors": [{"message": message}]},
        {"__type": "ValidationException", "message": message},
        {"statusCode": 400, "body": text},
        {
            "error": {
                "code": "BadRequest",
                "message": "see inner",
                "innererror": {"message": message},
            }
        },
    ]


@pytest.mark.parametrize(
    "message",
    [
        "Input is too long for requested model.",
        "Prompt exceeds max length",
        "the input length exceeds the context length",
        "litellm.ContextWindowExceededError",
    ],
)
def test_a_lack_of_room_is_known_behind_every_envelope(message: str) -> None:
    for body in in_envelopes(message):
        assert failure(body).code == "context_length_exceeded", body


def test_the_user_reads_what_the_service_behind_a_gateway_says() -> None:
    raw = json.dumps({"error": {"message": "Invalid schema for function 'x'"}})
    body = {"error": {"message": "Provider returned error", "metadata": {"raw": raw}}}
    assert "Provider returned error: Invalid schema for function 'x'" in str(
        failure(body)
    )


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for m",
        "max_tokens must be at least 1",
        "Invalid value for max_tokens: must be greater than 0",
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
        "Rate limit reached on tokens per minute (TPM): Limit 6000, Requested 7000",
        "You exceeded your current quota, please check your plan",
        "exceeded the token limit of 40000 tokens per minute",
        "Too many tokens, please wait before trying again.",
        "Invalid 'metadata.title': string too long. Expected a string with maximum length 512",
        "Invalid 'tools[3].function.name': string too long. Expected a maximum length of 64",
        "Invalid 'user': string too long. Expected a string with maximum length 64",
        "Invalid 'input[2].call_id': string too long. Expected a string with maximum length 64",
        "input length must be > 0",
        "messages: at least one message is required; the prompt may not be empty",
        "This request requires more credits, or fewer max_tokens. You can only afford 11000.",
        "`max_tokens` must be greater than `thinking.budget_tokens`",
        "image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes",
        "Invalid schema for function 'get': maximum depth exceeded",
    ],
)
def test_limits_of_something_else_are_neither_a_lack_of_room_nor_taken_for_one(
    message: str,
) -> None:
    assert not is_too_long(message)
    assert not may_be_too_long(message)
    assert not failure({"error": {"message": message}}).may_be_too_long


@pytest.mark.parametrize(
    "message",
    [
        "The conversation is bigger than 65536 units: it exceeds what we serve",
        "request has 90000 tokens; limit 32768",
        "messages over the allowance, shorten them",
        "maximum sequence 8192",
        "input 90000 > 32768",
        "",
    ],
)
def test_unknown_words_about_a_size_may_mean_a_lack_of_room(message: str) -> None:
    refused = failure({"error": {"message": message}}) if message else failure("")
    assert not refused.is_too_long
    assert refused.may_be_too_long or not message
    assert may_be_too_long(message)


@pytest.mark.parametrize(
    ("message", "limit"),
    [
        (
            "This model's maximum context length is 32768 tokens. You requested 40000.",
            32768,
        ),
        ("prompt is too long: 213462 tokens > 200000 maximum", 200_000),
        (
            "the model's context length is only 131072 tokens, resulting in a maximum input",
            131_072,
        ),
        ("Range of input length should be [1, 98304]", 98_304),
        ("Input is too long for requested model.", None),
        ("Rate limit: maximum context length is 4096, please wait", None),
    ],
)
def test_the_window_is_learned_from_the_words_of_the_provider(
    message: str, limit: int | None
) -> None:
    assert stated_limit(message) == limit
    assert failure({"error": {"message": message}}).limit_tokens == limit


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens must be at least 1, got -5000. (parameter=max_tokens, value=-5000)",
        "max_tokens must be at least 1, got -1.",
        "max_completion_tokens must be positive, received -12",
        "`max_new_tokens` must be strictly positive, but got -7312",
        "Invalid max_output_tokens: -40",
        "max_tokens should be greater than 0 (value: -5000)",
        "1 validation error: max_tokens must be > 0 [input_value=-300]",
    ],
)
def test_less_than_nothing_left_for_the_answer_is_a_lack_of_room(message: str) -> None:
    assert is_too_long(message)
    assert failure({"error": {"message": message}}).code == "context_length_exceeded"


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens must be at least 1, got 0",
        "max_tokens must be -1 or at least 1",
        "max_tokens: must be one of (-1 or a positive number)",
        "temperature must be at least 0, got -5000",
        "max_tokens must be in the range 1-8192",
        "rate limit reached: max_tokens got -5",
    ],
)
def test_other_numbers_below_one_are_none(message: str) -> None:
    assert not is_too_long(message)


@pytest.mark.parametrize(
    ("message", "limit"),
    [
        (
            "The decoder prompt (length 40000) is longer than the maximum model length of"
            " 32768. Make sure that `max_model_len` is no smaller than the number of tokens.",
            32768,
        ),
        (
            "The encoder prompt (length 1,000) is longer than the maximum model length of 512",
            512,
        ),
        (
            "The prompt (total length 40000) is too long to fit into the model (context"
            " length 32768). Make sure that `max_num_batched_tokens` is no smaller.",
            32768,
        ),
        ("Input prompt (40000 tokens) is too long and exceeds limit of 32768", 32768),
        ("Input prompt (9 tokens) is too long and exceeds the capacity of m", None),
        ("prompt length (9000) should not exceed max_num_tokens (8192)", 8192),
        ("Prompt length 9000 is greater than max_seq_len 8192", 8192),
        ("max_tokens: 8192 + input 195000 > 200000", 200_000),
        ("max_tokens: 8192 + 195000 > 200000", 200_000),
    ],
)
def test_local_servers_say_what_fits(message: str, limit: int | None) -> None:
    assert is_too_long(message)
    assert stated_limit(message) == limit


NO_TOOLS = [
    "Function call is not supported for this model.",
    "tool calls are not supported",
    "This model doesn't support tool use in streaming mode.",
    "`tool calling` is not supported with this model",
    "Function calling is not enabled for models/gemma-3-27b-it",
    "The model does not support function calling.",
    "functions are not supported",
    "该模型不支持 Function Call",
    "model: llama does not support tools",
]


def test_a_model_without_tools_is_known_behind_every_envelope() -> None:
    for message, place in product(NO_TOOLS, range(14)):
        body = in_envelopes(message)[place]
        assert means("no_tools", failure(body).words), body


@pytest.mark.parametrize(
    "message",
    [
        "parallel tool calls are not supported",
        "tool_choice is not supported by this model",
        "Unsupported tool type: 'web_search'",
        "Unknown parameter: 'tools[0].function.strict'.",
        "tools.17.custom.input_schema: JSON schema is invalid",
    ],
)
def test_an_error_about_a_part_of_the_tools_is_no_lack_of_tools(message: str) -> None:
    assert not means("no_tools", message)


@pytest.mark.parametrize(
    "message",
    [
        "At most 0 image(s) may be provided in one prompt.",
        "image input is not supported - hint: if this is unexpected, provide the mmproj",
        "No endpoints found that support image input",
        "Model do not support image input. Request id: 1",
        "unknown variant `image_url`, expected `text`",
        "messages[2].content must be a string",
        "This model does not support images",
        "Invalid content type. image_url is only supported by certain models.",
    ],
)
def test_a_model_without_images_is_known(message: str) -> None:
    assert means("no_images", message)


@pytest.mark.parametrize(
    "message",
    [
        "Could not process image",
        "This model does not support the image format image/bmp",
        "image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes",
        "At most 20 image(s) may be provided in one prompt.",
        "unsupported image format",
    ],
)
def test_an_error_about_one_image_says_nothing_of_the_model(message: str) -> None:
    assert means("image", message)
    assert not means("no_images", message)


def test_words_of_any_length_are_read_in_no_time() -> None:
    texts: list[Any] = ["exceeds the " * 5_000, "input " * 10_000, "tools " * 10_000]
    for text in texts:
        assert not is_too_long(text)
        may_be_too_long(text)
        means("no_tools", text)
