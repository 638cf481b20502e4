"""Every error that this program raises on purpose.

    CodexError                 the user reads it; it ends the turn, or the program
    ├── UsageError             the command line cannot be understood
    ├── ConfigError            the configuration, or a file it names, cannot be used
    ├── SessionError           a session file is missing or cannot be read
    ├── TurnAborted            the user, or a signal, ended the turn
    ├── TurnLimit              the turn reached its limit of responses
    ├── TurnSuspended          the turn continues in a later session, with the call that raised this
    ├── PromptRefused          an extension does not let a prompt go to the model
    ├── CompactionFailed       the history was not compacted
    ├── PatchError             a patch cannot be read or does not fit; nothing was changed
    └── ModelError             the provider cannot answer this request as it is
        ├── StreamError        this attempt failed; another may succeed
        └── MalformedItem      an item of a known type lacks a field of its type
    ToolError                  the model reads it; the turn continues
    └── CallRefused            a policy does not let the call run

A bug is none of these. In a call, it becomes the output of the call; anywhere else it crashes with
its traceback.
"""

import os
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, Final, Literal, TypeAlias, TypeGuard, cast

QUOTA_CODES: Final = (
    "insufficient_quota",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "usage_limit_reached",
    "usage_not_included",
    "billing_error",
    "billing_hard_limit_reached",
)
"""The codes of a `ModelError` for an exhausted quota."""
_TOO_LONG: Final = ("context_length_exceeded", "request_too_large")


class ExitCode(IntEnum):
    """The exit codes of the process; those from 64 up follow `sysexits.h`."""

    DONE = 0
    TURN_FAILED = 1
    USAGE = 2
    GATE = 3
    """An extension, such as hooks, refused the prompt, or did not accept the result after its last
    round."""
    SCHEMA = 4
    """The final answer violates `--output-schema`."""
    DENIED = 5
    SANDBOX = 6
    PATCH = 7
    SUSPENDED = 8
    """A call waits for an approval."""
    TURN_LIMIT = 53
    """The limit on responses was reached, or the model repeated itself."""
    BUDGET = 54
    """A limit on tokens or cost was reached."""
    WALL_CLOCK = 55
    """The limit on time was reached."""
    INPUT = 65
    """The input cannot be parsed."""
    UNAVAILABLE = 69
    TEMPORARY = 75
    AUTHENTICATION = 77
    CONFIGURATION = 78
    INTERRUPTED = 130


def cause(error: Exception) -> str:
    """The reason of a failure, as a clause for a message.

    For an `OSError`, the clause is the system's text and the path, without `[Errno 2]` and
    `PosixPath('…')`.
    """
    if not isinstance(error, OSError) or not error.strerror:
        return str(error) or type(error).__name__
    path = error.filename
    if _is_path(path):
        return f"{error.strerror}: {os.fsdecode(path)}"
    return error.strerror


def _is_path(name: object) -> TypeGuard["str | bytes | os.PathLike[str]"]:
    """False for the number of a descriptor, which `OSError.filename` may be."""
    return isinstance(name, str | bytes | os.PathLike)


_OF_THIS_PROVIDER: Final = frozenset(
    {ExitCode.AUTHENTICATION, ExitCode.TEMPORARY, ExitCode.UNAVAILABLE}
)
"""The exit codes of failures that another provider need not have."""


class CodexError(Exception):
    """An error whose text is a sentence for the user."""

    code = "error"
    """The stable name of the error, for programs (`code` in the JSONL events)."""
    exit_code = ExitCode.TURN_FAILED
    retryable = False
    """True if another attempt may succeed; only for a `StreamError`."""
    status: int | None = None
    """The HTTP status, if a server answered with one."""
    result: Any = None
    """The `Result` of an `Agent`'s turn at the time of the failure."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        exit_code: ExitCode | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code or self.code
        if exit_code is None:
            self.exit_code = self.exit_code
        else:
            self.exit_code = exit_code
        self.status = status


class UsageError(CodexError):
    """The command line cannot be understood."""

    code = "usage"
    exit_code = ExitCode.USAGE


class ConfigError(CodexError):
    """A setting cannot be used. The message names the file, the line if known, and the key."""

    code = "config"
    exit_code = ExitCode.CONFIGURATION

    def __init__(
        self,
        message: str,
        *,
        key: Sequence[str] = (),
    ) -> None:
        """`key`: the path of the setting, if the raising code does not know where it is set."""
        super().__init__(message)
        self.key = tuple(key)


class OptionError(ConfigError):
    """An option, or a file that it names, cannot be used. The message names it."""

    exit_code = ExitCode.USAGE


class SessionError(CodexError):
    """A session file is missing, in use, or cannot be read or written."""

    code = "session"


class TurnAborted(CodexError):
    """The user, or a signal, ended the turn."""

    code = "aborted"
    exit_code = ExitCode.INTERRUPTED


class TurnLimit(CodexError):
    """The turn reached its limit of responses, or the model repeated itself."""

    code = "turn_limit"
    exit_code = ExitCode.TURN_LIMIT


class TurnSuspended(CodexError):
    """The turn ends here, and may continue in a later session.

    The call that raises this has no output in the session file.
    """

    code = "suspended"
    exit_code = ExitCode.SUSPENDED


class PromptRefused(CodexError):
    """An extension does not let a prompt go to the model."""

    code = "prompt_refused"


class TurnSkipped(PromptRefused):
    """An extension ends the turn as if it were complete: no further request is sent.

    The text is a warning to the user.
    """

    exit_code = ExitCode.GATE


class CompactionFailed(CodexError):
    """The history was not compacted, and is unchanged."""

    code = "compaction"


PatchErrorKind: TypeAlias = Literal["parse", "empty", "match", "file", "refused"]


class PatchError(CodexError):
    """A patch cannot be read, does not fit, or cannot be written. No file was changed.

    Attributes:
        kind: `parse`: the patch is malformed; `empty`: it has no sections; `match`: its lines are
            not in the file; `file`: the file system failed; `refused`: a path may not be written.
        exit_code: `PATCH`, or `TURN_FAILED` if the system could not read or write a file.
        line: the number of the patch's line, from 1, for `parse` errors that concern one line.
        reason: the message without the words that name the line.
    """

    code = "patch"
    exit_code = ExitCode.PATCH

    def __init__(
        self,
        reason: str,
        *,
        kind: PatchErrorKind,
        line: int | None = None,
    ) -> None:
        message = reason
        if kind == "parse":
            place = "" if line is None else f" hunk on line {line}"
            message = f"Invalid patch{place}: {reason}"
        super().__init__(message)
        self.kind: PatchErrorKind = kind
        self.line = line
        self.reason = reason


class ModelError(CodexError):
    """The request cannot succeed as it is.

    Attributes:
        words: the full text from the server, including a gateway's report on the service behind it.
        limit_tokens: the model's limit by these words, if the request was too long.
        may_be_too_long: True if the words may mean, but not certainly, that the request is too
            long.
        concerns_part: True if the words are about a part of the request, such as an image, although
            the server calls the whole request too large. A request without that part may succeed.
        refused_tool: the name of the offered tool that the server does not accept.
        quotes_request: True if the words quote the request, so nothing can be learned from them.
    """

    code = "model"
    words = ""
    limit_tokens: int | None = None
    may_be_too_long = False
    concerns_part = False
    refused_tool: str | None = None
    quotes_request = False

    @property
    def is_too_long(self) -> bool:
        """True if the request has too many tokens for the model or too many bytes for the server.

        A server reports too many bytes with the status 413.
        """
        return self.code in _TOO_LONG or self.status == 413

    @property
    def another_may_answer(self) -> bool:
        """True if another provider may answer where this one failed.

        Examples are a provider that is down, is out of quota or refuses the key, and a model that
        is too small for the request.
        """
        if self.exit_code in _OF_THIS_PROVIDER:
            return True
        if self.code in QUOTA_CODES or self.code == "context_length_exceeded":
            return True
        return self.status in {402, 413}


class StreamError(ModelError):
    """This attempt failed; another may succeed.

    Attributes:
        retry_after_s: the delay that the server asked for, in seconds.
        started: True if a response had begun to stream. The phases before and after have separate
            retry budgets.
        few_retries: True if this is retried only as often as a request, because more would not
            help: a server on this machine that cannot be reached and has not answered yet, or an
            issuer that is too slow.
    """

    code = "stream"
    retryable = True

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        exit_code: ExitCode | None = None,
        status: int | None = None,
        retry_after_s: float | None = None,
        started: bool = False,
        few_retries: bool = False,
    ) -> None:
        super().__init__(message, code=code, exit_code=exit_code, status=status)
        self.retry_after_s = retry_after_s
        self.started = started
        self.few_retries = few_retries

    @classmethod
    def broke_off(
        cls,
        cause: str,
        *,
        code: str = "disconnected",
    ) -> "StreamError":
        """The error for a response that began but did not end."""
        return cls(
            f"stream disconnected before completion: {cause}",
            code=code,
            exit_code=ExitCode.UNAVAILABLE,
            started=True,
        )


class MalformedItem(ModelError):
    """An item of a known type lacks a field of its type."""

    code = "malformed_item"


class ToolError(Exception):
    """A failure of a call that the model should read about.

    Attributes:
        code: a name the model can match on: an errno name (`ENOENT`), `Timeout`, `Canceled`,
            `InvalidArgs`, `UnknownTool`, `PatchFailed`, `SandboxDenied`, `ApprovalDenied`, …
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "UnknownError",
    ) -> None:
        super().__init__(message)
        self.code = code


class CallRefused(ToolError):
    """A policy does not let the call run.

    Attributes:
        cause: the reason, as a clause for the user: `the sandbox is read-only`.
        allow: the option or setting that would allow the call; None if no option or setting would.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        cause: str,
        allow: str | None = None,
    ) -> None:
        super().__init__(message, code=code)
        self.cause = cause
        self.allow = allow


def nearest(
    word: str,
    known: Iterable[str],
    *,
    alike: float = 0.6,
) -> str | None:
    """The known word that is most like an unknown one; None if none is.

    `alike`: the least share of letters in common, from 0 to 1.
    """
    from difflib import get_close_matches  # 2 ms

    matches = get_close_matches(word, known, n=1, cutoff=alike)
    return next(iter(matches), None)


def single_error(error: BaseException) -> BaseException:
    """The error that represents a group: its first bug, or else its first `CodexError`.

    An error that is no group is returned unchanged.
    """
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast("BaseExceptionGroup[BaseException]", error)
    inner = [single_error(each) for each in group.exceptions]
    for each in inner:
        if not isinstance(each, CodexError):
            return each
    return inner[0]
