"""The place of a command: what the model can change there, from what is known of the turn."""

from pathlib import Path

from codex_py.execpolicy.place import Place
from codex_py.protocol.dispatch import ToolContext


def command_place(cwd: Path, context: ToolContext, shell: str) -> Place:
    """
    Args:
        cwd: of the command; absolute.
        shell: path of the user's own shell; empty if it is not known.
    """
    policy, environment = context.sandbox_policy, context.environment
    return Place(
        cwd,
        environment,
        workspace=(context.cwd, *policy.writable_roots),
        # In every mode: the one before may have been another, and whoever wrote the repository is not the user.
        temporary=(Path("/tmp"), Path(environment.get("TMPDIR") or "/tmp")),
        shell=shell,
    )
