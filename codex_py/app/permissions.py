"""The permissions that a user can choose between, in the terminal and in an editor."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from codex_py.config.config import Config
from codex_py.protocol.approval import ApprovalPolicy, SandboxMode
from codex_py.protocol.frozen import frozen
from codex_py.protocol.settings import Choices


@frozen
class Permissions:
    """One choice: an approval policy and a mode of the sandbox."""

    id: str
    label: str
    note: str
    """What the agent may do, for the user."""
    policy: ApprovalPolicy
    sandbox: SandboxMode

    def are_those_of(self, choices: Choices) -> bool:
        if self.policy != choices.approval_policy:
            return False
        return self.sandbox == choices.sandbox_policy.mode

    def given_to(
        self, choices: Choices, config: Config, add_dirs: Sequence[Path]
    ) -> Choices:
        """Return the choices with these permissions. `add_dirs`: see `Config.sandbox_policy`."""
        sandbox = replace(config, sandbox_mode=self.sandbox).sandbox_policy(add_dirs)
        # `Config.sandbox_policy` replaces a mode that the administrator forbids. Restore the chosen
        # mode, so that an error about it is reported when these choices are applied.
        sandbox = replace(sandbox, mode=self.sandbox)
        return replace(choices, approval_policy=self.policy, sandbox_policy=sandbox)

    def is_allowed(
        self, choices: Choices, config: Config, add_dirs: Sequence[Path]
    ) -> bool:
        """True if the administrator lets a user choose these permissions.

        For the arguments, see `given_to`.
        """
        chosen = self.given_to(choices, config, add_dirs)
        permitted = config.requirements.held_choices(chosen)
        return self.are_those_of(permitted)


def allowed_permissions(
    choices: Choices, config: Config, add_dirs: Sequence[Path]
) -> list[Permissions]:
    """Return the permissions that a user can choose.

    For the arguments, see `Permissions.given_to`.
    """
    return [each for each in PERMISSIONS if each.is_allowed(choices, config, add_dirs)]


PERMISSIONS: Final = (
    Permissions(
        "ask",
        "Ask for approval",
        "works in this folder; asks to leave it or to use the network",
        ApprovalPolicy.ON_REQUEST,
        "workspace-write",
    ),
    Permissions(
        "never-ask",
        "Never ask",
        "works in this folder and cannot leave it",
        ApprovalPolicy.NEVER,
        "workspace-write",
    ),
    Permissions(
        "read-only",
        "Read only",
        "reads; asks to change anything",
        ApprovalPolicy.ON_REQUEST,
        "read-only",
    ),
    Permissions(
        "full-access",
        "Full access",
        "may do all that you may, unasked",
        ApprovalPolicy.NEVER,
        "danger-full-access",
    ),
)
EFFORTS: Final = ("minimal", "low", "medium", "high", "xhigh")
"""The efforts of reasoning; a model has a default."""
