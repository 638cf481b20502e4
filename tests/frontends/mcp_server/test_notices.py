from codex_py.frontends.mcp_server.notices import (
    codex_event,
    progress_text,
    warning_text,
)
from codex_py.protocol.events import Error
from tests.support.model import reconnecting


def test_a_retry_is_told_as_one_and_the_failure_at_the_end_as_an_error() -> None:
    retry = reconnecting("cut")
    assert codex_event(retry) == {"type": "stream_error", "message": retry.message}
    assert (warning_text(retry), progress_text(retry)) == (retry.message, retry.message)
    failure = Error("cut", "stream", retryable=True)
    assert codex_event(failure) == {"type": "error", "message": "cut"}
    assert (warning_text(failure), progress_text(failure)) == (None, None)
