"""All built-in tools, in the order in which they are offered. A model is offered some of them and may call any."""

from pathlib import Path
from typing import Any

from codex_py.process.sessions import ProcessSessions
from codex_py.protocol.dispatch import Tool
from codex_py.tools.patch.apply_patch import ApplyPatch
from codex_py.tools.plan import UpdatePlan
from codex_py.tools.shell.command import CommandRunner
from codex_py.tools.shell.exec_command import ExecCommand, WriteStdin
from codex_py.tools.shell.orchestrator import Orchestrator
from codex_py.tools.shell.shell import LocalShell, Shell, ShellCommand
from codex_py.tools.view_image import ViewImage


def builtin_tools(
    processes: ProcessSessions,
    plan: UpdatePlan,
    orchestrator: Orchestrator,
    *,
    home: Path | None,
    shell: str,
    structured_shell: bool,
    image_detail: str,
    max_poll_ms: int,
    allow_login_shell: bool = True,
    unambiguous_patches: bool = False,
) -> list[Tool[Any]]:
    """
    Args:
        home: `$CODEX_HOME`, for the journal of files that patches replace; None keeps no journal.
        shell: path of the user's shell.
        structured_shell: `shell` and `local_shell` answer with JSON.
        image_detail: the resolution of images from `view_image`, see `input_image`.
        max_poll_ms: the longest wait of a `write_stdin` that writes nothing.
        allow_login_shell: whether shells may read the profile files of the user.
        unambiguous_patches: refuse a patch that fits several places.
    """
    patch = ApplyPatch(home, unambiguous=unambiguous_patches)
    runner = CommandRunner(processes, orchestrator, patch)
    return [
        ExecCommand(runner, shell, allow_login=allow_login_shell),
        WriteStdin(processes, max_poll_ms=max_poll_ms),
        Shell(runner, shell, structured=structured_shell, allow_login=allow_login_shell),
        ShellCommand(runner, shell, allow_login=allow_login_shell),
        LocalShell(runner, shell, structured=structured_shell),
        plan,
        patch,
        ViewImage(image_detail),
    ]
