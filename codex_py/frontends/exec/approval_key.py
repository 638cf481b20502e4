"""Approvals that wait: makes the `Suspension` of a session from the options of `exec`. LIGHT."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from codex_py.app.options import Suspension
from codex_py.app.user_programs import APPROVAL_KEY
from codex_py.command_line.arguments import Arguments, option_words
from codex_py.command_line.parser import working_folder
from codex_py.command_line.target import SessionTarget
from codex_py.config.limits import amount
from codex_py.config.overrides import sets_secret
from codex_py.errors import ConfigError, UsageError

_MIN_KEY_BYTES: Final = 16
_MAX_LIFETIME_S: Final = 87_600 * 3600
_REPEATED: Final = {
    "model",
    "oss",
    "local_provider",
    "profile",
    "strict_config",
    "ignore_user_config",
    "sandbox",
    "full_auto",
    "add_dir",
    "deny",
    "allow_domain",
    "ignore_rules",
    "bypass_hook_trust",
    "allow_unenforced",
    "cd",
    "skip_git_repo_check",
    "approval_dir",
    "approval_expires",
    "output_schema",
    "limits",
    "fail_on",
}
"""Options that the continuing run needs as well."""
_PATHS: Final = ("cd", "approval_dir", "output_schema")
"""Options that are paths. They are repeated as absolute paths."""


def configured_suspension(
    arguments: Arguments,
    target: SessionTarget,
    environment: Mapping[str, str],
) -> Suspension | None:
    """The suspension that the options ask for; None if they ask for none.

    Raises:
        UsageError: options contradict each other, or cannot be parsed.
        ConfigError: the key is missing or too short.
    """
    if arguments.because is not None and arguments.refuse is None:
        raise UsageError("--because belongs to --deny with an approval-ID.json")
    if not arguments.suspends:
        return None
    answer = _answered_request(arguments, target)
    if arguments.bypass:
        raise UsageError("an approval cannot wait: --yolo asks for no approval")
    if arguments.ephemeral:
        raise UsageError("an approval cannot wait: --ephemeral leaves no session")
    key = _signing_key(environment)
    lifetime_s = _lifetime_s(arguments.approval_expires)
    return Suspension(
        folder=working_folder(arguments.approval_dir),
        lifetime_s=lifetime_s,
        key=key,
        answer=answer,
        is_approved=arguments.approve is not None,
        because=arguments.because,
        options=_repeated_options(arguments),
    )


def _answered_request(arguments: Arguments, target: SessionTarget) -> Path | None:
    """The absolute path of the request that `--approve` or `--deny` answers, if one is given."""
    if arguments.approve is not None and arguments.refuse is not None:
        raise UsageError("--approve and --deny exclude each other")
    if arguments.approve is not None:
        file = arguments.approve
    else:
        file = arguments.refuse
    if file is None:
        return None
    if not file:
        raise UsageError("--approve and --deny need the file of a request")
    resumes = target.resume or target.resume_last
    if target.fork or not resumes:
        raise UsageError("--approve and --deny need `exec resume SESSION`")
    return Path(file).absolute()


def _signing_key(environment: Mapping[str, str]) -> bytes:
    key = environment.get(APPROVAL_KEY, "").encode(errors="surrogateescape")
    if len(key) < _MIN_KEY_BYTES:
        state = "is too short" if key else "is not set"
        raise ConfigError(
            f"{APPROVAL_KEY}, which signs approvals, {state}: it needs {_MIN_KEY_BYTES} bytes"
        )
    return key


def _lifetime_s(text: str) -> float:
    """Parse the value of `--approval-expires` into seconds."""
    try:
        lifetime_s = amount("max_time", text)
    except ConfigError as error:
        raise UsageError(f"--approval-expires: {error}") from None
    if lifetime_s > _MAX_LIFETIME_S:
        raise UsageError("--approval-expires: at most 87600h")
    return lifetime_s


def _repeated_options(arguments: Arguments) -> tuple[str, ...]:
    """The options of this run that the continuing run needs, as words that are valid in every
    folder.

    A session of a worktree continues there, so `--cd` is not repeated for it. A `-c` that sets a
    secret is left out, because the words are displayed.
    """
    defaults = Arguments()
    if arguments.worktree is not None:
        arguments = replace(arguments, cd=None)
    absolute: dict[str, str] = {}
    for name in _PATHS:
        path = getattr(arguments, name)
        if path != getattr(defaults, name):
            absolute[name] = str(Path(path).absolute())
    folders = [str(Path(name).absolute()) for name in arguments.add_dir]
    portable = replace(arguments, add_dir=folders, **absolute)
    words = option_words(portable, _REPEATED)
    for options in arguments.of_extensions:
        if options.is_repeated:
            words += option_words(options)
    for override in arguments.overrides:
        if not sets_secret(override):
            words += ["-c", override]
    return tuple(words)


def without_key(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without the key, which child processes must not see.

    The key is also erased from `/proc/PID/environ`, where the kernel shows it.
    """
    if APPROVAL_KEY in environment:
        # Without `/proc`, no other program can look there either.
        with suppress(OSError):
            _erase_key()
    return {name: value for name, value in environment.items() if name != APPROVAL_KEY}


def _erase_key() -> None:
    """Overwrite the key with zeros where the kernel keeps the environment of this process.

    Raises:
        OSError: `/proc` cannot be read, or not written.
    """
    after_name = Path("/proc/self/stat").read_bytes().rpartition(b")")[2]
    # The list begins with the third field. `env_start` is the 50th and `env_end` the 51st, see
    # proc(5). The byte before the first variable is a NUL.
    stat = after_name.split()
    start = int(stat[47]) - 1
    end = int(stat[48])
    with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
        memory.seek(start)
        variables = memory.read(end - start)
        before, mark, after = variables.partition(b"\0%b=" % APPROVAL_KEY.encode())
        key = after.partition(b"\0")[0]
        memory.seek(start + len(before + mark))
        memory.write(bytes(len(key)))
