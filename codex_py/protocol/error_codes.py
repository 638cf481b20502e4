"""Lists the codes of a `CodexError`. `scripts/generate-reference` makes a page of them.

A server may name its failure itself. That name is then the code, and is not in this list.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple


class ErrorCode(NamedTuple):
    """One value of `CodexError.code`."""

    name: str
    occasion: str
    """The failure, as a clause for the documentation."""
    retryable: bool = False


CODES: Final[Mapping[str, Sequence[ErrorCode]]] = {
    "Before the first request": (
        ErrorCode("config", "a setting, or a file that it names, cannot be used"),
        ErrorCode(
            "usage", "an argument cannot be used, such as a file that is no image"
        ),
        ErrorCode("missing_key", "there is no key for the provider"),
        ErrorCode("bad_key", "the key has a character that cannot be sent"),
        ErrorCode(
            "session",
            "the session to resume does not exist, or cannot be read or written",
        ),
        ErrorCode("session_in_use", "another process has the session open"),
        ErrorCode(
            "worktree",
            "the session to resume works in a git worktree, and `cwd` is outside of it",
        ),
        ErrorCode("sandbox", "this machine has no sandbox that can run a command"),
        ErrorCode("mcp", "an MCP server with `required = true` did not start"),
        ErrorCode(
            "prompt_refused",
            "a hook, or another extension, keeps the prompt from the model",
        ),
    ),
    "By the HTTP status": (
        ErrorCode("bad_request", "400, and any other 4xx"),
        ErrorCode("authentication", "401 or 403: the key is not accepted"),
        ErrorCode("insufficient_quota", "402: the account has no credit"),
        ErrorCode("not_found", "404: no such model, or a wrong `base_url`"),
        ErrorCode(
            "request_timeout",
            "408: the server waited too long for the request",
            retryable=True,
        ),
        ErrorCode(
            "conflict", "409: the request collides with another one", retryable=True
        ),
        ErrorCode("request_too_large", "413: the request has too many bytes"),
        ErrorCode("rate_limited", "429: too many requests for now", retryable=True),
        ErrorCode("overloaded", "529: the service has too much to do", retryable=True),
        ErrorCode(
            "server_error",
            "any other 5xx, or a failure that the stream reports without a name",
            retryable=True,
        ),
        ErrorCode("redirect", "3xx: the provider is served at another address"),
        ErrorCode("unexpected_status", "any other 2xx than 200"),
    ),
    "By the connection and the stream": (
        ErrorCode("connection", "the provider cannot be reached", retryable=True),
        ErrorCode("timeout", "the provider did not answer in time", retryable=True),
        ErrorCode(
            "disconnected",
            "the stream broke off before the answer was complete",
            retryable=True,
        ),
        ErrorCode(
            "idle_timeout",
            "the stream brought nothing new for too long",
            retryable=True,
        ),
        ErrorCode("stream", "another failure of one attempt", retryable=True),
        ErrorCode(
            "not_a_stream",
            "the answer is a document, such as the login page of a network",
        ),
        ErrorCode("packed", "the answer is compressed in a way that cannot be read"),
        ErrorCode("event_too_large", "one event is larger than the limit"),
        ErrorCode("response_too_large", "the response is larger than a limit"),
    ),
    "By the answer of the model": (
        ErrorCode(
            "context_length_exceeded",
            "the prompt, or the conversation, is longer than the model can read",
        ),
        ErrorCode(
            "content_filter", "the provider withheld the answer, or the rest of it"
        ),
        ErrorCode(
            "incomplete",
            "the answer reached a limit of the provider, such as its greatest length",
        ),
        ErrorCode("cancelled", "the provider cancelled the answer"),
        ErrorCode(
            "model",
            "another failure of a request, as of an extension that wraps the model",
        ),
        ErrorCode("malformed_item", "a part of the answer lacks a field that it needs"),
        ErrorCode(
            "tool_format",
            "the model, which writes its calls as text, wrote them wrongly several times",
        ),
        ErrorCode(
            "schema",
            "the final answer does not fit the `output_type` or the JSON Schema, also after it was sent back once",
        ),
    ),
    "By the end of the turn": (
        ErrorCode(
            "aborted",
            "`interrupt`, a signal, Ctrl-C or a stream that was left ended the turn",
        ),
        ErrorCode("approver", "`approve` returned something that is no decision"),
        ErrorCode(
            "extension",
            "an extension returned facts about the turn that cannot be written",
        ),
        ErrorCode(
            "internal",
            "a bug, of this program or of an extension, ended the turn of a `Session`; an `Agent` raises the bug",
        ),
        ErrorCode(
            "command", "a program that an extension runs for the user cannot be started"
        ),
        ErrorCode(
            "suspended",
            "the turn waits for an approval, and continues in a later session",
        ),
        ErrorCode("turn_limit", "the turn reached `max_turns`"),
        ErrorCode("token_budget", "the turn reached `max_tokens`"),
        ErrorCode("cost_budget", "the turn reached `max_cost`"),
        ErrorCode("wall_clock", "the turn reached `max_time`"),
        ErrorCode("loop", "the model repeated the same calls"),
        ErrorCode(
            "error",
            "a `CodexError` without a code, as a function of yours may raise it",
        ),
    ),
    "Of a login with ChatGPT": (
        ErrorCode("login_over", "the login has ended; sign in again"),
        ErrorCode("login_not_renewed", "the login was not renewed now", retryable=True),
        ErrorCode(
            "issuer_unavailable",
            "the server that renews logins cannot be reached",
            retryable=True,
        ),
        ErrorCode(
            "forbidden_workspace",
            "the login belongs to a workspace that the configuration does not allow",
        ),
    ),
    "Of the methods of a session": (
        ErrorCode("compaction", "the history was not replaced by a summary"),
        ErrorCode("no_summary", "the model gave no summary"),
        ErrorCode(
            "nothing_to_compact", "`compact`: the history has nothing to summarize yet"
        ),
        ErrorCode("nothing_to_retry", "`retry`: the last turn completed"),
        ErrorCode("name", "`rename`: the name is blank"),
    ),
}
"""All codes that an `Agent` or a `Session` gives by itself, by the kind of failure."""

OTHER_CODES: Final = frozenset(
    {
        "answers",
        "bundle",
        "busy",
        "ceiling",
        "clipboard",
        "cwd",
        "demo",
        "edited_since",
        "editor",
        "endless",
        "export",
        "feature",
        "gates",
        "git",
        "git_blocked",
        "goal",
        "home",
        "items",
        "judge",
        "login",
        "mcp_login",
        "no_patch",
        "no_prompt",
        "no_request",
        "no_session",
        "not_agreed",
        "not_sent",
        "not_undoable",
        "nothing_pasted",
        "nothing_said",
        "nothing_to_copy",
        "nothing_to_fork",
        "nothing_to_redo",
        "out",
        "output_file",
        "patch",
        "patch_input",
        "plan_usage",
        "plugin",
        "results",
        "review",
        "revoke",
        "shell",
        "stdin",
        "stdout",
        "tape",
        "too_long",
        "too_many_files",
        "turn_running",
        "undo",
        "undone_already",
        "unsaved",
        "untrusted_directory",
    }
)
"""The codes that only subcommands, servers and the terminal give."""
