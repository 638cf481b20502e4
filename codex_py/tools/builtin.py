"""All built-in tools. Requests offer a model some of them, and it may call any."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from codex_py.process.sessions import ProcessSessions
from codex_py.protocol.dispatch import Tool
from codex_py.protocol.image_rule import ImageRule
from codex_py.protocol.patched_file import OpenTexts
from codex_py.tools.plan import UpdatePlan
from codex_py.tools.shell.command import CommandRunner
from codex_py.tools.shell.exec_command import ExecCommand, WriteStdin
from codex_py.tools.shell.orchestrator import Orchestrator
from codex_py.tools.shell.shell import LocalShell, Shell, ShellCommand
from codex_py.tools.shell.snapshot import LoginShell
from codex_py.tools.view_image import ViewImage


def builtin_tools(
    processes: ProcessSessions,
    plan: UpdatePlan,
    orchestrator: Orchestrator,
    *,
    home: Path | None,
    shell: str,
    structured_shell: bool,
    image_rule: ImageRule,
    max_poll_ms: int,
    allow_login_shell: bool = True,
    login_shell: LoginShell | None = None,
    unambiguous_patches: bool = False,
    open_texts: OpenTexts | None = None,
) -> Mapping[str, Callable[[], Tool[Any]]]:
    """Return a function for each tool of one session, by the tool's name. It makes the tool.

    Call each function at most once. `ApplyPatch`, `CommandTool`, `WriteStdin` and `ViewImage`
    document the arguments.
    """

    @cache
    def apply_patch():
        from codex_py.tools.patch.apply_patch import ApplyPatch  # 7 ms, once needed

        return ApplyPatch(home, unambiguous=unambiguous_patches, open_texts=open_texts)

    runner = CommandRunner(
        processes,
        orchestrator,
        lambda patch, cwd, context: apply_patch().apply(patch, cwd, context),
        login_shell,
    )
    return {
        "exec_command": lambda: ExecCommand(
            runner, shell, allow_login=allow_login_shell
        ),
        "write_stdin": lambda: WriteStdin(processes, max_poll_ms=max_poll_ms),
        "shell": lambda: Shell(
            runner, shell, structured=structured_shell, allow_login=allow_login_shell
        ),
        "shell_command": lambda: ShellCommand(
            runner, shell, allow_login=allow_login_shell
        ),
        "local_shell": lambda: LocalShell(runner, shell, structured=structured_shell),
        "update_plan": lambda: plan,
        "apply_patch": apply_patch,
        "view_image": lambda: ViewImage(image_rule),
    }
