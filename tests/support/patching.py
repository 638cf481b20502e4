"""Trees to be patched, patches for them, and a process that is killed while it patches."""

import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

from codex_py.patch.envelope.apply import plan_patch
from codex_py.patch.files.commit import Committed
from codex_py.patch.files.journal import Journal

_CALLS = (
    "open",
    "mkdir",
    "rmdir",
    "rename",
    "unlink",
    "symlink",
    "write",
    "ftruncate",
    "fchmod",
)
"""What a patch changes the disk with; each is a moment to die before."""


def enveloped(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def patch(journal: Journal, *lines: str) -> Committed:
    """Apply an envelope of these lines in the journal's working directory."""
    return plan_patch(enveloped(*lines), journal.cwd).commit(journal)


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and contents by relative path; the target of a link for its contents."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            contents = os.fsencode(path.readlink())
        else:
            contents = path.read_bytes() if stat.S_ISREG(mode) else b""
        found[str(path.relative_to(root))] = (mode, contents)
    return found


def killed_at(moment: int, act: Callable[[], object]) -> bool:
    """Do something in a process that is killed before its `moment`-th change of the disk, from 0.

    Half of what is to be written is written before one that dies in `write`.

    Returns:
        Whether it was: False if it came to its end before.
    """
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            _die_at(moment)
            act()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def _die_at(moment: int) -> None:
    left = moment

    def dying(name: str) -> None:
        real = getattr(os, name)

        def call(*args: object, **options: object) -> object:
            nonlocal left
            if name == "open" and not int(str(args[1])) & (os.O_WRONLY | os.O_RDWR):
                return real(*args, **options)
            left -= 1
            if left < 0:
                if name == "write":
                    fd, data = args
                    assert isinstance(data, bytes)
                    real(fd, data[: len(data) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **options)

        setattr(os, name, call)

    for name in _CALLS:
        dying(name)
