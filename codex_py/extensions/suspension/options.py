"""`--on-approval suspend`, and the options that answer a request."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from codex_py.api.approvals import APPROVAL_KEY, AbsentApprover
from codex_py.api.options import (
    Approver,
    Arguments,
    ConfigError,
    Feature,
    Options,
    SessionSetup,
    UsageError,
    continuing_words,
    exec_target,
    option,
    seconds,
    working_folder,
)
from codex_py.extensions.suspension.suspended_approvals import SuspendedApprovals
from codex_py.extensions.suspension.suspension import Suspension

_MIN_KEY_BYTES: Final = 16
_MAX_LIFETIME_S: Final = 87_600 * 3600


class SuspensionOptions(Options):
    is_repeated = False

    on_approval: Annotated[Literal["suspend"] | None, option("--on-approval")] = None
    approval_dir: Annotated[str, option("--approval-dir")] = "."
    approval_expires: Annotated[str, option("--approval-expires")] = "24h"
    approve: Annotated[str | None, option("--approve")] = None
    deny_request: Annotated[str | None, option("--deny-request")] = None
    because: Annotated[str | None, option("--because")] = None

    _suspension: Suspension | None = None
    """None: no option suspends the run or answers a request."""

    def run(self, arguments: Arguments, environment: Mapping[str, str]) -> None:
        """Make the suspension.

        Raises:
            UsageError: options contradict each other, or cannot be parsed.
            ConfigError: the key is missing or too short.
        """
        if self.because is not None and self.deny_request is None:
            raise UsageError("--because belongs to --deny with an approval-ID.json")
        suspending = (self.on_approval, self.approve, self.deny_request)
        if all(each is None for each in suspending):
            return
        answer = self._answered_request(arguments)
        if arguments.bypass:
            raise UsageError("an approval cannot wait: --yolo asks for no approval")
        if arguments.ephemeral:
            raise UsageError("an approval cannot wait: --ephemeral leaves no session")
        key = _signing_key(environment)
        lifetime_s = self._lifetime_s()
        self._suspension = Suspension(
            folder=working_folder(self.approval_dir),
            lifetime_s=lifetime_s,
            key=key,
            answer=answer,
            is_approved=self.approve is not None,
            because=self.because,
            options=(*self._own_words(), *continuing_words(arguments)),
        )
        self.asks_for_approvals = True
        self.begins_with_call = answer is not None

    def settings(self, arguments: Arguments) -> Mapping[str, Any]:  # noqa: ARG002 - of the base class
        if self._suspension is None:
            return {}
        return {"approvals_reviewer": "user"}

    def approver(self) -> Approver | None:
        if self._suspension is None:
            return None
        return AbsentApprover()

    def feature(self, setup: SessionSetup) -> Feature | None:
        if self._suspension is None:
            return None
        return SuspendedApprovals(setup, self._suspension)

    def _answered_request(self, arguments: Arguments) -> Path | None:
        """The absolute path of the request that `--approve` or `--deny` answers, if one is given."""
        if self.approve is not None and self.deny_request is not None:
            raise UsageError("--approve and --deny exclude each other")
        if self.approve is not None:
            file = self.approve
        else:
            file = self.deny_request
        if file is None:
            return None
        if not file:
            raise UsageError("--approve and --deny need the file of a request")
        target = exec_target(arguments)
        resumes = target.resume or target.resume_last
        if target.fork or not resumes:
            raise UsageError("--approve and --deny need `exec resume SESSION`")
        return Path(file).absolute()

    def _lifetime_s(self) -> float:
        """Parse the value of `--approval-expires` into seconds."""
        try:
            lifetime_s = seconds(self.approval_expires)
        except ConfigError as error:
            raise UsageError(f"--approval-expires: {error}") from None
        if lifetime_s > _MAX_LIFETIME_S:
            raise UsageError("--approval-expires: at most 87600h")
        return lifetime_s

    def _own_words(self) -> list[str]:
        """The options for further requests, as words for the command that continues the run."""
        words: list[str] = []
        if self.approval_dir != ".":
            words.append(f"--approval-dir={Path(self.approval_dir).absolute()}")
        if self.approval_expires != "24h":
            words.append(f"--approval-expires={self.approval_expires}")
        return words


def _signing_key(environment: Mapping[str, str]) -> bytes:
    key = environment.get(APPROVAL_KEY, "").encode(errors="surrogateescape")
    if len(key) < _MIN_KEY_BYTES:
        state = "is too short" if key else "is not set"
        raise ConfigError(
            f"{APPROVAL_KEY}, which signs approvals, {state}: it needs {_MIN_KEY_BYTES} bytes"
        )
    return key
