"""Bounds what a client of `mcp-server` gets: no more than the server was started with.

Another model writes the arguments of a call, and what it read may have told it to.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast, get_args

from codex_py.config.config import Config
from codex_py.errors import CodexError
from codex_py.protocol.approval import ApprovalPolicy, GranularPolicy, SandboxMode
from codex_py.protocol.frozen import frozen

_MODES: Final = get_args(SandboxMode)
_FREE: Final = """model model_reasoning_effort plan_mode_reasoning_effort model_reasoning_summary model_verbosity
    service_tier personality model_context_window model_max_output_tokens model_auto_compact_token_limit
    instructions developer_instructions compact_prompt hide_agent_reasoning show_raw_agent_reasoning
    tool_choice parallel_tool_calls tool_output_token_limit tools.update_plan
    tools.experimental_request_user_input sandbox_mode approval_policy"""
"""Settings that a client may give. Others name programs, addresses or files, or they protect."""


@frozen
class Ceiling:
    config: Config
    """As the server was started."""
    folders: tuple[Path, ...]
    """The folders, without links, that the server works in."""

    def check_settings(self, source: str, values: Mapping[str, Any]) -> None:
        """Raise a `CodexError` if one of the settings is not for a client to give, nor for a profile that it names."""
        for name, value in values.items():
            inner: dict[str, Any] = {}
            if isinstance(value, dict):
                inner = cast("dict[str, Any]", value)
            keys = [name]
            if name == "tools":
                keys = [f"tools.{part}" for part in inner]
            for key in keys:
                if key not in _FREE.split():
                    raise _refusal(f"`{source}`: a client may not set {key!r}")

    def narrowed(self, config: Config, *, asks_for_sandbox: bool) -> Config:
        """The configuration of a call, with the server's sandbox at most.

        Args:
            asks_for_sandbox: the call itself names a mode, so a wider one is refused rather than narrowed.

        Raises:
            CodexError: it allows more than that of the server.
        """
        own = self.config
        mode = config.sandbox_policy().mode
        most = own.sandbox_policy().mode
        if _MODES.index(mode) > _MODES.index(most):
            if asks_for_sandbox:
                raise _refusal(f"`sandbox`: {mode} is more than {most}")
            mode = most
        if most != "danger-full-access":
            config = replace(
                config,
                sandbox_mode=mode,
                sandbox_workspace_write=own.sandbox_workspace_write,
            )
            is_inside = any(
                config.cwd.is_relative_to(folder) for folder in self.folders
            )
            # A trusted project has programs of its own.
            if not is_inside and (mode != "read-only" or config.trust == "trusted"):
                raise _refusal(f"`cwd`: {config.cwd} is outside of {self.folders[0]}")
        if _is_looser(config, own):
            raise _refusal(
                f"`approval-policy`: {config.approval_policy} is looser than {own.approval_policy}"
            )
        config = replace(
            config, files=config.files.plus(own.files), domains=own.domains
        )
        if config.model_provider != own.model_provider:
            raise _refusal(f"`model`: the provider is {config.model_provider} then")
        return config


def _is_looser(config: Config, most: Config) -> bool:
    """True if more runs unasked, or after a question that the client answers."""
    policy = config.approval_policy
    match most.approval_policy:
        case None | ApprovalPolicy.ON_REQUEST | ApprovalPolicy.ON_FAILURE:
            return False
        case limit:
            never = policy is ApprovalPolicy.NEVER and isinstance(limit, GranularPolicy)
            return policy != limit and not never


def _refusal(reason: str) -> CodexError:
    return CodexError(
        f"{reason}; clients get no more than this server was started with, unless its command line has"
        " --trust-client",
        code="ceiling",
    )
