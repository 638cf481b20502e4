"""Decides for a failed request if it may be retried, what message the user gets, and how the
program exits.

The `code` of an error is the server's own if it has one, else one of these:

    code                      when                                             exit code
    authentication            HTTP 401, 403                                    AUTHENTICATION
    insufficient_quota        HTTP 402                                         TURN_FAILED
    not_found                 HTTP 404                                         TURN_FAILED
    request_timeout           HTTP 408                                         UNAVAILABLE
    conflict                  HTTP 409                                         UNAVAILABLE
    request_too_large         HTTP 413                                         TURN_FAILED
    rate_limited              HTTP 429                                         TEMPORARY
    bad_request               any other 4xx                                    TURN_FAILED
    overloaded                HTTP 529                                         TEMPORARY
    server_error              any other 5xx; a stream that reports no name     UNAVAILABLE
    context_length_exceeded   the wording says so, whatever else the server    TURN_FAILED
                              calls it

If the server's code is known here, it decides the exit code too. Messages are those of Codex 0.169
where it has one. Failures are final or retryable as in the SDKs of OpenAI and Anthropic, and within
a stream as in Codex.
"""

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum, auto
from http import HTTPStatus

from codex_py.errors import QUOTA_CODES, ExitCode, ModelError, StreamError
from codex_py.model.error_body import (
    ServerError,
    body_error,
    plain_line,
    retry_after_s,
    server_error,
)
from codex_py.model.retry import MAX_SERVER_DELAY_S
from codex_py.model.wordings import (
    is_too_long,
    may_be_too_long,
    means,
    stated_limit,
)

MAX_ITEMS = 2_000
"""The limit of items in one response, and of parts in one item: each takes far more memory than its
bytes."""


class _Kind(Enum):
    CONTEXT = auto()
    QUOTA = auto()
    USAGE_LIMIT = auto()
    """The share of a plan for some hours is used up, and comes back by itself."""
    AUTHENTICATION = auto()
    REQUEST = auto()
    """The request itself is wrong, and fails again if it is sent again."""
    CAPACITY = auto()
    """Codex gives up if a stream reports this; the SDKs retry the HTTP status that belongs to
    it."""
    OVERLOAD = auto()
    RATE_LIMIT = auto()
    TRANSIENT = auto()


_RETRYABLE = {_Kind.OVERLOAD, _Kind.RATE_LIMIT, _Kind.TRANSIENT}

_EXIT_CODES = {
    _Kind.AUTHENTICATION: ExitCode.AUTHENTICATION,
    _Kind.CAPACITY: ExitCode.TEMPORARY,
    _Kind.OVERLOAD: ExitCode.TEMPORARY,
    _Kind.RATE_LIMIT: ExitCode.TEMPORARY,
    _Kind.USAGE_LIMIT: ExitCode.TEMPORARY,
    _Kind.TRANSIENT: ExitCode.UNAVAILABLE,
}

_NAMES = {
    _Kind.CONTEXT: "context_length_exceeded",
    _Kind.QUOTA: " ".join(QUOTA_CODES),
    _Kind.USAGE_LIMIT: "usage_limit_reached",
    _Kind.AUTHENTICATION: "authentication_error permission_error invalid_api_key",
    _Kind.REQUEST: "invalid_request_error invalid_prompt invalid_value invalid_encrypted_content "
    "not_found_error model_not_found previous_response_not_found request_too_large "
    "unsupported_value unsupported_parameter unknown_parameter data_residency_mismatch "
    "cyber_policy bio_policy misalignment_policy_violation image_content_policy_violation "
    "invalid_image invalid_image_format invalid_base64_image invalid_image_url invalid_image_mode "
    "image_too_large image_too_small image_parse_error image_file_too_large image_file_not_found "
    "empty_image_file unsupported_image_media_type",
    _Kind.CAPACITY: "server_is_overloaded slow_down",
    _Kind.OVERLOAD: "overloaded_error",
    _Kind.RATE_LIMIT: "rate_limit_exceeded rate_limit_error",
}
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names.split()}

_STATUSES = {
    401: ("authentication", _Kind.AUTHENTICATION),
    402: ("insufficient_quota", _Kind.QUOTA),
    403: ("authentication", _Kind.AUTHENTICATION),
    404: ("not_found", _Kind.REQUEST),
    408: ("request_timeout", _Kind.TRANSIENT),
    409: ("conflict", _Kind.TRANSIENT),
    413: ("request_too_large", _Kind.REQUEST),
    429: ("rate_limited", _Kind.RATE_LIMIT),
    529: ("overloaded", _Kind.OVERLOAD),
}

_AT_CAPACITY = "Selected model is at capacity. Please try a different model."
_WORDING = {
    "context_length_exceeded": "Codex ran out of room in the model's context window. "
    "Start a new thread or clear earlier history before retrying.",
    "insufficient_quota": "Quota exceeded. Check your plan and billing details.",
    "usage_not_included": "Your plan does not include the use of this model: "
    "upgrade it, or use an API key.",
    "usage_limit_reached": "You've hit your usage limit.",
    "server_is_overloaded": _AT_CAPACITY,
    "slow_down": _AT_CAPACITY,
}
_MAY_BE_TOO_LONG = {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}
"""The HTTP statuses with which unknown words may mean that the request is too long."""
_FINAL = {_Kind.QUOTA, _Kind.USAGE_LIMIT, _Kind.CONTEXT}
"""The kinds that are final with any HTTP status."""
_OUT_OF_ROOM = {"context_length_exceeded", "model_context_window_exceeded"}
_DISCONNECTED = "stream disconnected before completion"


def http_failure(
    status: int, headers: Mapping[str, str], body: bytes, url: str
) -> ModelError:
    """Convert an HTTP status of 400 or more to an error; a `StreamError` if a retry may help.

    Header names are looked up in lower case. The message leaves out the query of the URL, because
    some providers expect the key there.
    """
    error = body_error(body)
    name, kind = _named(error)
    status_name, status_kind = _by_status(status)
    if kind in _FINAL or kind is _Kind.OVERLOAD:
        code = name
    else:
        code = error.code
    if kind is None or kind is _Kind.REQUEST:
        # The status says more than a type like `invalid_request_error`.
        exit_kind = status_kind
    else:
        exit_kind = kind
    exit_code = _EXIT_CODES.get(exit_kind, ExitCode.TURN_FAILED)
    message = _http_message(status, error.message, url)
    if exit_kind in {_Kind.QUOTA, _Kind.USAGE_LIMIT}:
        message = _advised(name or status_name, error, message)
    retryable = status_kind in _RETRYABLE and kind not in _FINAL
    if not _wish_of(headers, default=retryable):
        failure = ModelError(
            message, code=code or status_name, exit_code=exit_code, status=status
        )
        return _explained(failure, error)
    wait_s = retry_after_s(headers, error.message)
    if wait_s is not None and wait_s > MAX_SERVER_DELAY_S:
        message = (
            f"{message}; the server asks to wait {wait_s:.6g} s before the next try"
        )
    failure = StreamError(
        message,
        code=code or status_name,
        exit_code=exit_code,
        status=status,
        retry_after_s=wait_s,
    )
    return _explained(failure, error)


def _wish_of(headers: Mapping[str, str], *, default: bool) -> bool:
    """Return the server's own word on a retry, or the default without one."""
    wish = headers.get("x-should-retry", "").strip().lower()
    if wish == "true":
        return True
    if wish == "false":
        return False
    return default


def stream_failure(
    reported: object,
    *,
    headers: Mapping[str, str] | None = None,
    fallback: str = "the server reported a failure without a reason",
) -> ModelError:
    """Convert a failure reported within a stream to an error; a `StreamError` if a retry may help.

    Args:
        reported: the decoded error: `response.error`, an `error` event, or an object with an
            `error`.
        headers: the headers that some servers report with the failure.
        fallback: the message if the server sent none.
    """
    error = server_error(reported)
    status = error.status
    code, kind = _class_in_stream(error)
    if kind is None:
        kind = _Kind.TRANSIENT
    exit_code = _EXIT_CODES.get(kind, ExitCode.TURN_FAILED)
    if kind not in _RETRYABLE:
        text = _advised(code, error, error.message) or fallback
        failure = ModelError(text, code=code, exit_code=exit_code, status=status)
        return _explained(failure, error)
    if kind is _Kind.RATE_LIMIT:
        reason = "rate limit exceeded"
    else:
        reason = _DISCONNECTED
    failure = StreamError(
        f"{reason}: {error.message or fallback}",
        code=code or "server_error",
        exit_code=exit_code,
        status=status,
        retry_after_s=retry_after_s(headers or {}, error.message),
        started=True,
    )
    return _explained(failure, error)


def is_known_failure(reported: object) -> bool:
    """True if the class of a decoded error is known from its names, its status or its words."""
    _, kind = _class_in_stream(server_error(reported))
    return kind is not None


def incomplete(reason: str) -> ModelError:
    """Make the error of a response that a limit of the model, or a filter, cut short."""
    if reason in _OUT_OF_ROOM:
        return stream_failure({"code": "context_length_exceeded", "message": ""})
    code = reason if reason == "content_filter" else "incomplete"
    return ModelError(f"Incomplete response returned, reason: {reason}", code=code)


def too_many_items() -> ModelError:
    """Make the failure of a response beyond `MAX_ITEMS`."""
    return ModelError(
        f"the response has more than {MAX_ITEMS} messages and calls",
        code="response_too_large",
    )


def _named(error: ServerError) -> tuple[str | None, _Kind | None]:
    """Return the name that decides an error's kind, and the kind; both None if no name is known."""
    names = [name for name in (error.code, error.type) if name in _KINDS]
    kinds = [_KINDS[name] for name in names]
    if _Kind.QUOTA not in kinds and is_too_long(error.words):
        return "context_length_exceeded", _Kind.CONTEXT
    # `code` says more than `type` if both are known.
    if names:
        return (names[0], kinds[0])
    return (None, None)


def _class_in_stream(error: ServerError) -> tuple[str | None, _Kind | None]:
    """The code of an error that comes with HTTP status 200, and its kind; None if it is unknown."""
    name, kind = _named(error)
    if kind is not None:
        return name, kind
    code = error.code or error.type
    if error.status is not None:
        # A gateway says how the server behind it answered.
        status_name, kind = _by_status(error.status)
        return code or status_name, kind
    if means("throttled", error.words):
        return code or "rate_limited", _Kind.RATE_LIMIT
    if means("unauthorized", error.words):
        return code or "authentication", _Kind.AUTHENTICATION
    return code, None


def _explained(failure: ModelError, error: ServerError) -> ModelError:
    """Add the facts in the server's words to the failure."""
    failure.words = error.words
    failure.limit_tokens = stated_limit(error.words)
    is_too_large = failure.is_too_long and failure.code not in _OUT_OF_ROOM
    failure.concerns_part = is_too_large and means("image", error.words)
    is_guess = failure.status in _MAY_BE_TOO_LONG and not failure.is_too_long
    failure.may_be_too_long = is_guess and may_be_too_long(error.words)
    return failure


def _by_status(status: int) -> tuple[str, _Kind]:
    known = _STATUSES.get(status)
    if known:
        return known
    if status >= 500:
        return ("server_error", _Kind.TRANSIENT)
    return ("bad_request", _Kind.REQUEST)


def _advised(
    name: str | None,
    error: ServerError,
    said: str,
) -> str:
    """Put the advice for an error of this name before the provider's words, if there is any.

    Args:
        said: the provider's words.
    """
    advice = _WORDING.get(name or "")
    if advice is None:
        return said
    if name == "usage_limit_reached" and error.resets_at is not None:
        with suppress(OverflowError, ValueError, OSError):
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(error.resets_at))
            advice += f" Try again at {when}."
    if said:
        return f"{advice} ({said})"
    return advice


def _http_message(
    status: int,
    message: str,
    url: str,
) -> str:
    try:
        reason = f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        reason = str(status)
    without_query = plain_line(url.partition("?")[0])
    address = re.sub(r"//[^/@]*@", "//", without_query)
    return f"unexpected status {reason}: {message or 'Unknown error'}, url: {address}"
