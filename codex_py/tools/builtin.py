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
    """The tools of one session. `ApplyPatch`, `CommandTool`, `WriteStdin` and `ViewImage` say what the arguments mean."""
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
