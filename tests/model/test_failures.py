"""Also tests `model/error_body.py`."""

import json
import time
from email.utils import formatdate
from typing import Any

import pytest

from codex_py.errors import ExitCode, ModelError, StreamError
from codex_py.model.failures import http_failure, stream_failure

URL = "http://127.0.0.1/v1/responses"


def http(
    status: int,
    body: object = b"",
    headers: dict[str, str] | None = None,
    url: str = URL,
) -> ModelError:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    failure = http_failure(status, headers or {}, data, url)
    assert failure.status == status
    assert failure.retryable == isinstance(failure, StreamError)
    return failure


def retry_after_s(failure: ModelError) -> float | None:
    assert isinstance(failure, StreamError)
    return failure.retry_after_s


@pytest.mark.parametrize(
    ("status", "code", "retryable", "exit_code"),
    [
        (400, "bad_request", False, ExitCode.TURN_FAILED),
        (401, "authentication", False, ExitCode.AUTHENTICATION),
        (402, "insufficient_quota", False, ExitCode.TURN_FAILED),
        (403, "authentication", False, ExitCode.AUTHENTICATION),
        (404, "not_found", False, ExitCode.TURN_FAILED),
        (408, "request_timeout", True, ExitCode.UNAVAILABLE),
        (409, "conflict", True, ExitCode.UNAVAILABLE),
        (413, "request_too_large", False, ExitCode.TURN_FAILED),
        (418, "bad_request", False, ExitCode.TURN_FAILED),
        (422, "bad_request", False, ExitCode.TURN_FAILED),
        (429, "rate_limited", True, ExitCode.TEMPORARY),
        (500, "server_error", True, ExitCode.UNAVAILABLE),
        (503, "server_error", True, ExitCode.UNAVAILABLE),
        (529, "overloaded", True, ExitCode.TEMPORARY),
        (599, "server_error", True, ExitCode.UNAVAILABLE),
    ],
)
def test_class_of_each_status(
    status: int, code: str, retryable: bool, exit_code: ExitCode
) -> None:
    failure = http(status)
    assert (failure.code, failure.retryable) == (code, retryable)
    assert failure.exit_code is exit_code
    assert not getattr(failure, "started", False)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"error": {"message": "bad key", "type": "x", "code": "invalid_api_key"}},
            "bad key",
        ),
        (
            {"error": {"code": 401, "message": "bad key", "metadata": {"raw": "?"}}},
            "bad key",
        ),
        (
            {
                "type": "error",
                "error": {"type": "authentication_error", "message": "bad key"},
            },
            "bad key",
        ),
        (
            [
                {
                    "error": {
                        "code": 401,
                        "message": "bad key",
                        "status": "UNAUTHENTICATED",
                    }
                }
            ],
            "bad key",
        ),
        ({"error": "bad key"}, "bad key"),
        ({"message": "bad key"}, "bad key"),
        ({"detail": "bad key"}, "bad key"),
        ({"detail": [{"msg": "bad key"}]}, '[{"msg": "bad key"}]'),
        ({"error": True, "message": "bad key"}, "bad key"),
        (b"bad key\n", "bad key"),
        (b'data: {"error":{"message":"bad key"}}\n\ndata: [DONE]\n\n', "bad key"),
        (b"<!doctype html><html><title>No\n access</title><p>", "No access"),
        (b"<html><p>", "the answer is a web page"),
        (b'{"broken', '{"broken'),
        (b"null", "null"),
        (b"", "Unknown error"),
        (b"\xff\x00", "\ufffd"),
        (b"a\x1b[31m\r\nb\x9b\xe2\x80\xae", "a[31m b\ufffd"),
    ],
)
def test_the_message_is_read_from_each_shape_of_body(
    body: object, message: str
) -> None:
    assert (
        str(http(401, body))
        == f"unexpected status 401 Unauthorized: {message}, url: {URL}"
    )


def test_bad_request_is_told_in_the_words_of_the_server_with_its_address() -> None:
    assert str(http(400, {"error": {"message": "Unknown parameter: 'x'."}})) == (
        f"unexpected status 400 Bad Request: Unknown parameter: 'x'., url: {URL}"
    )
    assert (
        str(http(400))
        == f"unexpected status 400 Bad Request: Unknown error, url: {URL}"
    )


def test_message_is_bounded_and_shows_no_secret_of_the_url() -> None:
    failure = http(500, b"x" * 100_000, url="http://user:pass@127.0.0.1/v1?key=secret")
    assert len(str(failure)) < 2_200
    assert str(failure).endswith("x…, url: http://127.0.0.1/v1")
    assert str(http(599)).startswith("unexpected status 599: ")


@pytest.mark.parametrize(
    "headers", [{"x-should-retry": "false"}, {"x-should-retry": "False"}]
)
def test_server_can_forbid_a_retry(headers: dict[str, str]) -> None:
    assert not http(503, headers=headers).retryable


def test_server_can_ask_for_a_retry() -> None:
    failure = http(400, headers={"x-should-retry": "true", "retry-after": "1"})
    assert retry_after_s(failure) == 1


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            {"code": "insufficient_quota", "message": "m"},
            "Quota exceeded. Check your plan and billing details."
            f" (unexpected status 429 Too Many Requests: m, url: {URL})",
        ),
        (
            {"type": "usage_limit_reached", "plan_type": "plus", "message": "m"},
            f"You've hit your usage limit. (unexpected status 429 Too Many Requests: m, url: {URL})",
        ),
        (
            {"type": "usage_not_included", "message": "m"},
            "Your plan does not include the use of this model: upgrade it, or use an API key."
            f" (unexpected status 429 Too Many Requests: m, url: {URL})",
        ),
        (
            {"code": "credit_balance_exhausted", "message": "no money"},
            f"unexpected status 429 Too Many Requests: no money, url: {URL}",
        ),
    ],
)
def test_used_up_quota_is_final(error: dict[str, Any], message: str) -> None:
    failure = http(429, {"error": error})
    assert (failure.code, failure.retryable) == (
        error.get("code") or error["type"],
        False,
    )
    if failure.code == "usage_limit_reached":
        # A plan comes back by itself.
        assert failure.exit_code is ExitCode.TEMPORARY
    else:
        assert failure.exit_code is ExitCode.TURN_FAILED
    assert str(failure) == message


def test_a_payment_that_is_required_is_told_with_advice_and_the_words_of_the_provider() -> (
    None
):
    assert str(http(402, {"error": {"message": "Top up at the desk"}})) == (
        "Quota exceeded. Check your plan and billing details."
        f" (unexpected status 402 Payment Required: Top up at the desk, url: {URL})"
    )


def test_end_of_a_usage_limit_is_told() -> None:
    resets_at = 1_790_000_000
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(resets_at))
    failure = http(
        429, {"error": {"type": "usage_limit_reached", "resets_at": resets_at}}
    )
    assert str(failure).startswith(
        f"You've hit your usage limit. Try again at {when}. (unexpected"
    )
    unreadable = http(
        429, {"error": {"type": "usage_limit_reached", "resets_at": 1e300}}
    )
    assert str(unreadable).startswith(
        "You've hit your usage limit. (unexpected status 429"
    )


def test_overload_is_temporary_whatever_its_status() -> None:
    failure = http(503, {"error": {"code": "server_is_overloaded", "message": "m"}})
    assert (failure.code, failure.retryable) == ("server_is_overloaded", True)
    assert failure.exit_code is ExitCode.TEMPORARY
    failure = http(
        500, {"type": "error", "error": {"type": "overloaded_error", "message": "m"}}
    )
    assert (failure.code, failure.exit_code) == ("overloaded_error", ExitCode.TEMPORARY)


def test_status_decides_where_the_type_says_little() -> None:
    body = {"error": {"type": "invalid_request_error", "message": "m", "code": None}}
    assert (http(500, body).code, http(500, body).retryable) == ("server_error", True)
    assert (http(400, body).code, http(400, body).retryable) == ("bad_request", False)
    numeric = {"error": {"code": "429", "type": "throttling_error", "message": "m"}}
    assert http(429, numeric).code == "rate_limited"


@pytest.mark.parametrize(
    "message",
    [
        "Your input exceeds the context window of this model.",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "The input token count (5) exceeds the maximum number of tokens allowed (4).",
        "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
        "Please reduce the length of the messages or completion.",
        "This endpoint's maximum context length is 4096 tokens.",
        "Input length is longer than the model's context length.",
        "the request exceeds the available context size. try increasing it",
        "The number of tokens is greater than the context length.",
        "context window exceeds limit",
        "Your request exceeded model token limit: 8192",
        "Prompt is too large for model with 32768 maximum context length",
        "prompt token count of 70000 exceeds the limit of 64000",
        "prompt too long; exceeded max context length by 4 tokens",
    ],
)
def test_lack_of_room_is_known_by_its_wording(message: str) -> None:
    failure = http(
        400, {"error": {"message": message, "type": "invalid_request_error"}}
    )
    assert (failure.code, failure.retryable) == ("context_length_exceeded", False)
    assert str(failure) == f"unexpected status 400 Bad Request: {message}, url: {URL}"
    assert stream_failure({"message": message}).code == "context_length_exceeded"
    assert http(500, {"error": message}).retryable is False


@pytest.mark.parametrize(
    "message",
    [
        "too many tokens, please wait: maximum context length",
        "image exceeds the limit of 20 MB",
    ],
)
def test_other_limits_are_not_taken_for_a_lack_of_room(message: str) -> None:
    assert http(429, {"error": {"message": message}}).code == "rate_limited"


@pytest.mark.parametrize(
    ("headers", "delay_s"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "2"}, 2),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "nan"}, 7),
        ({"retry-after": "inf"}, 7),
        ({"retry-after": "soon"}, 7),
        ({"llm_provider-retry-after": "4"}, 4),
        (
            {
                "retry-after": "Fri, 20 Nov 2026 10:00:30 GMT",
                "date": "Fri, 20 Nov 2026 10:00:00 GMT",
            },
            30,
        ),
        ({"retry-after": "Fri, 20 Nov 2020 10:00:30 GMT"}, 0),
        ({"retry-after": "1, 1"}, 1),
        ({"retry-after": "1, 3"}, 3),
        ({"retry-after": "2.5, soon"}, 2.5),
        ({"retry-after": "-1, 0"}, 0),
        ({"retry-after": '"4"'}, 4),
        ({"retry-after": "3;"}, 3),
        ({"retry-after": "5s"}, 5),
        ({"retry-after": "2 seconds"}, 2),
        ({"retry-after": "100000000000000000000"}, 1e20),
        ({"retry-after-ms": "500, 700"}, 0.7),
        (
            {
                "retry-after": "Fri, 20 Nov 2026 10:00:30 GMT, Fri, 20 Nov 2026 10:00:40 GMT",
                "date": "Fri, 20 Nov 2026 10:00:00 GMT",
            },
            40,
        ),
        (
            {
                "retry-after": "50, Fri, 20 Nov 2026 10:00:30 GMT",
                "date": "Fri, 20 Nov 2026 10:00:00 GMT",
            },
            50,
        ),
        ({"retry-after": ""}, 7),
        ({}, 7),
    ],
)
def test_delay_comes_from_the_headers_before_the_message(
    headers: dict[str, str], delay_s: float
) -> None:
    body = {"error": {"message": "Please try again in 7s."}}
    assert retry_after_s(http(429, body, headers)) == delay_s


def test_date_without_a_clock_of_the_server_is_held_against_ours() -> None:
    headers = {"retry-after": formatdate(time.time() + 100, usegmt=True)}
    delay_s = retry_after_s(http(503, headers=headers))
    assert delay_s is not None
    assert 90 < delay_s <= 100


@pytest.mark.parametrize(
    ("text", "delay_s"),
    [
        ("28ms", 0.028),
        ("1.898s", 1.898),
        ("35 seconds", 35),
        ("1 second", 1),
        ("1m30s", 90),
        ("6m0s", 360),
        ("2 minutes", 120),
        ("1h2m", 3720),
        ("1 hour, 5 minutes", 3900),
        ("500 milliseconds", 0.5),
        ("a while", None),
        ("5 parsecs", None),
    ],
)
def test_delay_in_a_message_is_understood(text: str, delay_s: float | None) -> None:
    message = f"Rate limit reached for m. Please try again in {text}. Visit the site."
    failure = stream_failure({"code": "rate_limit_exceeded", "message": message})
    assert retry_after_s(failure) == (
        None if delay_s is None else pytest.approx(delay_s)
    )
    assert str(failure) == f"rate limit exceeded: {message}"


@pytest.mark.parametrize(
    ("code", "retryable", "exit_code", "message"),
    [
        (
            "context_length_exceeded",
            False,
            ExitCode.TURN_FAILED,
            "Codex ran out of room in the model's context window. "
            "Start a new thread or clear earlier history before retrying. (told so)",
        ),
        (
            "insufficient_quota",
            False,
            ExitCode.TURN_FAILED,
            "Quota exceeded. Check your plan and billing details. (told so)",
        ),
        ("invalid_prompt", False, ExitCode.TURN_FAILED, "told so"),
        ("cyber_policy", False, ExitCode.TURN_FAILED, "told so"),
        ("invalid_image_url", False, ExitCode.TURN_FAILED, "told so"),
        ("invalid_api_key", False, ExitCode.AUTHENTICATION, "told so"),
        (
            "server_is_overloaded",
            False,
            ExitCode.TEMPORARY,
            "Selected model is at capacity. Please try a different model. (told so)",
        ),
        (
            "rate_limit_exceeded",
            True,
            ExitCode.TEMPORARY,
            "rate limit exceeded: told so",
        ),
        (
            "server_error",
            True,
            ExitCode.UNAVAILABLE,
            "stream disconnected before completion: told so",
        ),
        (
            "brand_new_code",
            True,
            ExitCode.UNAVAILABLE,
            "stream disconnected before completion: told so",
        ),
    ],
)
def test_class_of_each_code_within_a_stream(
    code: str, retryable: bool, exit_code: ExitCode, message: str
) -> None:
    failure = stream_failure({"code": code, "message": "told so"})
    assert (failure.code, failure.retryable, str(failure)) == (code, retryable, message)
    assert failure.exit_code is exit_code
    assert getattr(failure, "started", True)


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (502, "server_error", True),
        (429, "rate_limited", True),
        (400, "bad_request", False),
        (401, "authentication", False),
        ("429", "rate_limited", True),
    ],
)
def test_status_in_place_of_a_code_counts_as_one(
    status: object, code: str, retryable: bool
) -> None:
    failure = stream_failure({"error": {"code": status, "message": "upstream"}})
    assert (failure.code, failure.retryable) == (code, retryable)
    assert failure.status == int(str(status))


@pytest.mark.parametrize("reported", [None, {}, [], "", {"error": None}, 7])
def test_failure_without_a_reason_has_the_words_of_the_caller(reported: object) -> None:
    failure = stream_failure(reported, fallback="it failed")
    assert str(failure) == "stream disconnected before completion: it failed"
    assert (failure.code, failure.retryable) == ("server_error", True)


@pytest.mark.parametrize(
    ("asked", "shown"), [("7200", "7200"), ("121.4", "121.4"), ("1e308", "1e+308")]
)
def test_a_wait_without_end_is_shown_in_few_digits(asked: str, shown: str) -> None:
    failure = http(429, headers={"retry-after": asked})
    assert str(failure).endswith(
        f"; the server asks to wait {shown} s before the next try"
    )


IMAGE_WORDS = "image exceeds 5 MB maximum: 5316852 bytes > 5242880 bytes"


@pytest.mark.parametrize(
    "failure",
    [
        http(413, {"error": {"message": IMAGE_WORDS}}),
        http(413, {"error": {"type": "request_too_large", "message": IMAGE_WORDS}}),
        http(413, {"error": {"code": "image_too_large", "message": "Too large"}}),
        http(413, {"detail": "pictures of more than 4 MB are not accepted"}),
        http(413, b"Payload Too Large: at most 2 images"),
        stream_failure({"type": "request_too_large", "message": IMAGE_WORDS}),
        stream_failure({"code": 413, "message": IMAGE_WORDS}),
    ],
)
def test_a_request_that_is_too_large_because_of_an_image_is_known(
    failure: ModelError,
) -> None:
    assert failure.concerns_part


@pytest.mark.parametrize(
    "failure",
    [
        http(413),
        http(413, b"<html><title>413 Request Entity Too Large</title></html>"),
        http(413, {"error": {"message": "Request exceeds the maximum size"}}),
        http(
            413, {"error": {"message": "prompt is too long: 9 images, 9 > 8 maximum"}}
        ),
        http(400, {"error": {"message": IMAGE_WORDS}}),
        stream_failure({"type": "request_too_large", "message": "Too large"}),
    ],
)
def test_other_failures_are_not_about_an_image_that_is_too_large(
    failure: ModelError,
) -> None:
    assert not failure.concerns_part
