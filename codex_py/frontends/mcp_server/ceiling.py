"""Bounds the permissions of a client of `mcp-server` to those that the server was started with.

Another model writes the arguments of a call, and it may follow instructions in text that it read.
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
"""Settings that a client may give. All others name programs, addresses or files, or protect."""


@frozen
class Ceiling:
    config: Config
    """The configuration with which the server was started."""
    folders: tuple[Path, ...]
    """The folders, without links, that the server works in."""

    def check_settings(self, source: str, values: Mapping[str, Any]) -> None:
        """Raise a `CodexError` for a setting that a client, or a profile it names, may not give."""
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
        """Narrow the configuration of a call to the server's sandbox.

        Args:
            asks_for_sandbox: the call itself names a mode. A mode wider than the server's is then
                refused rather than narrowed.

        Raises:
            CodexError: the call's configuration allows more than the server's.
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
            # A trusted project may name its own programs.
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
    """True if `config` may run more than `most` unasked, or with the client's approval."""
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
