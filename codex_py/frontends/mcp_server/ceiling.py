"""Bounds the permissions of a client of `mcp-server` to those that the server was started with.

Another model writes the arguments of a call, and it may follow instructions in text that it read.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, get_args

from codex_py.config.config import Config
from codex_py.errors import CodexError
from codex_py.protocol.approval import ApprovalPolicy, GranularPolicy, SandboxMode
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import as_object

_MODES: Final = get_args(SandboxMode)
"""The modes of the sandbox, from the narrowest to the widest."""
_FREE: Final = {
    "approval_policy",
    "compact_prompt",
    "developer_instructions",
    "hide_agent_reasoning",
    "instructions",
    "model",
    "model_auto_compact_token_limit",
    "model_context_window",
    "model_max_output_tokens",
    "model_reasoning_effort",
    "model_reasoning_summary",
    "model_verbosity",
    "parallel_tool_calls",
    "personality",
    "plan_mode_reasoning_effort",
    "sandbox_mode",
    "service_tier",
    "show_raw_agent_reasoning",
    "tool_choice",
    "tool_output_token_limit",
    "tools.experimental_request_user_input",
    "tools.update_plan",
}
"""Settings that a client may give. All others name programs, addresses or files, or protect."""


@frozen
class Ceiling:
    """The most that a client may ask for."""

    config: Config
    """The configuration with which the server was started."""
    folders: tuple[Path, ...]
    """The folders, without links, that the server works in."""

    def check_settings(self, source: str, values: Mapping[str, Any]) -> None:
        """Raise a `CodexError` for a setting that a client, or a profile it names, may not give."""
        for name, value in values.items():
            keys = [name]
            if name == "tools":
                keys = [f"tools.{tool}" for tool in as_object(value)]
            for key in keys:
                if key not in _FREE:
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
            self._check_folder(config, mode)
            config = replace(
                config,
                sandbox_mode=mode,
                sandbox_workspace_write=own.sandbox_workspace_write,
            )
        if _is_looser(config, own):
            raise _refusal(
                f"`approval-policy`: {config.approval_policy} is looser than {own.approval_policy}"
            )
        if config.model_provider != own.model_provider:
            raise _refusal(f"`model`: the provider is {config.model_provider} then")
        files = config.files.plus(own.files)
        return replace(config, files=files, domains=own.domains)

    def _check_folder(self, config: Config, mode: SandboxMode) -> None:
        """Raise a `CodexError` if the call works outside of the server's folders.

        It may read there, unless the project is trusted: such a project may name its own programs.
        """
        for folder in self.folders:
            if config.cwd.is_relative_to(folder):
                return
        if mode != "read-only" or config.trust == "trusted":
            raise _refusal(f"`cwd`: {config.cwd} is outside of {self.folders[0]}")


def _is_looser(config: Config, most: Config) -> bool:
    """True if `config` may run more than `most` unasked, or with the client's approval."""
    policy = config.approval_policy
    match most.approval_policy:
        case None | ApprovalPolicy.ON_REQUEST | ApprovalPolicy.ON_FAILURE:
            return False
        case GranularPolicy() if policy is ApprovalPolicy.NEVER:
            return False
        case limit:
            return policy != limit


def _refusal(reason: str) -> CodexError:
    return CodexError(
        f"{reason}; clients get no more than this server was started with, unless its command line has"
        " --trust-client",
        code="ceiling",
    )
