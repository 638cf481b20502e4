"""The settings of a turn, and the choices among them that the user may change."""

from collections.abc import Sequence
from dataclasses import field, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias

from codex_py.protocol.approval import AskForApproval, SandboxPolicy, approval_data
from codex_py.protocol.frozen import frozen
from codex_py.protocol.image_rule import ImageRule
from codex_py.protocol.stream import Abilities
from codex_py.protocol.tools import ToolSpec

Mode: TypeAlias = Literal["default", "plan"]
"""The mode of a turn. In `plan`, the model may look and ask, and changes nothing; see
`app/features/plan_mode.py`."""


@frozen(kw_only=True)
class Choices:
    """The settings that `Session.change` takes.

    All others follow from these and the configuration.
    """

    model: str
    reasoning_effort: str | None
    """The effort that the user chose; None: the default of the model."""
    reasoning_summary: str | None
    approval_policy: AskForApproval
    sandbox_policy: SandboxPolicy
    mode: Mode = "default"


@frozen
class TurnSettings:
    """All settings of a turn."""

    model: str
    provider: str
    """The display name of the provider."""
    cwd: Path
    approval_policy: AskForApproval
    sandbox_policy: SandboxPolicy
    context_window: int
    """The tokens that fit into a request, without the share that is kept free."""
    known_window: int | None = None
    """All tokens of the window; None if the window is a guess, or another model may take over."""
    reasoning_effort: str | None = None
    """The configured effort; None: the default of the model."""
    reasoning_summary: str | None = None
    reasoning: dict[str, Any] | None = None
    """The object that requests carry."""
    max_output_tokens: int | None = None
    """The limit that requests carry."""
    abilities: Abilities = field(default_factory=Abilities)
    verbosity: str | None = None
    service_tier: str | None = None
    image_rule: ImageRule = field(default_factory=ImageRule)
    tools: Sequence[ToolSpec] = ()
    parallel_tool_calls: bool = True
    max_responses: int = 1000
    """The number of requests to the model after which a turn is stopped."""
    compact_prompt: str | None = None
    """The prompt that asks the model for a summary; None: the built-in prompt."""
    auto_compact_token_limit: int | None = None
    """Compact the history when a response has used this many tokens, input included; None:
    never."""
    mode: Mode = "default"
    chosen: Choices | None = None
    """The user's choices, if the mode overrules some of them."""

    @property
    def choices(self) -> Choices:
        """The user's choices, whatever the mode makes of them."""
        if self.chosen is not None:
            return self.chosen
        values = {each.name: getattr(self, each.name) for each in fields(Choices)}
        return Choices(**values)


def turn_context(settings: TurnSettings) -> dict[str, Any]:
    """The settings of a turn as a line of the session file has them, in the classic format."""
    policy = settings.sandbox_policy
    sandbox: dict[str, Any] = {"type": policy.mode}
    if policy.mode == "workspace-write":
        sandbox |= {
            "writable_roots": [str(root) for root in policy.writable_roots],
            "network_access": policy.network_access,
            "exclude_tmpdir_env_var": policy.exclude_tmpdir_env_var,
            "exclude_slash_tmp": policy.exclude_slash_tmp,
        }
    return {
        "cwd": str(settings.cwd),
        "approval_policy": approval_data(settings.approval_policy),
        "sandbox_policy": sandbox,
        "model": settings.model,
        "effort": settings.reasoning_effort,
        "summary": settings.reasoning_summary or "auto",
    }
