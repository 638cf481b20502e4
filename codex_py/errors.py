"""Every error that this program raises on purpose.

    CodexError                 the user is told; it ends the turn, or the program
    ├── UsageError             the command line cannot be understood
    ├── ConfigError            the configuration, or a file it names, cannot be used
    ├── SessionError           a session file is missing or cannot be read
    ├── TurnAborted            the user, or a signal, ended the turn
    ├── TurnLimit              the model was not done after so many responses
    ├── TurnSuspended          the turn goes on in a later session, with the call that raised this
    ├── PromptRefused          an extension does not let a prompt go to the model
    ├── CompactionFailed       the history was not compacted
    ├── PatchError             a patch cannot be read or does not fit; nothing was changed
    └── ModelError             the provider cannot answer this request as it is
        ├── StreamError        this attempt failed; another may succeed
        └── MalformedItem      an item of a known type lacks what its type promises
    ToolError                  the model is told; the turn goes on
    └── CallRefused            a policy does not let the call run

A bug is none of these. In a call, it becomes the output of the call; anywhere else it crashes with its traceback.
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
"""The codes of a `ModelError` for a quota that is used up."""
_TOO_LONG: Final = ("context_length_exceeded", "request_too_large")


class ExitCode(IntEnum):
    """The exit codes of the process; those from 64 up follow `sysexits.h`."""

    DONE = 0
    TURN_FAILED = 1
    USAGE = 2
    GATE = 3
    """An extension, such as hooks, refused the prompt, or did not accept the result after its last round."""
    SCHEMA = 4
    """The final answer breaks `--output-schema`."""
    DENIED = 5
    SANDBOX = 6
    PATCH = 7
    SUSPENDED = 8
    """A call waits for an approval."""
    TURN_LIMIT = 53
    """A limit of responses was reached, or the model repeated itself."""
    BUDGET = 54
    """A limit on tokens or cost is reached."""
    WALL_CLOCK = 55
    """The limit on time is reached."""
    INPUT = 65
    """The input cannot be parsed."""
    UNAVAILABLE = 69
    TEMPORARY = 75
    AUTHENTICATION = 77
    CONFIGURATION = 78
    INTERRUPTED = 130


def cause(error: Exception) -> str:
    """Why something failed, as a clause for a message.

    Of an `OSError`, that is the words of the system and the path, without `[Errno 2]` and `PosixPath('…')`.
    """
    if not isinstance(error, OSError) or not error.strerror:
        return str(error) or type(error).__name__
    path = error.filename
    if _is_path(path):
        return f"{error.strerror}: {os.fsdecode(path)}"
    return error.strerror


def _is_path(name: object) -> TypeGuard["str | bytes | os.PathLike[str]"]:
    return isinstance(name, str | bytes | os.PathLike)


class CodexError(Exception):
    """An error whose text is a sentence for the user."""

    code = "error"
    """Stable name of what happened, for programs (`code` in the JSONL events)."""
    exit_code = ExitCode.TURN_FAILED
    retryable = False
    """Another attempt may succeed; true for `StreamError` alone."""
    status: int | None = None
    """HTTP status, where a server answered with one."""
    result: Any = None
    """What a turn of an `Agent` had brought when it failed: its `Result`."""

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
    """The message names the file, the line where known, and the key."""

    code = "config"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, message: str, *, key: Sequence[str] = ()) -> None:
        """`key`: the path of the setting, if who raises the error does not know where it is set."""
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
    """The model was not done after so many responses, or repeated itself."""

    code = "turn_limit"
    exit_code = ExitCode.TURN_LIMIT


class TurnSuspended(CodexError):
    """Ends the turn, which may go on in a later session: the call that raises it has no output in the session file."""

    code = "suspended"
    exit_code = ExitCode.SUSPENDED


class PromptRefused(CodexError):
    """An extension does not let a prompt go to the model."""

    code = "prompt_refused"


class TurnSkipped(PromptRefused):
    """An extension ends the turn as if it was complete: no further request is sent. The user is warned with the
    text."""

    exit_code = ExitCode.GATE


class CompactionFailed(CodexError):
    """The history was not compacted, and is as it was."""

    code = "compaction"


PatchErrorKind: TypeAlias = Literal["parse", "empty", "match", "file", "refused"]


class PatchError(CodexError):
    """A patch cannot be read, does not fit, or may not or could not be written. No file was changed.

    Attributes:
        kind: `parse` the patch is malformed, `empty` it has no sections, `match` its lines are not in the
            file, `file` the file system failed, `refused` a path may not be written.
        line: of the patch, from 1 at its first line; for `parse` errors that concern one line.
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
        if line is None:
            place = "Invalid patch: "
        else:
            place = f"Invalid patch hunk on line {line}: "
        super().__init__(place + reason if kind == "parse" else reason)
        self.kind: PatchErrorKind = kind
        self.line = line
        self.reason = reason


class ModelError(CodexError):
    """The request cannot succeed as it is.

    Attributes:
        words: all that the server said, including what a gateway says of the service behind it.
        limit_tokens: what fits into the model by these words, if there was too much.
        may_be_too_long: the words may mean that the request is too long, but it is not certain.
        refused_tool: the name of the offered tool that the server does not accept.
    """

    code = "model"
    words = ""
    limit_tokens: int | None = None
    may_be_too_long = False
    refused_tool: str | None = None

    @property
    def is_too_long(self) -> bool:
        """The request has more tokens than the model takes, or more bytes than the server takes (status 413)."""
        return self.code in _TOO_LONG or self.status == 413


class StreamError(ModelError):
    """This attempt failed; another may succeed.

    Attributes:
        retry_after_s: the delay that the server asked for, seconds.
        started: whether a response had begun to stream; the two phases have budgets of their own.
        local: a server of this machine that has not answered yet cannot be reached: it is tried again for seconds, not
            for minutes.
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
        local: bool = False,
    ) -> None:
        super().__init__(message, code=code, exit_code=exit_code, status=status)
        self.retry_after_s = retry_after_s
        self.started = started
        self.local = local

    @classmethod
    def broke_off(cls, cause: str, *, code: str = "disconnected") -> "StreamError":
        """A response that began, and did not come to its end."""
        return cls(
            f"stream disconnected before completion: {cause}",
            code=code,
            exit_code=ExitCode.UNAVAILABLE,
            started=True,
        )


class MalformedItem(ModelError):
    code = "malformed_item"


class ToolError(Exception):
    """The call failed in a way that the model should read about.

    Attributes:
        code: a name the model can match on: an errno name (`ENOENT`), `Timeout`, `Canceled`,
            `InvalidArgs`, `UnknownTool`, `PatchFailed`, `SandboxDenied`, `ApprovalDenied`, …
    """

    def __init__(self, message: str, *, code: str = "UnknownError") -> None:
        super().__init__(message)
        self.code = code


class CallRefused(ToolError):
    """A policy does not let the call run.

    Attributes:
        cause: why, as a clause for the user: `the sandbox is read-only`.
        allow: the option or setting that would allow the call; None where none would.
    """

    def __init__(
        self, message: str, *, code: str, cause: str, allow: str | None = None
    ) -> None:
        super().__init__(message, code=code)
        self.cause = cause
        self.allow = allow


def nearest(word: str, known: Iterable[str], *, alike: float = 0.6) -> str | None:
    """The known word that an unknown one may have been meant for. `alike`: at least this share of their letters is
    common."""
    from difflib import get_close_matches  # 2 ms

    return next(iter(get_close_matches(word, known, n=1, cutoff=alike)), None)


def single_error(error: BaseException) -> BaseException:
    """The error that a group stands for: its first bug, else its first `CodexError`. Any other error is itself."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast("BaseExceptionGroup[BaseException]", error)
    inner = [single_error(each) for each in group.exceptions]
    return next((each for each in inner if not isinstance(each, CodexError)), inner[0])
