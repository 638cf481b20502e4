"""The files that a patch may read and write, by the sandbox and the approval policy of its call."""

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from codex_py.errors import CallRefused, PatchError
from codex_py.filesystem.denials import denials_of
from codex_py.patch.files.failures import system_error
from codex_py.patch.plan import readable_under, writable_under
from codex_py.protocol.approval import may_ask
from codex_py.protocol.dispatch import ToolContext
from codex_py.sandbox.layout import (
    absent_names,
    layout,
    own_paths,
    resolve_roots,
    secrets,
)
from codex_py.sandbox.runner_files import runner_files
from codex_py.streams.terminal import some_of

_OUTSIDE = (
    "patch rejected: writing outside of the project; rejected by user approval settings"
)
_READ_ONLY = (
    "patch rejected: writing is blocked by read-only sandbox;"
    " rejected by user approval settings"
)


def writable_by(
    context: ToolContext, home: Path | None
) -> Callable[[str], bool] | None:
    """Return a rule for resolved, absolute paths: True for files that the sandbox allows to write.

    None means that all files are allowed.
    """
    policy = context.sandbox_policy
    denials = denials_of(policy.files)
    match policy.mode:
        case "danger-full-access":
            if policy.files.denies:
                return lambda path: not denials.refuses(path)
            return None
        case "read-only":
            return lambda _path: False
        case "workspace-write":
            # The same rules hold for commands: see `PlatformSandbox`.
            roots = resolve_roots(policy, context.environment.get("TMPDIR", ""), home)
            own = [*own_paths()]
            if home is not None:
                own.append(home)
            own += (path for path, access in policy.files.entries if access == "read")
            own += runner_files(os.environ, roots.all)
            view = layout(roots, own, offline=True)
            protected = (*view.protected, *view.links, *absent_names(roots))
            is_writable = _excluding(protected, roots.all)
            return lambda path: is_writable(path) and not denials.refuses(path)


class ReadScope:
    """The files that a patch may read before it is approved.

    Our own process reads them without a sandbox, and the error for a patch that does not fit quotes
    lines of the file. So a file outside of the sandbox is read only if the user can be asked, and
    the error does not quote it. Files that are hidden from commands are never read.
    """

    def __init__(self, context: ToolContext, home: Path | None) -> None:
        self._writable = writable_by(context, home)
        workspace = (context.cwd, *context.sandbox_policy.writable_roots)
        self._is_in_workspace = readable_under(workspace)
        self._approved = {
            str(key) for key in context.approvals.granted if isinstance(key, Path)
        }
        self._hidden = tuple([f"{path}/" for path in secrets(home)])
        self._denials = denials_of(context.sandbox_policy.files)
        self._may_ask = may_ask(context.approval_policy, "sandbox_approval")
        self._outside: dict[str, None] = {}
        """The files outside of the sandbox that the patch wanted to read, in that order."""

    def readable(self, path: str) -> bool:
        """True if the patch may read a file (resolved, absolute path).

        Raises:
            OSError: the policy denies the file (`EACCES`).
        """
        if self._denials.refuses(path):
            raise system_error(errno.EACCES)
        if self._writable is None:
            return True
        if f"{path}/".startswith(self._hidden):
            return False
        if self._is_in_workspace(path):
            return True
        if path in self._approved or self._writable(path):
            return True
        self._outside[path] = None
        return self._may_ask

    def failure(self, error: PatchError) -> str:
        """The text for the model about why its patch cannot be applied."""
        if self._outside:
            files = some_of(list(self._outside), 3)
            message = (
                f"the patch reads {files}, outside of the sandbox, and does not fit; "
                "look at the files with a command first"
            )
        elif error.kind == "empty":
            return "patch rejected: empty patch"
        elif error.kind != "parse":
            message = error.reason
        elif error.line is None:
            message = f"invalid patch: {error.reason}"
        else:
            message = f"invalid hunk at line {error.line}, {error.reason}"
        return f"apply_patch verification failed: {message}"


def refusal(context: ToolContext) -> CallRefused:
    """The error for a patch that the sandbox does not allow, and nobody may be asked about."""
    if context.sandbox_policy.mode == "read-only":
        text = _READ_ONLY
        cause = "the sandbox is read-only"
        allow = "-s workspace-write"
    else:
        text = _OUTSIDE
        cause = "a patch leaves the workspace"
        allow = "--add-dir FOLDER"
    return CallRefused(text, code="SandboxDenied", cause=cause, allow=allow)


def _excluding(
    protected: Sequence[Path], roots: Sequence[Path]
) -> Callable[[str], bool]:
    """Return a rule that allows files in the roots, except protected paths and all below them.

    A root may lie below a protected path, such as a worktree in `$CODEX_HOME`: the innermost path
    decides. All paths are resolved.
    """
    is_below_root = writable_under(roots)
    # Some file systems ignore case.
    protected_names = [f"{path}/".casefold() for path in protected]
    root_names = [f"{root}/" for root in roots]

    def is_writable(path: str) -> bool:
        if not is_below_root(path):
            return False
        folded = f"{path}/".casefold()
        protecting = [name for name in protected_names if folded.startswith(name)]
        if not protecting:
            return True
        allowing = [name for name in root_names if path.startswith(name)]
        return _depth(protecting) < _depth(allowing)

    return is_writable


def _depth(names: Sequence[str]) -> int:
    """The depth of the innermost of some folders."""
    return max([name.count("/") for name in names], default=0)
